"""A session's status, followed from events, and what shows it: the bar, the terminal's title, a bell."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct, field
from prompt_toolkit.utils import get_cwidth

from ...gateway.events.contract import (
    Event,
    GoalView,
    ProgressEvent,
    QueueEvent,
    QueueItem,
    is_aside,
    items_after,
)
from ...gateway.wording.formats import one_line, progress_text, sender
from ...gateway.wording.terminal import exposed
from ...machines.lifecycles import GOAL
from ...workflows.settings import TerminalSettings
from ..wrapping import fitted
from .appearance import DIM, Appearance, Row


class ShownQueue(Struct):
    """The messages of the queue, and how many beside them `/queue resume` can go on with."""

    items: list[QueueItem] = field(default_factory=list[QueueItem])
    resumable: int = 0

    def hear(self, event: QueueEvent) -> None:
        """Take in a change."""
        self.items = items_after(self.items, event)
        self.resumable = event.get("resumable", 0) if "items" in event else self.resumable


class Status(Struct, kw_only=True):
    """One session as the bar shows it; `since` is the start of the turn, in seconds of `now`.

    `fill` is what the conversation takes of the model's window, and its size, in tokens.
    """

    agent: str = ""
    model: str = ""
    mode: str = "ask"
    folder: Path = Path()
    is_busy: bool = False
    is_stopping: bool = False
    since: float = 0.0
    progress: ProgressEvent | None = None
    queue: ShownQueue = field(default_factory=ShownQueue)
    children: set[str] = field(default_factory=set[str])
    goal: GoalView | None = None
    fill: tuple[int, int] = (0, 0)
    names: dict[str, str] = field(default_factory=dict[str, str])
    own_commands: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def can_stop(self) -> bool:
        """Whether anything works that Esc and Ctrl-C stop, between two turns, too."""
        return self.is_busy or self.is_judging or bool(self.own_commands or self.children)

    @property
    def is_judging(self) -> bool:
        """Whether the goal is judged, or its next turn is about to begin."""
        is_active = self.goal is not None and self.goal["state"] == "active"
        return is_active and not (self.is_busy or self.held)

    @property
    def items(self) -> list[QueueItem]:
        """The messages of the queue, what runs first."""
        return self.queue.items

    @property
    def running(self) -> int | None:
        """Number of the message whose turn runs."""
        return next((item["number"] for item in self.items if item["state"] == "running"), None)

    @property
    def running_for(self) -> str:
        """Who sent the message whose turn runs; empty for the owner of the session."""
        return next((sender(item["user"]) for item in self.items if item["state"] == "running"), "")

    @property
    def waiting(self) -> list[QueueItem]:
        """Messages that wait and will run."""
        return [item for item in self.items if item["state"] == "pending" and not item.get("held")]

    @property
    def held(self) -> list[QueueItem]:
        """Messages that do not run until a person resumes them."""
        return [item for item in self.items if item.get("held")]

    @property
    def interrupted(self) -> int:
        """Number of interrupted messages, which can be resumed."""
        return sum(item["state"] == "interrupted" or "stopped" in item for item in self.items)

    @property
    def offered(self) -> int:
        """Number of offered answers, which run only when a person takes them."""
        return sum(item["state"] == "offered" and "stopped" not in item for item in self.items)

    def hear(self, event: Event, now: float) -> None:
        """Take in an event of the session itself."""
        if is_aside(event):
            return
        match event["type"]:
            case "session_started":
                self.folder = Path(event["folder"])
                name = event.get("model", "").partition(" (")[0]  # not where it is
                self.model = name or self.model
                self.is_busy = self.is_stopping = False
                self.queue, self.progress = ShownQueue(), None
                self.children.clear()
                self.goal, self.fill = None, (0, 0)
            case "child_started":
                self.names[event.get("id", "")] = event["name"]
                self.children.add(event["name"])
            case "child_ended" | "side_talk_ended":
                self.children.discard(event["name"])
            case "turn_started":
                self.is_busy, self.progress = True, None
                self.since = now - event.get("elapsed", 0.0)
            case "interrupting":
                self.is_stopping = self.is_busy
            case "turn_ended":
                self.is_busy = self.is_stopping = False
            case "progress":
                self.progress = event
            case "window":
                self.fill = event["tokens"], event["size"]
            case "compacted":
                self.fill = event["after"], self.fill[1]
            case "queue":
                self.queue.hear(event)
            case "goal":
                self.goal = event
            case "own_command" if event["state"] == "running":
                self.own_commands[event["id"]] = event["command"]
            case "own_command":
                self.own_commands.pop(event["id"], None)
            case "mode":
                self.mode = event["mode"]
            case "result" if event["name"] == "model" and event["ok"]:
                self.model = event["data"]["model"]
            case _:  # the status line shows nothing of other events
                return


# The bar ------------------------------------------------------------------------------------------


LONGEST_NAME = 16
"""Columns of a sender's name."""
YIELDING = 5
"""The parts from this number on make room for a key: names, the window's fill, a goal that is over."""
GAP = 2
"""Minimum number of columns between the status and the keys."""
MOST_WAITING = 3
"""Rows of the messages that wait."""


def bar(
    status: Status,
    now: float,
    width: int,
    appearance: Appearance,
    asks: int = 0,
    hints: Sequence[str] = (),
) -> str:
    """Return one row of at most `width` columns; `asks` is the number of open questions.

    `hints` are keys, the most useful first; those that fit stand at the right edge. The least
    important parts make room for the first.
    """
    between = appearance.plain(" · ")
    parts = _parts(status, now, asks)
    least = GAP + get_cwidth(hints[0]) if hints else 0
    while len(parts) > 1 and _width(parts, between) + least > width:
        last = max(parts, key=lambda part: part[0])
        if last[0] < YIELDING and _width(parts, between) <= width:
            break
        parts.remove(last)
    text = fitted(between.join(text for _, text in parts), width, appearance.plain("…"))
    room = width - get_cwidth(text)
    shown = list(hints)
    while shown and get_cwidth(between.join(shown)) + GAP > room:
        shown.pop()
    return text + between.join(shown).rjust(room) if shown else text


def _width(parts: list[tuple[int, str]], between: str) -> int:
    return get_cwidth(between.join(text for _, text in parts))


def key_hints(status: Status, asks: int, *, is_empty: bool, stop: str = "Esc") -> list[str]:
    """Return what keys do now, the most useful first; a card shows those that answer it.

    `is_empty` is whether nothing is typed, `stop` the key that stops a turn.
    """
    stops = [f"{stop} stops"] if status.can_stop and not status.is_stopping else []
    if asks:
        return stops
    if not is_empty:
        return ["Tab queues it", "Alt-Enter steers"] if status.is_busy else []
    if status.can_stop:
        return stops
    saved = status.held or status.interrupted or status.queue.resumable
    resume = ["/queue resume"] if saved else []
    return [*resume, "? keys", "/ commands"]


def waiting_rows(status: Status, width: int, appearance: Appearance) -> list[Row]:
    """Return a row for each of the next messages that wait, and how many there are besides."""
    items = [item for item in status.items if item["state"] == "pending"]
    shown = items if len(items) <= MOST_WAITING else items[: MOST_WAITING - 1]
    dots = appearance.plain("…")
    rows = list[Row]()
    for item in shown:
        whose = f", from {fitted(who, LONGEST_NAME)}" if (who := sender(item["user"])) else ""
        text = one_line(exposed(item["text"]), width, dots)
        rows.append([(DIM, fitted(f"#{item['number']} {_does(item)}{whose}: {text}", width, dots))])
    if left := len(items) - len(shown):
        rows.append([(DIM, fitted(f"{left} more: /queue", width, dots))])
    return rows


def _does(item: QueueItem) -> str:
    """Say what a message does that has not entered."""
    if item.get("held"):
        return "is held"
    if "turn" in item:
        return "steers"
    return f"steers {', '.join(item['children'])}" if "children" in item else "waits"


def duration(seconds: float) -> str:
    """Write a duration: `40 ms`, `1.4 s`, `12 s`, `3 min 5 s`, `2 h 5 min`."""
    if seconds < 0.1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if not minutes:
        return f"{rest} s"
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def _parts(status: Status, now: float, asks: int) -> list[tuple[int, str]]:
    """List the parts, left to right; the higher its number, the sooner a part is left out."""
    parts = [(7, status.agent), (6, status.model), (0, _doing(status, now))]
    if status.mode != "ask":
        parts.append((1, f"mode {status.mode}"))
    if status.own_commands:
        last = one_line(list(status.own_commands.values())[-1], LONGEST_NAME, "...")
        parts.append((2, f"!{last} runs"))
    if asks:
        parts.append((1, "1 question" if asks == 1 else f"{asks} questions"))
    if status.waiting:
        parts.append((2, _counted_items(status.waiting, "waiting")))
    if status.held:
        parts.append((2, _counted_items(status.held, "held")))
    if status.interrupted:
        parts.append((3, f"{status.interrupted} interrupted"))
    if status.queue.resumable:
        more = " more" if status.interrupted else ""
        parts.append((3, f"{status.queue.resumable}{more} to resume"))
    if status.offered:
        parts.append((3, f"{status.offered} offered"))
    if names := sorted(status.children):
        who = ", ".join(names) if len(names) < 3 else f"{len(names)} subagents"
        parts.append((3, f"{who} at work"))
    if (goal := status.goal) is not None and goal["state"] != "cleared":
        state = "" if goal["state"] == "active" else f" {goal['state']}"
        most = f"/{goal['max_turns']}" if goal["max_turns"] else ""
        is_over = goal["state"] in GOAL.final
        parts.append((8 if is_over else 4, f"goal{state} {goal['turns_used']}{most}"))
    tokens, size = status.fill
    if size:
        parts.append((5, f"{100 * tokens // size} % of {_counted(size)}"))
    return [part for part in parts if part[1]]


def _doing(status: Status, now: float) -> str:
    if not status.is_busy:
        return "judging" if status.is_judging else "idle"
    word = "stopping" if status.is_stopping else "working"
    if who := status.running_for:
        word += f" for {fitted(who, LONGEST_NAME)}"
    seconds = max(0, now - status.since)
    elapsed = f"{int(seconds)} s" if seconds < 60 else duration(seconds)
    return f"{word} {elapsed}{progress_text(status.progress)}"


def _counted_items(items: list[QueueItem], word: str) -> str:
    """Count messages, and name the senders of those that are not the owner's."""
    others = [who for item in items if (who := sender(item["user"]))]
    names = [fitted(name, LONGEST_NAME) for name in dict.fromkeys(others)]
    whose = ", ".join(names[:2]) + (" and others" if len(names) > 2 else "")
    count = f"{len(others)} " if len(others) < len(items) else ""
    return f"{len(items)} {word}" + (f" ({count}from {whose})" if others else "")


def _counted(number: int) -> str:
    if number < 1000:
        return str(number)
    return f"{number // 1000}k" if number < 1_000_000 else f"{number / 1_000_000:.3g}M"


# Attention ----------------------------------------------------------------------------------------
# A terminal that reports its focus (xterm's mode 1004) calls while it has none; any other while no key
# was pressed for a while. What is written are this program's own codes; the only foreign text is the
# name of the folder, of which the title has the printable characters.


AWAY = 10.0
"""Seconds without a key after which a person counts as away, where the focus is not known."""
LONGEST_TITLE = 40
"""Characters of the folder's name in the title."""
FOCUSED, UNFOCUSED = "\x1b[I", "\x1b[O"
"""What a terminal sends when it gets and loses the focus."""

_CALLS = {"bell": "\x07", "desktop": "\x1b]9;steersman: {}\x07", "off": ""}
_FOCUS_ON, _FOCUS_OFF = "\x1b[?1004h", "\x1b[?1004l"
_KEEP_TITLE, _GIVE_BACK_TITLE = "\x1b[22;2t", "\x1b[23;2t"


class Attention:
    """Calls for a person and keeps the title; `signal` takes codes for the terminal, in any thread.

    `term` is the type of the terminal: the console of Linux has no title. `away` is in seconds.
    """

    def __init__(
        self,
        settings: TerminalSettings,
        signal: Callable[[str], None],
        term: str = "",
        away: float = AWAY,
    ) -> None:
        self._settings = settings
        self._signal = signal
        self._away = away
        self._has_title = settings.title and term not in ("", "dumb", "linux")
        self._title = ""
        self._has_focus: bool | None = None
        self._touched = self._began = time.monotonic()

    def opening(self) -> str:
        """Return the codes for when the screen opens, or comes back."""
        is_calling = self._settings.notify != "off"
        return (_FOCUS_ON if is_calling else "") + (_KEEP_TITLE if self._has_title else "")

    def closing(self) -> str:
        """Return the codes for when it closes, or another program has the terminal for a while."""
        is_calling = self._settings.notify != "off"
        self._title = ""
        return (_FOCUS_OFF if is_calling else "") + (_GIVE_BACK_TITLE if self._has_title else "")

    def note_key(self) -> None:
        """Take in that a key was pressed."""
        self._touched = time.monotonic()

    def note_focus(self, code: str) -> None:
        """Take in that the terminal got or lost the focus."""
        self._has_focus = code == FOCUSED

    def hear(self, event: Event, status: Status, asks: int) -> None:
        """Take in an event, with the status after it and the number of open questions."""
        now = time.monotonic()
        if event["type"] == "question":
            self._call("a question waits", now)
        elif event["type"] == "turn_started" and not is_aside(event):
            self._began = now
        elif event["type"] == "turn_ended" and not is_aside(event):
            if now - self._began >= self._settings.notify_after:
                self._call("a turn has ended", now)
        self._show(status, asks)

    def _call(self, reason: str, now: float) -> None:
        is_here = self._has_focus
        if is_here is None:
            is_here = now - self._touched < self._away
        code = _CALLS[self._settings.notify]
        if code and not is_here:
            self._signal(code.format(reason))

    def _show(self, status: Status, asks: int) -> None:
        """Set the title, if it changes."""
        if not self._has_title:
            return
        does = "question" if asks else "working" if status.is_busy else "idle"
        name = "".join(sign for sign in status.folder.name if sign.isprintable())[:LONGEST_TITLE]
        title = f"{name} - {does}"
        if title != self._title:
            self._title = title
            self._signal(f"\x1b]2;{title}\x07")
