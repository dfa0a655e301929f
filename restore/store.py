"""The files behind the restore records: read, written to, kept small.

Hooks append at any time (`hook_log.py`); what this program itself notes about a record is one more line
in the same file, so the file alone is enough. A program that changes something holds one lock for the
home, reads again, and then decides: two programs never finalize a record twice.
"""

import fcntl
import heapq
import json
import os
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from ..machines.errors import StoreBusy
from ..workflows.agent_definition import AgentDefinition
from ..workflows.paths import make_private, write_private
from .hook_log import append, file_of
from .records import HookSignal, RestoreBook, RestoreRecord

_LOCK_TIMEOUT = 10.0
_PAUSE = 0.01
_THIN_AT = 256 * 1024
_NEWEST = 50
_OF_TURNS = ("prompt-submit", "agent-response", "notification", "session-end", "heard")


class RestoreStore:
    """All that the hooks of external agents reported in one home."""

    def __init__(self, state: Path, agents: Mapping[str, AgentDefinition]) -> None:
        self._state = state
        self._folder = state / "agents"
        self._agents = agents

    def read(self) -> RestoreBook:
        """Fold everything; changes nothing. What is not readable is passed over."""
        files = [path for path in self._files() if path.parent.name in self._agents]
        return self._fold(_lines(path) for path in files)

    @contextmanager
    def changing(self) -> Generator[RestoreBook]:
        """Hold the home's lock, and read under it. Raises `StoreBusy` when another process has it."""
        make_private(self._folder)
        descriptor = os.open(self._folder / "change.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _lock(descriptor)
            yield self.read()
        finally:
            os.close(descriptor)

    def write(
        self, record: RestoreRecord, event: str, now: float, why: str = "", told: Any = None
    ) -> None:
        """Add a line of our own, durable when this returns. Raises `OSError`."""
        data = {"time": now, "event": event, "agent": record.agent, "session": record.session}
        line = json.dumps({**data, "why": why, "told": told}).encode() + b"\n"
        session = "" if record.session.startswith("@") else record.session
        append(file_of(str(self._state), record.agent, session), line, create=True, sync=True)

    def tidy(self, is_old: Callable[[RestoreRecord], bool]) -> None:
        """Delete what ended long ago, thin what has grown; the caller holds the lock."""
        book = self.read()
        for key, record in book.records.items():
            if not record.is_kept and is_old(record):
                Path(file_of(str(self._state), *key)).unlink(missing_ok=True)
        for path in self._files():
            if path.stat().st_size > _THIN_AT:
                self._thin(path)

    def _thin(self, path: Path) -> None:
        """Drop old lines about turns, if the records stay what they are."""
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # a hook's line is written before this, or elsewhere
            lines = file.read().splitlines(keepends=True)
            older = [line for line in lines[:-_NEWEST] if not _is_of_turns(line)]
            left = [*older, *lines[-_NEWEST:]]
            others = [file for file in self._files() if file != path]
            before = self._fold([_signals(lines), *map(_lines, others)])
            after = self._fold([_signals(left), *map(_lines, others)])
            if _view(before) == _view(after):
                write_private(path, b"".join(left))

    def _fold(self, files: Iterable[Iterator[HookSignal]]) -> RestoreBook:
        book = RestoreBook(self._agents)
        for signal in heapq.merge(*files, key=lambda signal: signal.time):
            book.apply(signal)
        return book

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob("*/*.jsonl"))


def _lines(path: Path) -> Iterator[HookSignal]:
    try:
        content = path.read_bytes()
    except OSError:
        return iter(())
    return _signals(content.splitlines())


def _signals(lines: Iterable[bytes]) -> Iterator[HookSignal]:
    """Read what can be read: half a line is what a full disk leaves."""
    for line in lines:
        try:
            yield HookSignal.read(json.loads(line))
        except (ValueError, KeyError, TypeError):
            continue


def _is_of_turns(line: bytes) -> bool:
    return any(f'"event":"{event}"'.encode() in line for event in _OF_TURNS)


def _view(book: RestoreBook) -> list[dict[str, Any]]:
    return [to_builtins(record) for record in book.records.values()]


def _lock(descriptor: int) -> None:
    deadline = time.monotonic() + _LOCK_TIMEOUT
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                message = f"restore records were locked by another process for {_LOCK_TIMEOUT:g} s"
                raise StoreBusy(message, "Try again.") from None
            time.sleep(_PAUSE)
        else:
            return
