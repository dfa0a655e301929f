"""The classification of a message by its words: a pure function of the text and the configured lists.

An explicit choice by the sender decides at once, then a slash command. Otherwise the words do: an
interrupt word anywhere in the prose makes an interrupt, unless it is negated; beside nothing but
filler it is a bare one. A message asks for a revert only where the words leave no doubt.

The module has three parts: the text is cut into tokens, configured words are found among them, and
these decide the intent. Each is a handful of passes over the text, linear in its length.
"""

import re
import unicodedata
from collections.abc import Collection, Container, Iterator, Sequence
from enum import IntEnum
from functools import cached_property
from itertools import pairwise
from typing import Final, Literal, NamedTuple, assert_never

from msgspec import Struct

from .disposition import Intent
from .pattern import lazy_pattern
from .value import Value

# Tokens -------------------------------------------------------------------------------------------
# A word counts only as prose. What stands in code marks, quotes, tags, web addresses, paths, dotted
# or hyphenated names, identifiers, calls and flags is shown, not said: it becomes a token that
# equals no word. Letters are compared after NFKC and case folding, so full-width, ligature and
# capital forms are the same; any punctuation separates words. A single dot without a space ends a
# sentence between words of the lists ("ok.stop"), or behind one of them before a capital
# ("Stop.Use zod"); every other one belongs to a name ("undo.py").


_SHOWN: Final = "\0"
"""Stands for a passage that is shown; no keyboard makes it."""


class Token(NamedTuple):
    """A word in comparable form, or a shown passage as it stands.

    `before_colon`: a colon follows. `is_adjacent`: only space separates it from the token before.
    """

    text: str
    before_colon: bool = False
    is_adjacent: bool = False


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
_PIECES: Final = lazy_pattern(r"\S{1,256}\s*|\s+")


def normalized(text: str) -> str:
    """Bring a text into the form in which words are found; a word is compared in lower case."""
    if text.isascii():
        return text.replace("\0", " ")
    pieces = _PIECES.findall(text.translate(_SAME))
    return "".join(map(_composed, pieces))


def _composed(piece: str) -> str:
    """Normalise a piece, unless it would swell: one character may stand for a whole sentence."""
    composed = unicodedata.normalize("NFKC", piece)
    return composed if len(composed) <= 4 * len(piece) else piece


_FENCE: Final = lazy_pattern(
    r"```.*?(?:```|\Z)|^ {0,3}~~~.*?(?:^ {0,3}~~~|\Z)", re.DOTALL | re.MULTILINE
)
_CODE: Final = lazy_pattern(r"``[^\n]*?``|`[^`\n]+`")
_CITED: Final = lazy_pattern(r"^ {0,3}>[^\n]*", re.MULTILINE)
_NUMBERED: Final = lazy_pattern(r"^[ \t]*\d{1,3}[.)][ \t]*(?=[^\W\d])", re.MULTILINE)
_VARIABLE: Final = lazy_pattern(r"\$\{[^{}\n]*\}|\{\{[^{}\n]*\}\}")
_TAG: Final = lazy_pattern(r"<[/!]?[A-Za-z][^<>\n]*>")
_WEB_ADDRESS: Final = lazy_pattern("://[^\\s\0\u3001\u3002]+")
_MEMBER: Final = lazy_pattern(r"(?<=\w)(?:->|::)(?=\w)")

# Each has an opening mark, a closing mark, and what ends a passage that was never closed. A double
# quote after a digit is inches; an apostrophe opens only before a word and closes only after one.
_QUOTES: Final = tuple(
    (opening[-1], closing, lazy_pattern(f"(?P<open>{opening})|(?P<close>{closing})|(?P<end>{end})"))
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
_SINGLE: Final = lazy_pattern(r"(?P<open>(?<!\w)'(?=\w))|(?P<close>(?<=[^\s'])'(?!\w))|(?P<end>\n)")


def _without_shown(text: str) -> str:
    """Replace every passage that is shown by a placeholder."""
    apart = f" {_SHOWN} "
    text = _replaced(text, _FENCE, apart, "```", "~~~")
    text = _replaced(text, _CODE, apart, "`")
    text = _replaced(text, _CITED, apart, ">")
    for opening, closing, pattern in _QUOTES:
        first, partner = text.find(opening), text.find(closing)
        if 0 <= first <= partner:  # the mark that comes first tells the language
            text = _without_quoted(text, pattern)
    if "'" in text:
        text = _without_quoted(text, _SINGLE)
    text = _replaced(text, _VARIABLE, apart, "{")
    text = _replaced(text, _TAG, apart, "<")
    text = _replaced(text, _NUMBERED, "", ".", ")")
    text = _replaced(text, _WEB_ADDRESS, _SHOWN, "://")
    return _replaced(text, _MEMBER, _SHOWN, "->", "::")


def _replaced(text: str, pattern: re.Pattern[str], by: str, *marks: str) -> str:
    """Replace what a pattern finds, which always has one of these marks; most texts have none."""
    return pattern.sub(by, text) if any(mark in text for mark in marks) else text


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
_RUN: Final = lazy_pattern(
    rf"(?P<unspaced>[{_UNSPACED}]+)"
    rf"|(?P<run>(?:{_WORD}|[-'._/\\~@:$#={_SHOWN}])++"
    r"(?:(?<!\.)(?:\([^()\n]*\)|\[[^\[\]\n]*\]|[(\[]))?)"
)
_PLAIN: Final = rf"(?:{_WORD})++(?:'(?:{_WORD})++)*+"
# Between words a colon, a double hyphen or several dots are punctuation; a double hyphen before one
# makes a flag.
_SEPARATOR: Final = lazy_pattern(r"(?<=\w)--+|:|(?<=\w)\.{2,}(?=\w)")
_DOTTED: Final = lazy_pattern(rf"{_PLAIN}(?:\.{_PLAIN})++")
_OBJECTS: Final = frozenset({"this", "agents"})
"""Words of the lists that are also common names before a dot."""
_HAS_UNSPACED: Final = lazy_pattern(rf"[{_UNSPACED}]+")


def tokens(
    text: str, within: re.Pattern[str] | None = None, listed: Collection[str] = ()
) -> Iterator[Token]:
    """Cut a text into words and shown passages, in order.

    `within` finds words inside runs of scripts that put no spaces between words; what is left of
    such a run is a word of its own. `listed` are the words between which a dot ends a sentence.
    """
    whole = _without_shown(normalized(text))
    end = 0
    for found in _RUN.finditer(whole):
        run = found.group()
        is_adjacent = not whole[end : found.start()].strip() and run[0] not in "-'.~"
        if found.lastgroup == "unspaced":
            parts = _cut(run, within)
        elif _is_plain(run):
            parts = iter((Token(run.casefold()),))
        else:
            parts = _split(run, listed)
        for part in parts:
            yield part._replace(is_adjacent=True) if is_adjacent else part
            is_adjacent = found.lastgroup == "unspaced"
        end = found.start() + len(run.rstrip("-'.~:"))


def unspaced(text: str) -> list[str]:
    """List the parts of a text that are in scripts without spaces."""
    return [] if text.isascii() else _HAS_UNSPACED.findall(normalized(text))


def _is_plain(run: str) -> bool:
    """Whether a run is an ASCII word, with apostrophes at most between its letters.

    `_split` leaves such a word as it is, too, but takes longer, and most words are such ones.
    """
    return run.isascii() and all(part.isalnum() for part in run.split("'"))


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


def _split(run: str, listed: Collection[str]) -> Iterator[Token]:
    """Split a run of letters and joining characters where two words meet in it."""
    done = 0
    for separator in _SEPARATOR.finditer(run):
        yield from _word(run[done : separator.start()], separator.group() == ":", listed)
        done = separator.end()
    yield from _word(run[done:], False, listed)


def _word(part: str, before_colon: bool, listed: Collection[str]) -> Iterator[Token]:
    """Take sentence marks off a part: plain words are left, or something that is shown."""
    core = part.rstrip(".'~-")
    if not re.match(r"\.\w|--?\w", core):
        core = core.lstrip(".'-")
    if listed and _DOTTED.fullmatch(core):
        *before, core = _sentences(core.split("."), listed)
        yield from map(Token, before)
    if core.strip("~@$#=_/\\"):
        yield Token(core.casefold(), before_colon)


def _sentences(words: list[str], listed: Collection[str]) -> Iterator[str]:
    """Join words by dots again, except where a dot ends a sentence."""
    joined = words[:1]
    for before, word in pairwise(words):
        is_title = word.istitle() or (word.isupper() and before.isupper())
        is_name = before.casefold() not in listed or before.casefold() in _OBJECTS
        if is_name or not (is_title or word.casefold() in listed):
            joined.append(word)
            continue
        yield ".".join(joined).casefold()
        joined = [word]
    yield ".".join(joined)


# Keywords -----------------------------------------------------------------------------------------
# An entry may be a phrase ("no wait"); the longest phrase that fits wins, and among equally long
# ones the kind that stands last in `WordKind`. An entry that ends in a colon ("correction:") counts
# only before a colon. Steer words count as filler, too; an acknowledgement does if both lists name it.
# A negation takes the interrupt word directly behind it out of account, and those that "or" adds.


INTERRUPT_WORDS = (
    *("stop", "cancel", "abort", "revert", "undo", "quit", "exit", "halt"),
    *("scratch that", "nevermind", "never mind", "nvm", "no wait"),
)
"""Words and phrases that interrupt unless configured otherwise."""

FILLER_WORDS = (
    *("please", "pls", "plz", "just", "now", "it", "this", "that", "them", "everything", "all"),
    *("and", "but", "the", "hey", "omg", "actually", "wait", "no", "yes", "oh", "sorry", "you"),
    *("can", "could", "will", "would", "right", "immediately", "already", "working", "agents"),
    *("ok", "okay", "thank", "thanks", "thank you", "great", "got it"),
    *("what you're doing", "what you are doing", "why not", "why don't you"),
)
"""Words without meaning beside an interrupt word, unless configured otherwise."""

NEGATION_WORDS = (
    *("not", "do not", "don't", "dont", "don't ever", "never", "never ever", "can't", "cannot"),
    *("won't", "doesn't", "does not", "didn't", "did not", "shouldn't", "should not"),
    *("mustn't", "must not", "not to", "no need to"),
)
"""Words before an interrupt word that take its effect, unless configured otherwise."""

ACKNOWLEDGEMENT_WORDS = (
    *("ok", "okay", "k", "thanks", "thank you", "thx", "ty", "great", "got it", "good", "nice"),
    *("cool", "perfect", "sounds good", "alright", "understood", "i see", "lgtm"),
    *("continue", "go on", "carry on", "keep going"),
    *("please continue", "please go on", "please carry on", "please keep going"),
)
"""Words that ask for nothing, unless configured otherwise: a message of only these waits."""


class WordKind(IntEnum):
    """The effect of a word, by rising precedence."""

    FILLER = 0
    ACKNOWLEDGEMENT = 1
    NEGATION = 2
    STEER = 3
    INTERRUPT = 4


class Match(Value):
    """A configured entry found in a text: its own spelling, its kind, its length in tokens.

    `is_filler`: it means nothing beside an interrupt word.
    """

    entry: str
    kind: WordKind
    length: int
    is_filler: bool


class _Phrase(Value):
    """An entry as it is looked for: lower-case tokens, and whether a colon must follow."""

    words: tuple[str, ...]
    needs_colon: bool
    match: Match


TYPES = {
    Intent.STEER_WORD: "steer",
    Intent.EXPLICIT_STEER: "steer",
    Intent.INTERRUPT_BARE: "interrupt",
    Intent.INTERRUPT_MORE: "interrupt",
    Intent.EXPLICIT_INTERRUPT: "interrupt",
    Intent.REVERT: "interrupt",
}
"""The types of messages that are no plain ones."""


class Keywords(Struct, frozen=True, dict=True):
    """The configured lists; build once and keep, the look-up is made at first use."""

    interrupt: tuple[str, ...] = INTERRUPT_WORDS
    steer: tuple[str, ...] = ()
    filler: tuple[str, ...] = FILLER_WORDS
    negation: tuple[str, ...] = NEGATION_WORDS
    acknowledgement: tuple[str, ...] = ACKNOWLEDGEMENT_WORDS

    def tokens(self, text: str) -> list[Token]:
        """Cut a text into words; entries in scripts without spaces are found inside a run, too."""
        return list(tokens(text, self._unspaced, self._listed))

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
    def _entries(self) -> tuple[tuple[WordKind, tuple[str, ...]], ...]:
        """Return the lists, each with the kind of its entries."""
        return (
            (WordKind.INTERRUPT, self.interrupt),
            (WordKind.STEER, self.steer),
            (WordKind.NEGATION, self.negation),
            (WordKind.ACKNOWLEDGEMENT, self.acknowledgement),
            (WordKind.FILLER, self.filler),
        )

    @cached_property
    def _unspaced(self) -> re.Pattern[str] | None:
        """Find entries in scripts without spaces, the longest first; none if there are none."""
        parts = sorted(
            {part for _, entries in self._entries for entry in entries for part in unspaced(entry)},
            key=lambda part: (-len(part), part),
        )
        return re.compile("|".join(map(re.escape, parts))) if parts else None

    @cached_property
    def _listed(self) -> frozenset[str]:
        """Collect the words of all phrases, in comparable form."""
        phrases = (phrase for group in self._phrases.values() for phrase in group)
        return frozenset(word for phrase in phrases for word in phrase.words)

    @cached_property
    def _phrases(self) -> dict[str, list[_Phrase]]:
        """Group all phrases by their first word, the one to prefer first."""
        phrases: list[_Phrase] = []
        filler = {entry.casefold() for entry in (*self.filler, *self.steer)}
        for kind, entries in self._entries:
            for entry in entries:
                words = _plain_words(entry) or tuple(
                    token.text for token in tokens(entry, self._unspaced)
                )
                if words:
                    is_filler = entry.casefold() in filler
                    match = Match(entry=entry, kind=kind, length=len(words), is_filler=is_filler)
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


def _plain_words(entry: str) -> tuple[str, ...]:
    """Return the tokens of an entry of plain words, as most are; none of any other, which is cut."""
    words = entry.lower().split()
    is_plain = entry.count("'") < 2 and all(  # two may enclose something that is shown
        _is_plain(word) and word.replace("'", "").isalpha() for word in words
    )
    return tuple(words) if is_plain else ()


# Classification -----------------------------------------------------------------------------------


Revert = Literal["", "turn", "last"]

_EXPLICIT: Final = {
    "queue": Intent.EXPLICIT_QUEUE,
    "turn": Intent.EXPLICIT_TURN,
    "steer": Intent.EXPLICIT_STEER,
    "interrupt": Intent.EXPLICIT_INTERRUPT,
}
_COMMAND: Final = lazy_pattern(r"\s*[/\uff0f]([A-Za-z][A-Za-z-]*)[!.]*(?:\s+|\Z)")
_OWN_COMMAND: Final = lazy_pattern(r"[!\uff01]{1,2}(?![!\uff01\[])\s*(\S.*)", re.DOTALL)
_PROMPT: Final = lazy_pattern(r"/[A-Za-z0-9_-]+:[^\s/]\S*(?:\s|\Z)")
_ADDRESS: Final = lazy_pattern(r"@([\w/-]+)\s+")
_REVERTING: Final = frozenset({"revert", "undo"})
_REVERTIBLE: Final = frozenset({"file", "change", "edit"})
_WHOSE: Final = frozenset({"your", "very"})
_OR: Final = frozenset({"or", "nor"})


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
    has_filler: bool = False
    acknowledges: bool = False
    negates: bool = False
    goes_on: bool = False
    has_others: bool = False
    reverts_turn: bool = False
    reverts_last: bool = False

    @property
    def says_more(self) -> bool:
        """Whether something is left to run once the interrupt words are obeyed."""
        return self.has_others or self.goes_on

    @property
    def revert(self) -> Revert:
        """The files to restore: none if more is said, the lesser thing where both are named."""
        if self.says_more or self.negates:
            return ""
        return "last" if self.reverts_last else "turn" if self.reverts_turn else ""

    @property
    def wants_nothing(self) -> bool:
        """Whether nothing is said but thanks and the like ("ok"), or not to stop ("never stop")."""
        says_so = self.negates or (self.acknowledges and not self.has_filler)
        return says_so and not self.has_others and not self.steer


def classify(
    text: str, words: Keywords, explicit: str = "auto", commands: Container[str] = ()
) -> Classification:
    """Say what a message is.

    `explicit` is auto, queue, turn, steer or interrupt; `commands` are the known slash commands, in lower
    case and without the slash. A text that begins with another `/name` is an ordinary message, and one
    that begins with `/server:prompt` has no words that decide: they are arguments. `!COMMAND` is the
    command `shell` whatever `explicit` is: no key sends it to a model by mistake.
    """
    if (command := typed_command(text, commands, explicit)) is not None:
        name, argument = command
        return Classification(intent=Intent.COMMAND, command=name, argument=argument)
    choice = _EXPLICIT.get(explicit)
    if choice is None and _PROMPT.match(text):
        return Classification(intent=Intent.CONVERSE)
    reading = _read(words.tokens(text), words)
    if choice is not None:
        is_stop = choice is Intent.EXPLICIT_INTERRUPT
        revert = reading.revert if is_stop else ""
        return Classification(
            intent=choice, says_more=reading.says_more or not is_stop, revert=revert
        )
    return _by_words(reading)


def typed_command(
    text: str, commands: Container[str], explicit: str = "auto"
) -> tuple[str, str] | None:
    """Split `/NAME REST` or `!COMMAND` into its name and the rest; none if the text is something else.

    The arguments are those of `classify`, which goes by this.
    """
    if (own := _OWN_COMMAND.match(text)) is not None and "shell" in commands:
        return "shell", own[1].rstrip()
    slash = _COMMAND.match(text) if explicit not in _EXPLICIT else None
    if slash is None or slash[1].lower() not in commands:
        return None
    return slash[1].lower(), text[slash.end() :].rstrip()


def addressee(text: str) -> tuple[str, str]:
    """Split the `@NAME TEXT` of a steer into name and text; without a name the first is empty."""
    found = _ADDRESS.match(text)
    return (found[1], text[found.end() :]) if found else ("", text)


def _by_words(reading: _Reading) -> Classification:
    """Choose the intent where nothing but the words decides."""
    if not reading.interrupt:
        if reading.wants_nothing:
            return Classification(intent=Intent.ACKNOWLEDGEMENT)
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
            reading.has_others = True
            at += 1
            continue
        at += match.length
        match match.kind:
            case WordKind.FILLER:
                reading.has_filler = True
            case WordKind.ACKNOWLEDGEMENT:
                reading.acknowledges = True
                reading.goes_on = reading.goes_on or not match.is_filler
            case WordKind.NEGATION:
                end = _negated(found, at, words)
                reading.negates = reading.negates or end > at
                reading.has_others = reading.has_others or end == at
                at = end
            case WordKind.STEER:
                reading.steer = reading.steer or match.entry
            case WordKind.INTERRUPT:
                reading.interrupt = reading.interrupt or match.entry
                at = _read_revert(found, at, words, match, reading)
            case _:
                assert_never(match.kind)
    return reading


def _negated(found: list[Token], at: int, words: Keywords) -> int:
    """Return the end of the interrupt words at `at`, joined by "or", that a negation covers."""
    end = at
    while at < len(found) and found[at].is_adjacent:
        match = words.match(found, at)
        if match is None or match.kind is not WordKind.INTERRUPT:
            break
        end = at + match.length
        is_joined = end < len(found) and found[end].text in _OR
        at = end + is_joined
        if not is_joined:
            break
    return end


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
    if filler is not None and filler.is_filler and filler.kind is not WordKind.INTERRUPT:
        return filler.length
    return int(found[at].text in _WHOSE)
