"""A moment as a person types it: `48`, `14:03`, `tue 14:03`, `5m ago`, `2026-11-17T14:03`.

A number is an entry of the journal. A time of the day, with a weekday or `yesterday` before it or
without, is the latest such moment that has passed, in local time; a date alone is its first moment.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from ...journal.history import entry_at, seq_at
from ...journal.store import Store
from ...machines.errors import UsageError
from ..wording.formats import clock, iso

FORMS = "`48` (an entry), `14:03`, `yesterday 14:03`, `tue 14:03`, `5m ago`, `2026-11-17T14:03`"

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_AGO = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h|d|w)[a-z]*\s+ago")
_CLOCK = re.compile(r"(?:([a-z]+)\s+)?(\d{1,2}):(\d{2})(?::(\d{2}))?")


def parse_moment(text: str, now: datetime) -> int | datetime:
    """Read a moment: an entry's number, or a time with its zone. Raises `UsageError`.

    `now` has a zone, which is the person's.
    """
    normal = " ".join(text.lower().split())
    if normal.isascii() and normal.isdigit():
        return int(normal)
    if found := _AGO.fullmatch(normal):
        return now - timedelta(**{_UNITS[found[2]]: float(found[1])})
    if found := _CLOCK.fullmatch(normal):
        return _clock(text, found, now)
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise _senseless(text) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo)


def seq_of(store: Store, session: str, last: int, text: str, now: datetime) -> int:
    """Return the entry that was the newest at a moment. Raises `UsageError` before the first one."""
    moment = parse_moment(text, now)
    if isinstance(moment, datetime):
        seq = seq_at(store, session, last, moment.timestamp())
        if not seq and last:
            why = f"began at {clock(iso(entry_at(store, session, 1).time))}, after `{text}`"
            raise UsageError(f"session `{session}` {why}", "use a later time")
        return seq
    if not 1 <= moment <= last:
        raise UsageError(
            f"session `{session}` has no entry {moment}", f"its entries are 1 to {last}"
        )
    return moment


def _clock(text: str, found: re.Match[str], now: datetime) -> datetime:
    day, hour, minute, second = found[1], int(found[2]), int(found[3]), int(found[4] or 0)
    if hour > 23 or minute > 59 or second > 59:
        raise _senseless(text)
    moment = now.replace(hour=hour, minute=minute, second=second, microsecond=0)
    if day in (None, "today"):
        return moment if moment <= now or day else moment - timedelta(days=1)
    if day == "yesterday":
        return moment - timedelta(days=1)
    named = [at for at, name in enumerate(_DAYS) if len(day) >= 3 and name.startswith(day)]
    if not named:
        raise _senseless(text)
    back = (now.weekday() - named[0]) % 7
    moment -= timedelta(days=back)
    return moment if moment <= now else moment - timedelta(days=7)


def _senseless(text: str) -> UsageError:
    return UsageError(f"`{text}` is not a time", f"use {FORMS}")
