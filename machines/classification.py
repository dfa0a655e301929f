"""The classification of a message by its words: a pure function of the text and the configured lists.

An explicit choice by the sender decides at once, then a slash command. Otherwise the words do: an
interrupt word anywhere in the prose makes an interrupt, whatever surrounds it; beside nothing but
filler it is a bare one. A message asks for a revert only where the words leave no doubt.

The module has three parts: the text is cut into tokens, configured words are found among them, and
these decide the intent. Each is a handful of passes over the text, linear in its length.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Final, Literal, NamedTuple

from msgspec import Struct

from .disposition import Intent
from .value import Value

# Tokens -------------------------------------------------------------------------------------------
# A word counts only as prose. What stands in code marks, quotes, tags, web addresses, paths, dotted
# or hyphenated names, identifiers, calls and flags is shown, not said: it becomes a token that
# equals no word. Letters are compared after NFKC and case folding, so full-width, ligature and
# capital forms are the same; any punctuation separates words.


_SHOWN: Final = "\0"
"""Stands for a passage that is shown; no keyboard makes it."""


class Token(NamedTuple):
    """A word in comparable form, or a shown passage as it stands; `before_colon` if one follows."""

    text: str
    before_colon: bool = False


# Invisible characters inside a word, and variation selectors, which follow emoji.
_INVISIBLE: Final = "\u00ad\u200c\u200d\u2060\ufeff" + "".join(map(chr, range(0xFE00, 0xFE10)))
_SAME: Final = str.maketrans(
    {
        **dict.fromkeys(_INVISIBLE, None),
        **dict.fromkeys("\0\u200b", " "),
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u00b4\u02bc", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u301d\u301e\u301f", '"'),
        **dict.fromkeys("\u2010\u2011", "-"),
        # Full-width punctuation carries its own space, and joins no words.
        **{chr(0xFEE0 + ord(plain)): f" {plain} " for plain in "()./"},
    }
)
# Normalising sorts runs of combining marks in quadratic time: short pieces keep that bounded.
_PIECES: Final = re.compile(r"\S{1,256}\s*|\s+")


def normalized(text: str) -> str:
    """Bring a text into the form in which words are compared."""
    if text.isascii():
        return text.replace("\0", " ").lower()
    pieces = _PIECES.findall(text.translate(_SAME))
    return "".join(map(_composed, pieces)).casefold()


def _composed(piece: str) -> str:
    """Normalise a piece, unless it would swell: one character may stand for a whole sentence."""
    composed = unicodedata.normalize("NFKC", piece)
    return composed if len(composed) <= 4 * len(piece) else piece


_FENCE: Final = re.compile(
    r"```.*?(?:```|\Z)|^ {0,3}~~~.*?(?:^ {0,3}~~~|\Z)", re.DOTALL | re.MULTILINE
)
_CODE: Final = re.compile(r"``[^\n]*?``|`[^`\n]+`")
_CITED: Final = re.compile(r"^ {0,3}>[^\n]*", re.MULTILINE)
_VARIABLE: Final = re.compile(r"\$\{[^{}\n]*\}|\{\{[^{}\n]*\}\}")
_TAG: Final = re.compile(r"<[/!]?[a-z][^<>\n]*>")
_WEB_ADDRESS: Final = re.compile("://[^\\s\0\u3001\u3002]+")
_MEMBER: Final = re.compile(r"(?<=\w)(?:->|::)(?=\w)")

# Each has an opening mark, a closing mark, and what ends a passage that was never closed. A double
# quote after a digit is inches; an apostrophe opens only before a word and closes only after one.
_QUOTES: Final = tuple(
    (opening[-1], closing, re.compile(f"(?P<open>{opening})|(?P<close>{closing})|(?P<end>{end})"))
    for opening, closing, end in (
        (r'(?<!\d)"', '"', r"\n[ \t]*\n"),
        ("\u00ab", "\u00bb", r"\n[ \t]*\n"),  # French
        ("\u00bb", "\u00ab", r"\n[ \t]*\n"),  # German
        ("\u2039", "\u203a", r"\n"),
        ("\u203a", "\u2039", r"\n"),
        ("\u300e", "\u300f", r"\n"),  # inside the next, so it goes first
        ("\u300c", "\u300d", r"\n"),
        ("\u300a", "\u300b", r"\n"),
    )
)
_SINGLE: Final = re.compile(r"(?P<open>(?<!\w)'(?=\w))|(?P<close>(?<=[^\s'])'(?!\w))|(?P<end>\n)")


def _without_shown(text: str) -> str:
    """Replace every passage that is shown by a placeholder."""
    for pattern in (_FENCE, _CODE, _CITED):
        text = pattern.sub(f" {_SHOWN} ", text)
    for opening, closing, pattern in _QUOTES:
        first, partner = text.find(opening), text.find(closing)
        if 0 <= first <= partner:  # the mark that comes first tells the language
            text = _without_quoted(text, pattern)
    if "'" in text:
        text = _without_quoted(text, _SINGLE)
    for pattern in (_VARIABLE, _TAG):
        text = pattern.sub(f" {_SHOWN} ", text)
    text = _WEB_ADDRESS.sub(_SHOWN, text)
    return _MEMBER.sub(".", text)


def _without_quoted(text: str, pattern: re.Pattern[str]) -> str:
    """Replace what stands between an opening and a closing mark; an unclosed mark is no quote."""
    kept: list[str] = []
    done, start = 0, -1
    for mark in pattern.finditer(text):
        if start < 0:
            if mark.lastgroup == "open":
                start = mark.start()
        elif mark.lastgroup == "end":
            start = -1
        elif mark.lastgroup == "close" or mark.group() == '"':  # which is its own partner
            kept += (text[done:start], f" {_SHOWN} ")
            done, start = mark.end(), -1
    return "".join((*kept, text[done:])) if done else text


# Scripts that put no spaces between words: Thai, Lao, Burmese, Khmer, kana, Han.
_UNSPACED: Final = (
    "\u0e00-\u0e7f\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff"
    "\u3005-\u3007\u3041-\u3096\u30a1-\u30fa\u30fc-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
# Marks that belong to the letter before them, but are no letters to the regex module.
_MARKS: Final = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"
    "\u0900-\u0963\u0966-\u0df3\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff"
)
_WORD: Final = rf"[^\W{_UNSPACED}]|[{_MARKS}]"
_RUN: Final = re.compile(
    rf"(?P<unspaced>[{_UNSPACED}]+)"
    rf"|(?P<run>(?:{_WORD}|[-'._/\\~@:$#={_SHOWN}])++(?:\([^()\n]*\)|\[[^\[\]\n]*\]|[(\[])?)"
)
_PLAIN: Final = re.compile(rf"(?:{_WORD})++(?:'(?:{_WORD})++)*+")
# Between words a colon or a double hyphen is punctuation; a double hyphen before one makes a flag.
_SEPARATOR: Final = re.compile(r"(?<=\w)--+|:")
_HAS_UNSPACED: Final = re.compile(rf"[{_UNSPACED}]+")


def tokens(text: str, within: re.Pattern[str] | None = None) -> Iterator[Token]:
    """Cut a text into words and shown passages, in order.

    `within` finds words inside runs of scripts that put no spaces between words; what is left of
    such a run is a word of its own.
    """
    for found in _RUN.finditer(_without_shown(normalized(text))):
        run = found.group()
        if found.lastgroup == "unspaced":
            yield from _cut(run, within)
        elif _PLAIN.fullmatch(run):
            yield Token(run)
        else:
            yield from _split(run)


def unspaced(text: str) -> list[str]:
    """List the parts of a text that are in scripts without spaces."""
    return _HAS_UNSPACED.findall(normalized(text))


def _cut(run: str, pattern: re.Pattern[str] | None) -> Iterator[Token]:
    """Split a run without spaces around the words that are looked for."""
    done = 0
    for found in pattern.finditer(run) if pattern else ():
        if found.start() > done:
            yield Token(run[done : found.start()])
        yield Token(found.group())
        done = found.end()
    if done < len(run):
        yield Token(run[done:])


def _split(run: str) -> Iterator[Token]:
    """Split a run of letters and joining characters where two words meet in it."""
    done = 0
    for separator in _SEPARATOR.finditer(run):
        yield from _word(run[done : separator.start()], separator.group() == ":")
        done = separator.end()
    yield from _word(run[done:], False)


def _word(part: str, before_colon: bool) -> Iterator[Token]:
    """Take sentence marks off a part: a plain word is left, or something that is shown."""
    core = part.rstrip(".'~-")
    if not re.match(r"\.\w|--?\w", core):
        core = core.lstrip(".'-")
    if core.strip("~@$#=_/\\"):
        yield Token(core, before_colon)


# Keywords -----------------------------------------------------------------------------------------
# An entry may be a phrase ("no wait"); the longest phrase that fits wins, and among equally long
# ones an interrupt word before a steer word before filler. An entry that ends in a colon
# ("correction:") counts only before a colon. Steer words count as filler, too.


INTERRUPT_WORDS = (
    *("stop", "cancel", "abort", "revert", "undo", "quit", "exit", "halt"),
    *("scratch that", "nevermind", "no wait"),
)
"""Words and phrases that interrupt unless configured otherwise."""

FILLER_WORDS = (
    *("please", "just", "now", "it", "this", "that", "everything", "all", "and", "the", "ok"),
    *("hey", "actually", "wait", "no", "you", "can", "could", "right", "immediately"),
    *("okay", "yes", "oh", "sorry", "thanks", "thank", "already"),
)
"""Words without meaning beside an interrupt word, unless configured otherwise."""


class WordKind(IntEnum):
    """The effect of a word, by rising precedence."""

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
class Keywords:
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
        parts = sorted(
            {part for entry in entries for part in unspaced(entry)},
            key=lambda part: (-len(part), part),
        )
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


# Classification -----------------------------------------------------------------------------------


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
    """The intent of a message, and what decided it.

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
    """The words of a text, added up."""

    interrupt: str = ""
    steer: str = ""
    says_more: bool = False
    reverts_turn: bool = False
    reverts_last: bool = False

    @property
    def revert(self) -> Revert:
        """The files to restore: none if more is said, the lesser thing where both are named."""
        if self.says_more:
            return ""
        return "last" if self.reverts_last else "turn" if self.reverts_turn else ""


def classify(
    text: str, words: Keywords, explicit: str = "auto", commands: Collection[str] = ()
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
    """Split the `@NAME TEXT` of a steer into name and text; without a name the first is empty."""
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


def _read(found: list[Token], words: Keywords) -> _Reading:
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


def _read_revert(
    found: list[Token], at: int, words: Keywords, match: Match, reading: _Reading
) -> int:
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


def _leading(found: list[Token], at: int, words: Keywords) -> int:
    """Return how many tokens from here may stand between revert and last, none if these may not."""
    filler = words.match(found, at)
    if filler is not None and filler.kind is not WordKind.INTERRUPT:
        return filler.length
    return int(found[at].text in _WHOSE)
