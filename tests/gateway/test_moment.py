"""A moment as a person says it."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from steersman.gateway.views.moment import parse_moment
from steersman.machines.errors import UsageError

ZONE = timezone(timedelta(hours=2))
NOW = datetime(2026, 11, 19, 10, 30, tzinfo=ZONE)  # a Thursday


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("48", 48),
        ("10:03", datetime(2026, 11, 19, 10, 3, tzinfo=ZONE)),
        ("14:03", datetime(2026, 11, 18, 14, 3, tzinfo=ZONE)),
        ("10:29:59", datetime(2026, 11, 19, 10, 29, 59, tzinfo=ZONE)),
        ("yesterday 14:03", datetime(2026, 11, 18, 14, 3, tzinfo=ZONE)),
        ("today 9:00", datetime(2026, 11, 19, 9, 0, tzinfo=ZONE)),
        ("Tue 14:03", datetime(2026, 11, 17, 14, 3, tzinfo=ZONE)),
        ("thursday 10:00", datetime(2026, 11, 19, 10, 0, tzinfo=ZONE)),
        ("thu 14:03", datetime(2026, 11, 12, 14, 3, tzinfo=ZONE)),
        ("5m ago", NOW - timedelta(minutes=5)),
        ("1.5 hours ago", NOW - timedelta(hours=1.5)),
        ("2 days ago", NOW - timedelta(days=2)),
        ("2026-11-17", datetime(2026, 11, 17, tzinfo=ZONE)),
        ("2026-11-17T14:03", datetime(2026, 11, 17, 14, 3, tzinfo=ZONE)),
        ("2026-11-17T14:03:00Z", datetime(2026, 11, 17, 14, 3, tzinfo=UTC)),
    ],
)
def test_moments(text: str, moment: int | datetime) -> None:
    """A number is an entry; a time is the latest such that has passed, in the person's zone."""
    assert parse_moment(text, NOW) == moment


@pytest.mark.parametrize("text", ["", "soon", "25:00", "noday 10:00", "tu 10:00", "-3", "5m", "²"])
def test_no_moments(text: str) -> None:
    """What is no moment is refused with the forms there are."""
    with pytest.raises(UsageError, match="is not a time"):
        parse_moment(text, NOW)
