"""Let the tests import what they share; and no noise."""

import logging
from collections.abc import Generator

import pytest


@pytest.fixture(autouse=True)
def quiet() -> Generator[None]:
    """A crash ends actors loudly; here that is no news."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
