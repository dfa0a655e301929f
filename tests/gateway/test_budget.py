"""The budget of copies of files: what it spares, and that its end is never the chat's."""

import os
from pathlib import Path
from queue import SimpleQueue

from msgspec.structs import replace
from support.patience import seconds

from steersman.gateway.retention import StorageLimit
from steersman.journal.memory import MemoryStore
from steersman.journal.store import Commit, SessionRow, StoredEntry
from steersman.workflows.home_place import Storage


def home(tmp_path: Path, *sessions: SessionRow) -> MemoryStore:
    """Make a store that knows these sessions, each with copies that nothing touched for days."""
    store, kept = MemoryStore(), tmp_path / "workspaces" / "folder"
    kept.mkdir(parents=True)
    for row in sessions:
        store.create(row)
        lease = store.claim(row.session, "node")
        assert lease is not None
        store.commit(
            [
                Commit(
                    lease=lease,
                    entries=[StoredEntry(seq=1, time=1.0, data={"kind": "session_suspended"})],
                    row=row,
                )
            ]
        )
        store.release(lease)
        ledger = kept / f"ledger-{row.session}.jsonl"
        ledger.write_text("\n" * 1000)
        os.utime(ledger, (0, 0))
    return store


def row(name: str, **more: object) -> SessionRow:
    """A session that was left in order."""
    told = SessionRow(
        session=name, folder="/here", created=1.0, updated=1.0, state="suspended", seq=1
    )
    return replace(told, **more)  # type: ignore[arg-type]


def left(tmp_path: Path) -> set[str]:
    """Name the sessions whose copies are there."""
    found = tmp_path.glob("workspaces/*/ledger-*.jsonl")
    return {one.stem.removeprefix("ledger-") for one in found}


def test_what_can_be_resumed_or_is_open_keeps_its_copies(tmp_path: Path) -> None:
    """All other sessions lose their copies, and a notice names the sessions and the freed bytes."""
    store = home(tmp_path, row("cut", interrupted=1), row("live"), row("over"))
    assert store.claim("live", "node") is not None
    said: SimpleQueue[str] = SimpleQueue()
    budget = StorageLimit(Storage(folder=tmp_path), store, 1, said.put)
    budget.keep()
    told = said.get(timeout=seconds(10.0))
    assert told.startswith("Copies of files took 3 kB")
    assert told.endswith("can no longer be reverted: over.")
    assert "still needed" in said.get(timeout=seconds(10.0))
    budget.close()
    assert left(tmp_path) == {"cut", "live"}


def test_leaving_waits_for_no_further_deletion(tmp_path: Path) -> None:
    """From the close on nothing goes, and nothing is said of it."""
    said: SimpleQueue[str] = SimpleQueue()
    budget = StorageLimit(Storage(folder=tmp_path), home(tmp_path, row("over")), 1, said.put)
    budget.close()
    budget.keep()
    budget.close()
    assert left(tmp_path) == {"over"}
    assert said.empty()


def test_an_unreadable_store_is_reported_and_ends_nothing(tmp_path: Path) -> None:
    """To close does not raise what the look at the copies met."""
    store = home(tmp_path, row("over"))
    store.close()
    said: SimpleQueue[str] = SimpleQueue()
    budget = StorageLimit(Storage(folder=tmp_path), store, 1, said.put)
    budget.keep()
    budget.close()
    assert said.get_nowait().startswith("copies of files cannot be kept within")
    assert left(tmp_path) == {"over"}
