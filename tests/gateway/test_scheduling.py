"""What is due of a schedule, whatever the clock does; and that it is carried out once."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace
from support.patience import seconds
from support.until import looked_until

from steersman.gateway.host import scheduling
from steersman.gateway.host.scheduling import (
    Occurrences,
    Scheduler,
    client_id_of,
    decide,
    watched,
)
from steersman.journal.memory import MemoryStore
from steersman.journal.store import Occurrence, SessionRow, Watch
from steersman.machines.errors import StoreBusy, UnknownSession, UsageError
from steersman.workflows.paths import Paths
from steersman.workflows.settings import ScheduleSettings

DAY = datetime(2026, 11, 23, tzinfo=UTC).timestamp()
SEVEN = ScheduleSettings(name="seven", cron="0 7 * * *", say="hi", session="news")
HOURLY = ScheduleSettings(name="hourly", cron="0 * * * *", say="hi", session="news")
ONCE = {"missed": "once"}


def at(text: str, day: int = 0) -> float:
    """Return a time of the day as seconds since 1970."""
    hours, minutes, *more = map(int, text.split(":"))
    return DAY + day * 86_400 + hours * 3_600 + minutes * 60 + sum(more)


Verdict = tuple[list[float], float | None, int]


def verdict(begin: Sequence[float] = (), missed: float | None = None, count: int = 0) -> Verdict:
    """Make a verdict: what begins, and the newest of so many that are passed over."""
    return list(begin), missed, count


def decided(
    schedule: ScheduleSettings, watch: Watch, now: float, known: Sequence[float]
) -> Verdict:
    """Return what is decided in the same form."""
    begin, late = decide(schedule, watch, now, known, UTC)
    return begin, late[-1] if late else None, len(late)


# What is due --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schedule", "upto", "now", "known", "rule", "expected"),
    [
        (SEVEN, at("6:00"), at("6:59:59"), (), "skip", verdict()),
        (SEVEN, at("6:00"), at("7:00"), (), "skip", verdict([at("7:00")])),
        (SEVEN, at("6:00"), at("7:01"), (), "skip", verdict([at("7:00")])),  # a little late
        (SEVEN, at("7:00"), at("7:00:30"), (), "skip", verdict()),  # decided before
        (SEVEN, at("6:00"), at("7:01:01"), (), "skip", verdict((), at("7:00"), 1)),
        (SEVEN, at("6:00"), at("7:01:01"), (), "once", verdict([at("7:00")])),
        # days without a server: passed over, or once in place of all
        (SEVEN, at("6:00"), at("8:00", 4), (), "skip", verdict((), at("7:00", 4), 5)),
        (SEVEN, at("6:00"), at("8:00", 4), (), "once", verdict([at("7:00", 4)], at("7:00", 3), 4)),
        # one is due just now: it stands for those that were missed
        (SEVEN, at("6:00"), at("7:00", 2), (), "skip", verdict([at("7:00", 2)], at("7:00", 1), 2)),
        (SEVEN, at("6:00"), at("7:00", 2), (), "once", verdict([at("7:00", 2)], at("7:00", 1), 2)),
        # the clock was set back: what has begun does not again, what comes now does
        (SEVEN, at("7:00"), at("6:30"), (at("7:00"),), "once", verdict()),
        (SEVEN, at("6:30"), at("7:00"), (at("7:00"),), "once", verdict()),
        (HOURLY, at("9:30"), at("6:30"), (at("8:00"), at("9:00")), "once", verdict()),
        (HOURLY, at("6:30"), at("7:00"), (at("8:00"),), "once", verdict([at("7:00")])),
        # the clock was set forward: as if nothing had been served meanwhile
        (HOURLY, at("6:30"), at("9:30"), (), "skip", verdict((), at("9:00"), 3)),
        (HOURLY, at("6:30"), at("9:30"), (), "once", verdict([at("9:00")], at("8:00"), 2)),
    ],
)
def test_what_is_due(
    schedule: ScheduleSettings,
    upto: float,
    now: float,
    known: tuple[float, ...],
    rule: str,
    expected: Verdict,
) -> None:
    """By the clock, by what was decided before, and by the rule for missed ones."""
    asked = replace(schedule, missed=rule)
    watch = Watch(schedule=schedule.name, timing=schedule.cron, upto=upto)
    assert decided(asked, watch, now, known) == expected


def test_what_is_not_remembered_any_more_does_not_begin() -> None:
    """A clock that is set back by years repeats nothing, also nothing that was forgotten."""
    watch = Watch(schedule="hourly", timing="x", upto=at("7:30"), floor=at("9:00"))
    assert decided(HOURLY, watch, at("8:30"), ()) == verdict()
    assert decided(HOURLY, watch, at("10:00"), ()) == verdict([at("10:00")])


def test_a_schedule_counts_from_when_it_was_seen_and_a_single_time_always() -> None:
    """Other times make it a new one; the floor stays."""
    assert watched(SEVEN, None, at("8:00")).upto == at("8:00")
    known = Watch(schedule="seven", timing="0 7 * * *", upto=at("6:00"), floor=3.0)
    assert watched(SEVEN, known, at("8:00")) == known
    other = replace(SEVEN, cron="0 6 * * *")
    assert watched(other, known, at("8:00")) == Watch(
        schedule="seven", timing="0 6 * * *", upto=at("8:00"), floor=3.0
    )
    single = ScheduleSettings(name="x", at="2026-11-23T07:00", run="tidy")
    assert watched(single, None, at("8:00")).upto == 0.0


# What is noted ------------------------------------------------------------------------------------


class Hours:
    """A book over days of its own, of which each reopening is a crash and a start."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.store.create(SessionRow(session="s1", folder="/", name="news"))
        self.reopen()

    def reopen(self) -> None:
        """Begin anew with what is durable."""
        self.store = self.store.survivor()
        self.book = Occurrences(hosts_of(self.store))
        self.book.load()

    def look(self, schedule: ScheduleSettings, now: float) -> list[tuple[float, str, int]]:
        """Look at a schedule; return what was noted."""
        found = self.book.look(schedule, now, UTC)
        return [(one.planned, one.state, one.count) for one in found]


def hosts_of(store: MemoryStore) -> Any:
    """Make what is needed of a server's hosts."""

    def row(name: str) -> SessionRow:
        for known in store.sessions():
            if name in (known.session, known.name):
                return known
        raise UnknownSession(f"no session `{name}`", "`steersman sessions list` shows them")

    return SimpleNamespace(store=store, row=row)


def test_each_time_is_noted_once_over_crashes_and_changes_of_the_clock() -> None:
    """An hour later, an hour back, back by a day, forward by three: nothing begins a second time."""
    hours = Hours()
    assert hours.look(HOURLY, at("6:30")) == []
    begun: list[float] = []
    for now in ("7:00", "7:30", "8:00", "7:10", "7:59", "8:00", "8:20", "6:50", "7:00", "8:01"):
        for _ in range(2):
            found = hours.look(HOURLY, at(now))
            assert {state for _, state, _ in found} <= {"due"}
            begun += [planned for planned, _, _ in found]
            hours.reopen()
    assert begun == [at("7:00"), at("8:00")]
    assert hours.look(HOURLY, at("5:30")) == []  # earlier than it was ever seen
    assert hours.look(HOURLY, at("6:00")) == [(at("6:00"), "due", 1)]
    assert hours.look(HOURLY, at("11:30")) == [(at("11:00"), "missed", 3)]  # 7:00, 8:00 have begun
    assert sorted(key[1] for key in hours.book.due()) == [at("6:00"), at("7:00"), at("8:00")]


def test_what_was_missed_by_a_wrong_clock_happens_in_its_time() -> None:
    """A clock that was ahead for a moment takes nothing away: what was passed over may still begin."""
    hours = Hours()
    hours.look(SEVEN, at("6:00"))
    assert hours.look(SEVEN, at("9:00", 300)) == [(at("7:00", 300), "missed", 301)]
    assert hours.look(SEVEN, at("6:01")) == []
    hours.reopen()
    assert hours.look(SEVEN, at("7:00")) == [(at("7:00"), "due", 1)]
    assert hours.look(SEVEN, at("7:00", 300)) == [
        (at("7:00", 300), "due", 1),
        (at("7:00", 299), "missed", 299),
    ]


def test_a_schedule_that_comes_back_has_missed_nothing() -> None:
    """Times at which it was not configured, or had others, are no times of it."""
    hours = Hours()
    seven = replace(SEVEN, **ONCE)
    hours.look(seven, at("6:00"))
    hours.book.forget(())
    hours.reopen()
    assert hours.look(seven, at("8:00", 3)) == []
    assert hours.look(replace(seven, cron="0 6 * * *"), at("8:00", 5)) == []
    assert hours.look(replace(seven, cron="0 6 * * *"), at("6:00", 6)) != []


def test_a_message_to_nobody_has_failed_at_once() -> None:
    """It is noted with the reason, and not again."""
    hours = Hours()
    lost = replace(SEVEN, session="gone")
    hours.look(lost, at("6:00"))
    assert hours.look(lost, at("7:00")) == [(at("7:00"), "failed", 1)]
    (found,) = hours.store.occurrences()
    assert found.reason == "no session `gone` (`steersman sessions list` shows them)"
    assert hours.look(lost, at("7:00:30")) == []
    assert hours.book.due() == {}


# What is carried out ------------------------------------------------------------------------------


class Served:
    """A scheduler whose sessions are a list of messages; `faults` come before the answers."""

    def __init__(self, home: Path, *faults: Exception) -> None:
        self.hours = Hours()
        self.now = at("6:59:58")
        self.faults = list(faults)
        self.said: list[tuple[str, str]] = []
        self.answer: dict[str, Any] = {"type": "accepted"}
        home.mkdir(exist_ok=True)
        (home / "config.toml").write_text(
            '[[schedule]]\nname = "seven"\ncron = "0 7 * * *"\nsay = "hi"\nsession = "news"\n'
        )
        self.paths = Paths.of({"STEERSMAN_HOME": str(home)})

    async def call(self, session: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Take a message, unless a fault is due."""
        assert (method, params["as"], params["user"]) == ("say", "queue", "schedule seven")
        if self.faults:
            raise self.faults.pop(0)
        self.said.append((session, params["client_id"]))
        return self.answer

    async def until(self, is_over: Callable[[], bool]) -> list[Occurrence]:
        """Serve until something holds; return what the store knows then."""
        hosts = hosts_of(self.hours.store)
        hosts.paths, hosts.host_of = self.paths, lambda session: None
        main: Any = SimpleNamespace(is_kept=True)
        async with asyncio.timeout(seconds(60)):
            async with Scheduler(hosts, main, self.call, {}, lambda: self.now, UTC):
                await looked_until(is_over)
        return self.hours.store.occurrences()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test wait."""
    monkeypatch.setattr(scheduling, "PAUSE", 0.01)
    monkeypatch.setattr(scheduling, "AGAIN", 0.01)


@pytest.mark.usefixtures("quick")
async def test_a_message_is_sent_until_its_session_has_it(tmp_path: Path) -> None:
    """While the session cannot be reached it is sent again, each time under the same id."""
    served = Served(tmp_path, StoreBusy("busy"), TimeoutError())
    assert await served.until(lambda: bool(served.hours.store.watches())) == []
    served.now = at("7:00:01")
    (found,) = await served.until(
        lambda: [occurrence.state for occurrence in served.hours.store.occurrences()] == ["begun"]
    )
    assert served.said == [("s1", client_id_of(found))]
    assert client_id_of(found) == "schedule seven 2026-11-23T07:00:00+00:00"
    served.now = at("6:30")
    await served.until(lambda: served.hours.store.watches()[0].upto == at("6:30"))
    assert len(served.said) == 1


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("refused", "refused: session_finalized (begin)"),
        ("unreachable", "busy"),
        ("wrong", "a run (not so)"),
        ("gone", "it is not configured any more"),
    ],
)
async def test_what_cannot_be_said_has_failed_with_its_reason(
    tmp_path: Path, kind: str, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It is in the store and in the log, and is not tried for ever."""
    served = Served(tmp_path)
    await served.until(lambda: bool(served.hours.store.watches()))
    if kind == "refused":
        served.answer = {"type": "rejected", "reason": "session_finalized", "hint": "begin"}
    elif kind == "wrong":
        served.faults = [UsageError("a run", "not so")]
    else:
        served.faults = [StoreBusy("busy")] * 10_000
    served.now = at("7:00:01")

    def is_over() -> bool:
        if kind == "gone" and served.hours.store.occurrences():
            served.paths.config_file.write_text("")
        if len(served.faults) < 9_998 and kind == "unreachable":
            served.now = at("7:30")
        return any(occurrence.state == "failed" for occurrence in served.hours.store.occurrences())

    (found,) = await served.until(is_over)
    assert served.said == ([("s1", client_id_of(found))] if kind == "refused" else [])
    assert found.reason == reason
    assert f"schedule `seven`, 2026-11-23T07:00:00.000Z: failed: {reason}" in caplog.text


@pytest.mark.usefixtures("quick")
async def test_a_configuration_that_cannot_be_read_changes_no_schedule(tmp_path: Path) -> None:
    """What was configured before goes on until the file is whole again."""
    served = Served(tmp_path)
    texts = iter(["[[schedule]", ""])

    def is_over() -> bool:
        if served.hours.store.watches() and (text := next(texts, "")):
            served.paths.config_file.write_text(text)
            served.now = at("7:00")
        return bool(served.said)

    (found,) = await served.until(is_over)
    assert found.planned == at("7:00")
