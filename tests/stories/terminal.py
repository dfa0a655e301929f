"""The program in a real terminal: a pty of its own, whose screen is read as a person reads it.

The other end of the pty is a terminal emulator (`pyte`). `rows` is everything that scrolled away and
what is on the screen now, each row without the blanks at its end; `sent` is the bytes that made it.
What came can be kept with its times (`Reel`), as a recording that players show.
"""

import fcntl
import itertools
import json
import os
import pty
import signal
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pyte
from support.driver import Process
from support.patience import seconds
from support.readable import readable

__all__ = ["Reel", "Terminal"]

WAIT = 30.0
"""Seconds after which a test gives up; far more than anything needs on a busy machine."""

LONGEST = 1.2
"""Seconds of a recording in which nothing happens; longer ones are cut to this."""


class Reel:
    """A recording: what the terminal was sent, and when. Written as asciicast v2."""

    def __init__(self, columns: int, lines: int, title: str) -> None:
        self._head = {"version": 2, "width": columns, "height": lines, "title": title}
        self._rows: list[tuple[float, str]] = []
        self._time = 0.0
        self._last = time.monotonic()

    def add(self, text: str) -> None:
        """Keep what was sent now; pauses are cut, and what follows at once is one row."""
        now = time.monotonic()
        gap, self._last = min(now - self._last, LONGEST), now
        self._time += gap
        if self._rows and gap < 0.015:
            start, before = self._rows[-1]
            self._rows[-1] = (start, before + text)
        else:
            self._rows.append((self._time, text))

    def write(self, path: Path, neutral: Callable[[str], str]) -> None:
        """Write the file; `neutral` takes out what belongs to this machine."""
        rows = [
            json.dumps([round(at, 2), "o", neutral(text)], ensure_ascii=False)
            for at, text in self._rows
        ]
        path.write_text("\n".join([json.dumps(self._head), *rows]) + "\n", "utf-8")


class _Screen(pyte.HistoryScreen):
    """A screen that keeps signs without a width where they belong, and answers what it is asked."""

    answer: Callable[[str], None] = staticmethod(lambda text: None)

    def draw(self, data: str) -> None:
        """Draw; pyte would drop all that follows a variation selector."""
        first, *rest = data.split("\ufe0f")
        super().draw(first)
        for part in rest:
            line = self.buffer[self.cursor.y]
            place = max(self.cursor.x - 1, 0)
            line[place] = line[place]._replace(data=line[place].data + "\ufe0f")
            super().draw(part)

    def write_process_input(self, data: str) -> None:
        """Answer, for example where the cursor is."""
        self.answer(data)


class Terminal:
    """A program in a pty. Waiting for a text moves a mark down the rows, as a reader's eye does."""

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        environ: Mapping[str, str],
        size: tuple[int, int] = (100, 30),
        reel: Reel | None = None,
    ) -> None:
        columns, lines = size
        self.screen = _Screen(columns, lines, history=100_000, ratio=0.5)
        self.screen.answer = self._answer
        self._stream = pyte.ByteStream(self.screen)
        self._reel = reel
        self._change = threading.Condition()
        self._mark = 0
        self._gone: list[str] = []
        self._is_over = False
        self.sent = bytearray()
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.process = Process(
            command,
            cwd=folder,
            env=dict(environ) | {"TERM": environ.get("TERM", "xterm-256color")},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            preexec_fn=_own_terminal,
        )
        os.close(theirs)
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    # The screen -----------------------------------------------------------------------------------

    @property
    def rows(self) -> list[str]:
        """All rows so far, the oldest first."""
        with self._change:
            return self._rows()

    def _rows(self) -> list[str]:
        return [*self._past(), *(row.rstrip() for row in self.screen.display)]

    def _past(self) -> list[str]:
        """Return what scrolled away; each row is read once, since it never changes again."""
        columns = range(self.screen.columns)
        for line in itertools.islice(self.screen.history.top, len(self._gone), None):
            self._gone.append("".join(line[x].data for x in columns).rstrip())
        return self._gone

    def shows(self, text: str, timeout: float = WAIT) -> None:
        """Wait until `text` is in one of the rows below the mark, and move the mark behind it."""
        with self._change:
            self._wait(lambda: self._found(text) is not None, f"`{text}` is not shown", timeout)
            found = self._found(text)
            assert found is not None
            self._mark = found + 1

    def has(self, text: str) -> None:
        """Wait until `text` is on the screen, anywhere; the mark stays."""
        came = lambda: any(text in row for row in self.screen.display)  # noqa: E731
        self._wait(came, f"`{text}` is not on the screen", WAIT)

    def waits(self, came: Callable[[], bool]) -> None:
        """Wait until something is so; looked at whenever something came."""
        self._wait(came, "it did not come", WAIT)

    def _found(self, text: str) -> int | None:
        rows = self._rows()
        return next((at for at in range(self._mark, len(rows)) if text in rows[at]), None)

    def has_bar(self, text: str, timeout: float = WAIT) -> None:
        """Wait until `text` is in the lowest row that is not empty."""
        self._wait(lambda: text in self._bar(), f"the bar does not say `{text}`", timeout)

    def _bar(self) -> str:
        return next((row for row in reversed(self.screen.display) if row.strip()), "")

    def _wait(self, came: Callable[[], bool], diagnostic: str, timeout: float) -> None:
        with self._change:
            is_there = self._change.wait_for(lambda: came() or self._is_over, seconds(timeout))
            if not (is_there and came()):
                rows = "\n".join(self._rows())
                raise AssertionError(f"{diagnostic} below row {self._mark}:\n{rows}")

    # The keys -------------------------------------------------------------------------------------

    def presses(self, keys: str) -> None:
        """Press keys, as the bytes that they send."""
        os.write(self._ours, keys.encode())

    def types(self, text: str, end: str = "\r") -> None:
        """Type a line; `end` is the key after it. Waits until the line is there to be sent."""
        if self._reel is None:
            self.presses(text)
        else:
            for sign in text:
                self.presses(sign)
                threading.Event().wait(0.03)
        self._wait(lambda: self._is_typed(text), f"`{text}` is not in the input line", WAIT)
        self.presses(end)

    def says(self, text: str, *shown: str) -> None:
        """Type a line, and wait until these texts are shown, each in a row below the one before."""
        self.types(text)
        for part in shown:
            self.shows(part)

    def resizes(self, columns: int, lines: int) -> None:
        """Change the window's size, as dragging its edge does."""
        with self._change:
            self.screen.resize(lines, columns)
            fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def pastes(self, text: str) -> None:
        """Paste a text, as terminals with bracketed paste do."""
        data = f"\x1b[200~{text}\x1b[201~".encode()
        while data:
            data = data[os.write(self._ours, data) :]

    def has_line(self, text: str) -> None:
        """Wait until the input line begins with this, or is empty."""
        came = lambda: self._line().startswith(text) and bool(self._line()) is bool(text)  # noqa: E731
        self._wait(came, f"the line is not `{text}`", WAIT)

    def _line(self) -> str:
        rows = [row for row in self.screen.display if row.startswith("> ")]
        return rows[-1][2:].rstrip() if rows else ""

    def _is_typed(self, text: str) -> bool:
        """Whether it is in the input line, which may be several rows, and not only in the transcript."""
        rows = self.screen.display
        first = max((at for at, row in enumerate(rows) if row.startswith("> ")), default=0)
        return text[-40:].replace(" ", "") in "".join(rows[first:]).replace(" ", "")

    # The end --------------------------------------------------------------------------------------

    def ended(self, timeout: float = WAIT) -> int:
        """Wait for the program's end and the last that it said; return the exit code."""
        try:
            code = self.process.wait(seconds(timeout))
        except subprocess.TimeoutExpired:
            raise AssertionError("it does not end:\n" + "\n".join(self.rows)) from None
        self._thread.join(seconds(WAIT))
        return code

    def kill(self) -> None:
        """End it by SIGKILL and wait for that; a recording shows what the shell would say."""
        self.process.send_signal(signal.SIGKILL)
        self.ended()
        if self._reel is not None:
            self._reel.add("\r\x1b[JKilled\r\n")

    def abandon(self) -> None:
        """End it in any way, and give the pty back."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._thread.join(seconds(WAIT))

    def _read(self) -> None:
        while self._take():
            continue
        with self._change:
            self._is_over = True
            os.close(self._ours)
            self._change.notify_all()

    def _take(self) -> bool:
        """Feed new output to the screen; False once the other end is closed."""
        readable(self._ours)
        try:
            data = os.read(self._ours, 1 << 16)
        except OSError:  # how Linux says that the other end is closed
            return False
        with self._change:
            self._stream.feed(data)
            self.sent += data
            if self._reel is not None and data:
                self._reel.add(data.decode(errors="replace"))
            self._change.notify_all()
        return bool(data)

    def _answer(self, text: str) -> None:
        os.write(self._ours, text.encode())


def _own_terminal() -> None:
    """Make the pty the new session's terminal, so that Ctrl-C and hanging up are real."""
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
