"""Who joins a session that runs has, at the end of the turn, what the journal has."""

from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from steersman.gateway.events.contract import Event
from steersman.gateway.host.router import EventBus

STEPS = st.lists(st.lists(st.text("ab \n`|", min_size=1, max_size=3), max_size=4), max_size=4)
"""The answers of a turn's steps, in pieces."""


def turn(steps: list[list[str]]) -> list[dict[str, Any]]:
    """Return the events of a turn, which are numbered where the journal has them."""
    events: list[dict[str, Any]] = [{"type": "turn_started"}]
    for pieces in steps:
        events += [{"type": "text", "delta": piece, "seq": None} for piece in pieces]
        if pieces:
            events.append({"type": "answer", "text": "".join(pieces)})
        events += [{"type": "tool_started"}, {"type": "queue"}]  # of one entry
    events.append({"type": "turn_ended"})
    number = 0
    for event in events:
        number += event.get("seq", 0) is not None and event["type"] != "queue"
        event.setdefault("seq", number)
        event |= {"time": "", "session": "s", "turn": "t1"}
    return events


@given(steps=STEPS, data=st.data())
def test_at_the_end_of_the_turn_a_late_follower_has_what_the_journal_has(
    steps: list[list[str]], data: st.DataObject
) -> None:
    """The journal up to the entry it is told, and what comes then, are every event, once, in order."""
    events = turn(steps)
    joins = data.draw(st.integers(0, len(events)))
    bus, known, heard = EventBus(), list[int](), list[dict[str, Any]]()
    for event in events[:joins]:
        bus.publish(cast("Event", event))
    leave = bus.follow("s", lambda event: heard.append(dict(event)), known.append)
    for event in events[joins:]:
        bus.publish(cast("Event", event))
    leave()
    bus.publish(cast("Event", events[0]))

    before = [event for event in events if (event["seq"] or known[0] + 1) <= known[0]]
    late = [event for event in heard if event["seq"] is not None]
    assert before + late == [event for event in events if event["seq"] is not None]
    streamed = ""
    for event in heard:
        if event["type"] == "text":
            streamed += event["delta"]
            assert not event.get("so_far") or event is heard[0]
        elif event["type"] == "answer":
            assert streamed == event["text"]
            streamed = ""
    assert streamed == ""


def test_a_follower_hears_of_descendants_and_of_nobody_else() -> None:
    """What a subagent's subagent streams is told as well; entries of its journal are all passed on."""
    bus, heard = EventBus(), list[str]()

    def publish(session: str, kind: str, seq: int | None, **more: str) -> None:
        event = {"type": kind, "seq": seq, "time": "", "session": session, **more}
        bus.publish(cast("Event", event))

    publish("s", "turn_started", 9)
    publish("child", "turn_started", 1, parent="s")
    publish("grandchild", "text", None, parent="child", delta="one")
    publish("other", "text", None, delta="no")
    bus.follow("s", lambda event: heard.append(f"{event['session']} {event['type']}"))
    publish("grandchild", "turn_ended", 2, parent="child")
    publish("other", "turn_ended", 2)
    publish("s", "queue", 9)
    assert heard == ["grandchild text", "grandchild turn_ended"]
