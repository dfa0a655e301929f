"""Schedules: when they happen, also where the clocks change, and what is wrong in one."""

import os
import time
from collections.abc import Callable, Generator
from datetime import UTC, datetime, tzinfo
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from msgspec.structs import replace

from steersman.workflows.config import Config, load
from steersman.workflows.document import read_document
from steersman.workflows.flow.check import Surroundings, check_file
from steersman.workflows.paths import Paths
from steersman.workflows.schedules import MOST, SystemZone, name_of, next_occurrence, occurrences
from steersman.workflows.settings import ScheduleSettings
from steersman.workflows.trust import trust

ErrorOf = Callable[..., str]
Load = Callable[..., Config]


@pytest.fixture(params=["the system's zone", "a zone by name"])
def zone(request: pytest.FixtureRequest) -> Generator[tzinfo]:
    """A zone whose clocks go forward on 29 March 2026 at 2:00, and back on 25 October at 3:00."""
    if request.param == "a zone by name":
        yield ZoneInfo("Europe/Berlin")
        return
    before = os.environ.get("TZ")
    os.environ["TZ"] = "CET-1CEST,M3.5.0,M10.5.0/3"
    time.tzset()
    yield SystemZone()
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()


# When ---------------------------------------------------------------------------------------------

FORWARD = ("2026-03-28T12:00", "2026-03-30T12:00")
BACK = ("2026-10-24T12:00", "2026-10-26T12:00")


@pytest.mark.parametrize(
    ("cron", "days", "expected"),
    [
        (
            "30 2 * * *",
            FORWARD,
            ["29T01:00", "30T00:30"],
        ),  # 2:30 does not come: right after the gap
        ("0,30 2 * * *", FORWARD, ["29T01:00", "30T00:00", "30T00:30"]),
        ("0 3 * * *", FORWARD, ["29T01:00", "30T01:00"]),
        ("30 2 * * *", BACK, ["25T00:30", "26T01:30"]),  # 2:30 comes twice: the first time
        ("59 2 * * 0", BACK, ["25T00:59"]),
        ("0 7 * * 1-5", BACK, ["26T06:00"]),
    ],
)
def test_a_fixed_time_happens_once_a_day_where_the_clocks_change(
    zone: tzinfo, cron: str, days: tuple[str, str], expected: list[str]
) -> None:
    """Not twice and not never; and the same if it is asked for one after the other, or again."""
    schedule = ScheduleSettings(cron=cron)
    first, last = (datetime.fromisoformat(day).replace(tzinfo=zone).timestamp() for day in days)
    found = occurrences(schedule, first, last, zone)
    assert [utc(moment) for moment in found] == expected
    singly, after = [], first
    while (moment := next_occurrence(schedule, after, zone)) is not None and moment <= last:
        singly.append(moment)
        for step in range(0, int(moment - after), 3599):  # wherever one begins to look
            assert next_occurrence(schedule, after + step, zone) == moment
        after = moment
    assert singly == found


def test_what_happens_every_half_hour_goes_on_as_time_does(zone: tzinfo) -> None:
    """Of the night with one hour more it has two times more, of the other two less."""
    schedule = ScheduleSettings(cron="*/30 * * * *")
    for day, count in (("2026-03-29", 46), ("2026-06-01", 48), ("2026-10-25", 50)):
        first = datetime.fromisoformat(day).replace(tzinfo=zone).timestamp() - 1
        found = occurrences(schedule, first, first + count * 1800, zone)
        assert len(found) == count
        assert {after - before for before, after in pairwise(found)} == {1800}
        assert datetime.fromtimestamp(found[-1], zone).strftime("%H:%M") == "23:30"


def utc(moment: float) -> str:
    """Write a moment as day and time in UTC."""
    return datetime.fromtimestamp(moment, UTC).strftime("%dT%H:%M")


def test_a_single_time_is_local_unless_it_says_otherwise(zone: tzinfo) -> None:
    """It comes once, and never again."""
    for text in ("2026-12-01T07:00", "2026-12-01T06:00Z", "2026-12-01 08:00+02:00"):
        schedule = ScheduleSettings(at=text)
        moment = next_occurrence(schedule, 0.0, zone)
        assert moment is not None
        assert utc(moment) == "01T06:00"
        assert occurrences(schedule, 0.0, moment, zone) == [moment]
        assert next_occurrence(schedule, moment, zone) is None


def test_of_very_many_only_the_newest_are_looked_at() -> None:
    """A minute's schedule that was not looked at for years is no work for minutes."""
    now = datetime(2026, 11, 23, 12, 0, 30, tzinfo=UTC).timestamp()
    found = occurrences(ScheduleSettings(cron="* * * * *"), 0.0, now, SystemZone())
    assert found[-1] == now - 30
    assert MOST / 3 < len(found) <= MOST
    yearly = occurrences(ScheduleSettings(cron="0 0 1 1 *"), 0.0, now, SystemZone())
    assert len(yearly) in (56, 57)


# Mistakes -----------------------------------------------------------------------------------------

GOOD = '[[schedule]]\ncron = "0 7 * * 1-5"\nrun = "tidy.toml"\nmissed = "once"\n'


def test_a_schedule_is_called_after_what_it_runs(load_with: Load) -> None:
    """Its own name, if it has one, else the workflow's or the session's."""
    config = load_with(
        user=GOOD
        + '[[schedule]]\nat = "2026-12-01T07:00"\nsay = "hi"\nsession = "news"\n'
        + '[[schedule]]\nname = "x"\nat = "2026-12-01T07:00"\nsay = "hi"\nagent = "assistant"\n'
    )
    assert [name_of(schedule) for schedule in config.schedule] == ["tidy", "news", "x"]


@pytest.mark.parametrize(
    ("keys", "place", "message", "hint"),
    [
        ('cron = "61 * * * *"\nrun = "a"', "2:8", 'not "61 * * * *": bad minute', "five fields"),
        ('cron = "0 0 7 * * 1"\nrun = "a"', "2:8", "it has not five fields", "five fields"),
        ('cron = "@daily"\nrun = "a"', "2:8", "it has not five fields", "five fields"),
        ('cron = "0 0 31 2 *"\nrun = "a"', "2:8", "bad day-of-month", "five fields"),
        ('cron = "* * */20 * 1L"\nrun = "a"', "2:8", "no day fits it", "five fields"),
        ('at = "tomorrow"\nrun = "a"', "2:6", "must be a date with a time", "2026-12-01T07:00"),
        ('at = "2026-12-01"\nrun = "a"', "2:6", "must be a date with a time", "2026-12-01T07:00"),
        ('run = "a"', "1:1", "needs either `cron` or `at`", "add `cron = …`"),
        ('at = "2026-12-01T07:00"\ncron = "* * * * *"\nrun = "a"', "2:1", "not both", "remove"),
        ('cron = "* * * * *"', "1:1", "needs either `run` or `say`", "add `run = …`"),
        ('cron = "* * * * *"\nrun = "a"\nsay = "b"', "4:1", "`run` or `say`, not both", "remove"),
        ('cron = "* * * * *"\nrun = "a"\nsession = "b"', "4:1", "does not go with `run`", "remove"),
        (
            'cron = "* * * * *"\nsay = "a"\nsession = "b"\nfolder = "~"',
            "5:1",
            "`schedule[0].folder` does not go with `session`",
            "for a new session",
        ),
        (
            'cron = "* * * * *"\nname = "a"\nsay = "b"\nvariables = { c = 1 }',
            "5:1",
            "does not go with `say`",
            "remove",
        ),
        ('cron = "* * * * *"\nname = "a"\nsay = "/stop"', "4:7", "not a command", "in words"),
        ('cron = "* * * * *"\nname = "a"\nsay = " "', "4:7", "is empty", ""),
        ('cron = "* * * * *"\nsay = "a"', "1:1", "needs a `name`", "remembered by it"),
        ('cron = "* * * * *"\nrun = "a"\nname = "b c"', "4:8", "needs a `name` of letters", ""),
        ('cron = "* * * * *"\nrun = "a"\nfolder = "b"', "4:10", "must begin with `/` or `~`", ""),
        ('cron = "* * * * *"\nrun = "a"\nmissed = "all"', "4:10", "one of `skip`, `once`", ""),
        ('cron = "* * * * *"\nrun = ["a"]', "3:7", "must be a text in quotes", ""),
        ('corn = "* * * * *"\nrun = "a"', "2:1", "unknown key", "did you mean `schedule[0].cron`?"),
    ],
)
def test_a_mistake_has_its_place_and_a_hint(
    error_of: ErrorOf, keys: str, place: str, message: str, hint: str
) -> None:
    """Whatever does not belong together, cannot be read, or says nothing."""
    error = error_of(user=f"[[schedule]]\n{keys}\n")
    assert f"home/config.toml:{place}: " in error
    assert message in error
    assert hint in error


def test_two_schedules_of_one_name_are_refused(error_of: ErrorOf) -> None:
    """What they did could not be told apart."""
    error = error_of(user=f"{GOOD}{GOOD}")
    assert "home/config.toml:5:1: `schedule[1]`: there are two schedules `tidy`" in error


def test_no_project_and_no_workflow_may_schedule_anything(
    load_with: Load, paths: Paths, project: Path
) -> None:
    """Also where it is trusted: only a person's own files may, which `STEERSMAN_CONFIG` names, too."""
    assert load_with(named=GOOD).schedule[0].run == "tidy.toml"
    load_with(project_file=GOOD)
    trust(paths, project)
    config = load(paths, project, {})
    assert config.schedule == ()
    assert config.notices == (
        f"{project}/steersman.toml cannot set `schedule`: only your own files do",
    )
    (project / "steersman.toml").unlink()
    step = '[workflow]\nname = "w"\n[[step]]\nid = "a"\nshell = "true"\n'
    (project / "w.toml").write_text(step)
    around = Surroundings(paths=paths, folder=project, environ={"PATH": os.environ["PATH"]})
    assert check_file(project / "w.toml", around).errors == ()
    (project / "w.toml").write_text(f"{step}{GOOD}")
    assert check_file(project / "w.toml", around).errors == ()
    document, _ = read_document(project / "w.toml")
    data = {"schedule": document.data["schedule"]}
    config = load(paths, project, {}, workflow=replace(document, data=data))
    assert config.schedule == ()
    assert "cannot set `schedule`" in config.notices[0]
