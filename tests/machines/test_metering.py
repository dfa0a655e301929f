"""Prices of model calls."""

import pytest

from steersman.machines.conversation import Usage
from steersman.machines.policy import Price


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
