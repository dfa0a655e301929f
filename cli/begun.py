"""Which message an answer is for, where the message waited before its turn began."""

from __future__ import annotations

from ..gateway.events.contract import Event, QueueEvent


class Begun:
    """Follows a session's events, and gives the text of a message whose turn begins after a wait.

    A message that runs at once stands right above its answer, so nothing is given for it; nor for a
    turn without a message, such as those of a goal.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, str] = {}

    def hear(self, event: Event) -> str:
        """Take in an event; return a message's text and number, mostly nothing."""
        if event["type"] == "session_started":
            self._waiting.clear()
        elif event["type"] == "accepted" and event["as"] in ("queue", "steer"):
            self._waiting[event["id"]] = event["text"]
        elif event["type"] == "recovered":
            self._waiting |= {item["id"]: item["text"] for item in event["items"]}
        elif event["type"] == "queue":
            self._reword(event)
        elif event["type"] == "turn_started" and (text := self._waiting.pop(event["item"], "")):
            return f"{text}  (#{event['number']})"
        return ""

    def _reword(self, event: QueueEvent) -> None:
        """Learn what was edited, what was cut off and can go on, and what is gone."""
        was = self._waiting
        self._waiting = {
            item["id"]: item["text"]
            for item in event["items"]
            if item["id"] in was or item["state"] == "interrupted"
        }
