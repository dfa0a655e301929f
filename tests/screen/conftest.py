"""A stage in a real terminal of any size."""

import sys
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

if sys.platform != "linux":  # these look at the process table of Linux
    collect_ignore = ["test_terminal.py", "test_keys.py", "test_ends.py"]

from stories.stage import Stage
from stories.terminal import Terminal

Open = Callable[..., Terminal]


@pytest.fixture
def stage(tmp_path: Path) -> Generator[Stage]:
    """A home, a folder and a model of this test's own."""
    here = Stage(tmp_path, "screen")
    yield here
    here.close()


@pytest.fixture
def opened(stage: Stage) -> Open:
    """Open a chat in a terminal of a size, and wait until it is ready."""

    def open_it(*arguments: str, size: tuple[int, int] = (80, 24), **environ: str) -> Terminal:
        terminal = stage.starts("chat", *arguments, size=size, **environ)
        terminal.shows("everything")
        if environ.get("TERM") != "dumb":
            terminal.has_bar("idle")
        return terminal

    return open_it
