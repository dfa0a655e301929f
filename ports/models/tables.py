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
_TABS = ".tsv"


def beginning(tables: Mapping[str, str]) -> str:
    """Return the lines that read tables, given by their paths, and make whole numbers of what is one.

    Other numbers stay texts, so that they are written as they were; a comment says so.
    """
    lines = ["import csv"]
    for path, text in tables.items():
        stem = re.sub(r"\W", "_", basename(path).partition(".")[0])
        name = "rows" if len(tables) == 1 else stem
        columns = _numbers(text, "\t" if path.endswith(_TABS) else ",")
        reader = "reader" if columns is None else "DictReader"
        tabs = ", delimiter='\\t'" if path.endswith(_TABS) else ""
        lines.append(f"{name} = list(csv.{reader}(open({path!r}, newline=''){tabs}))")
        whole = [column for column, is_whole in (columns or {}).items() if is_whole]
        lines += [f"for row in {name}:"] if whole else []
        lines += [f"    row[{column!r}] = int(row[{column!r}])" for column in whole]
        texts = [column for column, is_whole in (columns or {}).items() if not is_whole]
        lines += [f"# row[{of!r}] is a text: its number is float(row[{of!r}])" for of in texts]
    return "\n".join([*lines, ""])


def with_beginning(script: str, begins: str) -> str:
    """Return a script behind its first lines; where it reads the one table itself, with its numbers."""
    if "csv." not in script:
        return begins + script
    _, read, *numbers = begins.splitlines() if begins else ("", "")
    lines = script.splitlines()
    if not numbers or read not in lines or numbers[-1] in lines:
        return script
    at = lines.index(read) + 1
    return "\n".join([*lines[:at], *numbers, *lines[at:]])


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
