"""Golden journals: what is on disk still loads, and still means the same.

From the first release on a golden journal is never written again: a new format gets a new file beside
the old ones. `1.json` is a run of the simulator.
"""

import json
from pathlib import Path

import pytest

from steersman.gateway.views.session_file import imported, read_export
from steersman.journal.history import record_at
from steersman.journal.memory import MemoryStore
from steersman.journal.recovery import load_record
from steersman.machines.errors import UsageError

GOLDEN = Path(__file__).parent / "golden"
READABLE = sorted(GOLDEN.glob("*.json"))


@pytest.mark.parametrize("file", READABLE, ids=lambda file: file.stem)
def test_a_golden_journal_still_loads(file: Path) -> None:
    """Every entry folds, at every point of it, and nothing of it is lost on the way."""
    data = read_export(file)
    store = MemoryStore()
    session, is_new = imported(store, data, str(file), "/home", "assistant")
    assert is_new
    for seq in range(1, len(data["entries"]) + 1):
        assert record_at(store, session, seq).seq == seq
    stored = [entry.data for entry in store.entries(session)]
    assert stored[1:] == [entry["data"] for entry in data["entries"]][1:]


def test_a_journal_that_contradicts_a_machine_is_refused_whole() -> None:
    """Its first turn ends without having begun: nothing of the session is taken in."""
    data = read_export(GOLDEN / "1.json")
    started = next(entry for entry in data["entries"] if entry["data"]["kind"] == "turn_started")
    started["data"] = {"kind": "session_resumed"}
    store = MemoryStore()
    with pytest.raises(UsageError, match=r"entry \d+ does not fit"):
        imported(store, data, "1.json", "/home", "assistant")
    assert list(store.sessions()) == []


def test_the_golden_journal_means_what_it_meant() -> None:
    """Two turns, a child, a late steer, a held queue, a refused revert, and a session that was left."""
    data = json.loads((GOLDEN / "1.json").read_text("utf-8"))
    store = MemoryStore()
    session, _ = imported(store, data, "1.json", "/home", "assistant")
    record = load_record(store, session)
    assert (record.name, record.state, record.queue.state) == (
        "the golden one",
        "suspended",
        "held",
    )
    assert [turn.state for turn in record.turns.values()] == ["completed", "interrupted"]
    items = [(item.number, item.state, item.text, item.said.user) for item in record.queue.live()]
    assert items == [
        (1, "interrupted", "please wait", ""),
        (2, "pending", "use zod", "ann"),
        (3, "pending", "and the tests", ""),
    ]
    assert [stop.state for stop in record.stops.values()] == ["stopped"]
    assert [(child.name, child.state) for child in record.children.values()] == [
        ("twin", "interrupted")
    ]
    assert [revert.state for revert in record.reverts.values()] == ["refused"]
    assert record.conversation[0].text == "take notes"
    assert record.conversation[-1].role == "assistant"
