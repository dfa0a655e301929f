"""The terminal: its screen, its settings, its clipboard.

Finished rows are above, and a lower part is redrawn. Only the prompt's loop writes, and each change is
one write: the lower part is erased, the new rows are written, the lower part is drawn again. The terminal
is never asked for its cursor position, and keeps its settings, so that no key that is typed meanwhile is
lost or echoed.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from prompt_toolkit.application import Application
from prompt_toolkit.data_structures import Size
from prompt_toolkit.output.vt100 import Vt100_Output

from ...ports.process.ancestry import is_alive
from ...workflows.paths import make_private, write_private
from ..streams import forget

BETWEEN = 0.03
"""Seconds between two drawings without a key press; changes in between are drawn together."""
AT_ONCE = 400
"""Rows that are written before keys are handled again."""
TICK = 1.0
"""Seconds between two drawings while the bar counts elapsed time."""


class SteadyOutput(Vt100_Output):
    """The terminal's output; it can be held, so that several writes become one. Sends no queries."""

    def __init__(self, stream: TextIO, size: Callable[[], Size], term: str | None) -> None:
        super().__init__(stream, size, term=term, enable_cpr=False)
        self._is_held = False

    def hold(self) -> None:
        """Buffer the output until `release`."""
        self._is_held = True

    def release(self) -> None:
        """Write the buffered output."""
        self._is_held = False
        self.flush()

    def erase_down(self) -> None:
        """Erase from the begin of a row on; at the top, tmux would move all of it into its history."""
        self.write_raw("\x1b[K\x1b[C\x1b[J\x1b[D")

    def flush(self) -> None:
        """Write the output, unless it is held; a closed terminal gets no more output."""
        if self._is_held:
            return
        try:
            super().flush()
        except OSError:  # the session continues to its end without a terminal
            forget(1, 2)


def output_of(stream: TextIO, term: str | None) -> SteadyOutput:
    """Return the output of a terminal; its size is asked for at each drawing."""

    def size() -> Size:
        try:
            columns, rows = os.get_terminal_size(stream.fileno())
        except OSError:  # it is gone
            columns, rows = 80, 24
        return Size(rows=rows or 24, columns=columns or 80)

    return SteadyOutput(stream, size, term)


class Canvas:
    """Draws; `print` and `changed` may be called from any thread and return at once.

    `is_moving`: whether the lower part changes without an event, as elapsed time does.
    """

    def __init__(self, output: SteadyOutput, is_moving: Callable[[], bool]) -> None:
        self.output = output
        self.app: Application[Any] | None = None
        self._is_moving = is_moving
        self._rows: list[str] = []
        self._codes = ""
        self._lock = threading.Lock()
        self._is_due = self._is_ticking = self._is_away = False
        self._last = 0.0
        self.drawn_at = 0.0
        self.erase: Callable[[], None] = self._erase

    @property
    def columns(self) -> int:
        """The terminal's width."""
        return max(4, self.output.get_size().columns)

    @property
    def lines(self) -> int:
        """The terminal's height."""
        return self.output.get_size().rows

    def write_codes(self, codes: str) -> None:
        """Write codes for the terminal that draw nothing, between two drawings: in the prompt's loop."""
        self.output.write_raw(codes)
        self.output.flush()

    def print(self, rows: list[str]) -> None:
        """Write rows above; they contain only this program's terminal codes."""
        if rows:
            with self._lock:
                self._rows += rows
            self.changed()

    def signal(self, codes: str) -> None:
        """Write codes for the terminal that draw nothing, such as a bell."""
        with self._lock:
            self._codes += codes
        self.changed()

    def changed(self) -> None:
        """Request a redraw of the lower part."""
        app = self.app
        loop = app.loop if app is not None else None
        with self._lock:
            if loop is not None and self._is_due:
                return
            self._is_due = True
        if loop is None or loop.is_closed():
            self.drain()
            return
        try:
            loop.call_soon_threadsafe(self._plan)
        except RuntimeError:  # it was closed just now
            self.drain()

    def changes_in(self, seconds: float) -> None:
        """Request a redraw after so many seconds; called while drawing."""
        if self.app is not None and self.app.loop is not None:
            self.app.loop.call_later(seconds, self.changed)

    def drain(self) -> None:
        """Write the pending rows; nothing is drawn below."""
        with self._lock:
            rows, self._rows, self._is_due = self._rows, [], False
            codes, self._codes = self._codes, ""
            if rows or codes:
                self.output.write_raw(codes + "".join(f"{row}\r\n" for row in rows))
                self.output.flush()

    def step_aside(self, is_away: bool) -> None:
        """Stop or resume drawing: another program has the terminal while `is_away`."""
        self._is_away = is_away
        self.changed()

    def _plan(self) -> None:
        app = self.app
        if app is not None and app.loop is not None:
            wait = self._last + BETWEEN - time.monotonic()
            app.loop.call_later(max(0.0, wait), self._draw)

    def _draw(self) -> None:
        """Draw; in the prompt's loop."""
        self._last = time.monotonic()
        app = self.app
        with self._lock:
            self._is_due = False
            if self._is_away or app is None or not app.is_running:
                return
            rows, self._rows = self._rows[:AT_ONCE], self._rows[AT_ONCE:]
            codes, self._codes = self._codes, ""
            is_more = bool(self._rows)
        self.output.hold()
        try:
            self.output.write_raw(codes)
            self.erase()  # a row that was longer keeps its blanks, which a narrower window breaks, too
            if rows:
                self.output.write_raw("".join(f"{row}\r\n" for row in rows))
            if app.context is not None:
                app.render_counter += 1  # the content is computed once per drawing
                app.context.copy().run(app.renderer.render, app, app.layout)
                self.drawn_at = time.monotonic()
        finally:
            self.output.release()
        if is_more:
            self.changed()
        elif self._is_moving() and not self._is_ticking and app.loop is not None:
            self._is_ticking = True
            app.loop.call_later(TICK, self._tick)

    def _erase(self) -> None:
        if self.app is not None:
            self.app.renderer.erase()

    def _tick(self) -> None:
        self._is_ticking = False
        self._draw()


# Settings that a killed program did not restore ----------------------------------------------------
# While the screen is open, a file in the state folder holds the terminal's former settings. A program
# that ends in any way but by SIGKILL or a power cut deletes its file; the next start in the same
# terminal restores the settings of a file whose program is dead.


RESET = "\x1b[?1004l\x1b[?2004l\x1b[?25h\x1b[?7h\x1b[0m"
"""No reports of the focus, no bracketed paste, a visible cursor, wrapped lines, no styles (xterm)."""


@contextmanager
def restored_terminal(folder: Path) -> Generator[None]:
    """Repair the terminal of standard input if necessary, and restore its present settings at the end."""
    try:
        name = os.ttyname(sys.stdin.fileno())
        repair(folder, name)
        before: list[Any] = termios.tcgetattr(sys.stdin.fileno())
    except (OSError, termios.error):
        yield
        return
    mark = _mark(folder, name)
    with contextlib.suppress(OSError):
        *numbers, signs = before
        coded = [
            base64.b64encode(sign).decode() if isinstance(sign, bytes) else sign for sign in signs
        ]
        saved = {"pid": os.getpid(), "settings": [*numbers, coded]}
        write_private(mark, json.dumps(saved).encode())
    try:
        yield
    finally:
        with contextlib.suppress(OSError, termios.error):  # it may be gone
            termios.tcsetattr(sys.stdin.fileno(), termios.TCSANOW, before)
        with contextlib.suppress(OSError):
            mark.unlink(missing_ok=True)


def repair(folder: Path, name: str) -> bool:
    """Restore the settings that a killed program found; False if there is nothing to restore."""
    mark = _mark(folder, name)
    try:
        saved = json.loads(mark.read_text("utf-8"))
        pid, (*numbers, coded) = int(saved["pid"]), saved["settings"]
        signs = [base64.b64decode(sign) if isinstance(sign, str) else int(sign) for sign in coded]
        attributes: list[Any] = [*map(int, numbers), signs]
    except FileNotFoundError:
        return False
    except (OSError, ValueError, KeyError, TypeError):
        mark.unlink(missing_ok=True)
        return False
    if is_alive(pid):
        return False
    termios.tcsetattr(sys.stdin.fileno(), termios.TCSANOW, attributes)
    sys.stdout.write(f"\r\x1b[J{RESET}")
    sys.stdout.flush()
    mark.unlink(missing_ok=True)
    return True


def _mark(folder: Path, name: str) -> Path:
    return make_private(folder) / (re.sub(r"\W+", "-", name).strip("-") + ".json")


# The clipboard ------------------------------------------------------------------------------------
# A program is used only if the person sits at this machine: over SSH its clipboard is not theirs.
# OSC 52: https://invisible-island.net/xterm/ctlseqs/ctlseqs.html#h3-Operating-System-Commands.


PROGRAMS = (
    ("WAYLAND_DISPLAY", ("wl-copy",)),
    ("DISPLAY", ("xclip", "-selection", "clipboard")),
    ("DISPLAY", ("xsel", "--clipboard", "--input")),
)
"""The variable of the environment that shows a desktop, and the command."""
CLIPBOARD_TIMEOUT = 5.0
"""Seconds that a program has."""
MOST = 74_000
"""Bytes that most terminals take by OSC 52."""


def copy_text(text: str, environ: Mapping[str, str], send: Callable[[str], None]) -> str:
    """Copy a text with a clipboard program, else by the terminal itself; say how. May block.

    `send` writes an escape sequence to the terminal.
    """
    data = text.encode()
    for command in _programs(environ):
        try:
            done = subprocess.run(
                command,
                input=data,
                timeout=CLIPBOARD_TIMEOUT,
                check=False,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.returncode == 0:
            return f"copied with {command[0]}"
    if len(data) > MOST:
        return f"not copied: more than {MOST // 1000} kB, and no clipboard program is here"
    send(f"\x1b]52;c;{base64.b64encode(data).decode()}\x07")
    return "sent to the terminal's clipboard (OSC 52; some terminals forbid it)"


def _programs(environ: Mapping[str, str]) -> list[tuple[str, ...]]:
    """Return the commands that can be tried here, in order."""
    if environ.get("SSH_CONNECTION") or environ.get("SSH_TTY"):
        return []
    known = [command for variable, command in PROGRAMS if environ.get(variable)]
    if sys.platform == "darwin":
        known = [("pbcopy",)]
    return [command for command in known if shutil.which(command[0])]
