"""Lines as wide as a terminal, broken between words."""

from prompt_toolkit.utils import get_cwidth

__all__ = ["wrapped"]


def wrapped(text: str, width: int) -> list[str]:
    """Break a text into rows of at most `width` columns; a row that fits stays as it is.

    A word that is wider than a row, or a script without spaces, is broken where the row ends. What
    is indented goes on with the same indent, if that leaves room.
    """
    return [row for line in text.split("\n") for row in _rows(line, width)]


def _rows(line: str, width: int) -> list[str]:
    indent = line[: len(line) - len(line.lstrip(" "))]
    indent = indent if len(indent) < width // 2 else ""
    rows = list[str]()
    while get_cwidth(line) > width:
        end = _fitting(line, width)
        space = line.rfind(" ", len(indent) + 1, end + 1)
        end = space if space > len(indent) else max(end, len(indent) + 1)
        rows.append(line[:end].rstrip(" "))
        line = indent + line[end:].lstrip(" ")
    return [*rows, line]


def _fitting(line: str, width: int) -> int:
    """Count the signs that fit into a row."""
    used = 0
    for count, sign in enumerate(line):
        used += get_cwidth(sign)
        if used > width:
            return count
    return len(line)
