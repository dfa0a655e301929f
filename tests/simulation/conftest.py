"""Let the tests import what they share; and no noise."""

import logging
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

TESTS = str(Path(__file__).resolve().parent.parent)
if TESTS not in sys.path:
    sys.path.insert(0, TESTS)


@pytest.fixture(autouse=True)
def quiet() -> Generator[None]:
    """A crash ends actors loudly; here that is no news."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
