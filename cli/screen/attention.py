"""How the terminal calls a person who is away, and what its title says.

A terminal that reports its focus (xterm's mode 1004) calls while it has none; any other while no key
was pressed for a while. What is written are this program's own codes; the only foreign text is the
name of the folder, of which the title has the printable characters.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from ...gateway.events.contract import Event, is_aside
from ...workflows.settings import TerminalSettings
from .status import Status

AWAY = 10.0
"""Seconds without a key after which a person counts as away, where the focus is not known."""
LONGEST_NAME = 40
"""Characters of the folder's name in the title."""
FOCUSED, UNFOCUSED = "\x1b[I", "\x1b[O"
"""What a terminal sends when it gets and loses the focus."""

_CALLS = {"bell": "\x07", "desktop": "\x1b]9;steersman: {}\x07", "off": ""}
_FOCUS_ON, _FOCUS_OFF = "\x1b[?1004h", "\x1b[?1004l"
_KEEP_TITLE, _GIVE_BACK_TITLE = "\x1b[22;2t", "\x1b[23;2t"


class Attention:
    """Calls for a person and keeps the title; `signal` takes codes for the terminal, in any thread.

    `term` is the type of the terminal: the console of Linux has no title. `away` is in seconds.
    """

    def __init__(
        self,
        settings: TerminalSettings,
        signal: Callable[[str], None],
        term: str = "",
        away: float = AWAY,
    ) -> None:
        self._settings = settings
        self._signal = signal
        self._away = away
        self._has_title = settings.title and term not in ("", "dumb", "linux")
        self._title = ""
        self._has_focus: bool | None = None
        self._touched = self._began = time.monotonic()

    def opening(self) -> str:
        """Return the codes for when the screen opens, or comes back."""
        is_calling = self._settings.notify != "off"
        return (_FOCUS_ON if is_calling else "") + (_KEEP_TITLE if self._has_title else "")

    def closing(self) -> str:
        """Return the codes for when it closes, or another program has the terminal for a while."""
        is_calling = self._settings.notify != "off"
        self._title = ""
        return (_FOCUS_OFF if is_calling else "") + (_GIVE_BACK_TITLE if self._has_title else "")

    def note_key(self) -> None:
        """Take in that a key was pressed."""
        self._touched = time.monotonic()

    def note_focus(self, code: str) -> None:
        """Take in that the terminal got or lost the focus."""
        self._has_focus = code == FOCUSED

    def hear(self, event: Event, status: Status, asks: int) -> None:
        """Take in an event, with the status after it and the number of open questions."""
        now = time.monotonic()
        if event["type"] == "question":
            self._call("a question waits", now)
        elif event["type"] == "turn_started" and not is_aside(event):
            self._began = now
        elif event["type"] == "turn_ended" and not is_aside(event):
            if now - self._began >= self._settings.notify_after:
                self._call("a turn has ended", now)
        self._show(status, asks)

    def _call(self, reason: str, now: float) -> None:
        is_here = self._has_focus
        if is_here is None:
            is_here = now - self._touched < self._away
        code = _CALLS[self._settings.notify]
        if code and not is_here:
            self._signal(code.format(reason))

    def _show(self, status: Status, asks: int) -> None:
        """Set the title, if it changes."""
        if not self._has_title:
            return
        does = "question" if asks else "working" if status.is_busy else "idle"
        name = "".join(sign for sign in status.folder.name if sign.isprintable())[:LONGEST_NAME]
        title = f"{name} - {does}"
        if title != self._title:
            self._title = title
            self._signal(f"\x1b]2;{title}\x07")
