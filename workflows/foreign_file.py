"""Reads files that a person or a project brings, within bounds, whatever they turn out to be.

A file may be a link to a device, a pipe, or without end; its text may be nested as deep as it is long,
which exhausts the stack of a parser and of everything that walks over the data after it. Every reader of
such files uses these functions, so that each of those is an error like a wrong sign, which
tests/house/test_foreign_files.py sees to. Blocks: not for the actors' loop.
"""

import os
import stat
import tomllib
from codecs import BOM_UTF8
from pathlib import Path
from typing import Any

from ..machines.json_shape import DEEPEST, shallow
from ..machines.pattern import lazy_pattern

LARGEST = 1 << 20
"""Bytes of a file that people write."""
_NAME = r"(?:[A-Za-z0-9_-]++|\"[^\"\n]*+\"|'[^'\n]*+')"
_LONG_KEY = lazy_pattern(rf"(?<![A-Za-z0-9_-])(?:{_NAME}[ \t]*+\.[ \t]*+){{{DEEPEST}}}")


def read_foreign(path: Path | str, most: int = LARGEST, *, follows_links: bool = True) -> bytes:
    """Return the content of a regular file of at most `most` bytes. Raises `OSError` with a reason."""
    content = _begin(path, most + 1, follows_links)
    if len(content) > most:
        raise OSError(f"it has more than {most:,} bytes")
    return content


def read_head(path: Path | str, most: int) -> bytes:
    """Return the first bytes of a regular file; no link is followed. Raises `OSError` with a reason."""
    return _begin(path, most, follows_links=False)


def _begin(path: Path | str, most: int, follows_links: bool) -> bytes:
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC  # the open of a named pipe would block
    descriptor = os.open(path, flags if follows_links else flags | os.O_NOFOLLOW)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("it is not a regular file")
        return file.read(most)


def read_text(path: Path | str, most: int = LARGEST) -> str:
    """Return the text of such a file. Raises `OSError`, and `UnicodeDecodeError` for what is no UTF-8."""
    return decoded(read_foreign(path, most))


def decoded(content: bytes, errors: str = "strict") -> str:
    """Return a text as its author sees it: without a byte order mark, each line ended by a line feed.

    Raises `UnicodeDecodeError` for what is no UTF-8, unless `errors` says otherwise.
    """
    return content.decode("utf-8-sig", errors).replace("\r\n", "\n")


def editable(content: bytes) -> str:
    """Return a text to be edited; one with both kinds of line ends keeps each.

    Raises `UnicodeDecodeError`.
    """
    return decoded(content) if _has_one_end(content) else content.decode("utf-8-sig")


def encoded_like(before: bytes, text: str) -> bytes:
    """Encode an edited text in the form that its file had: with its byte order mark and line ends."""
    if b"\r\n" in before and _has_one_end(before):
        text = text.replace("\n", "\r\n")
    return (BOM_UTF8 if before.startswith(BOM_UTF8) else b"") + text.encode()


def _has_one_end(content: bytes) -> bool:
    return content.count(b"\r\n") in (0, content.count(b"\n"))


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML. Raises `ValueError`, also for what is nested too deeply.

    Keys of many parts are refused first: the parser needs a time that is the square of their number.
    """
    if found := _LONG_KEY.search(text):
        line, column = (
            text.count("\n", 0, found.start()) + 1,
            found.start() - text.rfind("\n", 0, found.start()),
        )
        raise ValueError(f"a key has more than {DEEPEST} parts (at line {line}, column {column})")
    data: dict[str, Any] = shallow(tomllib.loads, text, DEEPEST)
    return data
