"""Shell command lines, read to words. Pure.

`read_line` follows the grammar of bash as far as permission rules need it: which programs a line runs
(between operators, in subshells, substitutions and functions), each with its words, the assignments
before it and its redirections, and its here-documents. Nothing is expanded. A word that the shell would
change before the program gets it (`$X`, `*.py`, `{a,b}`, `$(…)`) says how much of it is sure. Words that
quote a line of their own (`bash -c "…"`), and here-documents, are read again by whoever wants to know
what is in them.

The reading takes time proportional to the line. What cannot be read has a `fault`.
"""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct, field

from ...machines.pattern import lazy_pattern
from ...machines.value import Value

MAX_LENGTH = 16 * 1024
"""Characters of a line that is read."""

_LINE = lazy_pattern(r"[\s;&|<>()`'\"\\\0]")  # what a word has that may be a line of its own
_ASSIGNMENT = lazy_pattern(r"[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=")
_DESCRIPTOR = lazy_pattern(r"\d+$|\{\w+\}$")
_UNSURE = lazy_pattern(r"[*?\[$\2]")
_ESCAPE = lazy_pattern(
    r"\\(?:x([\da-fA-F]{1,2})|u([\da-fA-F]{1,4})|U([\da-fA-F]{1,8})|([0-7]{1,3})|c(.)|(.))",
    re.DOTALL,
)
_BACKQUOTED = lazy_pattern(r"((?:[^`\\]|\\.)*)`", re.DOTALL)
_ESCAPED_BARE = lazy_pattern(r"\\([\\`$])")
_ESCAPED_IN_QUOTES = lazy_pattern(r"\\([\\`$\"])")
_PLAIN = lazy_pattern(r"(?!\Z)([^\n]*)\n?")
_JOINED = lazy_pattern(r"(?!\Z)((?:\\.|[^\n\\]|\\\Z)*)\n?", re.DOTALL)
_QUOTES = lazy_pattern(r"""\\(.)|'([^']*)'|"([^"]*)\"""")
_DELIMITER = lazy_pattern(  # the end of a here-document, where it is plain what it is
    r"""(?:[ \t]|\\\n)*((?:[^\s'"\\$`;&|<>()\0]|\\[^\n]|'[^'\n]*'|"[^"\\$`\n]*")+)"""
    r"(?=[ \t\n;&|<>()]|\Z)"
)
_ESCAPED = dict(zip("abeEfnrtv", "\a\b\x1b\x1b\f\n\r\t\v", strict=True))

# How each character of a word came into it: as itself, by quotes, or by an expansion inside of quotes
# (`_HELD`: one word, whatever it is) or outside (`$`: any number of words).
_QUOTED, _HELD, _SPLIT = "\1", "\2", "$"

_PARAMETER = r"\$(?:\w+|[@*\#?$!-]|\{\w+\})"
_BARE = lazy_pattern(
    rf"""(?P<joined>\\\n) | \\(?P<escaped>.) | \$'(?P<ansi>(?:[^'\\]|\\.)*)' | '(?P<single>[^']*)'
    | (?P<double>\$?") | (?P<unclosed>\$?'|\\) | (?P<comment>\#)
    | (?P<redirect>(?:&>>?|>[>|&]?|<<<|<<-?|<[>&]?)(?!\()) | (?P<variable>{_PARAMETER})
    | (?P<open>[$<>]?\(|`|\$[{{\[]) | (?P<close>\)) | (?P<end>[;&|\n\r\0]+) | (?P<space>[ \t]+)
    | (?P<text>[^\\'"$&<>()`;|\s\0\#]+|.)""",
    re.DOTALL | re.VERBOSE,
)
_IN_QUOTES = lazy_pattern(
    rf"""(?P<joined>\\\n) | \\(?P<escaped>["\\$`]) | (?P<double>") | (?P<variable>{_PARAMETER})
    | (?P<open>\$[({{\[]|`) | (?P<text>[^"\\$`]+|.)""",
    re.DOTALL | re.VERBOSE,
)


class Word(Value):
    """One word, as the program would get it; what is not known stays as written.

    `known` counts the leading characters that are sure. `splits`: it may become several words, or none.
    `is_line`: it may be a line of its own.
    """

    text: str
    known: int
    splits: bool = False
    is_line: bool = False

    @property
    def is_clear(self) -> bool:
        """Whether the program gets exactly this text."""
        return self.known == len(self.text) and not self.splits


class Redirection(Value):
    """One redirection: `2>`, `<<<` or `&>`, and where it leads, if the line says so."""

    operator: str
    target: Word | None = None

    @property
    def is_harmless(self) -> bool:
        """Whether it only joins descriptors, or leads to nowhere."""
        if self.target is None or not self.target.is_clear or "<<" in self.operator:
            return False
        is_joined = self.operator.endswith("&") and re.fullmatch(r"\d+|-", self.target.text)
        return bool(is_joined) or self.target.text == "/dev/null"


class Program(Value):
    """One program of a line: its words, of which the first is its name, and what stands around them."""

    words: tuple[Word, ...]
    assignments: tuple[Word, ...] = ()
    redirections: tuple[Redirection, ...] = ()

    @property
    def text(self) -> str:
        """Return its words, without quotes."""
        return " ".join(word.text for word in (*self.assignments, *self.words))


class CommandLine(Value):
    """What a line runs, in order of the ends of the commands, and the operators between them.

    `documents` are the texts of its here-documents, as they are written.
    """

    programs: tuple[Program, ...] = ()
    operators: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    fault: str = ""

    @property
    def signs(self) -> tuple[str, ...]:
        """Return everything that makes it more than one plain command."""
        redirections = [found for program in self.programs for found in program.redirections]
        return self.operators + tuple(
            redirection.operator for redirection in redirections if not redirection.is_harmless
        )


def plain_name(name: str) -> str:
    """Return a program's name without its folder."""
    return name.rpartition("/")[2] or name


def read_line(line: str) -> CommandLine:
    """Read a line. Never raises."""
    if len(line) > MAX_LENGTH:
        return CommandLine(fault="it is longer than 16 KiB")
    reader = _Reader(line)
    return CommandLine(
        programs=tuple(reader.programs),
        operators=tuple(reader.operators),
        documents=tuple(reader.documents),
        fault=reader.fault,
    )


read_pattern = lru_cache(maxsize=128)(read_line)
"""Reads a pattern for lines; patterns come back, lines seldom do."""


class _Document(Struct):
    """A here-document that is still to come; its text is taken as it is if `end` `is_quoted`."""

    end: str
    is_indented: bool
    is_quoted: bool


class _Open(Struct):
    """A command that is being read; `closer` ends the substitution that it belongs to."""

    closer: str = ""
    words: list[Word] = field(default_factory=list[Word])
    assignments: list[Word] = field(default_factory=list[Word])
    redirections: list[Redirection] = field(default_factory=list[Redirection])
    text: list[str] | None = None  # parts of the word that is being read
    marks: list[str] = field(default_factory=list[str])  # how each of its characters came
    is_line: bool = False
    redirect: str = ""  # the redirection that the next word belongs to
    in_quotes: bool = False
    pending: list[_Document] = field(default_factory=list[_Document])  # begin at the next new line


class _Reader:
    """Reads one line, or a text of which only the substitutions count, token by token."""

    def __init__(self, line: str, *, is_document: bool = False) -> None:
        self.programs: list[Program] = []
        self.operators: list[str] = []
        self.documents: list[str] = []
        self.fault = ""
        self._line, self._at, self._is_document = line, 0, is_document
        self._stack = [_Open(in_quotes=is_document)]
        while self._at < len(line):
            found = (_IN_QUOTES if self._stack[-1].in_quotes else _BARE).match(line, self._at)
            assert found is not None, "every character begins a token"
            assert found.lastgroup is not None, "every token has a kind"
            self._at = found.end()
            self._take(found.lastgroup, found[found.lastgroup])
        if len(self._stack) > 1 or self._stack[-1].in_quotes != is_document:
            self.fault = self.fault or "a quote or parenthesis is not closed"
        while self._stack and not is_document:
            self._end_command()
            self._stack.pop()

    @property
    def _is_text(self) -> bool:
        """Whether the next token is one of a here-document, where quotes are text."""
        return self._is_document and len(self._stack) == 1

    def _take(self, kind: str, text: str) -> None:
        top = self._stack[-1]
        match kind:
            case "comment" if top.text is None:
                end = self._line.find("\n", self._at)
                self._at = end if end >= 0 else len(self._line)
            case "text" | "comment":
                self._add(text, _QUOTED if top.in_quotes else "")
            case "escaped" | "single":
                self._add(text, _QUOTED)
            case "ansi":
                self._add(_ESCAPE.sub(_unescaped, text), _QUOTED)
            case "variable":
                self._add(text, _HELD if top.in_quotes else _SPLIT)
            case "double" if self._is_text:
                return
            case "double":
                top.in_quotes = not top.in_quotes
                self._add("", _QUOTED)
            case "unclosed":
                self.fault = "a quote is not closed"
            case "space":
                self._end_word()
            case "redirect":
                self._redirect(text)
                if text in ("<<", "<<-"):
                    self._expect(is_indented=text == "<<-")
            case "open" if text == "`":
                self._backquoted()
            case "open":
                self._open(text)
            case "close":
                self._close(text)
            case "end":
                self._end_command()
                self.operators.append(text)
                if "\n" in text and any(level.pending for level in self._stack):
                    self._at -= len(text) - text.index("\n") - 1
                    self._read_documents()
            case "joined":
                if self._line[self._at - 3 : self._at - 2] in ("$", "<"):
                    self.fault = self.fault or "a sign is split over two lines"
            case _:
                raise AssertionError(kind)

    def _redirect(self, text: str) -> None:
        top = self._stack[-1]
        descriptor = "".join(top.marks if top.text else ())
        if _DESCRIPTOR.match(descriptor):
            top.text, top.marks = None, []
            text = descriptor + text
        self._end_word()
        top.redirect = text

    def _open(self, text: str) -> None:
        """Begin a substitution, which is a part of its word, or a subshell, which is not."""
        top = self._stack[-1]
        self.operators.append(text)
        if text == "(":
            self._end_command()
        else:
            self._add(text, _HELD if top.in_quotes else _SPLIT)
        if text not in ("${", "$["):  # what is in these is read like the rest of the word
            self._stack.append(_Open(closer=")"))

    def _backquoted(self) -> None:
        """Read what is in backquotes as bash does: up to the next one, without the backslashes."""
        top = self._stack[-1]
        self.operators.append("`")
        self._add("`", _HELD if top.in_quotes else _SPLIT)
        found = _BACKQUOTED.match(self._line, self._at)
        if found is None:
            self.fault = self.fault or "a quote or parenthesis is not closed"
        content = self._line[self._at :] if found is None else found[1]
        self._at = len(self._line) if found is None else found.end()
        escaped = _ESCAPED_IN_QUOTES if top.in_quotes and not self._is_text else _ESCAPED_BARE
        self._merge(_Reader(escaped.sub(r"\1", content)))

    def _merge(self, inner: _Reader) -> None:
        self.programs += inner.programs
        self.operators += inner.operators
        self.documents += inner.documents
        self.fault = self.fault or inner.fault

    def _expect(self, *, is_indented: bool) -> None:
        """Read what ends a here-document, which begins behind the next new line."""
        found = _DELIMITER.match(self._line, self._at)
        if found is None:
            self.fault = self.fault or "what ends a here-document is not plain"
            return
        self._at = found.end()
        end = _QUOTES.sub(lambda part: part[1] or part[2] or part[3] or "", found[1])
        document = _Document(end, is_indented=is_indented, is_quoted=end != found[1])
        self._stack[-1].pending.append(document)
        self._add(found[1], _QUOTED)
        self._end_word()

    def _read_documents(self) -> None:
        """Read the here-documents that begin here."""
        if any(level.pending for level in self._stack[:-1]):
            self.fault = self.fault or "a here-document begins in a substitution"
        top = self._stack[-1]
        for document in top.pending:
            pattern, lines = _PLAIN if document.is_quoted else _JOINED, list[str]()
            while found := pattern.match(self._line, self._at):
                self._at = found.end()
                line = found[1] if document.is_quoted else found[1].replace("\\\n", "")
                line = line.lstrip("\t") if document.is_indented else line
                if line == document.end:
                    break
                lines.append(line)
            else:
                is_open = len(self._stack) > 1
                self.fault = self.fault or ("a here-document is not closed" if is_open else "")
            text = "\n".join(lines)
            self.documents.append(text)
            if not document.is_quoted:
                self._merge(_Reader(text, is_document=True))
        top.pending = []

    def _close(self, text: str) -> None:
        self._end_command()
        if self._stack[-1].pending:
            self.fault = self.fault or "a here-document begins in a substitution"
        if self._stack[-1].closer == text:
            self._stack.pop()
        else:
            self.operators.append(text)

    def _add(self, text: str, mark: str) -> None:
        """Add a part to the word; without a mark its characters stand for themselves."""
        top = self._stack[-1]
        if top.text is None:
            top.text, top.marks, top.is_line = [], [], False
        top.text.append(text)
        top.marks.append(mark * len(text) if mark else text)
        top.is_line = top.is_line or (mark == _QUOTED and bool(_LINE.search(text)))

    def _end_word(self) -> None:
        top = self._stack[-1]
        if top.text is None:
            return
        word = _word("".join(top.text), "".join(top.marks), is_line=top.is_line)
        top.text = None
        if top.redirect:
            top.redirections.append(Redirection(operator=top.redirect, target=word))
            top.redirect = ""
        elif not top.words and _ASSIGNMENT.match(word.text):
            top.assignments.append(word)
        else:
            top.words.append(word)

    def _end_command(self) -> None:
        top = self._stack[-1]
        self._end_word()
        if top.redirect:
            top.redirections.append(Redirection(operator=top.redirect))
        if top.words or top.assignments or top.redirections:
            self.programs.append(
                Program(
                    words=tuple(top.words),
                    assignments=tuple(top.assignments),
                    redirections=tuple(top.redirections),
                )
            )
        top.words, top.assignments, top.redirections, top.redirect = [], [], [], ""


def _word(text: str, marks: str, *, is_line: bool) -> Word:
    unsure = _UNSURE.search(marks) if marks not in ("[", "[[") else None
    known = unsure.start() if unsure else len(text)
    brace = marks.find("{", 0, known)
    if brace >= 0 and ("," in marks[brace:] or ".." in marks[brace:]):
        known = brace
    return Word(
        text=text,
        known=known,
        splits=_SPLIT in marks or "{" in marks[known : known + 1],
        is_line=is_line,
    )


def _unescaped(found: re.Match[str]) -> str:
    r"""Return the character of an escape in `$'…'`."""
    hexadecimal = found[1] or found[2] or found[3]
    if hexadecimal or found[4]:
        code = int(hexadecimal, 16) if hexadecimal else int(found[4], 8) & 0xFF
        return chr(code) if code < 0x110000 else found[0]
    if found[5]:
        return chr(ord(found[5]) & 0x1F)
    return _ESCAPED.get(found[6], found[6] if found[6] in "\\'\"?" else found[0])
