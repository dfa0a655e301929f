"""A pytest plugin: a run that is ended early says which tests were running, and what came before.

SIGTERM, as `timeout` and a CI service send it, ends a run as Ctrl-C does: fixtures are torn down,
failures and counts are printed, and the tests in progress are listed. With pytest-xdist the list
names each worker's test.
"""

import signal
import time
from types import FrameType
from typing import Any

import pytest


class EarlyEnd:
    """Remembers which tests have started and not ended."""

    def __init__(self) -> None:
        self.began: dict[str, float] = {}
        self.collected = 0
        self.ended = 0
        self.is_early = False

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Count the tests of a run without workers."""
        self.collected = max(self.collected, len(session.items))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        """Count the tests of a run with workers, which all collect the same."""
        self.collected = len(ids)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Remember a test that starts, here or in a worker, before its name is printed."""
        self.began[nodeid] = time.monotonic()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """It has ended."""
        self.ended += self.began.pop(nodeid, 0.0) > 0.0

    def pytest_keyboard_interrupt(self) -> None:
        """The run is ended, by Ctrl-C or by the signal."""
        self.is_early = True

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """List the tests that were in progress."""
        if not self.is_early:
            return
        terminalreporter.section("ended early")
        terminalreporter.write_line(f"{self.ended} of {self.collected} tests had ended")
        now = time.monotonic()
        for nodeid, began in self.began.items():
            terminalreporter.write_line(f"in progress for {now - began:.0f} s: {nodeid}")

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """End the run; with an exit code of its own pytest would print no summary."""
        signal.signal(number, signal.SIG_IGN)  # `timeout` signals its child, and then the group
        pytest.exit("ended by SIGTERM")


def pytest_configure(config: pytest.Config) -> None:
    """Take SIGTERM for the request to end in order, in the controller and in each worker."""
    plugin = EarlyEnd()
    config.pluginmanager.register(plugin)
    signal.signal(signal.SIGTERM, plugin.on_signal)
