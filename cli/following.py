"""When to say that something waits and is held."""

from __future__ import annotations

import threading

from ..gateway.events.contract import Event, QueueEvent, is_aside
from ..gateway.interface import ChatSession


class HeldNotice:
    """Follows a queue's events, and says it when more is held than before: not for what becomes less."""

    def __init__(self) -> None:
        self._count = 0

    def hear(self, event: Event) -> str:
        """Take in an event; return the line that it calls for, mostly none."""
        before = self._count
        match event["type"]:
            case "session_started":
                self._count = 0
            case "recovered" | "queue":
                self._count = sum(bool(item.get("held")) for item in event["items"])
            case _:
                return ""
        is_more = event["type"] == "queue" and self._count > before
        return f"Held: {self._count} waiting. /queue resume runs them." if is_more else ""


# Which message an answer is for, where the message waited before its turn began -------------------


class StartedTurns:
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


# Waits until a session has nothing more to do -----------------------------------------------------


ENDINGS = frozenset(
    {
        "turn_ended",
        "stopped",
        "queue",
        "rejected",
        "result",
        "error",
        "accepted",
        "child_ended",
        "side_talk_ended",
        "goal",
    }
)


class IdleWaiter:
    """Listens on the event bus; `wait` returns when the conversation is quiet.

    `pause` is the number of seconds after which it checks without an event.
    """

    def __init__(self) -> None:
        self._changed = threading.Event()
        self.pause = 0.5
        self.is_broken = False
        self.has_refusal = False
        self.status = ""

    def hear(self, event: Event) -> None:
        """Take note of an event; loop's thread."""
        if is_aside(event):
            return
        if event["type"] == "turn_ended":
            self.status = event["status"]
        if event["type"] == "rejected":
            self.has_refusal = True
        if event["type"] == "error" and event["code"] in ("store_failed", "lease_lost"):
            self.is_broken = True
        if event["type"] in ENDINGS:
            self._changed.set()

    def wait(self, conversation: ChatSession) -> None:
        """Block until nothing runs and no waiting message will start on its own."""
        while not self.is_broken and not conversation.is_quiet():
            self._changed.wait(self.pause)
            self._changed.clear()
