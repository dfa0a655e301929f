"""A server that is a program of its own: it can be killed, and started again at the same port."""

import socket
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from support.ports import HeldPort
from support.until import until


class ServerProgram:
    """A program that serves on a port of loopback, with a folder of its own; subclasses `start` it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._held = HeldPort()
        self.port = self._held.number
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Start it, with what it left in its folder, and wait until it answers."""
        raise NotImplementedError

    def ask(self) -> None:
        """Raise `OSError` while it does not answer."""
        socket.create_connection(("127.0.0.1", self.port), 1).close()

    def launch(self, *command: str | Path, **options: Any) -> None:
        """Start the process, and wait until it answers."""
        path = self.folder / "log"
        with path.open("ab") as log:
            self._process = process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **options
            )

        def answers() -> bool:
            assert process.poll() is None, path.read_text()
            with suppress(OSError):
                self.ask()
                return True
            return False

        try:
            until(answers, path.read_text)
        except AssertionError:
            self.kill()
            raise

    def signal(self, number: int) -> None:
        """Send the process a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        """End the process at once, with what it had in memory. Idempotent."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def close(self) -> None:
        """End the process, and give its port back. Idempotent."""
        self.kill()
        self._held.close()
