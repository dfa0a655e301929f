"""What became of a message, by the state of its session."""

import asyncio
from typing import Any

import pytest

from steersman.gateway.outcome import Outcomes
from steersman.journal import entries as e
from steersman.journal.memory import MemoryStore
from steersman.journal.queue_record import ItemRecord, QueueRecord
from steersman.journal.record import SessionRecord, StopRecord
from steersman.journal.turn_record import TurnRecord
from steersman.machines import protocol as m


def item(name: str, state: str, **more: Any) -> ItemRecord:
    """Return an item of a queue."""
    return ItemRecord(id=name, number=1, said=m.Said(text="x"), state=state, **more)


RAN = item("m1", "done", turn="t1")
RUNS = item("m1", "running", turn="t1")
STEER = item("m2", "steered", turn="t1")


@pytest.mark.parametrize(
    ("items", "plain", "with_turn"),
    [
        ((RAN, STEER), "steered", "done"),
        ((RUNS, STEER), "steered", None),
        ((item("m1", "interrupted", turn="t1"), STEER), "steered", "interrupted"),
        ((RAN, item("m2", "steered", turn="t1", for_children={"kid": "t1.1"})), *["steered"] * 2),
        (
            (RAN, item("m2", "steered", turn="t1", deferred_to="m3"), item("m3", "running")),
            None,
            None,
        ),
        ((STEER, item("m2", "steered", deferred_to="m3"), item("m3", "failed")), *["failed"] * 2),
        ((RAN, item("m2", "pending")), None, "held"),
        ((item("m2", "superseded"),), *["interrupted"] * 2),
    ],
)
def test_a_steer_ends_with_its_turn_and_a_handed_back_one_later(
    items: tuple[ItemRecord, ...], plain: str | None, with_turn: str | None
) -> None:
    """The outcome of message m2: as such, and where the end of its turn is waited for."""
    record = SessionRecord()
    record.queue = QueueRecord(state="held", items={known.id: known for known in items})
    record.turns = {"t1": TurnRecord(id="t1", item="m1", number=1)}
    assert [became(record, "m2", with_turn=way) for way in (False, True)] == [plain, with_turn]


@pytest.mark.parametrize(
    ("state", "status"),
    [("planned", None), ("stopping", None), ("stopped", "done"), ("called_off", "done")],
)
def test_an_interrupt_is_done_when_it_has_taken_effect(state: str, status: str | None) -> None:
    """One that waits for a tool is not done before that has ended and the turn is stopped."""
    record = SessionRecord()
    order = m.StopOrder(cause="stop", utterance=1)
    record.stops = {"i1": StopRecord(id="i1", turn="t1", order=order, state=state)}
    assert became(record, "i1") == status


def became(record: SessionRecord, name: str, *, with_turn: bool = False) -> str | None:
    """Return the status of a message's outcome; none while it has none."""
    outcomes = Outcomes("s", MemoryStore)
    outcomes.observe_entry(e.TurnEnded(turn="t1", status="completed"), 1, 0.0, record)()

    async def look() -> str | None:
        looking = asyncio.ensure_future(outcomes.of(name, with_turn=with_turn))
        for _ in range(20):
            await asyncio.sleep(0)
        if not looking.done():
            looking.cancel()
            return None
        return looking.result().status

    return asyncio.run(look())
