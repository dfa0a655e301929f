"""A TOML file that people write, and how its problems are shown: position, source line, next step."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeGuard

from msgspec import field

from ..machines.deprecation import rename_keys
from ..machines.errors import ConfigError
from ..machines.value import Value
from .foreign_file import decoded, parse_toml, read_foreign
from .positions import locate
from .problem import SECRET, Problem


class Document(Value, eq=False):
    """A parsed file; `file` is its path, or what else to call it where there is no text.

    `content` is the file as it was read; trust in a project's file is trust in these bytes. `data`
    has the newer key in the place of each older one of the file, which `warnings` name.
    """

    file: str
    text: str = ""
    content: bytes = b""
    data: dict[str, Any] = field(default_factory=dict[str, Any])
    warnings: tuple[str, ...] = ()


class Diagnostic(Value, kw_only=False):
    """A problem in a document, with its line and column (from 1; 0 where there is no text)."""

    document: Document
    problem: Problem
    line: int = 0
    column: int = 0


def read_document(path: Path) -> tuple[Document, list[Diagnostic]]:
    """Read and parse a file; if it can't be, the document is empty and there is a diagnostic."""
    try:
        return parse_document(str(path), read_foreign(path))
    except FileNotFoundError:
        reason = "it is not there"
    except OSError as error:
        reason = error.strerror or str(error)
    document = Document(file=str(path))
    problem = Problem((), f"the file can't be read: {reason}", "correct the path")
    return document, [Diagnostic(document, problem)]


def parse_document(file: str, content: bytes) -> tuple[Document, list[Diagnostic]]:
    """Parse the content of a file, in the same way."""
    try:
        text = decoded(content)
    except UnicodeDecodeError as error:
        before = content[: error.start]
        line, column = before.count(b"\n") + 1, error.start - (before.rfind(b"\n") + 1) + 1
        document = Document(file=file)
        problem = Problem((), "the text is not UTF-8")
        return document, [Diagnostic(document, problem, line, column)]
    try:
        data = parse_toml(text)
    except ValueError as error:
        return _syntax_diagnostic(Document(file=file, text=text), str(error))
    warnings = tuple(rename_keys(data))
    return Document(file=file, text=text, content=content, data=data, warnings=warnings), []


def is_table(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether this is a TOML table."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Whether this is a TOML array."""
    return isinstance(value, list)


def diagnose(document: Document, problems: Iterable[Problem]) -> list[Diagnostic]:
    """Give each problem its position, in the order of the text."""
    problems = list(problems)
    if not problems or not document.text:
        return [Diagnostic(document, problem) for problem in problems]
    positions = locate(document.text)
    found = [
        Diagnostic(document, problem, *positions.find(problem.where, problem.at_value))
        for problem in problems
    ]
    return sorted(found, key=lambda diagnostic: (diagnostic.line, diagnostic.column))


def tell(diagnostic: Diagnostic, grade: str = "") -> str:
    """Write one as people read it: `FILE:LINE:COL: message`, the line, the hint.

    `grade` goes before the message, as in `warning: `.
    """
    file, line = diagnostic.document.file, diagnostic.line
    place = f"{file}:{line}:{diagnostic.column}: " if line else f"{file}: "
    return f"{place}{grade}{_block(diagnostic)}"


def config_error(diagnostics: list[Diagnostic]) -> ConfigError:
    """Make one error of all diagnostics; its position is that of the first."""
    first, *others = diagnostics
    text = "\n".join((_block(first), *map(tell, others)))
    return ConfigError(text, file=first.document.file, line=first.line, column=first.column)


def _block(diagnostic: Diagnostic) -> str:
    lines = [diagnostic.problem.message]
    if diagnostic.line and diagnostic.document.text:
        source = diagnostic.document.text.split("\n")[diagnostic.line - 1]
        lines.append(f"  {diagnostic.line:>4} | {_printable(source)}")
        lines.append(f"       | {' ' * min(diagnostic.column - 1, 100)}^")
    if diagnostic.problem.hint:
        lines.append(f"       {diagnostic.problem.hint}")
    return "\n".join(lines)


def _printable(line: str) -> str:
    """Cut a long line, show no control characters, and no value that may be a secret."""
    if SECRET.search(line):
        line = line.partition("=")[0] + "= …"
    line = "".join(char if char.isprintable() else " " for char in line.replace("\t", " "))
    return line if len(line) <= 100 else f"{line[:99]}…"


def _syntax_diagnostic(document: Document, said: str) -> tuple[Document, list[Diagnostic]]:
    if match := re.search(r" \(at line (\d+), column (\d+)\)$", said):
        line, column = int(match[1]), int(match[2])
    else:
        line, column = document.text.rstrip("\n").count("\n") + 1, 1
    message = re.sub(r" \(at [^()]*\)$", "", said)
    return document, [Diagnostic(document, Problem((), f"not valid TOML: {message}"), line, column)]
