"""The budget of copies of files: what it spares, and that its end is never the chat's."""

import os
import threading
from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any, cast

from msgspec.structs import replace
from support.patience import seconds

from steersman.gateway.home.trash import DAY, Trash
from steersman.gateway.host.upkeep import Upkeep
from steersman.journal.memory import MemoryStore
from steersman.journal.store import Commit, SessionRow, StoredEntry
from steersman.workflows.config import load
from steersman.workflows.home_place import Storage
from steersman.workflows.paths import Paths


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
    return {path.stem.removeprefix("ledger-") for path in found}


def limit(
    tmp_path: Path, store: MemoryStore, said: SimpleQueue[str], file: str = "config.toml"
) -> Upkeep:
    """Make the upkeep of a home with the limit of one byte, as far as it counts in that file."""
    paths = Paths(config=tmp_path, state=tmp_path, cache=tmp_path)
    (tmp_path / file).write_text('[checkpoints]\nbudget = "1 B"\n')
    config = load(paths, tmp_path, {})
    shared = SimpleNamespace(storage=Storage(folder=tmp_path))
    host = SimpleNamespace(paths=paths, config=config, store=store, complain=said.put)
    host.runtime = SimpleNamespace(shared=shared)
    host.upkeep = Upkeep(cast("Any", host))
    return host.upkeep


def keep_within_budget(upkeep: Upkeep) -> None:
    """Have the copies looked at, and wait for that."""
    upkeep.keep_within_budget()
    for thread in threading.enumerate():
        if thread.name == "steersman-storage-limit":
            thread.join()


def test_what_can_be_resumed_or_is_open_keeps_its_copies(tmp_path: Path) -> None:
    """Those of all others go to the trash, with a notice; days later they go, not at the next start."""
    store = home(tmp_path, row("cut", interrupted=1), row("live"), row("over"))
    assert store.claim("live", "node") is not None
    said: SimpleQueue[str] = SimpleQueue()

    def start(day: float) -> None:
        Trash(tmp_path).note_start(day * DAY)
        keep_within_budget(limit(tmp_path, store, said))

    start(1)
    told = said.get(timeout=seconds(10.0))
    assert told.startswith("Copies of files take 3 kB, and `checkpoints.budget` is 1 B")
    assert "in the trash now: over. `steersman home trash`" in told
    start(2)
    assert (left(tmp_path), said.empty()) == ({"cut", "live", "over"}, True)
    start(4)
    assert said.get(timeout=seconds(10.0)) == "Deleted from the trash: the copies of files of over."
    assert "still needed" in said.get(timeout=seconds(10.0))
    assert left(tmp_path) == {"cut", "live"}


def test_a_downloaded_folder_deletes_no_copies(tmp_path: Path) -> None:
    """Its limit does not count, so what is kept of other folders stays."""
    said: SimpleQueue[str] = SimpleQueue()
    keep_within_budget(limit(tmp_path, home(tmp_path, row("over")), said, "steersman.toml"))
    assert (left(tmp_path), said.empty()) == ({"over"}, True)


def test_leaving_waits_for_no_further_deletion(tmp_path: Path) -> None:
    """From the close on nothing goes, and nothing is said of it."""
    said: SimpleQueue[str] = SimpleQueue()
    budget = limit(tmp_path, home(tmp_path, row("over")), said)
    budget.close()
    budget.keep_within_budget()
    budget.close()
    assert left(tmp_path) == {"over"}
    assert said.empty()


def test_an_unreadable_store_is_reported_and_ends_nothing(tmp_path: Path) -> None:
    """To close does not raise what the look at the copies met."""
    store = home(tmp_path, row("over"))
    store.close()
    said: SimpleQueue[str] = SimpleQueue()
    budget = limit(tmp_path, store, said)
    budget.keep_within_budget()
    budget.close()
    assert said.get_nowait().startswith("copies of files cannot be kept within")
    assert left(tmp_path) == {"over"}
