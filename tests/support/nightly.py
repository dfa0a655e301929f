"""Parameters of which `make test` has some, and only `make test-all` all."""

from collections.abc import Iterable
from typing import Any

import pytest

__all__ = ["daily"]


def daily(*some: Any, of: Iterable[Any]) -> list[Any]:
    """Return all values of a parameter; those that are not in `some` are left to the night."""
    return [
        value if value in some else pytest.param(value, marks=pytest.mark.nightly) for value in of
    ]
