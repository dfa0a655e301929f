"""What a tool changes in a file, as a short diff for the model and for people."""

import difflib
import os
from itertools import islice

from ...machines.errors import ToolError
from .place import Place, open_file
from .reading import refuse_binary
from .text import clip_line, readable

__all__ = ["LARGEST", "difference", "replaced"]

LARGEST = 16 * 1024 * 1024
"""Bytes of a file that is changed, or compared, in memory."""
_LINES = 40
_WIDTH = 200
_INPUT = 2000  # changed lines beyond which making a diff would take long


def difference(before: bytes, after: bytes) -> list[str]:
    """Show a change as a short unified diff, without file names; nothing where it would be long."""
    old, new = (readable(text).splitlines() for text in (before, after))
    start = _shared(old, new)
    end = _shared(old[start:][::-1], new[start:][::-1])
    first = max(0, start - 2)
    old = old[first : len(old) - max(0, end - 2)]
    new = new[first : len(new) - max(0, end - 2)]
    if max(len(old), len(new)) > _INPUT:
        return []
    rows = difflib.unified_diff(old, new, lineterm="", n=2)
    shown_rows = [
        _shift(row, first) if row.startswith("@@") else clip_line(row, _WIDTH)
        for row in islice(rows, 2, 2 + _LINES + 1)
    ]
    if len(shown_rows) > _LINES:
        shown_rows[-1] = "[… diff cut]"
    return shown_rows


def replaced(place: Place, data: bytes) -> list[str]:
    """Show what writing `data` changes in a file; nothing for one that is new, or no text."""
    try:
        with open_file(place) as file:
            refuse_binary(file, place)
            if os.fstat(file.fileno()).st_size > LARGEST:
                return []
            return difference(file.read(), data)
    except (OSError, ToolError):
        return []


def _shared(one: list[str], other: list[str]) -> int:
    """Count how many first lines are the same."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (left, right) in pairs if left != right), min(len(one), len(other)))


def _shift(row: str, lines: int) -> str:
    """Correct the line number in a hunk's head, since only a part of the file was compared."""
    start = row.split("+")[1].split(" ")[0].split(",")[0]
    return f"@@ line {int(start) + lines} @@"
