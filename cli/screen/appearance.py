"""How the screen looks: its styles, its signs, and pieces of text as terminal codes.

A *piece* is `(style, text)`; a style is words as prompt_toolkit reads them, so that the same piece can
be drawn below and printed above. A row is a list of pieces without a newline.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping

from ...machines.value import Value

Piece = tuple[str, str]
Row = list[Piece]

DIM = "dim"
CODE = "ansicyan"
HEAD = "bold"
GOOD = "ansigreen"
BAD = "ansired"
ADDED = "ansigreen"
REMOVED = "ansired"

_CODES = {
    "bold": "1",
    "dim": "2",
    "italic": "3",
    "underline": "4",
    "reverse": "7",
    "ansired": "31",
    "ansigreen": "32",
    "ansiyellow": "33",
    "ansiblue": "34",
    "ansimagenta": "35",
    "ansicyan": "36",
}
"""Select Graphic Rendition (ECMA-48), by the words for it."""

_PLAIN = {
    "…": "...",
    "·": "-",
    "•": "*",
    "✓": "ok",
    "✗": "x",
    "│": "|",
    "─": "-",
    "→": "->",
    "✻": "*",
}


class Appearance(Value):
    """What a terminal can show: signs beyond ASCII, colours."""

    can_utf8: bool = True
    has_colour: bool = True

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Appearance:
        """Look at the standard output and at NO_COLOR (https://no-color.org)."""
        encoding = (sys.stdout.encoding or "").lower().replace("-", "")
        return cls(can_utf8=encoding == "utf8", has_colour=not environ.get("NO_COLOR"))

    def sign(self, sign: str) -> str:
        """Return one of our own signs, or plain letters that stand for it."""
        return sign if self.can_utf8 else _PLAIN.get(sign, sign)

    def plain(self, text: str) -> str:
        """Replace our own signs in a text of ours."""
        return text if self.can_utf8 else "".join(_PLAIN.get(sign, sign) for sign in text)

    def printed(self, row: Iterable[Piece]) -> str:
        """Write a row as text with terminal codes; its pieces must hold none."""
        return "".join(self._coded(style, text) for style, text in row)

    def _coded(self, style: str, text: str) -> str:
        words = style.split() if style else ()
        known = [_CODES[word] for word in words if self.has_colour or not word.startswith("ansi")]
        return f"\x1b[{';'.join(known)}m{text}\x1b[0m" if known and text else text
