"""What an event says of a long queue puts the queue together again, whatever happens in a session."""

from collections.abc import Iterable
from typing import Any

import pytest
from msgspec.structs import replace
from support.nightly import daily

from steersman.gateway.events.contract import QueueItem, has_left, items_after
from steersman.gateway.events.translation import queue_event, queue_of
from steersman.journal.codec import decode_entry
from steersman.journal.record import SessionRecord, apply
from steersman.journal.store import Store
from steersman.simulator.goals import GoalScenario
from steersman.simulator.scenario import Scenario

AT: Any = {"seq": None, "time": "", "session": "s"}


def told(items: Iterable[QueueItem]) -> list[dict[str, Any]]:
    """Leave out what other events tell, and the place."""
    return [
        {key: value for key, value in item.items() if key not in ("progress", "place")}
        for item in items
    ]


def follow(store: Store, session: str) -> int:
    """Put a session's queue together from events of changes alone; return how many there were."""
    record, items, changes = SessionRecord(), list[QueueItem](), 0
    for one in store.entries(session):
        entry = decode_entry(one.data)
        apply(record, entry, one.seq, one.time)
        assert record.queue.special() == replace(record.queue).special()
        event = queue_event(entry, record, AT, longest=0)
        if event is None:
            continue
        before, items = items, items_after(items, event)
        whole = queue_of(record)["items"]
        assert told(items) == told(whole), entry
        assert event["count"] == len(whole)
        left = {item["id"] for item in before} - {item["id"] for item in whole}
        assert {item["id"] for item in before if has_left(event, item["id"])} == left
        changes += "items" not in event
    return changes


@pytest.mark.parametrize("scenario", daily(GoalScenario, of=(Scenario, GoalScenario)))
def test_changes_give_the_whole_queue(scenario: type[Scenario | GoalScenario]) -> None:
    """Of sessions in which people, children and goals do whatever comes."""
    changes = 0
    for seed in range(60):
        store = scenario(seed).run().store
        changes += sum(follow(store, row.session) for row in store.sessions())
    assert changes > 100
