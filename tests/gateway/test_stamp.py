"""Times as people read them."""

from datetime import datetime, timedelta

from steersman.gateway.wording.formats import clock, iso


def test_a_clock_is_the_persons() -> None:
    """Today it is the local time alone; of another day the date goes before it."""
    now = datetime.now().replace(hour=0, minute=3, second=4, microsecond=5_000)
    assert clock(iso(now.timestamp())) == "00:03:04"
    assert clock(iso(now.timestamp()), "milliseconds") == "00:03:04.005"
    before = now - timedelta(days=2)
    assert clock(iso(before.timestamp())) == f"{before.date()} 00:03:04"
