"""Columns for people: as wide as they need to be, and never wider than the terminal."""

from __future__ import annotations

import shutil
import sys
import unicodedata
from collections.abc import Mapping, Sequence

from .page import can_colour

_GAP = "  "
_LEAST = 12  # columns that the last one keeps, however narrow the terminal


def draw_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], environ: Mapping[str, str]
) -> str:
    """Draw rows under a head; on a terminal the last column is cut at its left to fit.

    Where it is not a terminal nothing is cut and nothing coloured.
    """
    widths = [max(map(_width, column)) for column in zip(head, *rows, strict=True)]
    room = _room(widths[:-1]) if sys.stdout.isatty() else widths[-1]
    lines = [_line([*row[:-1], _fit(row[-1], room)], widths) for row in (head, *rows)]
    if can_colour(sys.stdout, environ):
        lines[0] = f"\x1b[1m{lines[0]}\x1b[0m"
    return "\n".join(lines)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [
        cell + " " * (width - _width(cell)) for cell, width in zip(cells, widths, strict=True)
    ]
    return _GAP.join(padded).rstrip()


def _room(others: Sequence[int]) -> int:
    return max(_LEAST, shutil.get_terminal_size().columns - sum(others) - len(_GAP) * len(others))


def _fit(cell: str, room: int) -> str:
    """Cut at the left, since the end of a path says more than its begin."""
    if _width(cell) <= room:
        return cell
    while _width(cell) > room - 1:
        cell = cell[1:]
    return f"…{cell}"


def _width(text: str) -> int:
    """Columns that a text takes: wide characters two, combining ones none."""
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(unicodedata.combining(char) > 0 for char in text)
