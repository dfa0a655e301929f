"""The restore records of external agents' sessions: listed, resumed, forgotten, expired.

Reading changes nothing. The end of a record is written under the home's lock and reported once; see
`restore/store.py`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

from ...machines.errors import SteersmanError, UsageError
from ...ports.process.ancestry import is_alive, process
from ...restore.records import RestoreBook, RestoreRecord
from ...restore.store import RestoreStore
from ...workflows.agent_definition import AgentDefinition, load_agents
from ...workflows.paths import Paths
from ..home.trash import HOUR, Thing, Trash, known_age
from ..wording.formats import age, iso


class RestoreService:
    """The restore records of one home; a record is stale after `hours` without an event."""

    def __init__(self, paths: Paths, hours: float) -> None:
        self.agents = load_agents(paths)
        self.ledger = RestoreStore(paths.state, self.agents)
        self.trash = Trash(paths.state)
        self._hours = hours

    def kept(self, now: float) -> list[RestoreRecord]:
        """List the records that are not finalized, newest event first; old or trashed ones are stale."""
        book = self.ledger.read()
        trashed, moments = self.trash.holds("agent"), self._moments(book)
        for record in book.kept():
            is_trashed = trashed.get(_key(record)) == record.updated
            if is_trashed or self._is_old(record, moments, now):
                record.state = "stale"
        return book.kept()

    def find(self, name: str) -> RestoreRecord:
        """Find a record by `last`, its id, or a unique prefix of its id. Raises `UsageError`."""
        kept = self.kept(time.time())
        if not kept:
            raise UsageError(
                "there is nothing to restore", "`steersman hooks list` shows the installed hooks"
            )
        if name == "last":
            return kept[0]
        known = [record for record in kept if name in (record.session, *record.previous)]
        found = known or [record for record in kept if record.session.startswith(name)]
        if len(found) == 1:
            return found[0]
        if not found:
            raise UsageError(f"nothing is kept of a session `{name}`", "`steersman restore list`")
        ids = ", ".join(f"{record.session} ({record.agent})" for record in found[:5])
        raise UsageError(f"`{name}` fits several sessions: {ids}", "type more of the id")

    def resume(self, name: str) -> tuple[tuple[str, ...], Path]:
        """Return the command that resumes a session, and its folder; record that this process does it.

        Raises `SteersmanError` if the session cannot be resumed or is running.
        """
        record = self.find(name)
        if not can_resume(record):
            raise SteersmanError(
                f"{record.agent} never reported the id of this session, so it cannot be resumed",
                f"start it yourself, in {record.cwd}; `steersman restore forget {record.session}` "
                "drops the record",
            )
        folder = Path(record.cwd)
        if not folder.is_dir():
            raise SteersmanError(
                f"the folder of session {record.session} is not there: {folder}",
                f"bring it back, or forget the record: `steersman restore forget {record.session}`",
            )
        if lives(record) and record.is_sure and record.process is not None:
            raise SteersmanError(
                f"session {record.session} still runs, as process {record.process.pid}",
                f"it has the terminal {record.terminal}" if record.terminal else "",
            )
        self.ledger.write(record, "resume", time.time(), told=process(os.getpid()))
        return self.agents[record.agent].resume_command(record.session), folder

    def forget(self, name: str) -> RestoreRecord:
        """Finalize a record by order of a person. Raises `UsageError`."""
        found = self.find(name)
        with self.ledger.changing() as book:
            record = book.records.get((found.agent, found.session))
            if record is not None and record.is_kept:
                self.ledger.write(record, "forget", time.time(), "forgotten")
        return found

    def expire(self, now: float) -> Iterator[str]:
        """Put the old records into the trash, and finalize those that were there as long; then tidy.

        Yields a sentence about each. Raises `OSError`, `StoreBusy`.
        """
        book = self.ledger.read()
        moments = self._moments(book)
        records = {_key(record): record for record in book.kept()}
        things = [
            Thing(
                kind="agent",
                of=key,
                used=record.updated,
                where=record.cwd,
                what=f"session {record.session} of {record.agent}",
            )
            for key, record in records.items()
        ]
        new, due = self.trash.look("agent", things, moments, now, self._hours)
        for thing, why in new:
            self.trash.put(thing, why, moments, now, self._hours)
            yield (
                f"The record of {thing.what}, last event {age(now - thing.used)} "
                f"(kept for {self._hours:g} hours), is in the trash now: {thing.where}. "
                f"`steersman home trash restore {thing.id}` restores it"
            )
        if not due:
            return
        with self.ledger.changing() as book:
            for thing in due:
                record = records[thing.of]
                if book.records[record.agent, record.session].updated == thing.used:
                    self.ledger.write(record, "outlive", now)
                    self.ledger.write(record, "expire", now, "expired")
                    yield f"Deleted from the trash: the record of {thing.what}, in {thing.where}"
                self.trash.take_out(thing)
            self.ledger.tidy(lambda record: self._is_old(record, moments, now))

    def _moments(self, book: RestoreBook) -> list[float]:
        """Return the recorded moments by which the age of records is measured."""
        records = book.records.values()
        events = [moment for record in records for moment in (record.opened, record.updated)]
        return [*self.trash.starts(), *events]

    def _is_old(self, record: RestoreRecord, moments: Sequence[float], now: float) -> bool:
        """Whether a record had no event for too long; see `trash.known_age`."""
        return known_age(record.updated, moments, now) > self._hours * HOUR


def _key(record: RestoreRecord) -> str:
    """Return what stands for a record in names of files: any text may be the id of a session."""
    text = f"{record.agent}\0{record.session}".encode(errors="surrogatepass")
    return blake2b(text, digest_size=4).hexdigest()


def can_resume(record: RestoreRecord) -> bool:
    """Whether the agent has reported the session's id."""
    return not record.session.startswith("@")


def lives(record: RestoreRecord) -> bool:
    """Whether the agent's process still runs."""
    known = record.process
    return known is not None and is_alive(known.pid, known.start)


def restore_view(record: RestoreRecord, agents: Mapping[str, AgentDefinition]) -> dict[str, Any]:
    """Return a record as programs see it."""
    command = agents[record.agent].resume_command(record.session) if can_resume(record) else None
    return {
        "id": record.session,
        "agent": record.agent,
        "cwd": record.cwd,
        "command": list(command) if command else None,
        "last_boundary": iso(record.last_boundary) if record.last_boundary else None,
        "alive": lives(record),
        "state": record.state,
        "opened": iso(record.opened),
        "last_event": iso(record.updated),
        "pid": record.process.pid if record.process else None,
        "terminal": record.terminal or None,
        "pane": record.pane or None,
        "transcript_path": record.transcript or None,
        "inside": record.inside or None,
        "previous": list(record.previous),
    }
