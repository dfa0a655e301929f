"""Waits until a session has nothing more to do."""

from __future__ import annotations

import threading

from ..gateway.conversation import Conversation
from ..gateway.events.contract import Event, is_aside

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


class Settling:
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

    def wait(self, conversation: Conversation) -> None:
        """Block until nothing runs and no waiting message will start on its own."""
        while not self.is_broken and not conversation.is_quiet():
            self._changed.wait(self.pause)
            self._changed.clear()
