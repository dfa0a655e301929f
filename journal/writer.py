"""Group commit: one thread makes durable, in one transaction, whatever has gathered meanwhile.

A lone commit is written at once, for there is no timer: while one group is being synced the
next one gathers, so the busier the sessions, the larger the groups (the scheme of PostgreSQL's
and InnoDB's group commit, without their delay setting). Order within a session is the order of
`submit`.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Generic, NamedTuple, TypeVar

from ..machines.errors import MachineError, SteersmanError, StoreBusy, StoreError, UsageError
from .commitment import COMMIT_TIMEOUT, commit_surely
from .store import Commit, Store

Token = TypeVar("Token")

Result = bool | SteersmanError
"""True: durable. False: the lease is lost. `MachineError`: this commit is wrong, others went on.
Any `StoreError`: nothing more is written, and every later commit gets the same answer, until
`resume`."""

Deliver = Callable[[list[tuple[Token, Result]]], None]

_IDLE = 1.0  # seconds without a commit, after which the store may do its housekeeping
_TRIES = 6  # for a database that another process keeps locked; each takes the store's own patience


class CommitTally(NamedTuple):
    """How many commits were answered, and how long they took in all, from `submit` on, in seconds."""

    commits: int = 0
    seconds: float = 0.0

    def with_more(self, submitted: Sequence[float], now: float) -> CommitTally:
        """Count the commits of a group."""
        waited = sum(now - at for at in submitted)
        return CommitTally(self.commits + len(submitted), self.seconds + waited)


class Writer(Generic[Token]):
    """The one thread of a process that commits; `deliver` is called in it, once for each group.

    `deliver` must not block and not raise: `loop.call_soon_threadsafe` is what it is for. `patience`: see
    `commitment.py`.
    """

    def __init__(
        self, store: Store, deliver: Deliver[Token], patience: float = COMMIT_TIMEOUT
    ) -> None:
        self._store = store
        self._deliver = deliver
        self._patience = patience
        self._changed = threading.Condition()
        self.tally = CommitTally()
        self._waiting: deque[tuple[Commit, Token, float]] = deque()  # until answered
        self._fault: StoreError | None = None
        self._is_closing = False
        self._reopening = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="journal-writer", daemon=True)
        self._thread.start()

    def submit(self, commit: Commit, token: Token) -> None:
        """Have the commit written; its result comes back with `token`. From any thread, at once.

        Raises `StoreError` once the writer is closed.
        """
        with self._changed:
            if self._is_closing:
                raise StoreError("the journal's writer is closed", "Open the store again.")
            self._waiting.append((commit, token, monotonic()))
            self._changed.notify_all()

    def flush(self) -> None:
        """Block until every commit is answered; not for use in `deliver`."""
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting)

    def resume(self) -> None:
        """Write again after a failure that every session knows of. Raises `StoreError`."""
        self.flush()
        with self._reopening:
            if self._fault is not None:
                self._store.reopen()
                self._fault = None

    def close(self) -> None:
        """Write and answer what waits, then end the thread; the store stays open. Idempotent."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        self._thread.join()

    def _run(self) -> None:
        try:
            while group := self._gathered():
                self._deliver(self._answered(group))
                submitted = [at for _, _, at in group]
                self.tally = self.tally.with_more(submitted, monotonic())
                with self._changed:
                    for _ in group:
                        self._waiting.popleft()
                    self._changed.notify_all()
        finally:
            self._stop()

    def _gathered(self) -> list[tuple[Commit, Token, float]]:
        """Wait for commits and give all there are; none when closing and nothing waits."""
        if not self._is_due(_IDLE):
            self._settle()
            self._is_due(None)
        with self._changed:
            return list(self._waiting)

    def _is_due(self, timeout: float | None) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: bool(self._waiting) or self._is_closing, timeout)

    def _answered(self, group: list[tuple[Commit, Token, float]]) -> list[tuple[Token, Result]]:
        results = self._written([commit for commit, _, _ in group])
        return [(token, result) for (_, token, _), result in zip(group, results, strict=True)]

    def _written(self, commits: Sequence[Commit]) -> Sequence[Result]:
        """Commit all at once; where one of several is wrong, each for itself."""
        if self._fault is None:
            try:
                return self._tried(commits)
            except StoreError as fault:
                self._fault = fault
            except (MachineError, UsageError) as wrong:
                if len(commits) == 1:
                    return [wrong]
                return [result for commit in commits for result in self._written([commit])]
        return [self._fault] * len(commits)

    def _tried(self, commits: Sequence[Commit]) -> Sequence[bool]:
        """Commit, with patience for a database that another process keeps locked."""
        for _ in range(_TRIES - 1):
            with contextlib.suppress(StoreBusy):
                return commit_surely(self._store, commits, self._patience)
        return commit_surely(self._store, commits, self._patience)

    def _settle(self) -> None:
        try:
            self._store.settle()
        except StoreBusy:
            return  # another process is at it
        except StoreError as fault:
            self._fault = fault  # the next commit's answer

    def _stop(self) -> None:
        """Answer what is left after an error of our own ended the thread: no caller waits for ever."""
        with self._changed:
            self._is_closing = True
            rest = [token for _, token, _ in self._waiting]
        try:
            if rest:
                fault = StoreError("the journal's writer stopped", "Leave and start again.")
                self._deliver([(token, fault) for token in rest])
        finally:
            with self._changed:
                self._waiting.clear()
                self._changed.notify_all()
