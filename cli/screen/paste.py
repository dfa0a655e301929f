"""Long pastes: shown as one short word in the input line, sent whole."""

from __future__ import annotations

import re

__all__ = ["Pastes"]

LINES = 8
CHARACTERS = 1_000
"""What is longer than this is shown shortened."""

_WORD = re.compile(r"\[Pasted #(\d+): [\d,]+ (?:lines|characters)\]")


class Pastes:
    """The long texts behind the words that stand for them."""

    def __init__(self) -> None:
        self._texts: dict[int, str] = {}

    def take(self, data: str) -> str:
        """Return what is shown for a paste: itself, or a word that stands for it."""
        text = data.replace("\r\n", "\n").replace("\r", "\n")
        lines = text.count("\n") + 1
        if lines <= LINES and len(text) <= CHARACTERS:
            return text
        number = len(self._texts) + 1
        self._texts[number] = text
        size = f"{lines:,} lines" if lines > LINES else f"{len(text):,} characters"
        return f"[Pasted #{number}: {size}]"

    def whole(self, text: str) -> str:
        """Put the pasted texts in for their words; a word that was changed is what it says."""
        return _WORD.sub(lambda found: self._texts.get(int(found[1]), found[0]), text)

    def word_before(self, text: str) -> int:
        """Return the length of the word that a text ends with, 0 for none."""
        for found in _WORD.finditer(text):
            if found.end() == len(text) and int(found[1]) in self._texts:
                return len(found[0])
        return 0
