"""Sends what is to be said in a room, in order, no faster than its platform takes it."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Never

from .gateway_store import OutboxMessage, OutboxRow
from .platform import NotSent, Outgoing
from .platform_parts import pauses
from .room import Room
from .room_inbox import AGAIN

log = logging.getLogger("steersman.chat")

_BURST = 3  # messages that may follow each other at once
_UNKNOWN = ":unknown"  # ends the key of what says that it is not known whether a message arrived
_WARNING = 10.0  # seconds that a warning may take which is not kept


async def send_all(room: Room) -> Never:
    """Send what the store has for a room, one message after another."""
    waits, clock = pauses(), asyncio.get_running_loop().time
    free = 0.0
    interval = room.platform.limits.interval
    while True:
        room.posted.clear()
        row = await room.store.next_outgoing(room.name)
        if row is None:
            await room.posted.wait()
            continue
        free = max(free, clock() - _BURST * interval) + interval
        await asyncio.sleep(max(0.0, free - clock()))
        wait = await _send(room, row)
        if wait is None:
            waits = pauses()
        else:
            pause = next(waits)
            await asyncio.sleep(wait or pause)


async def _send(room: Room, row: OutboxRow) -> float | None:
    """Send one message; return the seconds to wait before it is tried again, 0 for some time."""
    store, sent = room.store, row.message.outgoing
    is_notice = sent.key.endswith(_UNKNOWN)  # twice is better than never
    can_repeat = room.platform.limits.is_idempotent or bool(row.id_there) or is_notice
    if row.state == "sending" and not can_repeat:
        await _is_unknown(room, row)
        return None
    await store.mark(row, "sending", row.id_there)
    [outcome] = await asyncio.gather(_pass_on(room, row), return_exceptions=True)
    match outcome:
        case str():
            await store.mark(row, "sent", outcome)
        case NotSent() if outcome.seconds:
            await store.mark(row, "waiting", row.id_there)
            return outcome.seconds
        case NotSent():
            log.warning("room %s: a message was refused: %s", room.name, outcome.message)
            await store.mark(row, "refused")
        case OSError() if can_repeat:
            log.info("room %s: a message is sent again: %s", room.name, outcome)
            await store.mark(row, "waiting", row.id_there)
            return 0.0
        case OSError():
            log.info("room %s: a message may not have arrived: %s", room.name, outcome)
            await _is_unknown(room, row)
        case _:  # tried again it would fail again, and end the gateway each time
            log.error("room %s: a message cannot be sent", room.name, exc_info=outcome)
            await store.mark(row, "refused")
    return None


async def _pass_on(room: Room, row: OutboxRow) -> str:
    """Send a message, or change the one that it takes the place of; return its id."""
    sent = row.message.outgoing
    if row.id_there and room.platform.limits.can_edit:
        await room.platform.change(room.name, row.id_there, sent)
        return row.id_there
    return await room.platform.send(sent)


async def _is_unknown(room: Room, row: OutboxRow) -> None:
    """Say that it is not known whether a message arrived; it is not said twice unasked."""
    await room.store.mark(row, "unknown")
    text = f"My last message may not have arrived: `!{AGAIN}` says it again."
    key = f"{row.message.outgoing.key}{_UNKNOWN}"
    await room.store.write(OutboxMessage(outgoing=Outgoing(key=key, room=room.name, text=text)))


async def warn(room: Room, key: str, text: str) -> None:
    """Say something that cannot be kept first, if that is possible now."""
    with suppress(NotSent, OSError):  # a time limit is an `OSError`, too
        async with asyncio.timeout(_WARNING):
            await room.platform.send(Outgoing(key=key, room=room.name, text=text))
