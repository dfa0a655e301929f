"""Texts for people and programs: ages, sizes, times, the arguments of tool calls, queue items."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ...machines.form import fields_of
from ...machines.json_shape import is_object
from ...machines.pattern import lazy_pattern
from ...machines.protocol import exit_words
from .terminal import clean, exposed

if TYPE_CHECKING:
    from ..events.contract import OwnCommandEvent, ToolEndedEvent

from ...workflows.paths import login_name

UNITS = ((86_400.0, "day"), (3_600.0, "hour"), (60.0, "minute"))


def one_line(text: str, most: int, mark: str = "…") -> str:
    """Write a text on one line of at most `most` characters; `mark` ends a text that was cut."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - len(mark)] + mark


def line_count(text: str) -> int:
    """Count the lines of a text, whether or not a newline ends the last one."""
    return text.count("\n") + bool(text and not text.endswith("\n"))


_CODE_WORDS: Mapping[str, str] = {
    "bare_word": "a word to stop",
    "more_word": "a word to stop, in a message",
    "budget": "a limit",
    "parent_boundary": "parent",
}


def plain_words(code: str) -> str:
    """Write a name that programs read, such as `timed_out`, as words."""
    return _CODE_WORDS.get(code) or code.replace("_", " ")


def age(seconds: float) -> str:
    """Write an age: `just now`, `23 minutes ago`, `2 days ago`.

    `seconds` below zero, of a time stamp from a clock that was ahead, is `2 days ahead`.
    """
    for size, unit in UNITS:
        count = int(abs(seconds) // size)
        if count:
            return f"{count} {unit}{'s' if count > 1 else ''} {'ago' if seconds > 0 else 'ahead'}"
    return "just now"


def size_text(size: float) -> str:
    """Write a number of bytes: `98 MB` (powers of ten, as disks and downloads have)."""
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def iso(time: float) -> str:
    """Write seconds since the epoch for programs: ISO 8601 in UTC, to the millisecond."""
    return (
        datetime.fromtimestamp(time, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    )


def clock(time: str, precision: str = "seconds") -> str:
    """Write an ISO time in local time, with the date if it is not today's.

    `precision` is minutes, seconds or milliseconds.
    """
    moment = datetime.fromisoformat(time).astimezone()
    shown = moment.time().isoformat(precision)
    return shown if moment.date() == datetime.now().date() else f"{moment.date()} {shown}"


def document_lines(
    head: Mapping[str, Any], name: str, rows: Iterable[Mapping[str, Any]], *, is_ascii: bool = False
) -> Iterator[str]:
    """Yield the lines of a JSON object: `head`, and as `name` a list with a line for each of the rows.

    A list of any length can be written so, as its rows are read one by one.
    """
    begin = json.dumps(head, ensure_ascii=is_ascii)[:-1]
    before = f"{begin}{', ' if head else ''}{json.dumps(name)}: ["
    for row in rows:
        yield before
        before = f"{json.dumps(row, ensure_ascii=is_ascii)},"
    yield before.removesuffix(",")
    yield "]}"


_CLOSING = lazy_pattern(r"\[(exit code|interrupted|timed out|what it left)|\(no output\)$")
"""The lines that a command's output is closed with, for the model; interfaces have other words."""


def telling_line(end: ToolEndedEvent) -> str:
    """Return the line of a call's output that says best how it ended, without escape sequences.

    That is the last of a command's, the first of others; empty if there is none.
    """
    printed = clean(end["output"]).splitlines()
    lines = [line for line in printed if line.strip() and not _CLOSING.match(line)]
    return lines[-1 if end["tool"] == "shell" else 0].strip() if lines else ""


def own_command_end(event: OwnCommandEvent) -> str:
    """Say how a person's own command ended; empty while it runs."""
    if event["state"] == "running":
        return ""
    code = event["exit_code"]
    how = exit_words(code or 0) if event["state"] == "exited" else event["state"]
    left = event["survivors"]
    still = f"; still running: {', '.join(map(str, left))}" if left else ""
    share = "" if event["state"] == "killed" else "; /share shows it to the agent"
    return f"!{one_line(event['command'], 60)}: {how}{still}{share}"


def call_words(arguments: Mapping[str, Any]) -> list[str]:
    """Write each argument of a tool call on one line; `true` as its name, `false` and `null` not.

    Nor the schema of a form: it is no text for people.
    """
    texts = (
        name if value is True else str(value)
        for name, value in arguments.items()
        if not (value is None or value is False or (name == "schema" and is_object(value)))
    )
    return [line for line in (" ".join(text.split()) for text in texts) if line]


def sender(user: str) -> str:
    """Return who sent something, empty where that is the owner of the session."""
    return "" if user in ("", login_name()) else " ".join(user.split())


def form_lines(arguments: Mapping[str, Any]) -> list[str]:
    """Say what an MCP server asks, and in a line for each field what it takes."""
    asks = f"`{exposed(str(arguments['server']))}` asks: {exposed(str(arguments['message']))}"
    address = [f"Open {exposed(str(arguments['address']))}"] if "address" in arguments else []
    fields = fields_of(arguments.get("schema") or {})
    return [asks, *address, *(exposed(field.line) for field in fields)]


def item_line(item: Mapping[str, Any]) -> str:
    """Write a queue item on one line.

    `#1 [RUNNING]: TEXT (file 23/50)`, `#2 [STEERING] → turn t4: TEXT`, `#3 [PENDING] (being
    edited): TEXT`, `#4 [INTERRUPTED]: TEXT (reverted)`, `#5 [OFFERED]: TEXT -> ANSWER`.
    """
    text = shortened(" ".join(item["text"].split())) + progress_text(item["progress"])
    text += " (reverted)" if item.get("reverted") else ""
    if (answer := item.get("answer")) not in (None, item["text"]):
        text += f" -> {shortened(' '.join(answer.split()))}"
    edited = " (being edited)" if item.get("edited") else ""
    by = f" from {who}" if (who := sender(item.get("user", ""))) else ""
    return f"#{item['number']} {item_state(item)}{edited}{by}: {text}"


LONGEST_TEXT = 300
"""Characters of a message that a list shows."""


def shortened(text: str) -> str:
    """Cut a long text for a list of messages, and say how much is left out."""
    left = len(text) - LONGEST_TEXT
    return f"{text[:LONGEST_TEXT]}… ({left:,} more characters)" if left > 20 else text


MOST_TOLD = 5
"""Messages that were removed, of which the text is told."""


def held_text(count: int, again: int | None) -> str:
    """Say that so many messages wait for a person's word, and which one would run `again` before them."""
    if not count and not again:
        return "Held: what is queued behind this turn waits for /queue resume."
    return f"Held: {count} waiting. /queue resume runs {runs_text(again)}."


def runs_text(again: int | None) -> str:
    """Say what a resume runs: what is held, after a message that it runs `again`."""
    return f"#{again} again, then them" if again else "them"


def removed_text(said: str, before: Iterable[Mapping[str, Any]], gone: Container[int]) -> str:
    """Say what was removed from a queue, with its texts, which no list has any more."""
    texts = [item for item in before if item["number"] in gone]
    lines = [f"  #{item['number']}: {shortened(item['text'])}" for item in texts[:MOST_TOLD]]
    more = [f"  and {len(texts) - MOST_TOLD} more"] if len(texts) > MOST_TOLD else []
    return "\n".join([said, *lines, *more])


def resumable_line(item: Mapping[str, Any]) -> str:
    """Say how a message that waits for nothing goes on: another replaced it, or no answer came."""
    return f"{item_line(item)} (`/queue resume {item['number']}` goes on with it)"


def item_state(item: Mapping[str, Any]) -> str:
    """Write the state of a queue item, and where a steer goes."""
    match item:
        case {"state": "pending", "held": True}:
            return "[PENDING]"
        case {"state": "pending", "turn": turn}:
            return f"[STEERING] → turn {turn}"
        case {"state": "pending", "children": children}:
            return f"[STEERING] → {', '.join(children)}"
        case {"state": "offered", "stopped": True}:
            return "[INTERRUPTED]"
        case {"state": "interrupted", "next": True}:
            return "[INTERRUPTED] (runs next)"
        case {"state": "offered", "wants": "steer"}:
            return "[STEERING] → when answered"
        case _:
            return f"[{item['state'].upper()}]"


def progress_text(progress: Mapping[str, Any] | None) -> str:
    """Write progress in brackets after a space; empty if there is none."""
    if not progress:
        return ""
    unit = f"{progress['unit']} " if progress.get("unit") else ""
    return f" ({unit}{progress['done']}/{progress['total']})"
