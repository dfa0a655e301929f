"""Looks through a home for what is damaged: the database, each row and entry, files beside it.

Changes nothing. `steersman home check` and `steersman doctor --home` print what it finds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

from ...journal.damage import Checkable
from ...journal.recovery import load_record
from ...journal.store import Store
from ...machines.errors import MachineError, StoreError
from ...machines.json_shape import parse_json
from ...machines.value import Value
from ...workflows.foreign_file import read_foreign
from ...workflows.home_place import Storage
from ...workflows.paths import Paths
from ...workspace.prune import kept_in, lost_copies
from .trash import Trash

SALVAGE = "`steersman home salvage TO` writes what can be read into a new home"
_NEXT: Mapping[str, str] = {
    "": SALVAGE,
    "sessions": "`steersman chat --resume {0}` goes on with it, which writes the row again",
    "entries": "`steersman sessions delete {0}` deletes the session; " + SALVAGE,
    "snapshots": "none is needed: the entries give the same state",
    "inbox": "send the message again; it is passed over",
    "watches": "the schedule counts from now on",
    "occurrences": "it is passed over",
}


class Fault(Value):
    """What is damaged: in which file or database, in which table and row, and what to do next."""

    place: str
    table: str = ""
    row: str = ""
    what: str
    next: str


def home_faults(store: Store, place: str, paths: Paths, storage: Storage) -> Iterator[Fault]:
    """Name each fault of an open home; `place` is how the home is shown."""
    is_whole = True
    try:
        for found in store.faults() if isinstance(store, Checkable) else ():
            is_whole = False
            hint = _NEXT[found.table].format(found.row.partition(" ")[0])
            yield Fault(place=place, table=found.table, row=found.row, what=found.what, next=hint)
        if is_whole:  # damaged rows explain why a session cannot be folded
            yield from _unfolded(store, place)
        known = {row.session for row in store.sessions()}
    except StoreError as error:
        yield damaged(error, place)
        return
    yield from _copies(storage, known)
    yield from _files(paths)


def damaged(error: StoreError, place: str) -> Fault:
    """Return the fault of a database that cannot be read any further."""
    return Fault(place=place, what=error.message, next=SALVAGE)


def _unfolded(store: Store, place: str) -> Iterator[Fault]:
    """Name the sessions whose entries can be read and make no session."""
    for row in store.sessions():
        try:
            load_record(store, row.session)
        except (StoreError, MachineError) as error:
            hint = _NEXT["entries"].format(row.session)
            yield Fault(
                place=place, table="entries", row=row.session, what=error.message, next=hint
            )


def _copies(storage: Storage, known: set[str]) -> Iterator[Fault]:
    """Name the copies of files that are gone, and those whose session is."""
    for kept in kept_in(storage.copies):
        place = str(kept.store / f"ledger-{kept.session}.jsonl")
        if kept.session not in known:
            what = f"the copies of files of session `{kept.session}`, which is not there"
            hint = "`steersman sessions prune` puts them into the trash, in time"
            yield Fault(place=place, what=what, next=hint)
        elif lost := lost_copies(kept):
            what = f"the copies of {len(lost)} files are gone, among them `{min(lost)}`"
            hint = "`/revert` restores the others, and names these"
            yield Fault(place=place, what=what, next=hint)


def _files(paths: Paths) -> Iterator[Fault]:
    """Name the files of the state folder that should be JSON, and are not."""
    trash = Trash(paths.state)
    readable = {trash.file_of(mark.thing) for mark in trash.marks().values()}
    for file in sorted(paths.state.glob("trash/*.json")):
        if file not in readable:
            hint = "remove it: the thing is not in the trash then"
            yield Fault(place=str(file), what="it is no mark", next=hint)
    for file in sorted(paths.state.glob("gateways/*.sqlite")):
        if (what := _damage_of(file)) != "ok":
            hint = "move it away: what waits to be sent to its rooms is in it"
            yield Fault(place=str(file), what=what, next=hint)
    devices = paths.state / "devices.json"
    try:
        if devices.exists():
            parse_json(read_foreign(devices))
    except (OSError, ValueError):
        hint = "remove it, and pair the devices again"
        yield Fault(place=str(devices), what="it is no JSON", next=hint)


def _damage_of(file: Path) -> str:
    """Return what SQLite finds damaged in a file of its own; `ok` if nothing."""
    import apsw

    from ...journal.connection import Connection

    try:
        connection = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
        with closing(connection):
            rows = Connection(connection).rows("PRAGMA quick_check(1)")
            return " ".join(str(rows[0][0]).split())
    except apsw.Error as error:
        return str(error)
