"""The log of the program: what failed inside it, with its trace, and with `--debug` all that happens.

Nothing is opened before there is something to write. Every line is cleaned of secrets before it is
written; the file is the user's own (0600), and its size is bounded.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..workflows.paths import Paths, make_private
from .redaction import Redactor

__all__ = ["Logbook", "log_path"]

LOGGER = logging.getLogger("steersman")
FORM = "%(asctime)s %(process)d %(levelname)s %(message)s"
MOST = 1 << 20
"""Bytes of one file."""
OLD = 3
"""Files that are kept besides the one that is written."""
LINE = 2_000
"""Characters of one event."""


def log_path(paths: Paths) -> Path:
    """Say where the log is, or would be."""
    return paths.state / "log" / "steersman.log"


class Logbook(logging.Handler):
    """Writes this process's log; `complain` is told, in one line, of each fault of the program.

    `secrets` are names of environment variables that hold keys, besides those that say so.
    """

    def __init__(
        self,
        paths: Paths,
        environ: Mapping[str, str],
        secrets: tuple[str, ...],
        complain: Callable[[str], None],
        *,
        is_debug: bool = False,
    ) -> None:
        super().__init__(logging.DEBUG if is_debug else logging.WARNING)
        self.path = log_path(paths)
        self.is_debug = is_debug
        self._redactor = Redactor(environ, secrets)
        self._complain = complain
        self._file: logging.Handler | None = None
        self.setFormatter(logging.Formatter(FORM))
        self._before = LOGGER.level, LOGGER.propagate
        LOGGER.addHandler(self)
        LOGGER.setLevel(self.level)
        LOGGER.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line, and tell a person of a fault."""
        text = self._redactor.text(self.format(record))
        clean = logging.makeLogRecord({"msg": text, "levelno": record.levelno})
        try:
            self._opened().emit(clean)
        except OSError as error:  # a full disk must not become a second fault
            self._complain(f"the log cannot be written: {error}")
        if record.levelno >= logging.ERROR:
            said = self._redactor.line(record.getMessage())
            self._complain(f"A fault in the program: {said} (details: {self.path})")

    def hear(self, event: Mapping[str, Any]) -> None:
        """Note an event of a session; only with `--debug`."""
        if self.is_debug:
            LOGGER.debug("%s", json.dumps(event, ensure_ascii=False, default=str)[:LINE])

    def close(self) -> None:
        """Stop logging. Idempotent."""
        LOGGER.removeHandler(self)
        level, LOGGER.propagate = self._before
        LOGGER.setLevel(level)
        if self._file is not None:
            self._file.close()
            self._file = None
        super().close()

    def _opened(self) -> logging.Handler:
        if self._file is None:
            from logging.handlers import RotatingFileHandler

            class PrivateFile(RotatingFileHandler):
                """A log that nobody else can read, whatever the umask is."""

                def _open(self) -> Any:
                    return open(
                        self.baseFilename,
                        self.mode,
                        encoding=self.encoding,
                        opener=lambda name, flags: os.open(name, flags, 0o600),
                    )

            make_private(self.path.parent)
            self._file = PrivateFile(self.path, maxBytes=MOST, backupCount=OLD, encoding="utf-8")
        return self._file
