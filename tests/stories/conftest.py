"""A stage for each of the two faces."""

import sys
from collections.abc import Generator
from pathlib import Path

import pytest

if sys.platform != "linux":  # these look at the process table of Linux
    collect_ignore_glob = ["test_*.py"]

from stories.stage import Stage


@pytest.fixture(params=["json", pytest.param("screen", marks=pytest.mark.nightly)])
def stage(tmp_path: Path, request: pytest.FixtureRequest) -> Generator[Stage]:
    """A stage of the story's own, once with JSON lines and once with a terminal."""
    here = Stage(tmp_path, request.param)
    yield here
    here.close()
