"""The simulator's journal writer: it commits what it is handed late, in any order, and may fail.

Each session's commits are written and answered in their own order; those of several sessions in any.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from ..actors.commits import Token
from ..journal.commitment import commit_surely
from ..journal.store import Commit
from ..journal.writer import Result
from ..machines.errors import MachineError, StoreError
from .lossy_store import LossyStore
from .schedule import Dice

Failure = Literal["full", "lost", "wrong"]
"""Why nothing of a session is written any more: no room, no lease, or a commit that contradicts."""


class SimulatedWriter:
    """Commits wait for `write`, which is a step of the simulation.

    `answered` returns a result to the session, `written` says which commit is in the store. `failures`
    are the sessions of which nothing is written any more.
    """

    def __init__(
        self,
        store: LossyStore,
        dice: Dice,
        answered: Callable[[Token, Result], None],
        written: Callable[[str, int], None],
    ) -> None:
        self.failures: dict[str, Failure] = {}
        self.store, self._dice = store, dice
        self._answered, self._written = answered, written
        self._commits: dict[str, list[tuple[Commit, Token]]] = {}
        self._answers: dict[str, list[tuple[Token, Result]]] = {}

    def submit(self, commit: Commit, token: Token) -> None:
        """Take a commit; nothing of it is durable yet."""
        self._commits.setdefault(commit.lease.session, []).append((commit, token))

    def waiting(self) -> list[str]:
        """Name the sessions that have a commit to be written, or a result to be returned."""
        return list(dict.fromkeys((*self._commits, *self._answers)))

    def work(self, session: str) -> None:
        """Return the results of a session's last commits, or commit its next ones."""
        if session not in self._answers:
            self._write(session, self._dice.randrange(1, 4))
        for token, result in self._answers.pop(session, []):
            self._answered(token, result)

    def flush(self) -> None:
        """Commit everything there is; the results are returned in steps that follow."""
        for session in list(self._commits):
            self._write(session, len(self._commits[session]))

    def _write(self, session: str, most: int) -> None:
        """Commit up to so many of a session's commits in one transaction."""
        found = self._commits.pop(session)
        taken, left = found[:most], found[most:]
        if left:
            self._commits[session] = left
        results = self._results(session, [commit for commit, _ in taken])
        for (_, token), result in zip(taken, results, strict=True):
            if result is True:
                self._written(session, token[1])
            self._answers.setdefault(session, []).append((token, result))

    def _results(self, session: str, commits: list[Commit]) -> list[Result]:
        match self.failures.get(session):
            case None:
                return list(commit_surely(self.store, commits))
            case "lost":
                return [False] * len(commits)
            case "full":
                return [StoreError("the disk is full", "make room")] * len(commits)
            case "wrong":
                return [MachineError("a commit does not follow", "")] * len(commits)
