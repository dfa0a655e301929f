"""Lines as wide as a terminal, broken between words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from prompt_toolkit.utils import get_cwidth

Piece = tuple[str, str]

_COLUMN = re.compile(r" *\S+(?: \S+)* {2,}(?=\S)")
"""The first of two columns, and the blanks before the second."""


def wrapped(text: str, width: int) -> list[str]:
    """Break a text into rows of at most `width` columns; a row that fits stays as it is.

    A word that is wider than a row, or a script without spaces, is broken where the row ends. What
    is indented goes on with the same indent, and what has two columns below the second, if that
    leaves room.
    """
    return [row for line in text.split("\n") for row in _rows(line, width)]


def wrapped_pieces(
    pieces: Sequence[Piece], width: int, hang: str = "", *, by_word: bool = True
) -> list[list[Piece]]:
    """Break a styled line in the same way; `hang` begins each row but the first."""
    line = "".join(text for _, text in pieces)
    spans = list(_spans(line, width, hang, by_word))
    if len(spans) == 1:
        return [list(pieces)]
    rows = list(_cut(pieces, spans))
    return [row if at == 0 or not hang else [("", hang), *row] for at, row in enumerate(rows)]


def fitted(text: str, width: int, dots: str = "…") -> str:
    """Return a text of one line that is at most `width` columns wide, cut with dots."""
    if get_cwidth(text) <= width:
        return text
    return text[: _fitting(text, 0, max(0, width - get_cwidth(dots)))] + dots[: max(0, width)]


def _rows(line: str, width: int) -> list[str]:
    indent = line[: len(line) - len(line.lstrip(" "))]
    if column := _COLUMN.match(line):
        hang = " " * get_cwidth(column[0])
        indent = hang if len(hang) < width // 2 else indent
    indent = indent if len(indent) < width // 2 else ""
    spans = list(_spans(line, width, indent))
    if len(spans) == 1:
        return [line]
    rows = [line[start:end] for start, end in spans]
    return [row if at == 0 else indent + row for at, row in enumerate(rows)]


def _spans(line: str, width: int, hang: str, by_word: bool = True) -> Iterator[tuple[int, int]]:
    """Yield where each row begins and ends in the line; blanks between rows are in neither."""
    start, room, least = 0, width, len(hang)
    while (end := _fitting(line, start, room)) < len(line):
        end = max(end, start + 1)
        space = line.rfind(" ", start + least + 1, end + 1) if by_word else -1
        end = space if space > start + least else end
        yield start, start + len(line[start:end].rstrip(" ")) if by_word else end
        start = end
        while by_word and line[start : start + 1] == " ":
            start += 1
        room, least = max(1, width - get_cwidth(hang)), 0
    yield start, len(line)


def _fitting(line: str, start: int, room: int) -> int:
    """Return the end of the signs, from `start` on, that fit into a row."""
    if line.isascii():
        return min(len(line), start + room)
    for at in range(start, len(line)):
        room -= get_cwidth(line[at])
        if room < 0:
            return at
    return len(line)


def _cut(pieces: Sequence[Piece], spans: Iterable[tuple[int, int]]) -> Iterator[list[Piece]]:
    """Yield the parts of styled text between places that follow each other."""
    number, at = 0, 0  # of a piece, and where it begins
    for start, end in spans:
        row = list[Piece]()
        while number < len(pieces):
            style, text = pieces[number]
            if part := text[max(0, start - at) : max(0, end - at)]:
                row.append((style, part))
            if at + len(text) > end:
                break
            at += len(text)
            number += 1
        yield row
