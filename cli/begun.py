"""Which message an answer is for, where it was said long before its turn began."""

from __future__ import annotations

from ..gateway.events.contract import Event


class Begun:
    """Follows a session's events, and gives the words of a message whose turn begins after a wait.

    What was said and runs at once stands right above its answer, so nothing is given for it; nor for
    what nobody said, as the turns of a goal.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, str] = {}

    def hear(self, event: Event) -> str:
        """Take in an event; return a message's words and number, mostly nothing."""
        match event["type"]:
            case "session_started":
                self._waiting.clear()
            case "accepted" if event["as"] in ("queue", "steer"):
                self._waiting[event["id"]] = event["text"]
            case "recovered":
                self._waiting |= {one["id"]: one["text"] for one in event["items"]}
            case "queue":
                self._reword(event)
            case "turn_started" if text := self._waiting.pop(event["item"], ""):
                return f"{text}  (#{event['number']})"
            case _:
                pass
        return ""

    def _reword(self, event: Event) -> None:
        """Learn what was edited, what was cut off and can go on, and what is gone."""
        was = self._waiting
        self._waiting = {
            one["id"]: one["text"]
            for one in event["items"]
            if one["id"] in was or one["state"] == "interrupted"
        }
