"""What a home keeps, and for how long: saved queues by age, copies of files by size, until a deletion.

What age or a budget takes goes to the trash first (`trash.py`, which also says what counts as age); only
what a person deletes by name is deleted at once.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ...journal.store import SessionRow, Store
from ...machines.errors import StoreBusy, UnknownSession
from ...machines.value import Value
from ...workflows.config import Config
from ...workflows.home_folder import expanded
from ...workflows.home_place import Storage
from ...workflows.paths import Paths
from ...workspace.prune import FRESH, KeptCopies, beyond, forget, kept_in, size_of
from ..host.offline_writer import claimed
from .trash import HOUR, NEVER, Kind, Thing, Trash, known_age

if TYPE_CHECKING:
    from ..host.host import Host

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
    for member in ids:
        (queues / f"{member}.toml").unlink(missing_ok=True)
    freed = sum(_remove(storage.outputs / member) for member in ids)
    return ids, freed + forget(storage.copies, ids)


def queues_folder(paths: Paths, config: Config) -> Path:
    """Return the folder of the readable copies of queues."""
    return expanded(config.auto_queue.persistence.path or paths.state / "queues")


# What goes to the trash ---------------------------------------------------------------------------


def is_saved(row: SessionRow) -> bool:
    """Whether a session has waiting or interrupted items, as far as its row tells."""
    if row.seq == 0 or row.parent or row.state in ("finalizing", "finalized"):
        return False
    return bool(row.waiting or row.interrupted) or row.state in ("busy", "leaving")


def moments_of(rows: Sequence[SessionRow], trash: Trash) -> list[float]:
    """Return the recorded moments of a home by which ages are measured; see `trash.known_age`."""
    return [*trash.starts(), *(moment for row in rows for moment in (row.created, row.updated))]


class Swept(Value):
    """Of which sessions something went to the trash, of which it went from there, and the bytes freed."""

    new: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    freed: int = 0


class Retention:
    """Puts what sessions left on the disk into the trash, and deletes what was there long.

    Unless `by_age`, only a budget puts anything there. A session that is open, damaged, or has a saved
    queue loses nothing. `stops` ends the work early. Raises `OSError`, `StoreError`.
    """

    def __init__(
        self, host: Host, now: float, *, by_age: bool = True, stops: Callable[[], bool] = bool
    ) -> None:
        self._host, self._trash = host, host.upkeep.trash
        self._storage = host.runtime.shared.storage
        self._now, self._by_age, self._stops = now, by_age, stops
        self._hours = host.config.auto_queue.persistence.retention_hours
        self._rows = host.store.sessions()
        self._moments = moments_of(self._rows, self._trash)
        self._saved = {row.session for row in self._rows if is_saved(row) or row.is_damaged}

    @property
    def _used(self) -> dict[str, float]:
        """When each session was last used."""
        return {row.session: row.updated for row in self._rows}

    def copies(self) -> Swept:
        """Sweep the copies of files: those that were not used for long, and the oldest over the budget.

        What is in the trash has the same budget again. For the budget's sake nothing goes that is
        fresh, or with which the last revert of a folder can be undone.
        """
        place, budget = self._storage.copies, self._host.config.checkpoints.budget
        kept = kept_in(place)

        def is_spared(found: KeptCopies) -> bool:
            is_fresh = self._now - found.time <= FRESH
            return found.can_undo or is_fresh or self._is_needed(found.session)

        over = beyond(place, kept, is_spared, budget)
        far = (
            beyond(place, kept, lambda found: found.session not in over, 2 * budget) if over else ()
        )
        known = self._used
        used = {found.session: max(found.time, known.get(found.session, 0.0)) for found in kept}
        return self._sweep("copies", used, lambda name: forget(place, [name]), over, far)

    def outputs(self) -> Swept:
        """Sweep the long outputs, also of sessions that no longer exist."""
        place = self._storage.outputs
        folders = [folder.name for folder in place.iterdir()] if place.is_dir() else []
        known = self._used
        used = {name: known.get(name, 0.0) for name in folders}
        return self._sweep("outputs", used, lambda name: _remove(place / name))

    def sessions(self) -> Swept:
        """Sweep the sessions that are finalized, each with its subagents."""
        ended = [row for row in self._rows if row.state == "finalized" and not row.parent]
        used = {row.session: row.updated for row in ended}
        store, storage = self._host.store, self._storage
        queues = queues_folder(self._host.paths, self._host.config)
        return self._sweep("session", used, lambda name: delete(store, storage, queues, name)[1])

    def thin(self) -> None:
        """Drop old snapshots of sessions that were not used for long; they only save time."""
        owners = self._host.store.owners()
        old = [
            name
            for name, used in self._used.items()
            if name not in owners and known_age(used, self._moments, self._now) > self._hours * HOUR
        ]
        self._host.store.thin(old)

    def _sweep(
        self,
        kind: Kind,
        used: Mapping[str, float],
        remove: Callable[[str], int],
        over: Collection[str] = (),
        far: Collection[str] = (),
    ) -> Swept:
        folders = {row.session: row.folder for row in self._rows}
        things = [
            Thing(kind=kind, of=name, used=time, where=folders.get(name, ""))
            for name, time in used.items()
        ]
        hours = self._hours if self._by_age else NEVER
        found, due = self._trash.look(kind, things, self._moments, self._now, hours, over, far)
        new, gone, freed = list[str](), list[str](), 0
        for thing, why in found:
            if not self._stops() and not self._is_needed(thing.of):
                self._trash.put(thing, why, self._moments, self._now, self._hours)
                new.append(thing.of)
        for thing in due:
            if not self._stops() and not self._is_needed(thing.of):
                with suppress(StoreBusy, UnknownSession):
                    freed += remove(thing.of)
                    gone.append(thing.of)
                    self._trash.take_out(thing)
        return Swept(new=tuple(new), gone=tuple(gone), freed=freed)

    def _is_needed(self, session: str) -> bool:
        """Whether all that a session has must stay: it is open, or can be resumed."""
        return session in self._saved or self._host.store.is_owned(session)


def _remove(folder: Path) -> int:
    """Delete a folder; returns the bytes that were freed."""
    freed = size_of(folder)
    shutil.rmtree(folder, ignore_errors=True)
    return freed
