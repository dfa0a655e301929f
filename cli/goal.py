"""`steersman goal …`: shows and changes the goal of a session, from another terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..gateway.commands.goal import (
    clear_goal,
    draw_goal,
    goal,
    goal_data,
    next_goal,
    pause_goal,
    resume_goal,
)
from ..gateway.events.contract import Event, GoalView
from ..gateway.wording.redaction import redactor_of
from ..journal.record import SessionRecord, apply
from ..journal.recovery import load_record, recovered
from ..machines.errors import UsageError
from ..machines.lifecycles import REASONS
from ..machines.verdict import read_condition
from .output import show, show_document
from .queue import find_for_listing, run_on
from .stored import stored

SHOWN = 120
"""Characters of a goal's text that a line shows."""


class GoalLines:
    """The lines about a goal for one interface: each verdict, and each change of its state once."""

    def __init__(self) -> None:
        self._reported = ("", "", "")

    def hear(self, event: Event) -> str:
        """Return a line for an event about a goal; empty for none."""
        if event["type"] == "verdict":
            who = "gate" if event["by"] == "gate" else "judge"
            unusable = "" if event["usable"] else " (no usable verdict)"
            awaited = event["condition"]
            until = f" (waiting for {read_condition(awaited)})" if awaited else ""
            said = f"[{who}] {event['verdict']}{unusable}: {event['reason']}".rstrip(": ")
            return f"{said}{until}"
        if event["type"] != "goal":
            return ""
        state = event["id"], event["state"], event["reason"] or ""
        if state == self._reported:
            return ""
        self._reported = state
        return _line(event)


def _line(event: GoalView) -> str:
    text = " ".join(event["text"].split())[:SHOWN]
    used, most = event["turns_used"], event["max_turns"]
    turns = f"{used} turn" if used == 1 else f"{used} turns"
    match event["state"]:
        case "achieved":
            return f"Goal achieved after {turns}: {text}"
        case "impossible":
            return f"Goal given up after {turns}: {event['detail'] or text}"
        case "waiting":
            return "Goal waiting; no turn of it runs until then. /goal resume continues at once."
        case "cleared" if event["reason"] != "replaced":
            return f"Goal cleared: {text}"
        case "paused" if event["reason"] == "user":
            return f"Goal paused, {used} of {most} turns are used: {text}"
        case "paused":
            why = event["detail"] or REASONS.get(event["reason"] or "", event["reason"])
            left = f"{used} of {most} turns are used. /goal resume continues."
            return f"Goal paused ({why}): {text}\n{left}"
        case _:
            return ""


def set_goal(
    environ: Mapping[str, str],
    session: str,
    text: str,
    gates: Sequence[str],
    turns: int | None,
    tokens: int | None,
    minutes: float | None,
    *,
    is_next: bool,
    as_json: bool,
) -> int:
    """Set a goal where the session runs, or note it until a process opens the session."""
    if not text.strip():
        raise UsageError("a goal needs a text", 'steersman goal set "all tests pass"')
    if turns is not None and turns < 1:
        raise UsageError(
            f"a goal takes at least 1 turn, not {turns}", "its own first message is turn 1"
        )
    order = next_goal if is_next else goal
    call = order(text, gates=tuple(gates), turns=turns, tokens=tokens, minutes=minutes)
    return run_on(environ, session, call, as_json=as_json)


def change_goal(environ: Mapping[str, str], session: str, verb: str, *, as_json: bool) -> int:
    """Pause, resume or clear the goal of a session, also one that another process has open."""
    changes = {"pause": pause_goal, "resume": resume_goal, "clear": clear_goal}
    return run_on(environ, session, changes[verb](), as_json=as_json)


def show_goal(environ: Mapping[str, str], session: str, *, as_json: bool) -> int:
    """Print a session's goal from the store, also while another process runs it."""
    with stored(environ) as store:
        row = find_for_listing(store, session)
        record = load_record(store, row.session) if row else SessionRecord()
        if record.goals.is_pursued and row and not store.is_owned(row.session):
            as_found = recovered(record)  # by its next owner
            apply(record, as_found, record.seq + 1, record.updated)
    data = redactor_of(environ, record.folder).data(
        {"session": record.id or None, **goal_data(record)}
    )
    if as_json:
        show_document(data)
    elif row:
        show(draw_goal(data))
    return 0
