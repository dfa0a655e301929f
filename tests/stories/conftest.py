"""A stage for a story."""

import sys
from collections.abc import Generator
from pathlib import Path

import pytest

if sys.platform != "linux":  # these look at the process table of Linux
    collect_ignore_glob = ["test_*.py"]

from stories.stage import Stage


@pytest.fixture
def stage(tmp_path: Path, request: pytest.FixtureRequest) -> Generator[Stage]:
    """A stage of the story's own, with JSON lines unless a test names another interface."""
    here = Stage(tmp_path, getattr(request, "param", "json"))
    yield here
    here.close()
