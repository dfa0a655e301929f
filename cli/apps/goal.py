"""`steersman goal …`, as people type it."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from ..parameter import Json, Of

goal = typer.Typer(
    help="See and change what a session works for.\n\nExample: steersman goal status",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@goal.command("set")
def goal_set(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What is to be reached.")],
    gate: Annotated[
        list[str] | None,
        typer.Option("--gate", metavar="COMMAND", help="Must succeed first; may be repeated."),
    ] = None,
    turns: Annotated[
        int | None, typer.Option("--turns", metavar="N", help="At most so many turns.")
    ] = None,
    tokens: Annotated[
        int | None, typer.Option("--tokens", metavar="N", help="At most so many tokens.")
    ] = None,
    minutes: Annotated[
        float | None, typer.Option("--minutes", metavar="N", help="At most so many minutes.")
    ] = None,
    is_next: Annotated[
        bool, typer.Option("--next", help="Line it up behind the goals that are there.")
    ] = False,
    session: Of = "",
    as_json: Json = False,
) -> int:
    """Let a session work for something until a judge says that it is done.

    Example: steersman goal set "all tests pass" --gate "npm test" --turns 10
    """
    from ..goal import set_goal

    return set_goal(
        os.environ,
        session,
        text,
        gate or [],
        turns,
        tokens,
        minutes,
        is_next=is_next,
        as_json=as_json,
    )


@goal.command("status")
def goal_status(session: Of = "", as_json: Json = False) -> int:
    """Say how far the goal is, without touching the session.

    Example: steersman goal status --session last
    """
    from ..goal import show_goal

    return show_goal(os.environ, session, as_json=as_json)


@goal.command("pause")
def goal_pause(session: Of = "", as_json: Json = False) -> int:
    """Begin no further turn for the goal; a running one ends.

    Example: steersman goal pause
    """
    return _change(session, "pause", as_json)


@goal.command("resume")
def goal_resume(session: Of = "", as_json: Json = False) -> int:
    """Go on, with as many turns again.

    Example: steersman goal resume
    """
    return _change(session, "resume", as_json)


@goal.command("clear")
def goal_clear(session: Of = "", as_json: Json = False) -> int:
    """Drop the goal.

    Example: steersman goal clear
    """
    return _change(session, "clear", as_json)


def _change(session: str, verb: str, as_json: bool) -> int:
    from ..goal import change_goal

    return change_goal(os.environ, session, verb, as_json=as_json)
