"""How times, sizes and calls are written for people."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

# How long ago, in words ---------------------------------------------------------------------------


UNITS = ((86_400.0, "day"), (3_600.0, "hour"), (60.0, "minute"))


def age(seconds: float) -> str:
    """Say a duration as people do: `just now`, `23 minutes ago`, `2 days ago`.

    What a clock stamped that was ahead of ours, `seconds` below zero, is `2 days ahead`.
    """
    for size, unit in UNITS:
        count = int(abs(seconds) // size)
        if count:
            return f"{count} {unit}{'s' if count > 1 else ''} {'ago' if seconds > 0 else 'ahead'}"
    return "just now"


# How many bytes something takes, as people read it ------------------------------------------------


def size_text(size: float) -> str:
    """Write bytes as people read them: `98 MB` (powers of ten, as disks and downloads do)."""
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


# Times, as machine interfaces write them and as people read them ----------------------------------


def iso(time: float) -> str:
    """Write seconds since the epoch as ISO 8601 in UTC, to the millisecond."""
    return (
        datetime.fromtimestamp(time, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    )


def clock(time: str, precision: str = "seconds") -> str:
    """Show an ISO time as the person's clock does, with the day where it is not today's.

    `precision` is seconds or milliseconds.
    """
    moment = datetime.fromisoformat(time).astimezone()
    shown = moment.time().isoformat(precision)
    return shown if moment.date() == datetime.now().date() else f"{moment.date()} {shown}"


# What a tool call was given, as words on a line ---------------------------------------------------


def call_words(arguments: Mapping[str, Any]) -> list[str]:
    """Return each argument as one line; a switch by its name where it is on, and else not at all."""
    told = (key if value is True else str(value) for key, value in _given(arguments).items())
    return [line for line in (" ".join(text.split()) for text in told) if line]


def _given(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: value for key, value in arguments.items() if value is not None and value is not False
    }


# How a queue item and its progress read: `#1 [RUNNING]: TEXT (file 23/50)` ------------------------


def item_line(item: Mapping[str, Any]) -> str:
    """Write an item on one line, whatever lines its words have: number, state, words, progress."""
    text = " ".join(item["text"].split())
    return f"#{item['number']} [{item['state'].upper()}]: {text}{progress_text(item['progress'])}"


def progress_text(progress: Mapping[str, Any] | None) -> str:
    """Write progress in brackets with a space before it; empty when there is none."""
    if not progress:
        return ""
    unit = f"{progress['unit']} " if progress.get("unit") else ""
    return f" ({unit}{progress['done']}/{progress['total']})"
