"""What a home keeps, and for how long: saved queues by age, copies of files by size, until a deletion.

Ages are measured so that a wrong clock deletes nothing: a clock that jumped a year ahead would make
everything old. Only time between recorded activity counts, and a gap of more than `LEAP` seconds
between two recorded moments counts as zero.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from threading import Thread

from ..journal.store import SessionRow, Store
from ..journal.workspace.prune import Pruned, forget, prune, size_of
from ..machines.errors import StoreError
from ..workflows.home_place import Storage
from .formats import size_text
from .offline_writer import claimed

LEAP = 60 * 86_400.0
NAMED = 5
"""Sessions that a message names; of the others it gives the number."""


# Deletion of a session ----------------------------------------------------------------------------


def family(rows: list[SessionRow], session: str) -> list[str]:
    """Return a session and all its descendants, parents first."""
    found = [session]
    for parent in found:
        found += [row.session for row in rows if row.parent == parent and row.session not in found]
    return found


def delete(store: Store, storage: Storage, queues: Path, session: str) -> tuple[list[str], int]:
    """Delete a session and its descendants; returns their ids, and the bytes of the deleted files.

    Deletes the journals, the outputs, the copies of the queues and the copies of files. Raises
    `StoreBusy` if a live process has one of the sessions open: then nothing is deleted.
    """
    ids = family(store.sessions(), session)
    with ExitStack() as held:
        leases = [held.enter_context(claimed(store, member)) for member in ids]
        for lease in reversed(leases):  # children first: a parent that remains can be deleted again
            store.delete(lease)
    freed = 0
    for member in ids:
        output = storage.outputs / member
        freed += size_of(output)
        shutil.rmtree(output, ignore_errors=True)
        (queues / f"{member}.toml").unlink(missing_ok=True)
    return ids, freed + forget(storage.copies, ids)


# Age of saved queues ------------------------------------------------------------------------------


def is_saved(row: SessionRow) -> bool:
    """Whether a session has waiting or interrupted items, as far as its row tells."""
    if row.seq == 0 or row.parent or row.state in ("finalizing", "finalized"):
        return False
    return bool(row.waiting or row.interrupted) or row.state in ("busy", "leaving")


def known_age(updated: float, moments: Sequence[float], now: float) -> float:
    """Return the seconds since `updated`, without leaps of the clock; `moments` are of any session."""
    later = sorted(moment for moment in moments if updated < moment < now)
    gaps = [after - before for before, after in pairwise((updated, *later, now))]
    return sum(gap for gap in gaps if 0.0 < gap <= LEAP)


def outlived(rows: Sequence[SessionRow], now: float, hours: float) -> list[SessionRow]:
    """Return the sessions whose saved queue has not changed for more than `hours`."""
    moments = [moment for row in rows for moment in (row.created, row.updated)]
    return [
        row
        for row in rows
        if is_saved(row) and known_age(row.updated, moments, now) > hours * 3600.0
    ]


# Size of the copies of files ----------------------------------------------------------------------


def needs_copies(store: Store) -> Callable[[str], bool]:
    """Return whether a session's copies of files must stay: if it is open or can be resumed."""
    saved = {row.session for row in store.sessions() if is_saved(row)}
    return lambda session: session in saved or store.is_owned(session)


class StorageLimit:
    """Keeps the copies of files of a home under `limit` bytes; `say` informs the user."""

    def __init__(
        self, storage: Storage, store: Store, limit: int, say: Callable[[str], None]
    ) -> None:
        self._storage, self._store = storage, store
        self._limit, self._say = limit, say
        self._thread: Thread | None = None
        self._is_closing = False

    def keep(self) -> None:
        """Check the size once, in a thread, and delete the oldest copies if they exceed the limit."""
        if self._thread is None:
            # a daemon: if a signal arrives while it starts, no code would stop it
            self._thread = Thread(target=self._keep, name="steersman-storage-limit", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Delete no further copies, and wait for a deletion in progress; the next start continues."""
        self._is_closing = True
        if self._thread is not None and self._thread.is_alive():
            self._thread.join()

    def _keep(self) -> None:
        if self._is_closing:
            return
        try:
            needed = needs_copies(self._store)
            done = prune(
                self._storage.copies,
                lambda session: self._is_closing or needed(session),
                time.time(),
                self._limit,
            )
        except (OSError, StoreError) as error:
            self._say(f"copies of files cannot be kept within `checkpoints.budget`: {error}")
        else:
            self._report(done)

    def _report(self, done: Pruned) -> None:
        if done.sessions:
            more = len(done.sessions) - NAMED
            names = ", ".join(done.sessions[:NAMED]) + (f" and {more} more" if more > 0 else "")
            self._say(
                f"Copies of files took {size_text(done.left + done.freed)}, and `checkpoints.budget` "
                f"is {size_text(self._limit)}: the changes of these sessions can no longer "
                f"be reverted: {names}."
            )
        if done.left > self._limit and not self._is_closing:
            self._say(
                f"Copies of files take {size_text(done.left)}, and `checkpoints.budget` is "
                f"{size_text(self._limit)}, but they are still needed. "
                "`steersman sessions list --size` shows the sessions."
            )
