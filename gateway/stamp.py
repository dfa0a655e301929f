"""Times, as machine interfaces write them and as people read them."""

from datetime import UTC, datetime

__all__ = ["clock", "iso"]


def iso(time: float) -> str:
    """Write seconds since the epoch as ISO 8601 in UTC, to the millisecond."""
    return (
        datetime.fromtimestamp(time, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    )


def clock(time: str, precision: str = "seconds") -> str:
    """Show an ISO time as the person's clock does, with the day where it is not today's.

    `precision` is seconds or milliseconds.
    """
    moment = datetime.fromisoformat(time).astimezone()
    shown = moment.time().isoformat(precision)
    return shown if moment.date() == datetime.now().date() else f"{moment.date()} {shown}"
