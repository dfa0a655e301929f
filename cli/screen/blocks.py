"""Blocks of printed rows: the person's messages, notices about them, answers, tool calls.

A blank row separates two blocks, unless the second is about the first. Blank rows at the ends of a
block are not printed: an answer that begins or ends with empty lines takes no more room than another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from prompt_toolkit.utils import get_cwidth

from ...gateway.wording.terminal import audited
from ..wrapping import wrapped
from .appearance import DIM, Appearance, Row

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
