"""The output of commands: text, tables, JSON and TOML, in whatever encoding the terminal has.

Only this program's own terminal codes can move the cursor or change colours. A reader that closes
the pipe early (`| head`) is not an error.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TextIO

import tomli_w

from ..gateway.wording.terminal import HIDDEN, audited, audited_but_colours
from ..machines.pattern import lazy_pattern
from ..workflows.document import is_list, is_table

# Text and JSON ------------------------------------------------------------------------------------

_PIECE = 32 * 1024  # characters that are written at once
# What JSON leaves as it is and a terminal obeys or hides, and halves of characters.
_UNSAFE = lazy_pattern(f"[\x7f-\x9f\ud800-\udfff{HIDDEN}]")


def show(text: str, *, is_coloured: bool = False) -> None:
    """Print a text and a newline; a character that the terminal's encoding lacks becomes `?`.

    `is_coloured`: the text may have this program's colours, and in them only audited texts.
    """
    _write(sys.stdout, audited_but_colours(text) if is_coloured else audited(text))


def show_lines(lines: Iterable[str]) -> None:
    """Print lines as they come: the first at once, and as many as a terminal can draw.

    What is read by another program is written in larger pieces.
    """
    gathered: list[str] = []
    size, most = 0, 0
    for line in lines:
        gathered.append(line)
        size += len(line)
        if size >= most:
            show("\n".join(gathered))
            gathered.clear()
            size, most = 0, 0 if sys.stdout.isatty() else _PIECE
    if gathered:
        show("\n".join(gathered))


def show_document(data: Mapping[str, Any]) -> None:
    """Print JSON, indented; it reads back as the same data."""
    show(document(data))


def show_either(data: Mapping[str, Any], text: str, as_json: bool) -> None:
    """Print what a command did: as JSON for programs, or in words."""
    show(document(data) if as_json else text)


def document(data: Mapping[str, Any], indent: int | None = 2) -> str:
    """Write JSON without characters that move the cursor; without `indent` on one line."""
    return escaped(json.dumps(data, ensure_ascii=False, indent=indent))


def escaped(text: str, *, is_toml: bool = False) -> str:
    """Escape characters that a terminal obeys or hides, as strings in JSON and TOML allow it."""

    def escape(found: re.Match[str]) -> str:
        if is_toml and ord(found[0]) > 0xFFFF:
            return f"\\U{ord(found[0]):08x}"
        return json.dumps(found[0])[1:-1]

    return _UNSAFE.sub(escape, text)


def warn(text: str) -> None:
    """Print a line for people to standard error."""
    _write(sys.stderr, audited(text))


def can_colour(environ: Mapping[str, str]) -> bool:
    """Whether colours are wanted: a terminal, and no NO_COLOR (https://no-color.org)."""
    return sys.stdout.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def _write(stream: TextIO, text: str) -> None:
    encoding = stream.encoding or "utf-8"
    try:
        stream.write(text.encode(encoding, "replace").decode(encoding) + "\n")
        stream.flush()
    except OSError as error:
        # What is left in the buffer goes nowhere, or the interpreter complains when it ends.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
        if not isinstance(error, BrokenPipeError) and stream is not sys.stderr:
            os.write(2, f"steersman: the output cannot be written: {error.strerror}\n".encode())
            raise SystemExit(1) from error


# Tables -------------------------------------------------------------------------------------------


_GAP = "  "
_LEAST = 12  # columns that the last one keeps, however narrow the terminal
_SHORT = 10  # columns that another one keeps that may be cut


def show_table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    shrinking: Collection[str] = (),
    optional: Collection[str] = (),
) -> None:
    """Print rows under a head; on a terminal the last column is cut at its left to fit.

    Where that is not enough, columns of the heads `shrinking` are cut at their right, or left out if they
    are empty (`-`), and those of the heads `optional` are left out. Other output is neither cut nor
    coloured.
    """
    columns = [[audited(cell) for cell in column] for column in zip(head, *rows, strict=True)]
    if sys.stdout.isatty():
        room = shutil.get_terminal_size().columns
        columns = _narrowed(_needed(columns, shrinking, optional, room), shrinking, room)
    widths = list(map(_full, columns))
    padded = [
        [cell + " " * (width - _width(cell)) for cell in column]
        for column, width in zip(columns, widths, strict=True)
    ]
    lines = [_GAP.join(row).rstrip() for row in zip(*padded, strict=True)]
    if can_colour(os.environ):
        lines[0] = f"\x1b[1m{lines[0]}\x1b[0m"
    show("\n".join(lines), is_coloured=True)


def _needed(
    columns: list[list[str]], shrinking: Collection[str], optional: Collection[str], room: int
) -> list[list[str]]:
    """Leave out the columns of a table that is too wide: empty ones, then optional ones."""

    def is_empty(column: list[str]) -> bool:
        return column[0] in shrinking and all(cell == "-" for cell in column[1:])

    if _others(map(_full, columns)) + _LEAST > room:
        columns = [column for column in columns if not is_empty(column)]
    if _others(_least(column, shrinking) for column in columns) + _LEAST > room:
        columns = [column for column in columns if column[0] not in optional]
    return columns


def _narrowed(columns: list[list[str]], shrinking: Collection[str], room: int) -> list[list[str]]:
    """Cut the cells of columns, the widest column first, until they fit, as far as they may be cut."""
    widths = list(map(_full, columns))
    least = [_least(column, shrinking) for column in columns]
    while _others(widths) + _LEAST > room:
        free = [n for n in range(len(columns) - 1) if widths[n] > least[n]]
        if not free:
            break
        widths[max(free, key=widths.__getitem__)] -= 1
    widths[-1] = max(_LEAST, room - _others(widths))
    return [
        [_fit(cell, width, at_left=column is columns[-1]) for cell in column]
        for column, width in zip(columns, widths, strict=True)
    ]


def _full(column: Iterable[str]) -> int:
    return max(map(_width, column))


def _least(column: Sequence[str], shrinking: Collection[str]) -> int:
    """Return the width below which a column is not cut."""
    return (
        min(_full(column), max(_SHORT, _width(column[0])))
        if column[0] in shrinking
        else _full(column)
    )


def _others(widths: Iterable[int]) -> int:
    """Return the width of all columns but the last, with the gaps."""
    *others, _ = widths
    return sum(others) + len(_GAP) * len(others)


def _fit(cell: str, room: int, *, at_left: bool) -> str:
    """Cut a cell, a path at its left, since its end says more than its start."""
    if _width(cell) <= room:
        return cell
    while _width(cell) > room - 1:
        cell = cell[1:] if at_left else cell[:-1]
    return f"…{cell}" if at_left else f"{cell}…"


def _width(text: str) -> int:
    """Columns that a text takes: wide characters two, combining ones none."""
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(unicodedata.combining(char) > 0 for char in text)


# TOML ---------------------------------------------------------------------------------------------


def toml_document(data: Mapping[str, Any]) -> str:
    """Write TOML without characters that move the cursor; it reads back as the same, but for nulls."""
    return escaped(tomli_w.dumps(without_nulls(data)).rstrip("\n"), is_toml=True)


def toml_lines(
    head: Mapping[str, Any], name: str, rows: Iterable[Mapping[str, Any]]
) -> Iterator[str]:
    """Yield TOML: `head`, and as array `name` a table for each of the rows, which are read one by one."""
    yield toml_document(head)
    long: dict[str, Any] = {name: [{"x": "x" * 200}]}  # beside it no table is written on one line
    begin = tomli_w.dumps(long)
    is_empty = True
    for row in rows:
        is_empty = False
        text = tomli_w.dumps({name: [*long[name], without_nulls(row)]}).removeprefix(begin)
        yield escaped(text.rstrip("\n"), is_toml=True)
    if is_empty:
        yield f"{name} = []"


def without_nulls(value: Any) -> Any:
    """Return data without nulls; in a list, where each position counts, a null becomes `"null"`."""
    if is_table(value):
        return {name: without_nulls(item) for name, item in value.items() if item is not None}
    if is_list(value):
        return ["null" if item is None else without_nulls(item) for item in value]
    return value
