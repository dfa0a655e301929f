"""A reader's feed in memory: what waits for one that does not read is bounded, and entries are whole."""

import asyncio
from typing import Any, cast

from steersman.gateway.event_feed import UNREAD, Feed
from steersman.gateway.events.contract import Event


def _event(seq: int | None, kind: str = "notice", session: str = "s", **more: Any) -> Event:
    event: dict[str, Any] = {"type": kind, "seq": seq, "session": session, "text": "x", **more}
    return cast("Event", event)


def test_a_feed_that_nobody_reads_gives_up() -> None:
    """It keeps the first, says that it is over, and adds only questions: the journal has the rest."""

    async def read() -> tuple[list[Event] | None, list[Event] | None]:
        feed = Feed("s", "questions")
        for seq in range(3 * UNREAD):
            feed.hear(_event(seq))
        feed.hear(_event(7, "question", "child", id="q1"))
        return await feed.next(1.0), await feed.next(1.0)

    first, rest = asyncio.run(read())
    assert first is not None
    assert [event["seq"] for event in first] == [*range(UNREAD), None]
    assert rest == []


def test_a_feed_that_is_read_gives_all_in_order() -> None:
    """Nothing is left out up to the limit; what is of other sessions is not meant."""

    async def read() -> list[Event] | None:
        feed = Feed("s")
        for seq in range(UNREAD):
            feed.hear(_event(seq))
            feed.hear(_event(seq, "question", "child"))
        return await feed.next(1.0)

    found = asyncio.run(read())
    assert found is not None
    assert [event["seq"] for event in found] == list(range(UNREAD))


def test_an_entry_is_not_divided_by_the_limit() -> None:
    """Of an entry whose events do not all have room, none is kept."""

    async def read() -> list[Event] | None:
        feed = Feed("s")
        for seq in range(UNREAD - 1):
            feed.hear(_event(seq))
        feed.hear(_event(UNREAD))
        feed.hear(_event(UNREAD))
        return await feed.next(1.0)

    found = asyncio.run(read())
    assert found is not None
    assert [event["seq"] for event in found] == list(range(UNREAD - 1))
