"""When and how long a call waits before it is repeated."""

import asyncio

import pytest

from steersman.ports.models.model import Pause
from steersman.ports.models.retry import RetryPolicy, ServerFault, parse_retry_after, with_retries

NOW = 1_700_000_000.0  # Tue, 14 Nov 2023 22:13:20 GMT


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("", None),
        ("2", 2.0),
        ("0.25", 0.25),
        ("-3", 0.0),
        ("Tue, 14 Nov 2023 22:13:50 GMT", 30.0),
        ("Tue, 14 Nov 2023 22:00:00 GMT", 0.0),
        ("soon", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(value, seconds):
    """Both forms are read, and nonsense is as if nothing came."""
    assert parse_retry_after(value, lambda: NOW) == seconds


@pytest.mark.parametrize(
    ("number", "asked", "jitter", "seconds"),
    [
        (1, None, 1.0, 0.5),
        (2, None, 1.0, 1.0),
        (3, None, 0.0, 1.0),
        (20, None, 1.0, 30.0),
        (1, 7.0, 0.0, 7.0),
        (1, 9999.0, 0.0, 9999.0),
    ],
)
def test_pauses_grow_and_are_bounded(number, asked, jitter, seconds):
    """Pauses double, are spread by the jitter, and give way to the server's wish, within limits."""
    assert RetryPolicy(jitter=lambda: jitter).pause(number, asked) == seconds


def test_waiting_is_bounded_and_says_how_long():
    """Each pause is reported with its seconds; a server that asks for a longer wait is given up."""
    told: list[str] = []

    async def fail() -> None:
        raise ServerFault("busy", brief="server is busy (429)", retry_after=asked)

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    slept: list[float] = []
    asked = 100.0
    with pytest.raises(ServerFault, match="asked again in"):
        asyncio.run(with_retries(fail, RetryPolicy(sleep=sleep), told.append))
    assert slept == [100.0] * 3
    assert [one.seconds for one in told if isinstance(one, Pause)] == slept
    assert told[0] == "server is busy (429), retry 1 of 4 in 100.0 s"
    asked = 3600.0
    with pytest.raises(ServerFault, match="60 minutes"):
        asyncio.run(with_retries(fail, RetryPolicy(sleep=sleep), told.append))
    assert len(slept) == 3
