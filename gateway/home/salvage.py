"""Writes what can be read of a damaged SQLite home into a new one; the old one is only read.

A session is folded from its first entry on, so it keeps those before the first that is missing or cannot
be read. What follows is kept as text in `lost/` of the new home, for people.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from typing import Any

from msgspec import ValidationError

from ...journal.codec import decode_entry
from ...journal.encoding import decode
from ...journal.entries import Entry
from ...journal.record import SessionRecord, apply
from ...journal.salvage import SalvagedRows, salvaged
from ...journal.sqlite import SqliteStore
from ...journal.store import SessionRow, Store, StoredEntry, check_identifier
from ...machines.errors import SteersmanError, UsageError
from ...machines.value import Value
from ...workflows.paths import Paths, make_private, write_private
from ..host.offline_writer import writing
from .home import depth_of

_LEFT = ("journal.db*", "journal.lock", "locks", "bells", "sockets", "lost")
"""What a new home makes by itself."""


class SalvageReport(Value):
    """What was saved, and a sentence about each thing that was lost."""

    saved: tuple[str, ...]
    entries: int
    messages: int
    lost: tuple[str, ...]


def salvage_home(paths: Paths, target: Path) -> SalvageReport:
    """Salvage the home of `paths` into a folder that is not there yet, or empty.

    Raises `UsageError` for another folder, and where there is no database.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError(f"`{target}` is there already", "name a new folder")
    database = paths.state / "journal.db"
    log = paths.state / "journal.db-wal"
    try:
        found = salvaged(database.read_bytes(), log.read_bytes() if log.exists() else b"")
    except OSError as error:
        raise UsageError(
            f"`{database}` cannot be read: {error.strerror}", "nothing was written"
        ) from error
    state = make_private(target / "state")
    lost = list(_copied(paths, target))
    with closing(SqliteStore.open(state)) as store:
        saved = dict[str, int]()
        names = sorted({*found.entries, *found.rows})
        parents = {session: str(_opened(found, session).get("parent", "")) for session in names}
        for session in sorted(names, key=lambda name: depth_of(name, parents)):
            entries, faults = _session(store, found, session, target / "lost")
            lost += faults
            if entries or not faults:
                saved[session] = entries
        messages = _messages(store, found, lost)
        for watch in found.watches:
            store.note(watch, [o for o in found.occurrences if o.schedule == watch.schedule])
    return SalvageReport(
        saved=tuple(saved), entries=sum(saved.values()), messages=messages, lost=tuple(lost)
    )


def _copied(paths: Paths, target: Path) -> Iterator[str]:
    """Copy what else belongs to the home; yields a sentence about each file that cannot be read."""
    try:
        shutil.copytree(
            paths.state,
            target / "state",
            symlinks=True,
            ignore=shutil.ignore_patterns(*_LEFT),
            dirs_exist_ok=True,
        )
    except shutil.Error as error:
        yield from (f"{source}: {why}" for source, _, why in error.args[0])
    if paths.config_file.is_file():
        shutil.copyfile(paths.config_file, target / "config.toml")


def _opened(found: SalvagedRows, session: str) -> dict[str, Any]:
    """Return the first entry of a session as data; empty if it cannot be read."""
    with suppress(SteersmanError, KeyError):
        return decode("it", found.entries[session][1][1])
    return {}


def _session(store: Store, found: SalvagedRows, session: str, lost: Path) -> tuple[int, list[str]]:
    """Write a session; returns how many entries it has there, and what of it was lost."""
    entries, row = found.entries.get(session, {}), found.rows.get(session, ())
    length = max([*entries, row[3] if row else 0])
    kept = list(_foldable(entries))
    try:
        check_identifier("session", session)
        opened = _opened(found, session)
        made = SessionRow(
            session=session,
            folder=str(opened.get("folder", "")),
            parent=str(opened.get("parent", "")),
            created=kept[0][0].time if kept else 0.0,
            place=str(row[7]) if len(row) >= 8 else "",
        )
        if kept or not length:
            store.create(made)
            with writing(store, session) as writer:
                writer.keep_all(kept)
    except SteersmanError as error:
        return 0, [f"{session}: {error}"]
    if len(kept) == length:
        return length, []
    after = {seq: entries[seq] for seq in sorted(entries) if seq > len(kept)}
    where = ""
    if after:
        lines = (
            json.dumps({"seq": seq, "time": time, "data": text})
            for seq, (time, text) in after.items()
        )
        write_private(lost / f"{session}.jsonl", "\n".join(lines).encode())
        where = f"; {len(after)} later ones are in {lost / f'{session}.jsonl'}"
    why = "cannot be read" if len(kept) + 1 in entries else "is missing"
    return len(kept), [f"{session}: has {len(kept)} of {length} entries, the next one {why}{where}"]


def _foldable(entries: dict[int, tuple[float, str]]) -> Iterator[tuple[StoredEntry, Entry]]:
    """Yield the entries from the first on, as far as they make a session."""
    record = SessionRecord()
    for seq in count(1):
        if seq not in entries:
            return
        time, text = entries[seq]
        try:
            data = decode("it", text)
            entry = decode_entry(data)
            apply(record, entry, seq, time)
        except (SteersmanError, ValidationError, KeyError, TypeError, AttributeError):
            return
        yield StoredEntry(seq=seq, time=time, data=data), entry


def _messages(store: Store, found: SalvagedRows, lost: list[str]) -> int:
    """Post the messages that were not read yet; returns how many."""
    posted = 0
    for id, (session, lane, client, _, text) in sorted(found.messages.items()):
        try:
            store.post(session, lane, decode(f"message {id} of `{session}`", text), client)
            posted += 1
        except SteersmanError as error:
            lost.append(str(error))
    return posted
