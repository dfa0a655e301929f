"""Golden journals: what is on disk still loads, and still means the same.

A golden journal is never written again: a new format gets a new file beside the old ones. The format
of `1.json` ended when the actors of a session began to share one record; such a journal is refused
whole, with the number of the entry that does not fit. `2.json` is a run of the simulator.
"""

import json
from pathlib import Path

import pytest

from steersman.gateway.session_file import imported, read_export
from steersman.journal.history import record_at
from steersman.journal.memory import MemoryStore
from steersman.journal.recovery import load_record
from steersman.machines.errors import UsageError

GOLDEN = Path(__file__).parent / "golden"
REFUSED = GOLDEN / "1.json"
READABLE = sorted(set(GOLDEN.glob("*.json")) - {REFUSED})


@pytest.mark.parametrize("file", READABLE, ids=lambda file: file.stem)
def test_a_golden_journal_still_loads(file: Path) -> None:
    """Every entry folds, at every point of it, and nothing of it is lost on the way."""
    data = read_export(file)
    store = MemoryStore()
    session, is_new = imported(store, data, str(file), "/home", "assistant")
    assert is_new
    for seq in range(1, len(data["entries"]) + 1):
        assert record_at(store, session, seq).seq == seq
    stored = [one.data for one in store.entries(session)]
    assert stored[1:] == [one["data"] for one in data["entries"]][1:]


def test_a_journal_of_the_first_format_is_refused_whole() -> None:
    """Its revert begins without having been started: nothing of the session is taken in."""
    store = MemoryStore()
    with pytest.raises(UsageError, match=r"entry 30 does not fit: .* `revert` does not accept"):
        imported(store, read_export(REFUSED), "1.json", "/home", "assistant")
    assert list(store.sessions()) == []


def test_the_second_golden_journal_means_what_it_meant() -> None:
    """Two turns, a child, a late steer, a held queue, a refused revert, and a session that was left."""
    data = json.loads((GOLDEN / "2.json").read_text("utf-8"))
    store = MemoryStore()
    session, _ = imported(store, data, "2.json", "/home", "assistant")
    record = load_record(store, session)
    assert (record.name, record.state, record.queue.state) == (
        "the golden one",
        "suspended",
        "held",
    )
    assert [turn.state for turn in record.turns.values()] == ["completed", "interrupted"]
    items = [(item.number, item.state, item.text, item.user) for item in record.queue.live()]
    assert items == [
        (1, "interrupted", "please wait", ""),
        (2, "pending", "use zod", "ann"),
        (3, "pending", "and the tests", ""),
    ]
    assert [stop.state for stop in record.interrupts.values()] == ["stopped"]
    assert [(child.name, child.state) for child in record.children.values()] == [
        ("twin", "interrupted")
    ]
    assert [revert.state for revert in record.reverts.values()] == ["refused"]
    assert record.conversation[0].text == "take notes"
    assert record.conversation[-1].role == "assistant"


def test_a_cause_in_its_earlier_spelling_is_read_in_the_present_one() -> None:
    """A journal that has it loads and means the same; what is stored stays as it is."""
    text = (GOLDEN / "2.json").read_text("utf-8").replace('"bare_word"', '"turn_end"')
    store = MemoryStore()
    session, _ = imported(store, json.loads(text), "2.json", "/home", "assistant")
    record = load_record(store, session)
    (stop,), (child,) = record.interrupts.values(), record.children.values()
    assert {stop.cause, child.cause, child.cancelled_cause} == {"turn_ended"}
    stored = {one.data["cause"] for one in store.entries(session) if "receipt" in one.data}
    assert "turn_end" in stored
