"""The power goes at any moment of a run of the real program: what it had said is on the disk."""

import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from blackbox.talk import behaviours, converse
from support.driver import Gate, Place
from support.model_server import ModelServer
from support.power_loss import OPTIONS, Disk, Operation, disks, recorded

from steersman.journal.record import SessionRecord
from steersman.journal.recovery import load_record
from steersman.journal.sqlite import SqliteStore
from steersman.machines.errors import StoreDamaged

STRACE = shutil.which("strace")
FILES = ("journal.db", "journal.db-wal", "journal.db-journal")
MEMORY = Path("/dev/shm")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(STRACE is None, reason="needs strace to see the writes"),
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> list[Operation]:
    """Record two lives of the program in one home: a whole conversation, then another message."""
    root = tmp_path_factory.mktemp("recorded")
    place = Place(root / "root")
    gate = Gate(place.folder)
    prefix = [STRACE or "", *OPTIONS, "-o", str(root / "log")]
    with ModelServer(behaviours(gate)) as server:
        place.configure(server.base_url)
        converse(place.chat("--yes", prefix=prefix), gate)
        again = place.chat("--continue", prefix=prefix)
        again.send("once more")
        again.wait("turn_ended", status="completed")
        assert again.close() == 0
        place.close()
    gate.close()
    return recorded(root / "log", place.home / "state", FILES)


def told(run: Sequence[Operation]) -> list[dict[str, Any]]:
    """Return the events that were said in whole lines."""
    said = b"".join(one.data for one in run if one.kind == "said").decode()
    return [json.loads(line) for line in said.split("\n")[:-1]]


def fault_of(disk: Disk, events: Sequence[dict[str, Any]]) -> str:
    """Open a store on this disk; return what is missing of the acknowledged entries, or nothing."""
    sure = [one for one in events if one["seq"] is not None]
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as name:
        folder = Path(name, "state")
        folder.mkdir(mode=0o700)
        disk.write(folder)
        try:
            record = found_in(folder)
        except StoreDamaged as fault:
            return str(fault)
    if record is None:
        return "the session" if sure else ""
    if record.seq < max((one["seq"] for one in sure), default=0):
        return f"entries after {record.seq}"
    items = {name: (one.text, one.state) for name, one in record.queue.items.items()}
    for one in sure:
        if one["type"] == "accepted" and items[one["id"]][0] != one["text"]:
            return f"the message {one['id']}"
        if one["type"] == "turn_ended" and items[one["item"]][1] != "done":
            return f"the end of {one['turn']}"
        if one["type"] == "steered" and items[one["id"]][1] != "steered":
            return f"that {one['id']} was taken in"
    return ""


def found_in(folder: Path) -> SessionRecord | None:
    """Open the store, take its session over, and fold it; none if it has none."""
    store = SqliteStore.open(folder)
    try:
        for row in store.sessions():
            assert store.claim(row.session, "after")
            record = load_record(store, row.session)
            assert [one.seq for one in store.entries(row.session)] == [*range(1, record.seq + 1)]
            return record
        return None
    finally:
        store.close()


def faults(run: Sequence[Operation], states: Iterable[Disk]) -> Iterator[str]:
    """Look at each disk; tell the moment and what is missing where something is."""
    for one in states:
        fault = fault_of(one, told(run[: one.moment]))
        if fault:
            yield f"{one.moment}: {fault}"


def test_a_power_cut_loses_nothing_acknowledged(run: list[Operation]) -> None:
    """Whatever the disk kept of what was not synced: each event that was printed is in the journal."""
    states = list(disks(run))
    assert len(states) > 500
    assert list(faults(run, states)) == []
    assert len(told(run)) > 40


@pytest.mark.parametrize("kind", ["sync", "sync_folder"])
def test_the_replay_sees_a_sync_that_is_missing(run: list[Operation], kind: str) -> None:
    """Without its syncs the same run loses acknowledged entries: so the test can fail."""
    careless = [replace(one, kind="nothing") if one.kind == kind else one for one in run[:120]]
    assert next(faults(careless, reversed(list(disks(careless)))), "")
