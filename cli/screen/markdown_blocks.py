"""Blocks of Markdown: code, which Pygments colours, and tables.

Code is coloured a few lines at a time as it streams. The library and each language's lexer are loaded
in a thread of their own, so that nothing waits for them: what comes before they are there has one colour.
A line is read with some lines before it, which bounds the work for a line and is right for all but long
comments and strings.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from prompt_toolkit.utils import get_cwidth

from ...machines.pattern import lazy_pattern
from ..wrapping import wrapped_pieces
from .appearance import CODE, DIM, HEAD, Appearance, Piece, Row

if TYPE_CHECKING:
    from pygments.lexer import Lexer

LANGUAGES = frozenset(
    "bash c c++ cpp cs csharp css diff docker dockerfile go html http ini java javascript js json "
    "jsx kotlin lua make makefile markdown md nix php powershell py python rb rs ruby rust scala scss "
    "sh shell sql swift toml ts tsx typescript xml yaml yml zsh".split()
)
"""Names behind a fence that are highlighted; lexers that are widely used, since a lexer can be slow."""
USUAL = ("python", "bash", "json")
CONTEXT = 30
"""Lines before a line that are read again for it."""
LONGEST_LINE = 500
"""Characters of a line that is highlighted, in a block without longer ones before it."""

_STYLES = {
    "Comment": "dim italic",
    "Keyword": "ansimagenta",
    "Name.Builtin": "ansicyan",
    "Name.Class": "ansiblue",
    "Name.Decorator": "ansicyan",
    "Name.Function": "ansiblue",
    "Name.Tag": "ansiblue",
    "Name.Attribute": "ansicyan",
    "Literal.String": "ansigreen",
    "Literal.Number": "ansiyellow",
    "Generic.Deleted": "ansired",
    "Generic.Inserted": "ansigreen",
    "Generic.Heading": "bold",
    "Generic.Subheading": "ansicyan",
}
"""Styles by the beginning of a token's type, in the terminal's own colours."""


class _Loader:
    """Loads lexers in threads; one for the program."""

    def __init__(self) -> None:
        self._lexers: dict[str, Lexer | None] = {}
        self._threads: dict[str, threading.Thread] = {}

    def lexer(self, language: str) -> Lexer | None:
        """Return a language's lexer, or begin to load it; none while it is not there."""
        if language not in self._lexers and language not in self._threads:
            thread = threading.Thread(target=self._load, args=(language,), daemon=True)
            self._threads[language] = thread
            thread.start()
        return self._lexers.get(language)

    def prepare(self) -> None:
        """Begin to load the languages that models write most, before the first code comes."""
        for language in USUAL:
            self.lexer(language)

    def wait(self, language: str) -> None:
        """Wait until a language is loaded."""
        self.lexer(language)
        self._threads[language].join()

    def _load(self, language: str) -> None:
        from pygments.lexers import (
            get_lexer_by_name,  # pyright: ignore[reportUnknownVariableType]
        )
        from pygments.util import ClassNotFound

        try:
            lexer: Lexer = get_lexer_by_name(language)
        except ClassNotFound:  # a name that this version of the library does not have
            self._lexers[language] = None
            return
        list(lexer.get_tokens_unprocessed("x = 1\n"))  # it prepares itself at the first use
        self._lexers[language] = lexer


LOADER = _Loader()


class Highlighter:
    """Colours the lines of one code block, in order."""

    def __init__(self, language: str) -> None:
        self._language = language.lower() if language.lower() in LANGUAGES else ""
        self._context: list[str] = []
        if self._language:
            LOADER.lexer(self._language)

    def take(self, lines: Sequence[str]) -> list[list[Piece]]:
        """Return the pieces of complete lines; the next lines follow them."""
        pieces = self._read([*self._context, *lines])[len(self._context) :]
        self._context = [*self._context, *lines][-CONTEXT:]
        return pieces

    def show(self, line: str) -> list[Piece]:
        """Return the pieces of a line that may still grow."""
        return self._read([line])[0]

    def _read(self, lines: Sequence[str]) -> list[list[Piece]]:
        lexer = LOADER.lexer(self._language) if self._language else None
        if any(len(line) > LONGEST_LINE for line in lines):
            lexer = None
        plain: list[list[Piece]] = [[(CODE, line)] if line else [] for line in lines]
        if lexer is None:
            return plain
        read: list[list[Piece]] = [[]]
        for _, token, text in lexer.get_tokens_unprocessed("\n".join(lines) + "\n"):
            # The style of the token's type, or of the nearest type above it.
            types = (".".join(token[:length]) for length in range(len(token), 0, -1))
            style = next((_STYLES[name] for name in types if name in _STYLES), "")
            first, *others = text.split("\n")
            read[-1].append((style, first))
            read += [[(style, other)] for other in others]
        shown = [[piece for piece in line if piece[1]] for line in read[: len(lines)]]
        is_whole = ["".join(text for _, text in line) for line in shown] == list(lines)
        return shown if is_whole else plain


# Tables -------------------------------------------------------------------------------------------
# A table is drawn when it is complete, since its last row can widen a column. Where the columns would
# become too narrow to read, each row is listed as lines of `header: cell`.


Inline = Callable[[str, str], list[Piece]]
"""Styles the marks in a text; the second text is the style that it has already."""

MOST_ROWS = 100
"""Rows after which a table that still grows is drawn; the rest follows as one with the same head."""
MOST_COLUMNS = 100
"""Columns of a table that is drawn; each row has as many, however short it is."""
LIVE_ROWS = 8
"""Rows that are shown of a table that still grows: however long it is, drawing them is quick."""
NARROWEST = 8
"""Columns of a column that had to be narrowed; below that, rows are listed."""

_DELIMITER = lazy_pattern(r"\s*+\|?\s*+:?-++:?\s*+(?:\|\s*+:?-++:?\s*+)*+\|?\s*+")
_PIPE = lazy_pattern(r"(?<!\\)\|")


def may_be_row(line: str) -> bool:
    """Whether a line could belong to a table."""
    return line.lstrip().startswith("|") or " | " in line


def is_head(lines: Sequence[str]) -> bool:
    """Whether two lines begin a table: a row, and a delimiter with as many columns."""
    head, delimiter = lines[:2]
    is_delimiter = "-" in delimiter and bool(_DELIMITER.fullmatch(delimiter))
    return (
        is_delimiter
        and delimiter.count("|") < MOST_COLUMNS
        and len(cells(head)) == len(cells(delimiter))
    )


def cells(line: str) -> list[str]:
    """Split a row at its pipes; one behind a backslash is part of a cell."""
    inner = line.strip().removeprefix("|")
    inner = inner[:-1] if inner.endswith("|") and not inner.endswith("\\|") else inner
    return [cell.strip().replace("\\|", "|") for cell in _PIPE.split(inner)]


def table_rows(lines: Sequence[str], width: int, look: Appearance, inline: Inline) -> list[Row]:
    """Draw a table from its lines: the head, the delimiter, and the rows."""
    head = cells(lines[0])
    aligns = [_align(cell) for cell in cells(lines[1])]
    body = [(cells(line) + [""] * len(head))[: len(head)] for line in lines[2:]]
    heads = [inline(cell, HEAD) for cell in head]
    rows = [[inline(cell, "") for cell in row] for row in body]
    natural = [max(map(_broad, column)) for column in zip(heads, *rows, strict=True)]
    between = f" {look.plain('│')} "
    room = width - len(between) * (len(head) - 1)
    level = room
    while level > 0 and sum(min(broad, level) for broad in natural) > room:
        level -= 1
    if level < min(NARROWEST, max(natural)):
        return _listed(heads, rows, width)
    widths = [max(1, min(broad, level)) for broad in natural]
    rule: Row = [(DIM, look.plain("─┼─").join(look.plain("─") * broad for broad in widths))]
    drawn = [_drawn(row, widths, aligns, between) for row in (heads, *rows)]
    is_apart = any(len(block) > 1 for block in drawn[1:])
    result = [*drawn[0], rule]
    for at, block in enumerate(drawn[1:]):
        result += [rule, *block] if is_apart and at else block
    return result


def _broad(pieces: Sequence[Piece]) -> int:
    return get_cwidth("".join(text for _, text in pieces))


def _align(delimiter: str) -> str:
    ends = delimiter[:1] == ":", delimiter[-1:] == ":"
    return "center" if all(ends) else "right" if ends[1] else "left"


def _drawn(
    row: Sequence[list[Piece]], widths: Sequence[int], aligns: Sequence[str], between: str
) -> list[Row]:
    """Draw one row of a table, which may be several of the terminal."""
    columns = [wrapped_pieces(cell, broad) for cell, broad in zip(row, widths, strict=True)]
    drawn = list[Row]()
    for at in range(max(map(len, columns))):
        line = list[Piece]()
        for place, (column, broad, align) in enumerate(zip(columns, widths, aligns, strict=True)):
            cell = column[at] if at < len(column) else []
            free = max(0, broad - _broad(cell))
            left = {"right": free, "center": free // 2}.get(align, 0)
            line += [("", " " * left), *cell]
            if place < len(widths) - 1:
                line += [("", " " * (free - left)), (DIM, between)]
        drawn.append([piece for piece in line if piece[1]])
    return drawn


def _listed(
    heads: Sequence[list[Piece]], rows: Sequence[list[list[Piece]]], width: int
) -> list[Row]:
    """List each row as lines of `header: cell`, with an empty row between two."""
    listed = list[Row]()
    for row in rows or [[[] for _ in heads]]:
        listed += [[]] if listed else []
        for head, cell in zip(heads, row, strict=True):
            listed += wrapped_pieces([*head, (HEAD, ": "), *cell], width, "  ")
    return listed
