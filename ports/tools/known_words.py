"""Looks the words of a program up in the table: which are safe, and why the others are not. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import accumulate

from .command_line import Word
from .safe_programs import INSIDE, KnownProgram, programs

SHOWN = 60
"""Characters of a word that a reason shows."""

_LISTED = re.compile(r"(-#|-[^\s=?#/]*)([=?#/]?)")
_INSIDE = re.compile(INSIDE)
_UNKNOWN = KnownProgram(operands=(r"(?![A-Za-z_]\w*=).*",), is_open=True)


@cache
def table_keys() -> frozenset[str]:
    """Return the programs of the table, with and without their subcommands."""
    keys = (key.removesuffix(" --").split(" ") for key in programs())
    return frozenset(prefix for key in keys for prefix in accumulate(key, "{} {}".format))


class KnownWords:
    """What is known of the words of a program, of which the first is its name.

    `row` is what the table has of the program and its subcommand, whose words are at `places`. `faults`
    gives for the place of each word that is not known as safe the reason. `values` are the places of
    options' values, `named` those of the operands that an offer names. From `suspect` on any word may be
    a program that runs; `None`: none may.
    """

    def __init__(self, words: Sequence[Word]) -> None:
        self._key, self.places = _located(words)
        self.row = row = programs().get(self._key)
        end = self.places[-1] + 1
        self.values = [
            at for at in range(1, end) if at not in self.places and words[at].text[:1] != "-"
        ]
        self.named: list[int] = []
        self._is_group = row is not None and row.is_group
        self._is_listed = row is not None and not row.is_group
        self._row = row if row is not None and not row.is_group else _UNKNOWN
        self._operands = 0
        self.faults = dict(self._faults(words, end))
        self.suspect = min(self.faults, default=None) if row is not None else end
        # The subcommand of a group is no program that runs.
        if self._is_group and words[end:] and words[end].is_clear:
            self.suspect = end if words[end].text.startswith("-") else end + 1

    @property
    def fixed(self) -> set[int]:
        """The places of words that a pattern has to name as they are."""
        return {*self.places, *self.named, *((self.places[-1] + 1,) if self._is_group else ())}

    def _faults(self, words: Sequence[Word], end: int) -> Iterator[tuple[int, str]]:
        """Read the words behind the key, in order."""
        takes, is_ended = "", False
        for at in range(end, 0 if self._row.is_any else len(words)):
            word, fault, taking, takes = words[at], "", takes, ""
            is_option = word.text.startswith("-") and not (word.text == "-" and self._is_listed)
            if taking and (word.text.isdigit() or (taking in "=/" and not is_option)):
                is_one = word.is_clear or not (
                    taking == "/" or word.splits or re.search(r"[*?[{]", word.text)
                )
                fault = "" if is_one else _unclear(word)
                if is_one and taking == "/" and not _INSIDE.fullmatch(word.text):
                    fault = f"`{cut(word)}` is no file inside the folder"
                self.values.append(at)
            elif is_ended or not is_option:
                fault = self._operand(word, at)
            elif word.text == "--" and "--" in _options(self._row):
                is_ended = True
            elif word.text == "--" and (row := programs().get(f"{self._key} --")) is not None:
                self._key, self._row, self._operands = f"{self._key} --", row, 0
            elif (found := _option(word, self._row)) is not None:
                takes = found
            elif self.row is None:
                fault = f"`{cut(word)}` is an option, and those of `{self._key}` are not known"
            else:
                known = f"the options that `{self._key}` is known to be safe with"
                fault = f"`{cut(word)}` is not among {known}"
            if fault:
                yield at, fault

    def _operand(self, word: Word, at: int) -> str:
        patterns, count = self._row.operands, self._operands
        self._operands += 1
        if not word.is_clear and (word.splits or word.known == 0):
            return _unclear(word)
        if self._is_group and count == 0:
            return f"`{cut(word)}` is not among the subcommands of `{self._key}` that are known as safe"
        if not self._is_listed and word.is_line:
            return f"`{cut(word)}` may be a command of its own"
        if count < self._row.named:
            self.named.append(at)
        if count < len(patterns) or (patterns and self._row.is_open):
            pattern = patterns[min(count, len(patterns) - 1)]
            is_glob = not re.search(r"[$`]|(?:^|/)\.[^/]*[*?[]", word.text)  # and never `..`
            is_sure = word.is_clear or (self._row.is_open and (is_glob or pattern.endswith(".*")))
            if is_sure and re.fullmatch(pattern, word.text, re.DOTALL):
                return ""
        return f"`{cut(word)}` is not an operand that `{self._key}` is known to be safe with"


def _located(words: Sequence[Word]) -> tuple[str, tuple[int, ...]]:
    """Return the longest key that the words begin with, and the places of its words."""
    places: tuple[int, ...] = (0,)
    key, at, group = words[0].text, 1, programs().get(words[0].text)
    while at < len(words) and words[at].is_clear:
        if (longer := f"{key} {words[at].text}") in table_keys():
            key, places, group = longer, (*places, at), programs().get(longer)
        elif group is None or not group.is_group:
            break
        elif (takes := _option(words[at], group)) is None:
            break
        else:
            at += takes == "="
        at += 1
    return key, places


def cut(word: Word) -> str:
    """Return a word for people, of a long one the beginning."""
    return word.text if len(word.text) <= SHOWN else f"{word.text[:SHOWN]}…"


def _unclear(word: Word) -> str:
    return f"what `{cut(word)}` stands for is only known when it runs"


@lru_cache(maxsize=512)
def _options(row: KnownProgram) -> Mapping[str, str]:
    """Return the options of a row, each with what may follow it."""
    found: dict[str, str] = {}
    for text in row.options.split():
        listed = _LISTED.fullmatch(text)
        found.update({text: ""} if listed is None else {listed[1]: listed[2]})
    return found


def _option(word: Word, row: KnownProgram) -> str | None:
    """Return what follows an option: `=` its value, `/` a file, `#` maybe a number; `None`: unknown."""
    options, text = _options(row), word.text
    name, equals, value = text.partition("=")
    if len(text) < 2 or word.splits or not (word.is_clear or (equals and len(name) < word.known)):
        return None
    if text in options:
        return options[text].replace("?", "")
    if equals and (row.has_words or text.startswith("--")):
        kind = options.get(name)
        if kind in ("=", "?") or (kind == "/" and word.is_clear and _INSIDE.fullmatch(value)):
            return ""
    if text[1:].isdigit() and "-#" in options:
        return ""
    return None if row.has_words or text.startswith("--") else _letters(text[1:], options)


def _letters(letters: str, options: Mapping[str, str]) -> str | None:
    """Read options of one letter each in one word, of which the last may have a value."""
    while letters:
        kind, letters = options.get(f"-{letters[0]}"), letters[1:]
        if kind in (None, "?"):
            return None if kind is None else ""
        if kind == "/":
            return None if letters else kind
        if kind == "=" or (kind == "#" and not letters):
            return "" if letters else kind
        letters = letters.lstrip("0123456789") if kind == "#" else letters
    return ""
