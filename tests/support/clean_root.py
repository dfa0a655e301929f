"""A pytest plugin: a run fails that leaves something in the root of the checkout.

A process that a test starts without a folder of its own runs in the root, and writes its relative paths
there. What `.gitignore` names may come: caches of tools, and the coverage of a run.
"""

import os
from fnmatch import fnmatch
from pathlib import Path

import pytest

__all__ = ["CleanRoot", "entries"]

ROOT = Path(__file__).resolve().parents[2]


def entries(root: Path = ROOT) -> set[str]:
    """Return the names in the root that `.gitignore` does not name."""
    lines = (root / ".gitignore").read_text("utf-8").split()
    ignored = [".git", *(line.rstrip("/") for line in lines)]
    return {name for name in os.listdir(root) if not any(fnmatch(name, one) for one in ignored)}


class CleanRoot:
    """Compares the root before and after a run, in the process that began the run."""

    def __init__(self) -> None:
        self._before = entries()
        self._left: list[str] = []

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail the run if something new is there."""
        self._left = sorted(entries() - self._before)
        if self._left and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name what is new."""
        if self._left:
            terminalreporter.section("left in the root of the checkout")
            terminalreporter.write_line(", ".join(self._left))


def pytest_configure(config: pytest.Config) -> None:
    """Look at the root once, not in each worker; a copy without `.gitignore` is no checkout."""
    if not hasattr(config, "workerinput") and (ROOT / ".gitignore").exists():
        config.pluginmanager.register(CleanRoot())
