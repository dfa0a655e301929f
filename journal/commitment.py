"""A commit over a connection that may be lost: it is repeated only if it did not happen.

The journal's numbers are dense and the epoch fences, so the store can tell: where a journal ends with the
group's last entry, the group was written; where it ends before its first one, it was not. A group is one
transaction: what holds of one session holds of all.
"""

import time
from collections.abc import Sequence
from typing import Protocol

from ..machines.errors import ConnectionLost, MachineError, StoreDamaged, UnknownSession
from .store import Commit, Lease, Position, Posted

COMMIT_TIMEOUT = 15.0
"""Seconds for which a group is repeated: a primary that waits for a replica in vain answers none."""


class AskableStore(Protocol):
    """What is needed of a `Store` to commit and to ask what came of it."""

    def commit(self, commits: Sequence[Commit]) -> list[bool]:
        """Commit; may raise `ConnectionLost`."""
        ...

    def position(self, session: str) -> Position:
        """Read where a journal stands."""
        ...

    def unconsumed(self, session: str) -> tuple[Posted, ...]:
        """Read the inbox."""
        ...


def commit_surely(
    store: AskableStore, commits: Sequence[Commit], patience: float = COMMIT_TIMEOUT
) -> Sequence[bool]:
    """Commit as `Store.commit` does, and never twice. Raises `StoreError` if the store stays away.

    After `patience` seconds the next loss of an answer is final, and raises `ConnectionLost`.
    """
    was_repeated, until = False, time.monotonic() + patience
    while True:
        try:
            return store.commit(commits)
        except ConnectionLost:
            if time.monotonic() > until:
                raise
            results = outcome(store, commits)
        except MachineError:
            # The first attempt may have been slow: it was not there yet when the store was asked.
            results = outcome(store, commits) if was_repeated else None
            if results is None:
                raise
        if results is not None:
            return results
        was_repeated = True


def outcome(store: AskableStore, commits: Sequence[Commit]) -> list[bool] | None:
    """Return the results of a group whose answer was lost; none if it was not written and may be sent.

    Raises `StoreDamaged` if a journal ends elsewhere: what was acknowledged before is not there any more,
    as after the loss of a primary whose replica was behind.
    """
    groups: dict[Lease, list[Commit]] = {}
    for commit in commits:
        groups.setdefault(commit.lease, []).append(commit)
    known = {lease: _is_written(store, lease, part) for lease, part in groups.items()}
    written = {is_written for held, is_written in known.values() if held and is_written is not None}
    if len(written) > 1:
        raise StoreDamaged(
            "a group of commits was written in part", "Restore the database from a copy."
        )
    if not any(held for held, _ in known.values()):
        return [False] * len(commits)
    if True not in written:
        return None
    return [known[commit.lease][0] for commit in commits]


def _is_written(
    store: AskableStore, lease: Lease, commits: Sequence[Commit]
) -> tuple[bool, bool | None]:
    """Say whether a lease holds, and whether its part is written; none if that makes no difference."""
    try:
        position = store.position(lease.session)
    except UnknownSession:
        return False, None
    if (position.epoch, position.node) != (lease.epoch, lease.node):
        return False, None
    entries = [entry.seq for commit in commits for entry in commit.entries]
    if entries:
        if position.seq in (entries[-1], entries[0] - 1):
            return True, position.seq == entries[-1]
        raise StoreDamaged(
            f"the journal of `{lease.session}` ends with entry {position.seq}, and entry"
            f" {entries[0] - 1} was acknowledged",
            "The database lost what it had acknowledged; restore it, or resume the session as it is.",
        )
    read = {id for commit in commits for id in (*commit.consumed, *commit.answers)}
    if not read:
        return True, None
    return True, not any(message.id in read for message in store.unconsumed(lease.session))
