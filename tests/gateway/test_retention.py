"""What counts as age, and how the trash keeps what age takes."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from steersman.gateway.home.retention import moments_of
from steersman.gateway.home.trash import DAY, HOUR, Thing, Trash, known_age
from steersman.journal.memory import MemoryStore
from steersman.journal.store import SessionRow
from steersman.machines.errors import UsageError

NOW = 2_000_000_000.0
THING = Thing(kind="queue", of="old", used=NOW, where="/here", what="one")


def row(name: str, **more: object) -> SessionRow:
    """A session with a message that waits."""
    fields: dict[str, object] = {"state": "suspended", "seq": 5, "waiting": 1} | more
    return SessionRow(session=name, folder="/here", created=NOW, updated=NOW, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "is_it"),
    [
        ({}, True),
        ({"waiting": 0}, False),
        ({"waiting": 0, "interrupted": 1}, True),
        ({"waiting": 0, "state": "busy"}, True),
        ({"state": "finalized"}, False),
        ({"seq": 0}, False),
        ({"parent": "other"}, False),
    ],
)
def test_what_counts_as_saved(changes: dict[str, object], is_it: bool) -> None:
    """A session has a saved queue when something waits, was interrupted, or was running."""
    assert row("one", **changes).has_work is is_it


DAYS = tuple(NOW + day * DAY for day in range(1, 9))


@pytest.mark.parametrize(
    ("moments", "now", "days"),
    [
        pytest.param((), NOW + 59 * DAY, 0, id="only the clock is ahead"),
        pytest.param((), NOW - 400 * DAY, 0, id="only the clock is behind"),
        pytest.param(DAYS, NOW + 9 * DAY, 8, id="daily use"),
        pytest.param(DAYS, NOW + 900 * DAY, 8, id="daily use, and the clock leaps"),
        pytest.param(DAYS, NOW + 3 * DAY, 3, id="what is ahead of the clock is passed over"),
        pytest.param((NOW + 30 * DAY,), NOW + 30 * DAY, 1, id="a recorded leap is a day"),
        pytest.param(
            (NOW + 30 * DAY, NOW + 30 * DAY + HOUR), NOW + 31 * DAY, 1 + 1 / 24, id="and goes on"
        ),
        pytest.param((NOW + HOUR, NOW + 2 * HOUR), NOW + DAY, 2 / 24, id="hours"),
        pytest.param((NOW - DAY, NOW), NOW + DAY, 0, id="what was before counts for nothing"),
        pytest.param((NOW + 7 * DAY, NOW + 14 * DAY), NOW + 15 * DAY, 2, id="weekly use"),
    ],
)
def test_age_is_what_was_recorded(moments: Sequence[float], now: float, days: float) -> None:
    """The clock adds nothing, and a gap adds a day at most."""
    assert known_age(NOW, moments, now) == pytest.approx(days * DAY)


@pytest.mark.parametrize("seed", range(20))
def test_age_is_never_more_than_the_leaps_and_the_time_that_passed(seed: int) -> None:
    """Whatever clocks show when something is recorded, each leap makes things a day older at most."""
    draw = random.Random(seed)
    real, offset, leaps, moments = NOW, 0.0, 0, list[float]()
    for _ in range(40):
        real += draw.uniform(0.0, 2 * HOUR)
        if draw.random() < 0.3:
            offset, leaps = draw.choice((0.0, draw.uniform(-900, 900) * DAY)), leaps + 1
        moments.append(real + offset)
        age = known_age(NOW, moments, real + offset)
        assert age <= real - NOW + leaps * DAY


def looked(trash: Trash, moments: Sequence[float], now: float, hours: float = 168) -> Any:
    """Look at the one thing, and put it into the trash if it is due."""
    found = trash.look("queue", [THING], moments, now, hours)
    for thing, why in found[0]:
        trash.put(thing, why, moments, now, hours)
    return found


def test_a_thing_goes_after_as_long_again_in_the_trash(tmp_path: Path) -> None:
    """Day by day: into the trash on the eighth, and due for deletion after seven days more."""
    trash, moments, seen = Trash(tmp_path), [NOW], dict[int, str]()
    for day in range(1, 20):
        moments.append(NOW + day * DAY)
        found = looked(Trash(tmp_path), moments, NOW + day * DAY + HOUR)
        if found[0]:
            seen[day] = "trash"
        if found[1]:
            seen[day] = "due"
            trash.take_out(THING)
            break
    assert seen == {8: "trash", 16: "due"}


@pytest.mark.parametrize("leap", [8 * DAY, 59 * DAY, 400 * DAY])
def test_one_start_with_a_wrong_clock_deletes_and_trashes_nothing(
    tmp_path: Path, leap: float
) -> None:
    """Neither that start, nor the start after it with the right clock, nor one with a wrong one again."""
    trash, moments = Trash(tmp_path), [NOW]
    for now in (NOW + leap, NOW + HOUR, NOW + leap + HOUR, NOW + 2 * HOUR):
        assert looked(trash, moments, now) == ([], [])
        moments.append(now)


def test_however_short_things_are_kept_the_trash_keeps_them_for_more_than_a_day(
    tmp_path: Path,
) -> None:
    """With a retention of nothing, one recorded leap is enough for the trash, and for no more."""
    trash, moments = Trash(tmp_path), [NOW, NOW + HOUR]
    assert looked(trash, moments, NOW + HOUR, 0)[0]
    moments.append(NOW + 300 * DAY)
    assert looked(trash, moments, NOW + 300 * DAY, 0) == ([], [])
    moments.append(NOW + 300 * DAY + HOUR)
    assert looked(trash, moments, NOW + 301 * DAY, 0)[1]


def test_what_is_used_leaves_the_trash(tmp_path: Path) -> None:
    """A later use voids the mark, and its age begins anew."""
    trash, moments = Trash(tmp_path), [NOW, *DAYS]
    assert looked(trash, moments, DAYS[-1])[0]
    assert trash.holds("queue") == {"old": NOW}
    used = replace(THING, used=DAYS[-1])
    assert trash.look("queue", [used], moments, DAYS[-1], 168) == ([], [])
    assert trash.holds("queue") == {}


def test_the_mark_of_what_is_gone_goes(tmp_path: Path) -> None:
    """A crash between a deletion and the end of its mark leaves nothing that another thing could meet."""
    trash, moments = Trash(tmp_path), [NOW, *DAYS]
    looked(trash, moments, DAYS[-1])
    assert trash.look("queue", [], moments, DAYS[-1], 168) == ([], [])
    assert trash.marks() == {}


def test_what_is_restored_is_as_new(tmp_path: Path) -> None:
    """It is found by a prefix, is no longer in the trash, and comes there again only after as long."""
    trash, moments = Trash(tmp_path), [NOW, *DAYS]
    looked(trash, moments, DAYS[-1])
    trash.restore(trash.named("que"), DAYS[-1])
    assert trash.holds("queue") == {}
    with pytest.raises(UsageError, match="`que` is not in the trash"):
        trash.named("que")
    assert looked(trash, moments, DAYS[-1]) == ([], [])
    later = [*moments, *(moment + 8 * DAY for moment in DAYS)]
    assert looked(trash, later, later[-1])[0]


def test_a_budget_marks_and_more_room_takes_the_mark_away(tmp_path: Path) -> None:
    """What is far over the budget goes after more than a day in the trash, not at once."""
    trash, moments = Trash(tmp_path), [NOW, NOW + HOUR]
    ((thing, why),) = trash.look("queue", [THING], moments, NOW + HOUR, 168, {"old"}, {"old"})[0]
    assert why == "budget"
    trash.put(thing, why, moments, NOW + HOUR, 168)
    for more, due in ((400 * DAY, 0), (400 * DAY + HOUR, 1)):
        moments.append(NOW + more)
        found = trash.look("queue", [THING], moments, NOW + more, 168, {"old"}, {"old"})
        assert len(found[1]) == due
    assert looked(trash, moments[:2], NOW + HOUR) == ([], [])
    assert trash.marks() == {}


def test_starts_are_noted_once_an_hour_and_are_recorded_moments(tmp_path: Path) -> None:
    """They make things older also where one session is used day by day; half a line is passed over."""
    trash = Trash(tmp_path)
    for now in (NOW, NOW + 60.0, NOW + HOUR, NOW - DAY):
        trash.note_start(now)
    assert trash.starts() == [NOW, NOW + HOUR, NOW - DAY]
    with (tmp_path / "trash" / "starts").open("a") as file:
        file.write("20000x")
    assert trash.starts() == [NOW, NOW + HOUR, NOW - DAY]
    store = MemoryStore()
    for name in ("one", "two"):
        store.create(row(name))
    hour = NOW // HOUR * HOUR
    assert moments_of(store, trash) == [NOW, NOW + HOUR, NOW - DAY, hour]
    store.close()


def test_a_mark_that_is_not_readable_is_none(tmp_path: Path) -> None:
    """Then the thing is not in the trash, and comes there again."""
    trash, moments = Trash(tmp_path), [NOW, *DAYS]
    looked(trash, moments, DAYS[-1])
    (tmp_path / "trash" / "queue-old.json").write_text('{"thing": 5}')
    assert trash.marks() == {}
    assert looked(trash, moments, DAYS[-1])[0]
