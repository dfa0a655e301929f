"""The trash of a home: what age or a budget would delete, until it is deleted or restored.

Nothing is moved. A mark, one file in `trash/` of the state folder, says what is in the trash: it stays
where it is, and works. A mark holds only while the thing was last used when the mark says, so
whoever uses it takes it out. So a crash between two steps loses nothing, and each kind of store has the
same trash.
`trash/starts` has the times at which the home was started, at most one an hour.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Literal

from msgspec import ValidationError
from msgspec.json import decode, encode
from msgspec.structs import replace

from ...machines.errors import UsageError
from ...machines.value import Value
from ...workflows.paths import write_private

HOUR, DAY = 3600.0, 86_400.0
NEVER = float("inf")
_STARTS = 500  # that are remembered
Kind = Literal["queue", "copies", "outputs", "session", "agent"]
Reason = Literal["age", "budget"]


def known_age(since: float, moments: Iterable[float], now: float) -> float:
    """Return for how many seconds the home was in use after `since`; the only measure of age. Pure.

    `moments` were written down when something happened: the starts of the home, and the hour of the last
    entry of each session. The clock adds nothing to them: `now` only passes over those that are ahead
    of it. Of the time between two moments a day counts at most. So one look at a clock makes nothing
    older, whatever it shows; a clock that leapt while something was written down adds a day at most,
    however far it leapt and however often it leaps back and forth; and one that is behind makes things
    younger. Seven days of age take seven days on which the home was used.
    """
    known = sorted({since, *(moment for moment in moments if since < moment <= now)})
    return sum(min(after - before, DAY) for before, after in pairwise(known))


def is_older(since: float, moments: Iterable[float], now: float, seconds: float) -> bool:
    """Whether the home was in use for more than so many seconds after `since`. Pure."""
    return now - since > seconds and known_age(since, moments, now) > seconds


class Thing(Value):
    """What may go to the trash: `of` is its session, `used` when that was last used, `where` its folder.

    `what` says what it is, in one line.
    """

    kind: Kind
    of: str
    used: float
    where: str = ""
    what: str = ""

    @property
    def id(self) -> str:
        """The name by which a person restores it."""
        return f"{self.kind}-{self.of}"


class Mark(Value):
    """A thing that is in the trash since the recorded moment `since`, for as many `hours` of use.

    `is_restored`: it is no longer; its age counts from `since`.
    """

    thing: Thing
    why: Reason
    since: float
    hours: float
    is_restored: bool = False

    def left(self, moments: Iterable[float], now: float) -> float:
        """Return for how many more seconds of use it is kept; below 0, it may be deleted.

        A day at least, so that no leap of a clock alone can be enough.
        """
        return max(self.hours * HOUR, DAY) - known_age(self.since, moments, now)


class Trash:
    """The trash of a state folder; `is_emptied`: a person ordered that all of it goes."""

    def __init__(self, state: Path) -> None:
        self._folder = state / "trash"
        self.is_emptied = False

    # The recorded moments -------------------------------------------------------------------------

    def starts(self) -> list[float]:
        """Return when the home was started; what is not readable is passed over."""
        found: list[float] = []
        with suppress(OSError):
            for line in (self._folder / "starts").read_bytes().split():
                with suppress(ValueError):
                    found.append(float(line))
        return found

    def note_start(self, now: float) -> None:
        """Write down that the home is started, unless that was within the last hour. Raises `OSError`."""
        known = self.starts()
        if not any(0 <= now - start < HOUR for start in known):
            lines = "".join(f"{start!r}\n" for start in [*known, now][-_STARTS:])
            write_private(self._folder / "starts", lines.encode())

    # The marks ------------------------------------------------------------------------------------

    def marks(self) -> dict[str, Mark]:
        """Return what is marked, by its id; a mark that is not readable is none."""
        found: dict[str, Mark] = {}
        for file in sorted(self._folder.glob("*.json")):
            with suppress(OSError, ValueError, ValidationError):
                mark = decode(file.read_bytes(), type=Mark)
                found[mark.thing.id] = mark
        return found

    def holds(self, kind: Kind) -> dict[str, float]:
        """Map the sessions of which things are in the trash to when these were last used."""
        return {
            mark.thing.of: mark.thing.used
            for mark in self.marks().values()
            if mark.thing.kind == kind and not mark.is_restored
        }

    def put(
        self, thing: Thing, why: Reason, moments: Iterable[float], now: float, hours: float
    ) -> None:
        """Mark a thing, durably. Raises `OSError`."""
        since = max((moment for moment in moments if moment <= now), default=thing.used)
        self._write(Mark(thing=thing, why=why, since=since, hours=hours))

    def take_out(self, thing: Thing) -> None:
        """Remove a mark; one that cannot be removed holds for nothing any more. Idempotent."""
        with suppress(OSError):
            self.file_of(thing).unlink(missing_ok=True)

    def named(self, name: str) -> Mark:
        """Find what is in the trash by its id or a unique prefix. Raises `UsageError`."""
        there = {id: mark for id, mark in self.marks().items() if not mark.is_restored}
        found = [id for id in there if id == name] or [id for id in there if id.startswith(name)]
        if len(found) == 1:
            return there[found[0]]
        what = "fits several things in the trash" if found else "is not in the trash"
        raise UsageError(f"`{name}` {what}", "`steersman home trash` lists them")

    def restore(self, mark: Mark, now: float) -> None:
        """Take a thing out of the trash; it is as old as if it had just been used. Raises `OSError`."""
        self._write(replace(mark, is_restored=True, since=now))

    def look(
        self,
        kind: Kind,
        things: Iterable[Thing],
        moments: Sequence[float],
        now: float,
        hours: float,
        over: Collection[str] = (),
        far: Collection[str] = (),
    ) -> tuple[list[tuple[Thing, Reason]], list[Thing]]:
        """Find which things are due for the trash, and why, and which of those in it may go.

        Nothing changes but that marks which no longer hold are removed.

        `things` are all of the kind. What was not used for `hours` of use is due, and the sessions `over`
        a budget; those `far` over it go after a day.
        """
        marks = {id: mark for id, mark in self.marks().items() if mark.thing.kind == kind}
        new, due = list[tuple[Thing, Reason]](), list[Thing]()
        for thing in things:
            mark = marks.pop(thing.id, None)
            if mark is not None:
                has_room = mark.why == "budget" and thing.of not in over and not self.is_emptied
                if mark.thing.used != thing.used or has_room:  # it was used since it was marked
                    self.take_out(thing)
                    mark = None
            if mark is not None and not mark.is_restored:
                left = mark.left(moments, now)
                is_far = thing.of in far and known_age(mark.since, moments, now) > DAY
                if left < 0 or is_far or self.is_emptied:
                    due.append(mark.thing)
                continue
            since = thing.used if mark is None else max(thing.used, mark.since)
            if thing.of in over:
                new.append((thing, "budget"))
            elif is_older(since, moments, now, hours * HOUR):
                new.append((thing, "age"))
        for mark in marks.values():  # of what is no longer there
            self.take_out(mark.thing)
        return new, due

    def _write(self, mark: Mark) -> None:
        write_private(self.file_of(mark.thing), encode(mark))

    def file_of(self, thing: Thing) -> Path:
        """Return where the mark of a thing is."""
        return self._folder / f"{thing.id}.json"
