"""What a process writes beside its live sessions: other sessions' journals, copies of queues, the log.

`OfflineWriter` appends to the journal of a session that no process runs. It is for changes of the
session itself (its name, a copy of the session), not for turns. `QueueMirror` writes the queue of a live
session to a file, and `Logbook` writes the log of the program.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import threading
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...actors.commits import row_of
from ...actors.environment import Observer, Publication
from ...journal.codec import encode_entry
from ...journal.commitment import commit_surely
from ...journal.entries import Entry
from ...journal.queue_record import ItemRecord, QueueRecord
from ...journal.record import SessionRecord, apply
from ...journal.recovery import load_record, snapshot
from ...journal.store import Commit, Lease, Store, StoredEntry
from ...machines.errors import ConfigError, LeaseLost, StoreBusy
from ...workflows.paths import Paths, make_private, write_private
from ..trace_context import TurnContexts
from ..wording.redaction import Redactor

LOGGER = logging.getLogger("steersman")
FORM = "%(asctime)s %(process)d %(levelname)s %(trace)s%(message)s"
MOST = 1 << 20
"""Bytes of one file of the log."""
OLD = 3
"""Files of the log that are kept besides the current one."""
_GATHERED = 0.1  # seconds in which changes of queues gather before they are written
BATCH = 500
"""Entries of another journal in one commit."""
LINE = 2_000
"""Characters of one event in the log."""


class QueueMirror:
    """Keeps a copy of each queue in `<folder>/<session>.toml`, replaced soon after each commit.

    A separate thread writes; of several changes in a row it writes only the newest, and nothing if the
    copy would stay as it is: a short turn changes nothing that lasts. `on_fault` receives the first fault
    as a sentence; a fault has no effect on the session.
    """

    def __init__(self, folder: Path, on_fault: Callable[[str], None]) -> None:
        self._folder = folder
        self._on_fault = on_fault
        self._waiting: dict[str, tuple[QueueRecord, float]] = {}
        self._written: dict[str, dict[str, tuple[ItemRecord, str]]] = {}
        self._changed = threading.Condition()
        self._is_closing = False
        self._has_failed = False
        self._thread: threading.Thread | None = None

    def put(self, session: str, queue: QueueRecord, now: float) -> None:
        """Order the write of a queue, as it was at `now`; returns at once."""
        with self._changed:
            is_gathering = bool(self._waiting)
            self._waiting[session] = queue, now
            if self._thread is None and not self._is_closing:
                self._thread = threading.Thread(target=self._run, name="queue-mirror", daemon=True)
                self._thread.start()
            if not is_gathering:
                self._changed.notify()

    def close(self) -> None:
        """Write the waiting documents, then end the thread."""
        with self._changed:
            self._is_closing = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(5.0)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._is_closing)
                self._changed.wait_for(lambda: self._is_closing, _GATHERED)
                waiting, self._waiting = self._waiting, {}
            for session, (queue, now) in waiting.items():
                self._write(session, queue, now)
            if self._is_closing and not self._waiting:
                return

    def _write(self, session: str, queue: QueueRecord, now: float) -> None:
        from ..views.queue_file import document, item_text

        path, written = self._folder / f"{session}.toml", self._written.get(session)
        before = written or {}
        copies = {
            item.id: copy
            if (copy := before.get(item.id)) is not None and copy[0] is item
            else (item, item_text(item))
            for item in queue.live()
        }
        texts = [text for _, text in copies.values()]
        is_same = written is not None and texts == [text for _, text in before.values()]
        try:
            is_there = path.is_symlink() or path.exists()
            if (texts or is_there) and not (is_there and is_same):
                write_private(path, document(session, texts, now))
                self._written[session] = copies
        except (OSError, ConfigError) as error:
            if not self._has_failed:
                self._has_failed = True
                why = error.strerror if isinstance(error, OSError) else error.message
                self._on_fault(f"the queue's copy `{path}` cannot be written: {why}")


def log_path(paths: Paths) -> Path:
    """Return the path of the log, which may not exist yet."""
    return paths.state / "log" / "steersman.log"


class Logbook(logging.Handler, Observer):
    """Writes the log of this process: faults with their traces, and with `--debug` every event.

    The file is opened with the first line. Secrets are removed from every line, only the user can read
    the file (0600), and its size is bounded. `on_fault` receives each fault of the program as one line.
    `secrets` are names of environment variables that hold keys, besides those that say so. A line about a
    session whose turn runs names the turn's trace and span, as docs/telemetry.md says.
    """

    def __init__(
        self,
        paths: Paths,
        environ: Mapping[str, str],
        secrets: tuple[str, ...],
        on_fault: Callable[[str], None],
        *,
        is_debug: bool = False,
    ) -> None:
        super().__init__(logging.DEBUG if is_debug else logging.WARNING)
        self.path = log_path(paths)
        self.is_debug = is_debug
        self._redactor = Redactor(environ, secrets)
        self._on_fault = on_fault
        self._file: logging.Handler | None = None
        self._contexts = TurnContexts()
        self.setFormatter(logging.Formatter(FORM))
        self._before = LOGGER.level, LOGGER.propagate
        LOGGER.addHandler(self)
        LOGGER.setLevel(self.level)
        LOGGER.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line, and report a fault to the user."""
        context = self._contexts.of(*getattr(record, "about", ("",)))
        record.trace = f"trace_id={context.trace} span_id={context.span} " if context else ""
        text = self._redactor.text(self.format(record))
        clean = logging.makeLogRecord({"msg": text, "levelno": record.levelno})
        try:
            self._opened().emit(clean)
        except OSError as error:  # a full disk must not become a second fault
            self._on_fault(f"the log cannot be written: {error}")
        if record.levelno >= logging.ERROR:
            message = self._redactor.line(record.getMessage())
            self._on_fault(f"A fault in the program: {message} (details: {self.path})")

    def receive(self, event: Mapping[str, Any]) -> None:
        """Note an event of a session; only with `--debug`."""
        if self.is_debug:
            shown = self._redactor.data(event)
            line = json.dumps(shown, ensure_ascii=False, default=str)[:LINE]
            about = (event.get("session", ""), event.get("turn") or "")
            LOGGER.debug("%s", line, extra={"about": about})

    def observe_entry(
        self, entry: Entry, seq: int, time: float, record: SessionRecord
    ) -> Publication | None:
        """Take note of the turn that runs in a session; there is nothing to publish."""
        self._contexts.take(record.id, entry, is_child=bool(record.parent))
        return None

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
                """A log file that only its owner can read, whatever the umask is."""

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


class OfflineWriter:
    """Appends entries to the journal of one session; each call is durable when it returns.

    `record` is the session's record after the last entry.
    """

    def __init__(self, store: Store, lease: Lease, record: SessionRecord) -> None:
        self._store, self._lease, self.record = store, lease, record

    def write(self, time: float, *entries: Entry) -> None:
        """Append entries with one time stamp, in seconds since the epoch."""
        seq = self.record.seq
        self.keep(
            [
                (StoredEntry(seq=seq + at, time=time, data=encode_entry(entry)), entry)
                for at, entry in enumerate(entries, 1)
            ]
        )

    def keep_all(self, entries: Sequence[tuple[StoredEntry, Entry]]) -> None:
        """Append any number of entries that were stored in another journal; see `keep`."""
        for at in range(0, len(entries), BATCH):
            self.keep(entries[at : at + BATCH], with_snapshot=True)

    def keep(
        self, entries: Iterable[tuple[StoredEntry, Entry]], *, with_snapshot: bool = False
    ) -> None:
        """Append entries in one commit. Raises `LeaseLost`, `StoreDamaged`."""
        kept: list[StoredEntry] = []
        for stored, entry in entries:
            apply(self.record, entry, stored.seq, stored.time)
            kept.append(stored)
        made = snapshot(self.record) if with_snapshot else None
        commit = Commit(lease=self._lease, entries=kept, row=row_of(self.record), snapshot=made)
        (is_done,) = commit_surely(self._store, [commit])
        if not is_done:
            raise LeaseLost(f"another program has taken over session `{self.record.id}`")


@contextmanager
def claimed(store: Store, session: str) -> Generator[Lease]:
    """Take a session's lease. Raises `StoreBusy` if a live process has it."""
    lease = store.claim(session, f"n{os.getpid()}-{secrets.token_hex(4)}")
    if lease is None:
        owner = store.owner(session)
        who = owner.process if owner else "another program"
        raise StoreBusy(
            f"{who} has session `{session}` open",
            f"leave it there first; `steersman attach {session}` joins it",
        )
    try:
        yield lease
    finally:
        store.release(lease)


@contextmanager
def writing(store: Store, session: str) -> Generator[OfflineWriter]:
    """Write into a session that no process has open, holding the lease only for the write."""
    with claimed(store, session) as lease:
        record = load_record(store, session)
        record.id = session
        yield OfflineWriter(store, lease, record)
