"""Journals that earlier versions wrote still load, and still mean the same.

A golden journal is never written anew: a new format gets a new file beside the old ones.
"""

import json
from pathlib import Path

import pytest

from steersman.gateway.session_file import imported, read_export
from steersman.journal.history import record_at
from steersman.journal.memory import MemoryStore
from steersman.journal.recovery import load_record

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("file", sorted(GOLDEN.glob("*.json")), ids=lambda file: file.stem)
def test_an_old_journal_still_loads(file: Path) -> None:
    """Every entry folds, at every point of it, and nothing of it is lost on the way."""
    data = read_export(file)
    store = MemoryStore()
    session, is_new = imported(store, data, str(file))
    assert is_new
    for seq in range(1, len(data["entries"]) + 1):
        assert record_at(store, session, seq).seq == seq
    stored = [one.data for one in store.entries(session)]
    assert stored == [one["data"] for one in data["entries"]]


def test_the_first_golden_journal_means_what_it_meant() -> None:
    """Two turns, a steer that became a message, a queue that is held, a session that was left."""
    data = json.loads((GOLDEN / "1.json").read_text("utf-8"))
    store = MemoryStore()
    session, _ = imported(store, data, "1.json")
    record = load_record(store, session)
    assert (record.name, record.state, record.queue.state) == (
        "the golden one",
        "suspended",
        "held",
    )
    assert [turn.state for turn in record.turns.values()] == ["completed", "interrupted"]
    items = [(one.number, one.state, one.text, one.user) for one in record.queue.live()]
    assert items == [
        (1, "interrupted", "please wait", ""),
        (2, "pending", "use zod", "ann"),
        (3, "pending", "and the tests", ""),
    ]
    assert [one.state for one in record.interrupts.values()] == ["stopped"]
    assert record.conversation[0].text == "take notes"
    assert record.conversation[-1].role == "assistant"
