"""The appearance of the screen: styles, signs, styled text as terminal codes, and blocks of rows.

A *piece* is `(style, text)`; a style is in the words of prompt_toolkit, so that the same piece can be
drawn below and printed above. A row is a list of pieces without a newline.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from prompt_toolkit.utils import get_cwidth

from ...gateway.wording.terminal import audited
from ...machines.pattern import lazy_pattern
from ...machines.value import Value
from ..talk import has_utf8
from ..wrapping import wrapped

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
"""Select Graphic Rendition (ECMA-48), by the words of prompt_toolkit."""

_COLOUR = lazy_pattern(r"(bg|fg):(2[345]\d)")
"""A grey of the 256 colours of most terminals, in a style."""

_PLAIN = {
    "▌": "|",
    "…": "...",
    "·": "-",
    "•": "*",
    "✓": "ok",
    "✗": "x",
    "│": "|",
    "─": "-",
    "┼": "+",
    "→": "->",
    "✻": "*",
}


LINK = "underline"
_HREF = "href:"
_ADDRESS = lazy_pattern(r"https?://[!-~]{1,2000}")
_LINKING = ("KITTY_WINDOW_ID", "KONSOLE_VERSION", "VTE_VERSION", "WEZTERM_PANE", "WT_SESSION")
_LINKING_PROGRAMS = ("ghostty", "iTerm.app", "vscode", "WezTerm")


def link_style(address: str) -> str:
    """Return the style of a link; a terminal opens only an address of the web in plain ASCII."""
    return f"{LINK} {_HREF}{address}" if _ADDRESS.fullmatch(address) else LINK


def drawable(style: str) -> str:
    """Return a style as prompt_toolkit knows it: without an address, and with greys as RGB."""
    words = (word for word in style.split() if not word.startswith(_HREF))
    return " ".join(_COLOUR.sub(_as_rgb, word) for word in words)


def _as_rgb(found: re.Match[str]) -> str:
    """Write one of the 24 greys, 232 to 255, in RGB."""
    level = 8 + 10 * (int(found[2]) - 232)
    return f"{found[1]}:#{level:02x}{level:02x}{level:02x}"


class Theme(Value):
    """The styles of what is not an answer; `is_filled`: a message's background reaches the edge."""

    bar: str = "ansiblue bold"
    message: str = "bold"
    asks: str = "ansiyellow"
    is_filled: bool = False


THEMES = {
    "dark": Theme(message="bg:236", bar="ansiblue bold bg:236", is_filled=True),
    "light": Theme(
        message="bg:254", bar="ansiblue bold bg:254", asks="ansimagenta", is_filled=True
    ),
}
"""The themes with a background; all others have the terminal's own colours."""


class Appearance(Value):
    """What a terminal can show: signs beyond ASCII, and colours."""

    can_utf8: bool = True
    has_colour: bool = True
    has_links: bool = False
    theme: Theme = Theme()

    @classmethod
    def of(cls, environ: Mapping[str, str], theme: str = "auto") -> Appearance:
        """Return the appearance for standard output, NO_COLOR (https://no-color.org) and a theme."""
        has_colour = not environ.get("NO_COLOR") and theme != "plain"
        # A terminal that is known to open hyperlinks (OSC 8), with no multiplexer in between.
        is_linking = environ.get("TERM_PROGRAM", "") in _LINKING_PROGRAMS or any(
            environ.get(name) for name in _LINKING
        )
        return cls(
            can_utf8=has_utf8(sys.stdout),
            has_colour=has_colour,
            theme=THEMES.get(theme, Theme()) if has_colour else Theme(),
            has_links=is_linking and not (environ.get("TMUX") or environ.get("STY")),
        )

    def plain(self, text: str) -> str:
        """Replace the program's signs in a text of the program."""
        return text if self.can_utf8 else "".join(_PLAIN.get(sign, sign) for sign in text)

    def printed(self, row: Iterable[Piece]) -> str:
        """Write a row as text with terminal codes; those in its pieces are shown as escapes."""
        return "".join(self._coded(style, text) for style, text in row)

    def _coded(self, style: str, text: str) -> str:
        text = audited(text)
        style, _, address = style.partition(_HREF)
        codes = [code for word in style.split() if (code := self._code(word))]
        if codes and text:
            text = f"\x1b[{';'.join(codes)}m{text}\x1b[0m"
        if address and self.has_links:
            return f"\x1b]8;;{address}\x1b\\{text}\x1b]8;;\x1b\\"
        return text

    def _code(self, word: str) -> str:
        """Return the numbers of a word of a style; empty for a colour where there are none."""
        if found := _COLOUR.fullmatch(word):
            kind = 48 if found[1] == "bg" else 38
            return f"{kind};5;{found[2]}" if self.has_colour else ""
        return _CODES[word] if self.has_colour or not word.startswith("ansi") else ""


# Blocks of printed rows: the person's messages, notices about them, answers, tool calls ------------
# A blank row separates two blocks, unless the second is about the first. Blank rows at the ends of a
# block are not printed: an answer that begins or ends with empty lines takes no more room than another.


Kind = Literal["message", "notice", "answer", "tool"]

_TOGETHER = {("message", "notice"), ("tool", "notice")}
"""Blocks whose second is about the first."""
MESSAGE_ROWS = 12
"""Maximum number of rows of a message; the rest is counted."""
INDENT = "  "
"""Before the rows of a notice."""


class Blocks:
    """Passes rows to `emit`, with the blank rows between blocks."""

    def __init__(self, emit: Callable[[list[str]], None]) -> None:
        self._emit = emit
        self._last: Kind | None = None
        self._blanks = 0

    def put(self, kind: Kind, rows: list[str]) -> None:
        """Print rows of a block; each message is a block of its own."""
        printed = list[str]()
        for row in rows:
            if not row:
                self._blanks += kind == self._last
                continue
            is_new = kind == "message" and not printed
            printed += [""] * (1 if is_new and self._last else self.blanks_before(kind))
            printed.append(row)
            self._last, self._blanks = kind, 0
        if printed:
            self._emit(printed)

    def blanks_before(self, kind: Kind) -> int:
        """Return how many blank rows come before the next row of this kind."""
        if self._last is None:
            return 0
        if kind == self._last:
            return self._blanks
        return int((self._last, kind) not in _TOGETHER)


def message_rows(text: str, width: int, look: Appearance, number: str = "") -> list[Row]:
    """Return the rows of a message of the person; `number` is that of a queued one that starts."""
    theme, bar = look.theme, f"{look.plain('▌')} "
    lines = wrapped(audited(text).expandtabs(4), max(1, width - len(bar)))
    if (left := len(lines) - MESSAGE_ROWS) > 0:
        lines = [*lines[: MESSAGE_ROWS - 1], look.plain(f"… {left + 1} more")]
    rows: list[Row] = [[(theme.bar, bar), (theme.message, line)] for line in lines]
    if number:
        rows[-1].append((f"{DIM} {theme.message}" if theme.is_filled else DIM, f"  {number}"))
    for row in rows if theme.is_filled else ():
        used = sum(get_cwidth(text) for _, text in row)
        row.append((theme.message, " " * max(0, width - used)))
    return rows
