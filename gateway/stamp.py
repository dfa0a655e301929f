"""Times as machine interfaces write them."""

from datetime import UTC, datetime

__all__ = ["iso"]


def iso(time: float) -> str:
    """Write seconds since the epoch as ISO 8601 in UTC, to the millisecond."""
    return (
        datetime.fromtimestamp(time, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    )
