"""What commands print: one text or one JSON document, whatever the terminal can show.

Nothing that is printed here can move the cursor or change colours, unless this program put it there;
and a reader that has seen enough (`| head`) is no fault.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from typing import Any, TextIO

# Controls that JSON leaves as they are, line and direction marks, and halves of characters.
_UNSAFE = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def show(text: str) -> None:
    """Print a text and a newline; a character that the terminal's encoding lacks becomes `?`."""
    _write(sys.stdout, text)


def show_document(data: Mapping[str, Any]) -> None:
    """Print JSON, indented; it reads back as the same data."""
    show(document(data))


def document(data: Mapping[str, Any], indent: int | None = 2) -> str:
    """Write JSON in which nothing can move a cursor; without `indent` in one line."""
    return escaped(json.dumps(data, ensure_ascii=False, indent=indent))


def escaped(text: str) -> str:
    """Escape what could move a cursor, as strings in JSON and TOML both have it."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def warn(text: str) -> None:
    """Print a line for people to standard error."""
    _write(sys.stderr, text)


def can_colour(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether colours are wanted: a terminal, and no NO_COLOR (https://no-color.org)."""
    return stream.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


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
