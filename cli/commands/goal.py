"""`steersman goal …`: shows and changes the goal of a session, from another terminal."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from ...gateway.commands.goal import (
    clear_goal,
    draw_goal,
    goal_data,
    next_goal,
    pause_goal,
    resume_goal,
)
from ...gateway.commands.goal import goal as first_goal
from ...gateway.wording.redaction import redactor_of
from ...journal.record import SessionRecord, apply
from ...journal.recovery import load_record, recovered
from ...machines.errors import UsageError
from ..options import Json, Of, group
from ..output import show, show_document
from ..stored import stored
from .session_command import find_for_listing, run_on, twin

goal = group("Show and change the goal of a session.", "steersman goal status")


@goal.command("set")
def goal_set(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The condition to reach.")],
    gate: Annotated[
        list[str] | None,
        typer.Option("--gate", metavar="COMMAND", help="Must succeed first; may be repeated."),
    ] = None,
    turns: Annotated[
        int | None, typer.Option("--turns", metavar="N", help="Maximum number of turns.")
    ] = None,
    tokens: Annotated[
        int | None, typer.Option("--tokens", metavar="N", help="Maximum number of tokens.")
    ] = None,
    minutes: Annotated[
        float | None, typer.Option("--minutes", metavar="N", help="Maximum number of minutes.")
    ] = None,
    is_next: Annotated[
        bool, typer.Option("--next", help="Add it after the present goals.")
    ] = False,
    session: Of = "",
    as_json: Json = False,
) -> int:
    """Let a session work until a judge decides that a goal is met.

    Example: steersman goal set "all tests pass" --gate "npm test" --turns 10
    """
    if not text.strip():
        raise UsageError("a goal needs a text", 'steersman goal set "all tests pass"')
    if turns is not None and turns < 1:
        raise UsageError(
            f"a goal takes at least 1 turn, not {turns}", "its own first message is turn 1"
        )
    order = next_goal if is_next else first_goal
    call = order(text, gates=tuple(gate or ()), turns=turns, tokens=tokens, minutes=minutes)
    return run_on(session, call, as_json=as_json)


@goal.command("status")
def goal_status(session: Of = "", as_json: Json = False) -> int:
    """Show the progress of the goal, without changing the session.

    Example: steersman goal status --session last
    """
    with stored(os.environ) as store:
        row = find_for_listing(store, session)
        record = load_record(store, row.session) if row else SessionRecord()
        if record.goals.is_pursued and row and not store.is_owned(row.session):
            as_found = recovered(record)  # by its next owner
            apply(record, as_found, record.seq + 1, record.updated)
    data = redactor_of(os.environ, record.folder).data(
        {"session": record.id or None, **goal_data(record)}
    )
    if as_json:
        show_document(data)
    elif row:
        show(draw_goal(data))
    return 0


goal.command("pause")(twin(pause_goal))
goal.command("resume")(twin(resume_goal))
goal.command("clear")(twin(clear_goal))
