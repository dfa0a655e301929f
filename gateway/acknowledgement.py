"""How it reads that a message was taken, and as what: one text for each acknowledgement.

The routing table names the acknowledgement (`ACKS` in `machines/disposition.py`), a row at a time;
here are the words. The screen shows them, and events carry them, so that every face says the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from unicodedata import east_asian_width

CUT = 40
SIGNS = {"📥 ": "", "🤖 ": "", "⚠️ ": "", "⏳ ": "", "—": "-"}
"""What our own texts have beyond ASCII, and what stands for it where there is no UTF-8."""

Event = Mapping[str, Any]


def accepted_text(event: Event, *, can_utf8: bool = True) -> str:
    """Return what an `accepted` or `rejected` event says of its `ack`, empty when it has none."""
    write = TEXTS.get(event.get("ack") or "")
    return write(event, can_utf8) if write is not None else ""


def plain(text: str, can_utf8: bool) -> str:
    """Put a text of ours into plain words, unless the terminal has UTF-8."""
    for sign, instead in SIGNS.items() if not can_utf8 else ():
        text = text.replace(sign, instead)
    return text


def cut(lead: str, text: str) -> str:
    """Quote a message on one line of `CUT` columns in all, if the message is longer."""
    line = " ".join(text.split())
    room = max(8, CUT - sum(2 if east_asian_width(sign) in "WF" else 1 for sign in lead) - 2)
    return f'{lead}"{line if len(line) <= room else f"{line[: room - 3].rstrip()}..."}"'


def _quoting(lead: str) -> Callable[[Event, bool], str]:
    """Write a lead, in which `#` stands for the item's number, and the message."""

    def write(event: Event, can_utf8: bool) -> str:
        number = event.get("number")
        numbered = lead.replace("#", f"#{number}") if number else lead.replace(" #", "")
        return cut(plain(numbered, can_utf8), event["text"])

    return write


def _saying(text: str) -> Callable[[Event, bool], str]:
    """Write the same whatever was said."""
    return lambda event, can_utf8: plain(text, can_utf8)


def _warned(lead: str, after: str) -> Callable[[Event, bool], str]:
    """Write how it was taken, and by a line of its own which word did not stop everything."""
    quote = _quoting(lead)

    def write(event: Event, can_utf8: bool) -> str:
        return f'{quote(event, can_utf8)}\n"{event["matched"]}" {after}'

    return write


def _steered(event: Event, can_utf8: bool) -> str:
    """Write that it steers, and by which word, where a word decided."""
    said = _quoting("Steering with #: ")(event, can_utf8)
    return f'{said}\n"{event["matched"]}" steers.' if event.get("matched") else said


def _detected(after: str = "") -> Callable[[Event, bool], str]:
    """Write by which word it interrupts."""

    def write(event: Event, can_utf8: bool) -> str:
        return plain(f'⚠️ Interrupt detected: "{event["matched"]}"{after}', can_utf8)

    return write


def _interrupting(event: Event, can_utf8: bool) -> str:
    number = event.get("number")
    return cut(f"Interrupting for #{number}: ", event["text"]) if number else "Interrupting."


def _already(event: Event, can_utf8: bool) -> str:
    number = event.get("number")
    return f"Already stopping. #{number} runs next." if number else "Already stopping."


def _steering_children(event: Event, can_utf8: bool) -> str:
    children = " and ".join(event.get("children") or ("the subagent",))
    return _quoting(f"Steering {children} with #: ")(event, can_utf8)


TEXTS: dict[str, Callable[[Event, bool], str]] = {
    "already_stopping": _already,
    "finalizing": lambda event, can_utf8: (
        f"The session ends, so nothing was taken in. Your text: {event['text']}"
    ),
    "interrupt_detected": _detected(),
    "interrupting": _interrupting,
    "next_after_stop": _quoting("After the stop, #: "),
    "next_turn": _quoting("Too late to steer, next is #: "),
    "queued": _quoting("📥 Queued #: "),
    "refused": lambda event, can_utf8: f"This was not taken in. Your text: {event['text']}",
    "revert_hint": _saying("Nothing runs, so this is a message. /revert restores files."),
    "steered": _steered,
    "no_subagent": lambda event, can_utf8: (
        f"No subagent of that name works: /agents lists them. Your text: {event['text']}"
    ),
    "side_talk": _saying("🤖 Side talk spawned (will notify when ready)"),
    "steered_child": _steering_children,
    "subagent_working": _saying(
        "⏳ Subagent working — your message is queued for when it finishes"
    ),
    "word_interrupts": _detected("\nThis turn stops, subagents go on: /stop stops them, too."),
    "word_queued": _warned("📥 Queued #: ", "stopped nothing: /stop stops everything."),
    "word_steered": _warned("Steering with #: ", "stopped nothing: /stop stops everything."),
}
"""The words for each name in `ACKS`."""
