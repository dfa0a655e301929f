"""The input history of all sessions, for Up and Ctrl-R, without secrets."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from prompt_toolkit.history import History

from ...gateway.wording.redaction import redactor_of
from ...workflows.paths import make_private, write_private

KEPT = 2_000
"""Number of entries to which the file is cut when it has twice as many."""
LONGEST = 10_000
"""Maximum length of an entry in characters; a longer one was pasted."""


class InputHistory(History):
    """A history in a file of JSON strings, one a line, oldest first; mode 0600.

    An entry that begins with a blank is not kept, as in shells, nor a long paste. If the file
    cannot be written, the history lasts as long as the program.
    """

    def __init__(self, path: Path | None, environ: Mapping[str, str]) -> None:
        super().__init__()
        self._path = path
        self._redactor = redactor_of(environ)

    def load_history_strings(self) -> Iterable[str]:
        """Return the entries, newest first."""
        entries = _read(self._path) if self._path is not None else []
        if self._path is not None and len(entries) > 2 * KEPT:
            entries = entries[-KEPT:]
            text = "".join(json.dumps(entry) + "\n" for entry in entries)
            write_private(self._path, text.encode())
        return reversed(entries)

    def store_string(self, string: str) -> None:
        """Keep an entry."""
        is_kept = not string[:1].isspace() and len(string) <= LONGEST and "[Pasted #" not in string
        if self._path is None or not is_kept:
            return
        line = json.dumps(self._redactor.text(string)) + "\n"
        try:
            make_private(self._path.parent)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            with open(os.open(self._path, flags, 0o600), "wb") as file:
                file.write(line.encode())
        except OSError:
            self._path = None


def _read(path: Path) -> list[str]:
    try:
        lines = path.read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return []
    entries = list[str]()
    for line in lines:
        with suppress(ValueError):
            if isinstance(entry := json.loads(line), str):
                entries.append(entry)
    return entries
