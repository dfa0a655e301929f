"""The program in a terminal of its own, which can be typed into, signalled and closed."""

import fcntl
import os
import re
import termios
import threading
from collections.abc import Sequence

from support.driver import WAIT, Place, Process
from support.patience import seconds
from support.readable import readable

__all__ = ["Terminal"]


_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]")
_WHERE = b"\x1b[6n"


class Terminal:
    """A pty, and a program that has it as its controlling terminal; its output is read away.

    `size`: its rows and columns. `answers`: whether it says where its cursor is when it is asked, as
    terminals do.
    """

    def __init__(
        self,
        place: Place,
        command: Sequence[str],
        answers: bool = True,
        size: tuple[int, int] = (24, 80),
    ) -> None:
        self._answers = answers
        self._shown = b""
        self._change = threading.Condition()
        self._master, program_end = os.openpty()
        termios.tcsetwinsize(program_end, size)
        self._wake, self._woken = os.pipe()
        self.process = Process(
            command,
            cwd=place.folder,
            env=place.environ | {"TERM": "xterm"},
            stdin=program_end,
            stdout=program_end,
            stderr=program_end,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(program_end)
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def type(self, text: str) -> None:
        """Type some keys."""
        os.write(self._master, text.encode())

    def wait(self, text: str, timeout: float = WAIT) -> None:
        """Wait until something was shown."""
        with self._change:
            came = self._change.wait_for(lambda: text.encode() in self._shown, seconds(timeout))
        assert came, f"`{text}` was not shown, but: {self._shown!r}"

    def shown(self) -> str:
        """Return what was shown so far, on one line, without colours."""
        with self._change:
            text = _CONTROL.sub("", self._shown.decode(errors="replace"))
        return re.sub(r"\s*\r?\n", " ", text)

    def hang_up(self) -> None:
        """Close the terminal, as its window does: the program gets HUP, and end of file after it."""
        self._stop_reading()
        if self._master >= 0:
            os.close(self._master)
            self._master = -1

    def close(self) -> None:
        """End everything."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.hang_up()
        for end in (self._wake, self._woken):
            os.close(end)

    def _read(self) -> None:
        while True:
            ready = readable(self._master, self._wake)
            if self._wake in ready:
                return
            try:
                data = os.read(self._master, 65_536)
            except OSError:  # nobody has the other end
                return
            if self._answers and _WHERE in data:
                os.write(self._master, b"\x1b[1;1R" * data.count(_WHERE))
            with self._change:
                self._shown += data
                self._change.notify_all()

    def _stop_reading(self) -> None:
        os.write(self._woken, b".")
        self._thread.join(seconds(WAIT))
