"""One room of a gateway: what its parts share, and how texts become messages for it.

A text is cut into parts that its platform takes, and safe to send.
"""

from __future__ import annotations

import asyncio
from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from ...machines.people import Person
from ..library import Home
from ..wording.terminal import clean
from .gateway_store import GatewayStore, OutboxMessage, Subject
from .platform import Outgoing, Platform, PlatformLimits

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
        if block and not _fits("\n".join([*block, line, FENCE]), limits):
            found.append("\n".join([*block, FENCE] if fence else block))
            block = [fence] if fence else []
        block.append(line)
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
    ends = range(2, len(line) + 1)
    return 1 + bisect(ends, False, key=lambda end: not _fits(line[:end], limits, room))


def _fits(text: str, limits: PlatformLimits, room: int = 0) -> bool:
    """Whether a text is within the limits; characters beyond the basic plane count twice."""
    most, most_bytes = limits.characters, limits.bytes
    if limits.lines and text.count("\n") >= limits.lines:
        return False
    units = len(text) + sum(sign > "\uffff" for sign in text)
    return (not most or units <= max(most - room, _LEAST)) and (
        not most_bytes or len(text.encode()) <= max(most_bytes - room, _LEAST)
    )


# A room -------------------------------------------------------------------------------------------


Kind = Literal["answer", "note"]
MORE = "more"
"""The command of a room that says the next part of a text that was cut."""


class RoomOptions(BaseModel):
    """What a gateway's table says of one room.

    `on_restart` says what happens to what waited when the gateway ended: it waits, or is resumed. `parts`
    is in how many messages a text is said at most, until a person asks for the rest by `!more`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    agent: str = ""
    folder: str = "."
    busy: Literal["queue", "steer", "interrupt"] = "queue"
    on_restart: Literal["wait", "resume"] = "wait"
    only_addressed: bool = False
    parts: int = Field(default=20, ge=1)


@dataclass(frozen=True)
class Room:
    """One room; `people` are who may talk there, by their names on the platform.

    `came` is set when people did something, `posted` when there is something to send.
    """

    gateway: str
    home: Home
    platform: Platform
    store: GatewayStore
    people: dict[str, Person]
    name: str
    options: RoomOptions
    came: asyncio.Event = field(default_factory=asyncio.Event)
    posted: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def ours(self) -> str:
        """How the keys begin under which a session knows the messages of the room; their ids follow."""
        return f"chat:{self.gateway}:{self.name}:"

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
        texts, most = parts(text, self.platform.limits), self.options.parts
        most = len(texts) if is_whole or len(texts) <= most + 1 else most
        found = about or Subject("")

        def message(part: object, text: str, kind: Kind, is_held: bool = False) -> OutboxMessage:
            outgoing = Outgoing(
                key=f"{key}:{part}",
                room=self.name,
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
        unit = "line" if self.platform.limits.lines == 1 else "message"
        units = unit if left == 1 else f"{unit}s"
        return f"… {left} more {units}: `!{MORE}` says the next {min(left, self.options.parts)}."
