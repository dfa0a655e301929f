"""A reader's feed in memory: what waits for one who does not read is bounded."""

import asyncio
from typing import Any, cast

from steersman.gateway.events.contract import Event
from steersman.gateway.web.stream import UNREAD, StreamFeed


def _event(seq: int) -> Event:
    event: dict[str, Any] = {"type": "notice", "seq": seq, "text": "x"}
    return cast("Event", event)


def test_a_feed_that_nobody_reads_gives_up() -> None:
    """It drops everything and says that it is over: the journal has what it held."""

    async def read() -> tuple[list[Event] | None, list[Event] | None]:
        feed = StreamFeed()
        for seq in range(3 * UNREAD):
            feed.hear_alone(_event(seq))
        return await feed.next(1.0), await feed.next(1.0)

    assert asyncio.run(read()) == ([], [])


def test_a_feed_that_is_read_gives_all_in_order() -> None:
    """Nothing is left out up to the limit."""

    async def read() -> list[Event] | None:
        feed = StreamFeed()
        for seq in range(UNREAD):
            feed.hear_alone(_event(seq))
        return await feed.next(1.0)

    found = asyncio.run(read())
    assert found is not None
    assert [event["seq"] for event in found] == list(range(UNREAD))
