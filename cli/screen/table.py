"""Tables of Markdown: columns as wide as their cells, or as the terminal allows.

A table is drawn when it is complete, since its last row can widen a column. Where the columns would
become too narrow to read, each row is listed as lines of `header: cell`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from prompt_toolkit.utils import get_cwidth

from ...machines.pattern import lazy_pattern
from ..wrapping import wrapped_pieces
from .appearance import DIM, HEAD, Appearance, Piece, Row

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
