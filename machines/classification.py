"""What a message is, by its words: a pure function of the text and the configured lists.

An explicit choice by the sender decides at once, then a slash command. Otherwise the words do: an
interrupt word anywhere in the prose makes an interrupt, whatever surrounds it; beside nothing but
filler it is a bare one. A message asks for a revert only where the words leave no doubt. What
counts as a word of prose is `prose.py`'s business, which words count is `words.py`'s.
"""

import re
from collections.abc import Collection
from typing import Final, Literal

from msgspec import Struct

from .disposition import Intent
from .prose import Token
from .value import Value
from .words import Match, WordKind, Words

Revert = Literal["", "turn", "last"]

_EXPLICIT: Final = {
    "queue": Intent.EXPLICIT_QUEUE,
    "steer": Intent.EXPLICIT_STEER,
    "interrupt": Intent.EXPLICIT_INTERRUPT,
}
_COMMAND: Final = re.compile(r"\s*[/\uff0f]([A-Za-z][A-Za-z-]*)[!.]*(?:\s+|\Z)")
_ADDRESS: Final = re.compile(r"@([\w/-]+)\s+")
_REVERTING: Final = frozenset({"revert", "undo"})
_REVERTIBLE: Final = frozenset({"file", "change", "edit"})
_WHOSE: Final = frozenset({"your", "very"})


class Classification(Value):
    """What a message is.

    `matched` is the configured word that decided, empty if none did. `command` and `argument`
    belong to a slash command. `says_more` is false where nothing is left to run once the words
    are obeyed. `revert`: `turn` restores all files of the turn, `last` undoes the last file
    change.
    """

    intent: Intent
    matched: str = ""
    command: str = ""
    argument: str = ""
    says_more: bool = True
    revert: Revert = ""


class _Reading(Struct, kw_only=True):
    """What the words of a text amount to."""

    interrupt: str = ""
    steer: str = ""
    says_more: bool = False
    reverts_turn: bool = False
    reverts_last: bool = False

    @property
    def revert(self) -> Revert:
        """Say what to restore: nothing if more is said, the lesser thing where both are named."""
        if self.says_more:
            return ""
        return "last" if self.reverts_last else "turn" if self.reverts_turn else ""


def classify(
    text: str, words: Words, explicit: str = "auto", commands: Collection[str] = ()
) -> Classification:
    """Say what a message is.

    `explicit` is auto, queue, steer or interrupt; `commands` are the known slash commands, in lower
    case and without the slash. A text that begins with another `/name` is an ordinary message.
    """
    choice = _EXPLICIT.get(explicit)
    if choice is None and (slash := _COMMAND.match(text)) and slash[1].lower() in commands:
        argument = text[slash.end() :].rstrip()
        return Classification(intent=Intent.COMMAND, command=slash[1].lower(), argument=argument)
    reading = _read(words.tokens(text), words)
    if choice is not None:
        is_stop = choice is Intent.EXPLICIT_INTERRUPT
        revert = reading.revert if is_stop else ""
        return Classification(
            intent=choice, says_more=reading.says_more or not is_stop, revert=revert
        )
    return _by_words(reading)


def addressee(text: str) -> tuple[str, str]:
    """Part the `@NAME TEXT` of a steer into name and text; without a name the first is empty."""
    found = _ADDRESS.match(text)
    return (found[1], text[found.end() :]) if found else ("", text)


def _by_words(reading: _Reading) -> Classification:
    """Choose the intent where nothing but the words decides."""
    if not reading.interrupt:
        intent = Intent.STEER_WORD if reading.steer else Intent.CONVERSE
        return Classification(intent=intent, matched=reading.steer)
    if reading.says_more:
        return Classification(intent=Intent.INTERRUPT_MORE, matched=reading.interrupt)
    intent = Intent.REVERT if reading.revert else Intent.INTERRUPT_BARE
    return Classification(
        intent=intent, matched=reading.interrupt, says_more=False, revert=reading.revert
    )


def _read(found: list[Token], words: Words) -> _Reading:
    """Go through the words once, phrase by phrase."""
    reading = _Reading()
    at = 0
    while at < len(found):
        match = words.match(found, at)
        if match is None:
            reading.says_more = True
            at += 1
            continue
        at += match.length
        if match.kind is WordKind.STEER:
            reading.steer = reading.steer or match.entry
        elif match.kind is WordKind.INTERRUPT:
            reading.interrupt = reading.interrupt or match.entry
            at = _read_revert(found, at, words, match, reading)
    return reading


def _read_revert(found: list[Token], at: int, words: Words, match: Match, reading: _Reading) -> int:
    """Look behind revert or undo for "(the) last file", "your last change"; return where to go on."""
    if match.entry.casefold() not in _REVERTING:
        return at
    end = at
    while end < len(found) and (length := _leading(found, end, words)):
        end += length
    noun = end + 1
    if [token.text for token in found[end:noun]] != ["last"]:
        reading.reverts_turn = True
        return at
    while noun < len(found) and found[noun].text in _REVERTIBLE:
        noun += 1
    if noun == end + 1:
        reading.reverts_turn = True
        return at
    reading.reverts_last = True
    return noun


def _leading(found: list[Token], at: int, words: Words) -> int:
    """Return how many tokens from here may stand between revert and last, none if these may not."""
    filler = words.match(found, at)
    if filler is not None and filler.kind is not WordKind.INTERRUPT:
        return filler.length
    return int(found[at].text in _WHOSE)
