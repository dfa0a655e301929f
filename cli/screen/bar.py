"""The bar at the bottom: the session's status, as much of it as fits, the most important first."""

from __future__ import annotations

from collections.abc import Sequence

from prompt_toolkit.utils import get_cwidth

from ...gateway.events.contract import QueueItem
from ...gateway.wording.formats import one_line, progress_text, sender
from ..wrapping import fitted
from .appearance import Appearance
from .status import GoalStatus, Status

LONGEST_NAME = 16
"""Columns of a sender's name."""
YIELDING = 5
"""The parts from this number on make room for a key: the names, what is offered, the window's fill."""
GAP = 2
"""Minimum number of columns between the status and the keys."""


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
    text = fitted(between.join(text for _, text in parts), width, appearance.sign("…"))
    room = width - get_cwidth(text)
    shown = list(hints)
    while shown and get_cwidth(between.join(shown)) + GAP > room:
        shown.pop()
    return text + between.join(shown).rjust(room) if shown else text


def _width(parts: list[tuple[int, str]], between: str) -> int:
    return get_cwidth(between.join(text for _, text in parts))


def key_hints(status: Status, asks: int, *, is_empty: bool, stop: str = "Esc") -> list[str]:
    """Return what keys do now, the most useful first; a card shows its own.

    `is_empty` is whether nothing is typed, `stop` the key that stops a turn.
    """
    if asks:
        return []
    if not is_empty:
        return ["Tab queues it", "Alt-Enter steers"] if status.is_busy else []
    if status.can_stop:
        return [] if status.is_stopping else [f"{stop} stops"]
    resume = ["/queue resume"] if status.held or status.interrupted else []
    return [*resume, "? keys", "/ commands"]


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
    if status.offered:
        parts.append((5, f"{status.offered} offered"))
    if status.children:
        parts.append((3, f"{_names(status.children)} at work"))
    parts += [(4, _goal(status.goal)), (5, _window(status.fill))]
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


def _names(children: set[str]) -> str:
    if len(children) > 2:
        return f"{len(children)} subagents"
    return ", ".join(sorted(children))


def _goal(goal: GoalStatus) -> str:
    if goal.state in ("", "cleared"):
        return ""
    turns = f" {goal.used}/{goal.most}" if goal.most else f" {goal.used}"
    return f"goal{turns}" if goal.state == "active" else f"goal {goal.state}{turns}"


def _window(fill: tuple[int, int]) -> str:
    """Say how full the model's window is, empty if that is not known."""
    tokens, size = fill
    return f"{100 * tokens // size} % of {_counted(size)}" if size else ""


def _counted(number: int) -> str:
    if number < 1000:
        return str(number)
    return f"{number // 1000}k" if number < 1_000_000 else f"{number / 1_000_000:.3g}M"
