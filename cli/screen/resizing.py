"""What a narrower window does to what is drawn below.

Most terminals break rows that have become too wide into several. The next drawing then begins
further up than it did, by as many rows as were added; xterm cuts instead, and adds none. Nothing can
be asked of a terminal about that, but most report their name.
"""

from __future__ import annotations

from collections.abc import Mapping

from prompt_toolkit.application import Application
from prompt_toolkit.layout.screen import Screen

_BREAKING = (
    "TMUX",
    "VTE_VERSION",
    "KITTY_WINDOW_ID",
    "WT_SESSION",
    "KONSOLE_VERSION",
    "TERM_PROGRAM",
)
_BREAKING_TERMS = ("tmux", "foot", "alacritty", "xterm-kitty", "xterm-ghostty", "wezterm")


class ChatApplication(Application[int]):
    """An application that takes away all of what it drew, also when its rows were broken."""

    breaks_rows = False

    def _on_resize(self) -> None:
        drawn = self.renderer.last_rendered_screen
        if self.breaks_rows and drawn is not None:
            cursor = drawn.get_cursor_position(self.layout.current_window)
            columns = max(1, self.output.get_size().columns)
            self.output.cursor_up(rows_added(drawn, cursor.y, cursor.x, columns))
        super()._on_resize()


def breaks_rows(environ: Mapping[str, str]) -> bool:
    """Whether the terminal is one that is known to break rows when it becomes narrower."""
    if any(environ.get(name) for name in _BREAKING):
        return True
    return environ.get("TERM", "").startswith(_BREAKING_TERMS)


def rows_added(drawn: Screen, cursor_row: int, cursor_column: int, columns: int) -> int:
    """Count the rows that breaking at so many columns adds, down to where the cursor is."""
    added = cursor_column // columns
    for at in range(cursor_row):
        row = drawn.data_buffer[at]
        width = max((x + 1 for x, sign in row.items() if sign.char.strip()), default=0)
        added += max(0, width - 1) // columns
    return added
