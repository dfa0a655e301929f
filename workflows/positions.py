"""The positions of keys and values in a TOML text, and the file with the choices for a folder.

The standard library's parser has checked the text and keeps no positions; this scanner reads the same
text again and records them. It trusts the syntax, so it can stay small.
"""

import hashlib
import os
import re
import tomllib
from bisect import bisect_right
from pathlib import Path
from typing import Any

from msgspec import field

from ..machines.pattern import lazy_pattern
from ..machines.value import Value
from .paths import Paths, write_private
from .problem import Where

# The choices for a folder -------------------------------------------------------------------------
# One small file per folder in the state folder, as for trust. It is a layer of the configuration:
# after the project's own file, before the one that `STEERSMAN_CONFIG` names.


def folder_file(paths: Paths, folder: Path) -> Path:
    """Return the path of the file with the choices for a folder."""
    name = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()
    return paths.state / "folders" / f"{name}.toml"


def choose_for_folder(paths: Paths, folder: Path, choice: dict[str, Any]) -> Path:
    """Write the choices for a folder, in the keys of the configuration; return the file."""
    import tomli_w

    file = folder_file(paths, folder)
    head = f"# Choices for {folder.resolve()!s:.200}; commands write this file.\n"
    text = head.replace("\r", " ") if "\n" not in head[:-1] else ""
    write_private(file, (text + tomli_w.dumps(choice)).encode("utf-8", "backslashreplace"))
    return file


# Positions ----------------------------------------------------------------------------------------


_BLANK = lazy_pattern(r"(?:[ \t\r\n]++|#[^\n]*+)*+")
_SPACE = lazy_pattern(r"[ \t]*")
_STRING = lazy_pattern(
    r'"""(?:[^"\\]|\\[\s\S]|"{1,2}(?!"))*"{3,5}'
    r"|'''(?:[^']|'{1,2}(?!'))*'{3,5}"
    r'|"(?:[^"\\]|\\.)*"'
    r"|'[^']*'"
)
_SCALAR = lazy_pattern(r"\d{4}-\d\d-\d\d \d\d:[^,\]}\s#]*|[^,\]}\s#]+")
_BARE = lazy_pattern(r"[A-Za-z0-9_-]+")

Spot = tuple[int, int]


class Positions(Value):
    """Line and column, both from 1, of each key and each value, by path.

    A list's items have a number in their path; a table made by `[a.b]` has the position of its name.
    """

    keys: dict[Where, Spot] = field(default_factory=dict[Where, Spot])
    values: dict[Where, Spot] = field(default_factory=dict[Where, Spot])

    def find(self, where: Where, at_value: bool = False) -> Spot:
        """Look up a path, or else its nearest parent; the top of the text when there is none."""
        for length in range(len(where), 0, -1):
            path, is_whole = where[:length], length == len(where)
            tables = (self.values, self.keys) if at_value and is_whole else (self.keys, self.values)
            for table in tables:
                if path in table:
                    return table[path]
        return (1, 1)


def locate(text: str) -> Positions:
    """Find all positions in a text that `tomllib` accepts."""
    scanner = _Scanner(text)
    scanner.read_document()
    return Positions(keys=scanner.keys, values=scanner.values)


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.keys: dict[Where, Spot] = {}
        self.values: dict[Where, Spot] = {}
        self.last: dict[Where, int] = {}  # index of the newest table of each array of tables
        self.line_starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def read_document(self) -> None:
        table: Where = ()
        while self._skip(_BLANK) < len(self.text):
            if self.text[self.at] == "[":
                table = self._read_header()
            else:
                self._read_pair(table)

    def _read_header(self) -> Where:
        is_array = self.text.startswith("[[", self.at)
        spot = self._spot()
        self.at += 1 + is_array
        names = self._read_names()
        self.at += 1 + is_array
        where = self._enter((), names[:-1])
        where = (*where, names[-1][0])
        if is_array:
            self.keys.setdefault(where, spot)
            self.last[where] = self.last.get(where, -1) + 1
            where = (*where, self.last[where])
        self.keys.setdefault(where, spot)
        return where

    def _read_pair(self, table: Where) -> None:
        names = self._read_names()
        parent = self._enter(table, names[:-1])
        name, spot = names[-1]
        self.keys[(*parent, name)] = spot
        self.at += 1  # the equals sign
        self._skip(_SPACE)
        self._read_value((*parent, name))

    def _enter(self, where: Where, names: list[tuple[str, Spot]]) -> Where:
        for name, spot in names:
            where = (*where, name)
            self.keys.setdefault(where, spot)
            if where in self.last:
                where = (*where, self.last[where])
        return where

    def _read_names(self) -> list[tuple[str, Spot]]:
        names: list[tuple[str, Spot]] = []
        while True:
            self._skip(_SPACE)
            names.append(self._read_name())
            self._skip(_SPACE)
            if self.text[self.at] != ".":
                return names
            self.at += 1

    def _read_name(self) -> tuple[str, Spot]:
        spot, start = self._spot(), self.at
        is_bare = self.text[start] not in "\"'"
        self._skip(_BARE if is_bare else _STRING)
        name = self.text[start : self.at]
        return (name if is_bare else str(tomllib.loads(f"name = {name}")["name"])), spot

    def _read_value(self, where: Where) -> None:
        self.values[where] = self._spot()
        match self.text[self.at]:
            case "{":
                self._read_inline(where, "}")
            case "[":
                self._read_inline(where, "]")
            case '"' | "'":
                self._skip(_STRING)
            case _:
                self._skip(_SCALAR)

    def _read_inline(self, where: Where, closing: str) -> None:
        self.at += 1
        index = 0
        while self.text[self._skip(_BLANK)] != closing:
            if self.text[self.at] == ",":
                self.at += 1
            elif closing == "}":
                self._read_pair(where)
            else:
                self._read_value((*where, index))
                index += 1
        self.at += 1

    def _skip(self, pattern: re.Pattern[str]) -> int:
        if match := pattern.match(self.text, self.at):
            self.at = match.end()
        return self.at

    def _spot(self) -> Spot:
        line = bisect_right(self.line_starts, self.at)
        return line, self.at - self.line_starts[line - 1] + 1
