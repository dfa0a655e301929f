"""Which words of a text a person says, as opposed to shows.

A word counts only as prose. What stands in code marks, quotes, tags, web addresses, paths, dotted
or hyphenated names, identifiers, calls and flags is shown, not said: it becomes a token that
equals no word. Letters are compared after NFKC and case folding, so full-width, ligature and
capital forms are the same; any punctuation separates words.

Everything is a handful of passes over the text, each linear in its length, whatever the text.
"""

import re
import unicodedata
from collections.abc import Iterator
from typing import Final, NamedTuple

_SHOWN: Final = "\0"
"""Stands for a passage that is shown; no keyboard makes it."""


class Token(NamedTuple):
    """A word in comparable form, or a shown passage as it stands; `before_colon` if one follows."""

    text: str
    before_colon: bool = False


# Letter forms -------------------------------------------------------------------------------------

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


# Passages that are shown --------------------------------------------------------------------------

_FENCE: Final = re.compile(
    r"```.*?(?:```|\Z)|^ {0,3}~~~.*?(?:^ {0,3}~~~|\Z)", re.DOTALL | re.MULTILINE
)
_CODE: Final = re.compile(r"``[^\n]*?``|`[^`\n]+`")
_CITED: Final = re.compile(r"^ {0,3}>[^\n]*", re.MULTILINE)
_VARIABLE: Final = re.compile(r"\$\{[^{}\n]*\}|\{\{[^{}\n]*\}\}")
_TAG: Final = re.compile(r"<[/!]?[a-z][^<>\n]*>")
_ADDRESS: Final = re.compile("://[^\\s\0\u3001\u3002]+")
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
    text = _ADDRESS.sub(_SHOWN, text)
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
        elif mark.lastgroup == "close" or _also_closes(mark):
            kept += (text[done:start], f" {_SHOWN} ")
            done, start = mark.end(), -1
    return "".join((*kept, text[done:])) if done else text


def _also_closes(mark: re.Match[str]) -> bool:
    """Tell whether a mark that could open also closes: the double quote, its own partner."""
    return mark.group() == '"'


# Words --------------------------------------------------------------------------------------------

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
