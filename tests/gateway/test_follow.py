"""A session is followed without a gap, and nothing twice; what waits for its reader is bounded."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Any, cast

import pytest
from gateway.conftest import awaited

from steersman.gateway.client import SessionClient
from steersman.gateway.events.contract import Event
from steersman.gateway.follow import UNREAD, Feed, Follower, pages
from steersman.gateway.host.host import Host
from steersman.gateway.reach import SessionReach
from steersman.journal.lock import Owner


def _event(seq: int | None, kind: str = "notice", session: str = "s", **more: Any) -> Event:
    event: dict[str, Any] = {"type": kind, "seq": seq, "session": session, "text": "x", **more}
    return cast("Event", event)


async def test_a_feed_that_nobody_reads_gives_up() -> None:
    """It keeps the first, says that it is over, and adds only questions: the journal has the rest."""
    feed = Feed("s", "questions")
    for seq in range(3 * UNREAD):
        feed.take([_event(seq)])
    feed.take([_event(7, "question", "child", id="q1")])
    first, rest = await feed.next(1.0), await feed.next(1.0)
    assert first is not None
    assert [event["seq"] for event in first] == [*range(UNREAD), None]
    assert rest == []


async def test_a_feed_that_is_read_gives_all_in_order() -> None:
    """Nothing is left out up to the limit; what is of other sessions is not meant."""
    feed = Feed("s")
    for seq in range(UNREAD):
        feed.take([_event(seq)])
        feed.take([_event(seq, "question", "child")])
    found = await feed.next(1.0)
    assert found is not None
    assert [event["seq"] for event in found] == list(range(UNREAD))


async def test_an_entry_is_not_divided_by_the_limit() -> None:
    """Of an entry whose events do not all have room, none is kept."""
    feed = Feed("s")
    for seq in range(UNREAD - 1):
        feed.take([_event(seq)])
    feed.take([_event(UNREAD), _event(UNREAD)])
    found = await feed.next(1.0)
    assert found is not None
    assert [event["seq"] for event in found] == list(range(UNREAD - 1))


class Broken(SessionReach):
    """Tells an entry and breaks off, then overflows, then tells the rest."""

    def __init__(self, host: Host, events: list[Event], cut: int) -> None:
        super().__init__(host.paths, {}, host.store)
        self.events, self.cut, self.joined = events, cut, 0

    def follow(self, session: str, owner: Owner | None, feed: Feed) -> Callable[[], None]:
        """Give the feed what happens from the entry on."""
        self.joined += 1
        last = self.events[-1]["seq"] or 0
        if self.joined == 1:
            feed.begin(self.cut - 1)
            feed.take([event for event in self.events if event["seq"] == self.cut])
            feed.end()
        elif self.joined == 2:
            feed.begin(self.cut)
            feed.take([event for event in self.events if event["seq"] == self.cut + 1])
            feed.take([_event(None, session=session)] * UNREAD)
            feed.take([event for event in self.events if (event["seq"] or 0) > self.cut + 1])
        else:
            feed.begin(last)
        return lambda: None


def said(conversation: SessionClient) -> list[Event]:
    """Have two short turns, and return the events of their journal."""
    for text in ("one", "two"):
        with awaited(conversation, "turn_ended"):
            conversation.say(text)
    conversation.settle()
    read = pages(conversation.store, conversation.session, 0)
    return [cast("Event", event.data) for _, page in read for event in page]


async def read(follower: Follower, last: int) -> list[Event]:
    """Return what a follower gives up to the last entry."""
    found: list[Event] = []
    async with aclosing(follower.batches()) as batches:
        async for batch in batches:
            found += batch.events
            if batch.is_joined and batch.confirmed >= last:
                break
    return [event for event in found if event["seq"] is not None]


@pytest.mark.parametrize("after", [0, 3])
async def test_a_reader_that_loses_its_place_misses_nothing(
    conversation: SessionClient, after: int
) -> None:
    """Where its owner breaks off, and where too much waits, it goes on with the next entry."""
    events = said(conversation)
    numbers = [event["seq"] for event in events]
    cut = next(seq for seq in numbers if seq and numbers.count(seq) > 1 and seq > 3)
    reach = Broken(conversation.host, events, cut)
    found = await read(Follower(reach, conversation.session, after), numbers[-1] or 0)
    assert reach.joined == 3
    assert found == [event for event in events if (event["seq"] or 0) > after]


async def test_a_session_here_is_followed_in_whole_entries(conversation: SessionClient) -> None:
    """The journal and what happens are each event once; a reader is told of whole entries."""
    host, events = conversation.host, said(conversation)
    reach = SessionReach(host.paths, {}, host.store, lambda _: host)
    seen, told = list[int](), list[Event]()
    follower = Follower(reach, conversation.session, 0)
    async with aclosing(follower.batches()) as batches:
        async for batch in batches:
            seen.append(batch.confirmed)
            told += batch.events
            if batch.is_joined:
                await asyncio.to_thread(conversation.say, "three")
            if any(event["type"] == "turn_ended" for event in batch.events[-3:]) and seen[1:]:
                break
    found = [event for event in told if event["seq"] is not None]
    assert found[: len(events)] == events
    assert seen == sorted(seen)
    assert [event["seq"] for event in found] == sorted(event["seq"] or 0 for event in found)
    assert len(found) == len({repr(event) for event in found})
