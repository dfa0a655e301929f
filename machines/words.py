"""The words that decide: interrupt, steer and filler words, ready to be looked up.

An entry may be a phrase ("no wait"); the longest phrase that fits wins, and among equally long
ones an interrupt word before a steer word before filler. An entry that ends in a colon
("correction:") counts only before a colon. Steer words count as filler, too.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

from .prose import Token, tokens, unspaced
from .value import Value

INTERRUPT_WORDS = (
    *("stop", "cancel", "abort", "revert", "undo", "quit", "exit", "halt"),
    *("scratch that", "nevermind", "no wait"),
)
"""What interrupts unless configured otherwise."""

FILLER_WORDS = (
    *("please", "just", "now", "it", "this", "that", "everything", "all", "and", "the", "ok"),
    *("hey", "actually", "wait", "no", "you", "can", "could", "right", "immediately"),
    *("okay", "yes", "oh", "sorry", "thanks", "thank", "already"),
)
"""What says nothing beside an interrupt word, unless configured otherwise."""


class WordKind(IntEnum):
    """What a word does, by rising precedence."""

    FILLER = 0
    STEER = 1
    INTERRUPT = 2


class Match(Value):
    """A configured entry found in a text: its own spelling, its kind, its length in tokens."""

    entry: str
    kind: WordKind
    length: int


class _Phrase(Value):
    """An entry as it is looked for: lower-case tokens, and whether a colon must follow."""

    words: tuple[str, ...]
    needs_colon: bool
    match: Match


@dataclass(frozen=True)
class Words:
    """The configured lists; build once and keep, the look-up is made at first use."""

    interrupt: tuple[str, ...] = INTERRUPT_WORDS
    steer: tuple[str, ...] = ()
    filler: tuple[str, ...] = FILLER_WORDS

    def tokens(self, text: str) -> list[Token]:
        """Cut a text into words; entries in scripts without spaces are found inside a run, too."""
        return list(tokens(text, self._unspaced))

    def match(self, found: Sequence[Token], start: int) -> Match | None:
        """Return the best entry that begins at token `start`."""
        for phrase in self._phrases.get(found[start].text, ()):
            end = start + len(phrase.words)
            if end > len(found) or (phrase.needs_colon and not found[end - 1].before_colon):
                continue
            if all(found[start + i].text == word for i, word in enumerate(phrase.words)):
                return phrase.match
        return None

    @cached_property
    def _unspaced(self) -> re.Pattern[str] | None:
        """Find entries in scripts without spaces, the longest first; none if there are none."""
        entries = (*self.interrupt, *self.steer, *self.filler)
        parts = sorted({part for entry in entries for part in unspaced(entry)}, key=_longest)
        return re.compile("|".join(map(re.escape, parts))) if parts else None

    @cached_property
    def _phrases(self) -> dict[str, list[_Phrase]]:
        """Group all phrases by their first word, the one to prefer first."""
        phrases: list[_Phrase] = []
        for kind, entries in (
            (WordKind.INTERRUPT, self.interrupt),
            (WordKind.STEER, self.steer),
            (WordKind.FILLER, self.filler),
        ):
            for entry in entries:
                words = tuple(token.text for token in self.tokens(entry))
                if words:
                    match = Match(entry=entry, kind=kind, length=len(words))
                    phrases.append(
                        _Phrase(
                            words=words,
                            needs_colon=entry.rstrip().endswith((":", "\uff1a")),
                            match=match,
                        )
                    )
        phrases.sort(key=lambda each: (-each.match.length, -each.match.kind))
        by_first: dict[str, list[_Phrase]] = {}
        for phrase in phrases:
            by_first.setdefault(phrase.words[0], []).append(phrase)
        return by_first


def _longest(part: str) -> tuple[int, str]:
    """Sort longest first, then by spelling so that the order is stable."""
    return -len(part), part
