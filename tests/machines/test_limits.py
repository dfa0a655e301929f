"""Accounts: what a call may take, here and above, what is left of it, and what it costs."""

import pytest

from steersman.machines.conversation import Usage
from steersman.machines.policy import Account, Limits, Price

CALL = Usage(input=400, output=100, cost=0.5)


@pytest.mark.parametrize(
    ("limits", "used", "now", "refusal"),
    [
        (Limits(), Usage(input=10**9), 10**9, ""),
        (Limits(max_tokens=1000), Usage(input=500), 0, ""),
        (Limits(max_tokens=1000), Usage(input=501), 0, "limits.max_tokens: 501 of 1,000 tokens"),
        (Limits(max_cost=1.0), Usage(cost=0.5), 0, ""),
        (Limits(max_cost=1.0), Usage(cost=0.6), 0, "limits.max_cost: 0.6000 of 1.0000 is spent"),
        (Limits(max_minutes=2), Usage(), 160, ""),
        (Limits(max_minutes=2), Usage(), 190, "limits.max_minutes: it has worked for 2.0 of 2"),
    ],
)
def test_a_call_that_would_break_a_limit_is_refused(limits, used, now, refusal) -> None:
    """Each limit is named with what is used; without one nothing is refused."""
    account = Account(name="limits", limits=limits, used=used, seconds=30, since=100)
    assert account.refusal(CALL, now or 100.0).startswith(refusal)
    assert bool(account.refusal(CALL, now or 100.0)) == bool(refusal)


def test_what_is_reserved_beneath_is_not_there_for_others() -> None:
    """Two children at work share one rest: the second is refused until the first has settled."""
    parent = Account(name="limits", limits=Limits(max_tokens=1000))
    children = [Account(name="", limits=Limits(max_tokens=1000)) for _ in range(2)]
    for child in children:
        child.share(parent, "agents.scout.limits")
    first, second = children
    big = Usage(input=600)
    assert not first.refusal(big, 0)
    first.reserve("a", big)
    assert second.refusal(big, 0).startswith("limits.max_tokens: 600 of 1,000")
    assert second.room() == 400
    first.settle("a", Usage(input=200, output=100))
    assert (parent.used.tokens, second.room()) == (300, 700)
    assert not second.refusal(big, 0)
    parent.shares += 1
    assert second.room() == 1700


@pytest.mark.parametrize(
    ("price", "cost"),
    [
        (Price(), 0.0),
        (Price(input=2.0, output=10.0), 0.0003),
        (Price(input=2.0, output=10.0, cached=0.2), 0.000192),
        (Price(input=2.0, output=10.0, cached=0.2, cache_write=4.0), 0.000212),
    ],
)
def test_each_kind_of_token_has_its_price(price: Price, cost: float) -> None:
    """Cached tokens are a part of the input and cost what is said, or as much as the others."""
    usage = Usage(input=100, output=10, cache_read=60, cache_write=10)
    assert price.cost(usage) == pytest.approx(cost)


def test_usage_adds_and_subtracts() -> None:
    """What was used since is what was used less what was known."""
    first, second = (
        Usage(input=3, output=4, cache_read=1, cache_write=1, reasoning=2, cost=0.5),
        Usage(input=1, output=1, cache_read=1, cache_write=0, reasoning=1, cost=0.25),
    )
    assert first + second - second == first
    assert first.tokens == 7
