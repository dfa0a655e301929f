"""The lines about a session's goal that interfaces show."""

from __future__ import annotations

from ..gateway.events.contract import Event, GoalView
from ..machines.lifecycles import REASONS
from ..machines.verdict import read_condition

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
