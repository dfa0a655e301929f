"""Writes texts as messages for one room: cut into parts that its platform takes, and safe to send."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from ..wording.terminal import clean
from .gateway_store import OutboxMessage, Subject
from .platform import Outgoing, PlatformLimits

# A text in parts ----------------------------------------------------------------------------------


FENCE = "```"
_LEAST = 20
"""Characters of a part at the least, whatever the limits say."""


def parts(text: str, limits: PlatformLimits) -> list[str]:
    """Cut a text into parts within the limits, at line ends and spaces where there are any.

    A block of code that is cut ends in its part and begins again in the next. What would act on a
    terminal is removed. On a platform of single lines each line is a part.
    """
    text = clean(text).strip("\n")
    if limits.lines == 1:
        lines = (line.rstrip() for line in text.split("\n"))
        return [part for line in lines if line.strip() for part in _folded(line, limits)]
    found: list[str] = []
    block: list[str] = []
    fence = ""
    for line in _short_lines(text, limits):
        grown = [*block, line]
        if block and not _fits("\n".join([*grown, FENCE]), limits):
            found.append("\n".join([*block, FENCE] if fence else block))
            block = [fence] if fence else []
            grown = [*block, line]
        block = grown
        if line.lstrip().startswith(FENCE):
            fence = "" if fence else line.strip()
    if block:
        found.append("\n".join(block))
    return [part for part in found if part.strip()]


def _short_lines(text: str, limits: PlatformLimits) -> Iterator[str]:
    """Yield the lines of a text, each short enough to stand in a part with a fence around it."""
    for line in text.split("\n"):
        if _fits(f"{FENCE}\n{line}\n{FENCE}", limits) or not line:
            yield line
        else:
            yield from _folded(line, limits, room=len(FENCE) * 2 + 40)


def _folded(line: str, limits: PlatformLimits, room: int = 0) -> list[str]:
    """Cut one line at spaces, or anywhere, so that each piece fits with `room` characters to spare."""
    pieces: list[str] = []
    while line and not _fits(line, limits, room):
        end = _longest(line, limits, room)
        space = line.rfind(" ", end // 2, end)
        cut = space if space > 0 else end
        pieces.append(line[:cut].rstrip())
        line = line[cut:].lstrip(" ")
    return [*pieces, line] if line else pieces


def _longest(line: str, limits: PlatformLimits, room: int) -> int:
    """Return how many characters of a line fit, one at the least."""
    low, high = 1, len(line)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _fits(line[:middle], limits, room) else (low, middle - 1)
    return low


def _fits(text: str, limits: PlatformLimits, room: int = 0) -> bool:
    """Whether a text is within the limits; characters beyond the basic plane count twice."""
    most, most_bytes = limits.characters, limits.bytes
    if limits.lines and text.count("\n") >= limits.lines:
        return False
    units = len(text) + sum(sign > "\uffff" for sign in text)
    return (not most or units <= max(most - room, _LEAST)) and (
        not most_bytes or len(text.encode()) <= max(most_bytes - room, _LEAST)
    )


# Messages of one room -----------------------------------------------------------------------------


Kind = Literal["answer", "note"]
MORE = "more"
"""The command of a room that says the next part of a text that was cut."""


class MessageWriter:
    """Writes texts for one room: `most` messages of each at once; the rest is held for `!more`."""

    def __init__(self, room: str, limits: PlatformLimits, most: int) -> None:
        self.room = room
        self.limits = limits
        self.most = most

    def write(
        self,
        key: str,
        text: str,
        about: Subject | None = None,
        *,
        kind: Kind = "note",
        is_whole: bool = False,
    ) -> list[OutboxMessage]:
        """Return a text as messages with keys that begin so, in answer to what it is about.

        `is_whole`: all of it is sent at once.
        """
        texts = parts(text, self.limits)
        most = len(texts) if is_whole or len(texts) <= self.most + 1 else self.most
        found = about or Subject("")

        def message(part: object, text: str, kind: Kind, is_held: bool = False) -> OutboxMessage:
            outgoing = Outgoing(
                key=f"{key}:{part}",
                room=self.room,
                text=text,
                kind=kind,
                to=found.message,
                thread=found.thread,
                mentions=found.sender,
            )
            return OutboxMessage(
                outgoing=outgoing, item=found.item, number=found.number, is_held=is_held
            )

        messages = [
            message(part, text, kind, is_held=part >= most) for part, text in enumerate(texts)
        ]
        if left := len(texts) - most:
            messages.append(message(MORE, self.rest(left), "note"))
        return messages

    def rest(self, left: int) -> str:
        """Say how much of a text is left, and how it is had."""
        unit = "line" if self.limits.lines == 1 else "message"
        units = unit if left == 1 else f"{unit}s"
        return f"… {left} more {units}: `!{MORE}` says the next {min(left, self.most)}."
