"""What the interfaces of a chat or a run have in common.

They subscribe, open, talk, leave and close in the same order; and they follow from a session's events
which messages are held, which turns start, and when the work has ended.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TextIO, TypeVar

from ..gateway.events.contract import Event, QueueEvent, QueueItem, has_left, is_aside, items_after
from ..gateway.interface import ChatHost, ChatSession
from ..gateway.wording.formats import held_text, sender
from .exit_codes import DONE, FAILED, INTERRUPTED, LIMITED, OF_GOALS, OF_PAUSES, UNANSWERED
from .signals import SignalExit, farewell, waiting
from .streams import Printer

Session = TypeVar("Session", bound=ChatSession)


@contextmanager
def talking(
    host: ChatHost,
    open_it: Callable[[], Session],
    hears: Sequence[Callable[[Event], None]],
    printers: Sequence[Printer] = (),
    tell: Callable[[str], None] | None = None,
) -> Generator[Session]:
    """Open a session whose events `hears` get, in this order; at the end, close the host and print all.

    The block leaves the session when its talk is over; a signal leaves it here, and is passed on. `tell`
    is told then what is saved, and how to continue.
    """
    for hear in hears:
        host.event_bus.subscribe(hear)
    try:
        session = open_it()
        try:
            yield session
        except SignalExit:
            session.leave("signal")
            if tell is not None and (line := farewell(session, host.paths, is_kept=host.is_kept)):
                tell(f"{line}\n")
            raise
    finally:
        host.close()
        for printer in printers:
            printer.close()


def start_notices(host: ChatHost) -> list[str]:
    """Return what is to be said at the start, beside the model."""
    return [*host.config.notices, *host.notices]


def has_utf8(stream: TextIO) -> bool:
    """Whether a stream takes all characters."""
    return (stream.encoding or "").lower().replace("-", "") == "utf8"


_ENDS_ANSWER = frozenset(
    {
        "answer",
        "turn_ended",
        "tool_started",
        "tool_ended",
        "question",
        "interrupting",
        "interrupted",
        "steered",
    }
)


def ends_answer(event: Event) -> bool:
    """Whether an event ends what the model was saying: its line belongs below all of that."""
    match event["type"]:
        case "accepted":
            return event["as"] == "interrupt"
        case "notice":
            return event.get("ends_answer", False)
        case "error":
            return event["code"] in ("model_failed", "turn_failed")
        case "result":
            return event["name"] == "stop" and bool(event["data"].get("interrupted"))
        case kind:
            return kind in _ENDS_ANSWER


def is_of_another(event: Event, own_key: str | None) -> bool:
    """Whether an event answers a command of another terminal or program, which has shown it.

    `own_key` begins the client ids of this one: empty in the session's own program, none if not known.
    """
    if event["type"] != "result" or own_key is None:
        return False
    key = event["client_id"] or ""
    return not key.startswith(own_key) if own_key else bool(key)


def done_by_another(event: Event) -> str:
    """Say what a command of another one did that matters here: to work, goal, queue and settings."""
    news = event.get("news") if event["type"] == "result" else None
    return f"Elsewhere: {news}" if news else ""


class HeldNotice:
    """Reports that messages are held, when their number has risen.

    While the next message is about to start in an open queue, more may be held by the same stop:
    that is reported with the change of the queue that follows.
    """

    def __init__(self) -> None:
        self._told = 0
        self._items: list[QueueItem] = []

    def hear(self, event: Event) -> str:
        """Take in an event; return the notice for it, or an empty text."""
        match event["type"]:
            case "session_started":
                self._told, self._items = 0, []
            case "recovered":
                self._items = event["items"]
                self._told = self._held
            case "queue":
                self._items = items_after(self._items, event)
                return self._risen(event)
            case _:
                pass
        return ""

    @property
    def _held(self) -> int:
        return sum(bool(item.get("held")) for item in self._items)

    def _risen(self, event: QueueEvent) -> str:
        states = [item["state"] for item in self._items if not item.get("held")]
        if event["state"] == "open" and "pending" in states and "running" not in states:
            self._told = min(self._told, self._held)
            return ""
        is_more, self._told = self._held > self._told, self._held
        return held_text(self._told, event.get("again")) if is_more else ""


class StartedTurns:
    """Reports the message of a turn that starts, if the message waited in the queue.

    A message that runs at once is directly above its answer, so it is not reported; nor is a turn
    without a message, such as a goal's.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, tuple[str, str]] = {}  # text and sender
        self._is_joining = False

    def hear(self, event: Event) -> str:
        """Take in an event; return the message with its number and sender, or an empty text."""
        if event["type"] == "session_started":
            self._waiting.clear()
            self._is_joining = event["resumed"]
        elif event["type"] == "accepted":
            self._is_joining = False
            if event["as"] in ("queue", "steer"):
                self._waiting[event["id"]] = event["text"], event.get("user", "")
        elif event["type"] == "recovered":
            self._waiting |= {item["id"]: (item["text"], item["user"]) for item in event["items"]}
        elif event["type"] == "requeued":  # as another message, where the model gave a steer back
            self._waiting.setdefault(event["item"], ("", ""))  # its text comes with the queue
        elif event["type"] == "queue":
            self._update(event)
        elif event["type"] == "turn_started" and event["item"] in self._waiting:
            text, user = self._waiting.pop(event["item"])
            by = f" from {who}" if (who := sender(user)) else ""
            return f"{text}  (#{event['number']}{by})"
        return ""

    def _update(self, event: QueueEvent) -> None:
        """Take over edited texts, add interrupted messages, and drop removed ones."""
        before, waited = self._waiting, ["interrupted"]
        if self._is_joining:  # what others had queued before
            waited.append("pending")
            self._is_joining = False
        items = event.get("items", event.get("changed", []))
        known = {
            item["id"]: (item["text"], item["user"])
            for item in items
            if item["id"] in before or (item["state"] in waited and "goal" not in item)
        }
        kept = {} if "items" in event else before
        self._waiting = {
            name: said for name, said in (kept | known).items() if not has_left(event, name)
        }


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
        "changed",
        "own_command",
    }
)


LIMITS = ("limit_reached", "no_progress")
"""Codes of the errors after which a turn is interrupted without anybody's word."""


class IdleWaiter:
    """Waits until a session has nothing more to do.

    `hear` subscribes to the event bus. `pause` is the number of seconds after which the waiter
    checks without an event.
    """

    def __init__(self) -> None:
        self._changed = threading.Event()
        self.pause = 0.5
        self.is_broken = False
        self.has_refusal = False
        self.is_limited = False
        self.is_unanswered = False
        self.status = ""
        self._goal = DONE

    def hear(self, event: Event) -> None:
        """Take in an event; loop's thread."""
        if is_aside(event):
            return
        if event["type"] == "turn_ended":
            self.status = event["status"]
            self.is_limited = self.is_limited and event["status"] != "completed"
        if event["type"] == "goal" and event["state"] in OF_GOALS:
            pauses = event["state"] == "paused"
            self._goal = (
                OF_PAUSES.get(event["reason"] or "", FAILED) if pauses else OF_GOALS[event["state"]]
            )
        if event["type"] == "tool_ended" and event.get("unanswered"):
            self.is_unanswered = True
        if event["type"] == "rejected":
            self.has_refusal = True
        if event["type"] == "error" and event["code"] in LIMITS and "parent" not in event:
            self.is_limited = True
        if event["type"] == "error" and event["code"] in ("store_failed", "lease_lost"):
            self.is_broken = True
        if event["type"] == "session_started":  # there is room again, and the session was recovered
            self.is_broken = False
        if event["type"] in ENDINGS:
            self._changed.set()

    @property
    def exit_code(self) -> int:
        """How the work ended: as its newest turn, refused, broken off, or with an open question."""
        if self.has_refusal or self.is_broken or self.status == "failed":
            return FAILED
        if self.is_limited:
            return LIMITED
        return UNANSWERED if self.is_unanswered else DONE

    @property
    def code_of_one(self) -> int:
        """How one message ended, also by a stop; that of a goal is how the goal stands."""
        if self.status == "interrupted":
            return self.exit_code or INTERRUPTED
        return self.exit_code or self._goal

    def wait(self, conversation: ChatSession, between: Callable[[], None] = lambda: None) -> None:
        """Block until nothing runs and no queued message will start without a command.

        `between` is called now and then meanwhile, twice a second at least unless `pause` is longer.
        """
        while not conversation.is_quiet():
            with waiting():
                self._changed.wait(self.pause)
            self._changed.clear()
            between()
