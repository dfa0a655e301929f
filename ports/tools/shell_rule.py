"""How a permission rule is compared with a shell line: word by word. Pure.

Rules that allow and rules that deny need opposite readings of the same line. To **allow**, the words of
a pattern are compared in order with those of the program, and its last `*` stands for operands and for
options that the table knows as safe (`known_words.py`). To **deny**, every word counts that stands where
a program could stand, in any nesting: the first of each command, all words of a program that the table
does not have, and what follows an option that the table does not know.
"""

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache

from .command_line import CommandLine, Program, Word, plain_name, read_line, read_pattern
from .known_words import SHOWN, KnownWords, cut, table_keys

ELSE = "matches something else"
"""The reason of a rule that is about other calls."""

_MAX_DEPTH = 4  # lines in quotes in lines in quotes …
_MAX_SKIPPED = 16  # options that a rule that denies looks behind
_MAX_LETTERS = 6  # of options in one word, before a name that they run
_PART = "\0"
"""Begins a token that is a part of a word."""
_NAME = re.compile(r"[\w./+-]+")
_EXPANSION = re.compile(r"\$(?:\w+|[@*#?$!-]|\{\w*\}?|\()|`")
_SHELLS = frozenset("ash bash csh dash fish ksh mksh sh tcsh zsh".split())
_EVALS = frozenset(". eval source".split())
_KEYWORDS = frozenset(
    "! [[ case coproc do elif else for function if select then time until while {".split()
)


# Rules that allow ---------------------------------------------------------------------------------


def uncovered(pattern: str, text: str, line: CommandLine) -> str:
    """Say why a pattern that allows does not cover a line; empty when it does."""
    if pattern == "*" or _literal(pattern) == text:
        return ""
    if line.fault:
        return (
            f"is not compared with a command that cannot be read ({line.fault}); only `*` allows it"
        )
    wanted = read_pattern(pattern)
    if not wanted.programs or not line.programs:
        return ELSE
    if (wanted.signs, wanted.documents) != (line.signs, line.documents) or (
        len(wanted.programs) != len(line.programs)
    ):
        if others := _uncovered(wanted.programs[0], line.programs[0]):
            return others
        found = [sign for sign in line.signs if sign not in wanted.signs]
        signs = " ".join(sign if sign.isprintable() else repr(sign) for sign in found)
        return f"allows one plain command; this line also has {signs or 'another order of signs'}"
    pairs = zip(wanted.programs, line.programs, strict=True)
    return next((why for pair in pairs if (why := _uncovered(*pair))), "")


def is_literal(pattern: str) -> bool:
    """Whether a pattern matches one text alone."""
    return _literal(pattern) is not None


def _literal(pattern: str) -> str | None:
    """Return the only text that a pattern matches."""
    rest = re.sub(r"\[[*?[]\]", "", pattern)
    return None if re.search(r"[*?[]", rest) else re.sub(r"\[([*?[])\]", r"\1", pattern)


def _uncovered(wanted: Program, program: Program) -> str:
    """Say why the pattern for one program does not cover a program."""
    if not wanted.words or not program.words:
        return ELSE
    want, name = wanted.words[0], program.words[0]
    # A name is compared as it is written; globs are for folders (`./scripts/*`).
    is_named = _is_like(want, name) if "/" in want.text else name.text == _stem(want.text)
    if not name.is_clear or not is_named:
        return ELSE
    if name.text in _KEYWORDS or unseen(program):
        return f"does not cover it: what `{cut(name)}` runs is not compared"
    around, given = _around(wanted), _around(program)
    if len(around) != len(given) or not all(map(_is_like, around, given)):
        return "does not cover what is set before the command, or where it is redirected"
    return _uncovered_words(wanted.words, program.words)


def _stem(pattern: str) -> str:
    """Return a pattern without the `*` at its end."""
    return pattern[:-1] if pattern.endswith("*") else pattern


def _around(program: Program) -> list[Word]:
    """Return the assignments before a program, and the targets of its redirections."""
    targets = [
        redirection.target for redirection in program.redirections if not redirection.is_harmless
    ]
    return [*program.assignments, *(target for target in targets if target is not None)]


def _is_like(want: Word, word: Word) -> bool:
    return word.is_clear and _is_within(want.text, word.text)


def _is_within(pattern: str, text: str) -> bool:
    """Whether a text is one that a pattern means; none that leads out of a folder again."""
    is_glob = bool(re.search(r"[*?[]", pattern))
    return fnmatchcase(text, pattern) and not (is_glob and ".." in text.split("/"))


def _uncovered_words(wanted: Sequence[Word], words: Sequence[Word]) -> str:
    """Compare the words behind a program's name, in order."""
    name, patterns, has_rest = _parts(wanted)
    known, found, last = KnownWords(words), 0, 0  # `last`: where the word is that was matched last
    is_key = " ".join([name, *map(_stem, patterns)]) in table_keys()
    for at, word in enumerate(words[1:], 1):
        is_value = at in known.values and last < at - 1
        is_fixed = is_key or at in known.fixed
        if (
            found < len(patterns)
            and not is_value
            and _matches(patterns[found], word, is_fixed=is_fixed)
        ):
            found, last = found + 1, at
        elif not has_rest:
            return ELSE
        elif why := known.faults.get(at):
            is_other = found < len(patterns) and not word.text.startswith("-")
            return ELSE if is_other else f"does not cover it: {why}"
        elif found < len(patterns) and not (is_value or word.text.startswith("-")):
            return ELSE
    return ELSE if found < len(patterns) else ""


def _parts(wanted: Sequence[Word]) -> tuple[str, list[str], bool]:
    """Return a pattern's program, its other words, and whether more words may follow."""
    name, *patterns = (want.text for want in wanted)
    has_rest = wanted[-1].text.endswith("*")
    return name, patterns[:-1] if patterns[-1:] == ["*"] else patterns, has_rest


def _matches(pattern: str, word: Word, *, is_fixed: bool) -> bool:
    """Whether a word is the one that a pattern names; a subcommand is named exactly."""
    if is_fixed:
        return word.is_clear and word.text == _stem(pattern)
    stem = _stem(pattern)
    if not word.is_clear:
        is_begun = not word.splits and word.text[: word.known].startswith(stem)
        return is_begun and bool(stem) and stem != pattern
    if re.match(r"[*?[]", pattern) and re.match(r"-|[A-Za-z_]\w*=", word.text):
        return False
    return _is_within(pattern, word.text)


# Rules that deny or ask ---------------------------------------------------------------------------


def concerns(pattern: str, text: str) -> bool:
    """Whether a pattern that denies or asks is about a line: too much rather than too little."""
    found = suspects(text)
    texts = (text, *found.texts)
    if any(fnmatchcase(each, pattern) or fnmatchcase(f"{each} ", pattern) for each in texts):
        return True
    if not found.is_complete and _may_hold(text, pattern):
        return True
    wanted = read_pattern(pattern)
    if len(wanted.programs) != 1 or not wanted.programs[0].words:
        return False
    name, patterns, has_rest = _parts(wanted.programs[0].words)
    if name[:1] in ("", "*", "?", "["):
        return False
    if any(fnmatchcase(name, glob) for glob in found.globs):
        return True
    plain = plain_name(name)
    is_glob = bool(re.search(r"[*?[]", name))
    names = (known for known in found.places if is_glob and fnmatchcase(known, plain))
    return any(
        _follow(patterns, tokens, at + 1, has_rest=has_rest)
        for known in (names if is_glob else {plain} & found.places.keys())
        for tokens, at in found.places[known]
    )


def _follow(patterns: Sequence[str], tokens: Sequence[str], at: int, *, has_rest: bool) -> bool:
    """Whether words follow as a pattern has them, with options between them; options in any order."""
    for want in patterns:
        window = tokens[at : at + _MAX_SKIPPED]
        hits = [
            ahead for ahead, token in enumerate(window) if fnmatchcase(token.lstrip(_PART), want)
        ]
        if not hits:
            return len(window) == _MAX_SKIPPED
        if want.startswith("-"):
            continue
        words = [token for token in window[: hits[0]] if not token.startswith(_PART)]
        pairs = zip(["", *words], words, strict=False)
        if not all(word.startswith("-") or before.startswith("-") for before, word in pairs):
            return False
        at += hits[0] + 1
    return has_rest or at >= len(tokens)


def _may_hold(text: str, pattern: str) -> bool:
    """Whether a line that cannot be read has a word like the first one of a pattern."""
    first = re.split(r"[*?\[\s]", pattern.strip(), maxsplit=1)[0]
    joined = re.sub(r"\\\n|[\"'\\]", "", text)
    word = re.compile(rf"(?<!\w){re.escape(first)}")
    return bool(word.search(joined) or word.search(text))


class _Suspects:
    """What a line could run, with the lines in its words.

    `texts` are the commands as they are. `places` has for each name that stands where a program could
    stand the words with it, and where it is among them. `globs` are names that the shell completes.
    """

    def __init__(self, text: str) -> None:
        self.texts: set[str] = set()
        self.places: dict[str, list[tuple[list[str], int]]] = {}
        self.globs: set[str] = set()
        self.is_complete = True
        lines = [text]
        for _ in range(_MAX_DEPTH):
            lines = [inner for line in lines for inner in self._read(read_line(line))]
        self.is_complete = self.is_complete and not lines

    def _read(self, line: CommandLine) -> Iterator[str]:
        """Take the programs of a line; give the lines that are quoted in them."""
        self.is_complete = self.is_complete and not line.fault
        # The place from which on a word of a program may be a program; none: no word may.
        suspects = [
            KnownWords(program.words).suspect if program.words and program.words[0].is_clear else 0
            for program in line.programs
        ]
        # Whether it has texts that may be lines of their own, wherever they stand.
        operators = [
            redirection.operator
            for program in line.programs
            for redirection in program.redirections
        ]
        is_fed = any("<<" in operator for operator in operators) or any(
            sign.strip() in ("|", "|&", "${", "$[") for sign in line.operators
        )
        if is_fed and any(at is not None for at in suspects):
            suspects = [0] * len(suspects)  # what one program writes, another may run
            for text in line.documents:
                word = Word(text=text, known=len(text), is_line=True)
                yield from self._add(Program(words=(word,)), 0)
        for program, suspect in zip(line.programs, suspects, strict=True):
            self.texts.add(program.text)
            yield from self._add(program, suspect)

    def _add(self, program: Program, suspect: int | None) -> Iterator[str]:
        tokens: list[str] = []
        texts = [
            redirection.target
            for redirection in program.redirections
            if redirection.operator.endswith("<<<")
        ]
        words = [*program.assignments, *program.words, *(text for text in texts if text)]
        for at, word in enumerate(words, -len(program.assignments)):
            is_suspect = at <= 0 or (suspect is not None and at >= suspect)
            if is_suspect and word.is_line:
                yield word.text
            if at == 0 and not word.is_clear and re.search(r"[*?[]", word.text):
                name = plain_name(word.text)
                self.globs.update({name if len(name) <= SHOWN else "*"} if name.strip("*") else ())
            for token in _tokens(word):
                if is_suspect:
                    name = plain_name(token.lstrip(_PART))
                    self.places.setdefault(name, []).append((tokens, len(tokens)))
                tokens.append(token)


suspects = lru_cache(maxsize=2)(_Suspects)
"""Reads what a line could run; several rules look at one line."""


def _tokens(word: Word) -> list[str]:
    """Return a word, and the names that it may be made of: `exec=rm`, `-xrm`, `rm$IFS-rf`, `r$@m`."""
    parts = _NAME.findall(word.text)
    if parts == [word.text]:
        parts = []
    if not word.is_clear:
        parts += _NAME.findall(_EXPANSION.sub("", word.text))
    for part in (word.text, *parts):
        if re.match(r"-[^-].", part):
            parts += (part[at:] for at in range(2, min(len(part), _MAX_LETTERS)))
    return [word.text, *(f"{_PART}{part}" for part in parts)]


def unseen(program: Program) -> str:
    """Return the word of a program that leaves open what runs; empty when none does."""
    if not program.words:
        return ""
    name, *others = program.words
    plain = plain_name(name.text)
    if not name.is_clear or plain in _EVALS:
        return cut(name)
    operands = [word for word in others if not word.text.startswith("-")]
    is_read = any(word.text.startswith("-") and "s" in word.text for word in others)
    return cut(name) if plain in _SHELLS and (is_read or not operands) else ""
