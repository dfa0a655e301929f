"""The first lines of a script that makes something of tables, since a small model gets these wrong.

It takes texts for numbers and the head for a row, and opens a file for writing before it has read it.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from posixpath import basename

_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?")
_WHOLE = re.compile(r"-?(0|[1-9]\d*)")
_COMMAS = ",;\t|"
_READER = re.compile(r"(csv\.(?:Dict)?[Rr]eader\((?:[^()\n]|\([^()\n]{0,200}\)){1,200})\)")


def beginning(tables: Mapping[str, str]) -> str:
    """Return the lines that read tables, given by their paths, and make whole numbers of what is one.

    Other numbers stay texts, so that they are written as they were; a comment says so.
    """
    lines = ["import csv"]
    for path, text in tables.items():
        stem = re.sub(r"\W", "_", basename(path).partition(".")[0])
        name = "rows" if len(tables) == 1 else stem
        comma = comma_of(text)
        columns = _numbers(text, comma)
        reader = "reader" if columns is None else "DictReader"
        between = f", delimiter={comma!r}" if comma != "," else ""
        lines.append(f"{name} = list(csv.{reader}(open({path!r}, newline=''){between}))")
        whole = [column for column, is_whole in (columns or {}).items() if is_whole]
        lines += [f"for row in {name}:"] if whole else []
        lines += [f"    row[{column!r}] = int(row[{column!r}])" for column in whole]
        texts = [column for column, is_whole in (columns or {}).items() if not is_whole]
        lines += [f"# row[{of!r}] is a text: its number is float(row[{of!r}])" for of in texts]
    return "\n".join([*lines, ""])


def ending(path: str, table: str) -> str:
    """Return the lines that write `rows` over a table that has a head; empty for one without."""
    comma = comma_of(table)
    head = next(csv.reader(table.splitlines(), delimiter=comma), list[str]())
    if _numbers(table, comma) is None or not head:
        return ""
    how = f"delimiter={comma!r}, lineterminator='\\n'"
    return (
        f"with open({path!r}, 'w', newline='') as file:\n"
        f"    writer = csv.DictWriter(file, {head!r}, {how})\n"
        "    writer.writeheader()\n"
        "    writer.writerows(rows)\n"
    )


def with_beginning(script: str, begins: str) -> str:
    """Return a script behind its first lines; where it reads the one table itself, as these do."""
    if "csv." not in script:
        return begins + script
    if "delimiter" in begins and "delimiter" not in script:
        between = begins.partition(", delimiter=")[2].partition(")")[0]
        script = _READER.sub(lambda call: f"{call[1]}, delimiter={between})", script)
    _, read, *numbers = begins.splitlines() if begins else ("", "")
    lines = script.splitlines()
    if not numbers or read not in lines or numbers[-1] in lines:
        return script
    at = lines.index(read) + 1
    return "\n".join([*lines[:at], *numbers, *lines[at:]])


def comma_of(table: str) -> str:
    """Return what stands between the columns of a table: what its first line has most of."""
    head = table.partition("\n")[0]
    return max(_COMMAS, key=head.count)


def ragged(table: str) -> str:
    """Say which line of a table has another number of fields than its head; empty if none has."""
    rows = list(csv.reader(table.splitlines(), delimiter=comma_of(table)))
    for number, row in enumerate(rows, 1):
        if row and len(row) != len(rows[0]):
            return f"line {number} has {len(row)} fields, and its head {len(rows[0])}"
    return ""


def _numbers(table: str, comma: str) -> dict[str, bool] | None:
    """Return the columns with numbers alone, and whether all are whole; none if there is no head."""
    rows = [row for row in csv.reader(table.splitlines(), delimiter=comma) if row]
    if rows and any(map(_NUMBER.fullmatch, rows[0])):
        return None
    found = dict[str, bool]()
    for column, *cells in zip(*rows, strict=False):
        if cells and all(map(_NUMBER.fullmatch, cells)):
            found[column] = all(map(_WHOLE.fullmatch, cells))
    return found
