"""What a home keeps, and for how long: saved queues by age, copies of files by size, until a deletion.

What age or a budget takes goes to the trash first (`trash.py`, which also says what counts as age); only
what a person deletes by name is deleted at once.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ...journal.store import RowFilter, SessionRow, Store
from ...machines.errors import StoreBusy, UnknownSession, UsageError
from ...machines.value import Value
from ...workflows.config import Config
from ...workflows.home_folder import expanded
from ...workflows.home_place import Storage, storage_of
from ...workflows.paths import Paths
from ...workspace.prune import FRESH, KeptCopies, beyond, forget, kept_in, size_of
from ..host.offline_writer import claimed
from .trash import HOUR, NEVER, Kind, Thing, Trash, is_older

if TYPE_CHECKING:
    from ..host.host import Host

# Deletion of a session ----------------------------------------------------------------------------


def family(store: Store, session: str) -> list[str]:
    """Return a session and all its descendants, parents first."""
    rows, found = store.family(store.row(session).root), [session]
    for parent in found:
        found += [row.session for row in rows if row.parent == parent and row.session not in found]
    return found


def delete(store: Store, storage: Storage, queues: Path, session: str) -> tuple[list[str], int]:
    """Delete a session and its descendants; returns their ids, and the bytes of the deleted files.

    Deletes the journals, the outputs, the copies of the queues and the copies of files. Raises
    `StoreBusy` if a live process has one of the sessions open: then nothing is deleted.
    """
    ids = family(store, session)
    with ExitStack() as held:
        leases = [held.enter_context(claimed(store, member)) for member in ids]
        for lease in reversed(leases):  # children first: a parent that remains can be deleted again
            store.delete(lease)
    for member in ids:
        (queues / f"{member}.toml").unlink(missing_ok=True)
    freed = sum(_remove(storage.outputs / member) for member in ids)
    return ids, freed + forget(storage.copies, ids)


def delete_session(
    store: Store, paths: Paths, config: Config, environ: Mapping[str, str], session: str
) -> tuple[list[str], int]:
    """Delete a session with all that is kept of it anywhere; see `delete`."""
    ids, freed = delete(store, storage_of(paths, environ), queues_folder(paths, config), session)
    store.compact()
    for member in ids:
        shutil.rmtree(replay_folder(paths, member), ignore_errors=True)
    return ids, freed


def replay_folder(paths: Paths, session: str) -> Path:
    """Return the folder that holds the copy in which a replay goes on."""
    return paths.cache / "replays" / session


def queues_folder(paths: Paths, config: Config) -> Path:
    """Return the folder of the readable copies of queues."""
    return expanded(config.auto_queue.persistence.path or paths.state / "queues")


# What goes to the trash ---------------------------------------------------------------------------


def moments_of(store: Store, trash: Trash) -> list[float]:
    """Return the recorded moments of a home by which ages are measured; see `trash.known_age`."""
    return [*trash.starts(), *store.moments()]


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
        self._moments = moments_of(host.store, self._trash)

    def _row(self, session: str) -> SessionRow | None:
        """Return the row of a session; none if there is no such session any more."""
        try:
            return self._host.store.row(session)
        except (UnknownSession, UsageError):
            return None

    def _used(self, session: str) -> float:
        """When a session was last used; 0 if it is no more."""
        row = self._row(session)
        return row.updated if row is not None else 0.0

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
        used = {found.session: max(found.time, self._used(found.session)) for found in kept}
        return self._sweep("copies", used, lambda name: forget(place, [name]), over, far)

    def outputs(self) -> Swept:
        """Sweep the long outputs, also of sessions that no longer exist."""
        place = self._storage.outputs
        folders = [folder.name for folder in place.iterdir()] if place.is_dir() else []
        used = {name: self._used(name) for name in folders}
        return self._sweep("outputs", used, lambda name: _remove(place / name))

    def sessions(self) -> Swept:
        """Sweep the sessions that are finalized, each with its subagents."""
        used = {row.session: row.updated for row in self._ended()}
        store, storage = self._host.store, self._storage
        queues = queues_folder(self._host.paths, self._host.config)
        return self._sweep("session", used, lambda name: delete(store, storage, queues, name)[1])

    def thin(self) -> None:
        """Drop old snapshots of sessions that were not used for long; they only save time."""
        store, seconds = self._host.store, self._hours * HOUR
        owners = store.owners()
        old = [
            row.session
            for row in store.sessions()
            if row.session not in owners
            and is_older(row.updated, self._moments, self._now, seconds)
        ]
        store.thin(old)

    def _ended(self) -> list[SessionRow]:
        """List the finalized sessions; unless age matters, only those that are in the trash already."""
        if self._by_age:
            rows = self._host.store.sessions(RowFilter(is_top=True))
        else:
            marked = self._trash.marks().values()
            found = [self._row(mark.thing.of) for mark in marked if mark.thing.kind == "session"]
            rows = [row for row in found if row is not None]
        return [row for row in rows if row.state == "finalized" and not row.parent]

    def _sweep(
        self,
        kind: Kind,
        used: Mapping[str, float],
        remove: Callable[[str], int],
        over: Collection[str] = (),
        far: Collection[str] = (),
    ) -> Swept:
        rows = {name: self._row(name) for name in used}
        folders = {name: row.folder for name, row in rows.items() if row is not None}
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
        row = self._row(session)
        is_kept = row is not None and (row.has_work or row.is_damaged)
        return is_kept or self._host.store.is_owned(session)


def _remove(folder: Path) -> int:
    """Delete a folder; returns the bytes that were freed."""
    freed = size_of(folder)
    shutil.rmtree(folder, ignore_errors=True)
    return freed
