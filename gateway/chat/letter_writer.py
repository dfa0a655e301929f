"""Writes texts as messages for one room, within the limits of its platform."""

from __future__ import annotations

from typing import Literal

from .book import Letter, Subject
from .parts import parts
from .platform import Outgoing, PlatformLimits

MORE = "more"
"""The command of a room that says the next part of a text that was cut."""


class LetterWriter:
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
        kind: Literal["answer", "note"] = "note",
        is_whole: bool = False,
    ) -> list[Letter]:
        """Return a text as messages with keys that begin so, in answer to what it is about.

        `is_whole`: all of it is sent at once.
        """
        texts = parts(text, self.limits)
        most = len(texts) if is_whole or len(texts) <= self.most + 1 else self.most
        found = about or Subject(message="")
        letters = [
            self._letter(f"{key}:{number}", part, found, kind, is_held=number >= most)
            for number, part in enumerate(texts)
        ]
        if left := len(texts) - most:
            letters.append(self._letter(f"{key}:{MORE}", self.rest(left), found))
        return letters

    def rest(self, left: int) -> str:
        """Say how much of a text is left, and how it is had."""
        unit = "line" if self.limits.lines == 1 else "message"
        units = unit if left == 1 else f"{unit}s"
        return f"… {left} more {units}: `!{MORE}` says the next {min(left, self.most)}."

    def _letter(
        self,
        key: str,
        text: str,
        about: Subject,
        kind: Literal["answer", "note"] = "note",
        *,
        is_held: bool = False,
    ) -> Letter:
        outgoing = Outgoing(
            key=key,
            room=self.room,
            text=text,
            kind=kind,
            to=about.message,
            thread=about.thread,
            mentions=about.sender,
        )
        return Letter(outgoing=outgoing, item=about.item, number=about.number, is_held=is_held)
