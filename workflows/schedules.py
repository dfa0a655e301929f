"""When the occurrences of a `[[schedule]]` are, and what is wrong in one.

Cron expressions mean what they mean to Debian's cron, also where the clocks change: what is planned at a
fixed time happens once in a night in which that time comes twice, and right after the gap in one in which
it does not come; what is planned every few minutes goes on as time does. The package `cronsim` of the
extra `web` knows all that; where it is not installed nothing is served, and expressions are not checked.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import islice, takewhile
from pathlib import Path
from typing import Any

from .document import is_list, is_table
from .problem import Problem, Where, dotted, shown, wrong
from .settings import ScheduleSettings

MOST = 1_000
"""Occurrences that are listed at once."""
FIELDS = 'five fields: minute, hour, day, month, weekday, such as "0 7 * * 1-5"'
MOMENT = 'write it as "2026-12-01T07:00"'
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")


class SystemZone(tzinfo):
    """The time zone of this machine, with all its changes, as `TZ` or the system says."""

    def utcoffset(self, dt: datetime | None) -> timedelta | None:
        """Return the distance from UTC at a local time."""
        return _local(dt).utcoffset() if dt is not None else None

    def dst(self, dt: datetime | None) -> timedelta | None:
        """Return nothing: only the whole distance is known."""
        return None

    def tzname(self, dt: datetime | None) -> str | None:
        """Return what the zone is called at a local time."""
        return _local(dt).tzname() if dt is not None else None

    def fromutc(self, dt: datetime) -> datetime:
        """Return the local time at a moment in UTC."""
        moment = dt.replace(tzinfo=UTC).timestamp()
        return datetime.fromtimestamp(moment).replace(tzinfo=self)


def _local(dt: datetime) -> datetime:
    """Read a time as one of this machine's zone; of two that are the same, `fold` says which."""
    return dt.replace(tzinfo=None).astimezone()


# Occurrences --------------------------------------------------------------------------------------


def name_of(schedule: ScheduleSettings) -> str:
    """Return what a schedule is called: its name, or what it runs, or whom it speaks to."""
    return schedule.name or Path(schedule.run).stem or schedule.session


def timing_of(schedule: ScheduleSettings) -> str:
    """Return when a schedule happens, as text; other texts mean other times."""
    return schedule.cron if schedule.cron else f"at {schedule.at}"


def next_occurrence(schedule: ScheduleSettings, after: float, zone: tzinfo) -> float | None:
    """Return the first planned time after a moment, if there is one; seconds since 1970."""
    return next(_planned(schedule, after, zone), None)


def occurrences(schedule: ScheduleSettings, after: float, upto: float, zone: tzinfo) -> list[float]:
    """Return the planned times `after` < time <= `upto`, of very many the newest; seconds since 1970."""
    while True:
        planned = takewhile(lambda moment: moment <= upto, _planned(schedule, after, zone))
        found = list(islice(planned, MOST + 1))
        if len(found) <= MOST:
            return found
        after = upto - (upto - after) / 2


def _planned(schedule: ScheduleSettings, after: float, zone: tzinfo) -> Iterator[float]:
    """Yield the planned times after a moment, without end unless there are no more."""
    if schedule.at:
        moment = read_moment(schedule.at, zone)
        if moment > after:
            yield moment
        return
    from cronsim import CronSim

    last = after
    for found in CronSim(schedule.cron, datetime.fromtimestamp(after, zone)):
        moment = found.timestamp()
        if moment > last:  # a time that comes twice was there before, one in a gap comes behind it
            last = moment
            yield moment


def read_moment(text: str, zone: tzinfo) -> float:
    """Read a date with a time as seconds since 1970, in `zone` if it names none. Raises ValueError."""
    moment = datetime.fromisoformat(text)
    if len(text) <= len("2026-12-01"):
        raise ValueError("a date without a time")
    return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).timestamp()


# Mistakes -----------------------------------------------------------------------------------------


def schedule_problems(data: dict[str, Any]) -> Iterator[Problem]:
    """Find what is wrong in the schedules of a file, beyond keys and types."""
    listed = data.get("schedule")
    names: set[str] = set()
    for number, table in enumerate(listed if is_list(listed) else ()):
        if not is_table(table):
            continue
        where: Where = ("schedule", number)
        texts = {key: text for key, text in table.items() if isinstance(text, str) and text}
        yield from _one_of(where, table, "cron", "at")
        yield from _one_of(where, table, "run", "say")
        yield from _wrong_times(where, texts)
        yield from _wrong_words(where, table, texts)
        yield from _wrong_name(where, texts, names)


def _one_of(where: Where, table: dict[str, Any], first: str, second: str) -> Iterator[Problem]:
    given = [key for key in (first, second) if key in table]
    message = f"`{dotted(where)}` needs either `{first}` or `{second}`"
    if not given:
        yield Problem(where, message, f"add `{first} = …`", at_value=False)
    elif len(given) == 2:
        place = (*where, second)
        yield Problem(place, f"{message}, not both", "remove one", at_value=False)


def _wrong_times(where: Where, texts: dict[str, str]) -> Iterator[Problem]:
    if cron := texts.get("cron"):
        if fault := _cron_fault(cron):
            said = f"must be a cron expression, not {shown(cron)}: {fault}"
            yield wrong((*where, "cron"), said, f"write {FIELDS}")
    if at := texts.get("at"):
        try:
            read_moment(at, UTC)
        except (ValueError, OverflowError):
            yield wrong((*where, "at"), f"must be a date with a time, not {shown(at)}", MOMENT)


def _cron_fault(expression: str) -> str:
    """Say what is wrong in a cron expression; empty if nothing is, or if it cannot be known."""
    try:
        from cronsim import CronSim, CronSimError
    except ModuleNotFoundError:
        return ""
    if len(expression.split()) != 5:
        return "it has not five fields"
    try:
        found = CronSim(expression, datetime(2026, 1, 1))
    except CronSimError as error:
        return str(error).lower()
    return "" if next(found, None) is not None else "no day fits it"


def _wrong_words(where: Where, table: dict[str, Any], texts: dict[str, str]) -> Iterator[Problem]:
    """Find keys that do not belong together, and words that are no message."""
    apart = {"run": ("session", "agent"), "say": ("variables",), "session": ("agent", "folder")}
    for key, others in apart.items():
        for other in others:
            if key in texts and other in table and (key != "say" or "run" not in table):
                hint = f"remove `{other}`"
                if key == "session":
                    hint += ", which is for a new session"
                yield wrong((*where, other), f"does not go with `{key}`", hint, at_value=False)
    for key in ("run", "say"):
        if isinstance(text := table.get(key), str) and not text.strip():
            yield wrong((*where, key), "is empty")
    if texts.get("say", "").startswith("/"):
        yield wrong((*where, "say"), "must be a message, not a command", "say it in words")
    folder = texts.get("folder", "~")
    if not folder.startswith(("/", "~")):
        yield wrong((*where, "folder"), f"must begin with `/` or `~`, not {shown(folder)}")


def _wrong_name(where: Where, texts: dict[str, str], names: set[str]) -> Iterator[Problem]:
    """Find a schedule without a name that can be used, and one with that of another."""
    if not texts.keys() & {"run", "say"}:
        return  # whatever it is to do may give it a name
    name = texts.get("name") or Path(texts.get("run", "")).stem or texts.get("session", "")
    place = (*where, "name") if "name" in texts else where
    is_value = "name" in texts
    if not _NAME.fullmatch(name):
        message = f"`{dotted(where)}` needs a `name` of letters, digits, `_`, `-` and `.`"
        hint = 'add `name = "…"`: what it did is remembered by it'
        yield Problem(place, message, hint, at_value=is_value)
    elif name in names:
        message = f"`{dotted(where)}`: there are two schedules `{name}` in this file"
        hint = "rename one of them" if is_value else 'add `name = "…"`'
        yield Problem(place, message, hint, at_value=is_value)
    names.add(name)
