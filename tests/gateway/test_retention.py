"""How long saved queues are kept."""

import pytest

from steersman.gateway.retention import LEAP, is_saved, known_age, outlived
from steersman.journal.store import SessionRow

HOUR, DAY = 3600.0, 86_400.0
NOW = 2_000_000_000.0


def row(name: str, updated: float, **more: object) -> SessionRow:
    """A session with a message that waits, last active so many seconds before now."""
    fields: dict[str, object] = {"state": "suspended", "seq": 5, "waiting": 1} | more
    return SessionRow(
        session=name, folder="/here", created=NOW - updated, updated=NOW - updated, **fields
    )  # type: ignore[arg-type]


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
    assert is_saved(row("one", 0.0, **changes)) is is_it


@pytest.mark.parametrize(
    ("age", "hours", "is_gone"),
    [
        (167 * HOUR, 168, False),
        (169 * HOUR, 168, True),
        (14 * DAY, 168, True),
        (365 * DAY, 168, False),
        (-365 * DAY, 168, False),
        (1.0, 0, True),
    ],
)
def test_a_lone_queue(age: float, hours: float, is_gone: bool) -> None:
    """A queue outlives its time by the clock, unless the clock leapt, forwards or back."""
    assert bool(outlived([row("old", age)], NOW, hours)) is is_gone


def test_activity_after_a_leap_counts() -> None:
    """After a year's absence nothing is deleted until the retention has passed in daily life."""
    old = row("old", 365 * DAY + 8 * DAY)
    later = [row(f"day{n}", n * DAY, waiting=0) for n in range(8, 0, -1)]
    assert outlived([old, *later[:3]], NOW - 6 * DAY, 168) == []
    assert outlived([old, *later], NOW, 168) == [old]


def test_a_gap_longer_than_a_leap_counts_as_nothing() -> None:
    """Only gaps that are no leap add up to an age."""
    assert known_age(NOW - LEAP - 10.0, [NOW - 5.0], NOW) == 5.0
    assert known_age(NOW - LEAP, [], NOW) == LEAP
