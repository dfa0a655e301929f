"""A pytest plugin: how many tests there are, how far a run is, about how long it takes, and how it ended.

With `--progress`, a line every few seconds replaces a dot for each test, and a failure is named at once.
SIGTERM, as `timeout` and a CI service send it, ends a run as Ctrl-C does: fixtures are torn down,
failures and counts are printed, and the tests in progress are listed. With pytest-xdist the list
names the test of each worker.
"""

import signal
import threading
import time
from collections.abc import Mapping
from types import FrameType
from typing import Any

import pytest
from support import durations
from support.durations import Part

EVERY = 5.0
"""Seconds between two lines of progress."""
UNKNOWN = 0.1
"""Seconds that a test is taken to need where nothing was measured."""


def minutes(seconds: float) -> str:
    """Return a duration as `M:SS`."""
    return f"{seconds // 60:.0f}:{seconds % 60:02.0f}"


class Progress:
    """Remembers which tests have started and ended, and says so."""

    def __init__(self, config: pytest.Config, expected: Mapping[str, Part]) -> None:
        self.config = config
        self.expected = expected
        self.is_shown = config.getoption("progress") and not hasattr(config, "workerinput")
        self.began: dict[str, float] = {}
        self.collected: list[str] = []
        self.ended = 0
        self.failed: set[str] = set()
        self.is_early = False
        self._start = time.monotonic()
        self._first = 0.0
        self._spent = 0.0
        self._total = 0.0
        self._over = threading.Event()
        self._ticker = threading.Thread(target=self._tick, daemon=True)

    # What is expected ----------------------------------------------------------------------------

    @property
    def workers(self) -> int:
        """The processes that run tests at the same time."""
        return len(getattr(self.config.option, "tx", None) or [None])

    def _expect(self, nodeid: str) -> float:
        part = self.expected.get(durations.module_of(nodeid))
        return part.seconds / part.cases if part and part.cases else UNKNOWN

    def _left(self) -> float:
        """Estimate the seconds that are left, by how this run compares with what was measured."""
        left = max(self._total - self._spent, 0.0)
        passed = time.monotonic() - self._first
        pace = passed / self._spent if self._spent > 20 * self.workers else 1 / self.workers
        return left * pace

    # What happens --------------------------------------------------------------------------------

    @pytest.hookimpl(trylast=True)
    def pytest_sessionstart(self) -> None:
        """Say at once what was measured last."""
        if not self.is_shown:
            return
        known = self.expected.values()
        if known and self.config.args_source is not pytest.Config.ArgsSource.ARGS:
            cases = sum(part.cases for part in known)
            about = minutes(sum(part.seconds for part in known) / self.workers)
            self._say(f"about {cases:,} tests in {about} by the last measurement; collecting")
        else:
            self._say("collecting")
        self._ticker.start()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Count the tests of a run without workers."""
        if session.items:
            self._count([item.nodeid for item in session.items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        """Count the tests of a run with workers, which all collect the same."""
        self._count(ids)

    def _count(self, ids: list[str]) -> None:
        if self.collected:
            return
        self.collected, self._first = ids, time.monotonic()
        self._total = sum(map(self._expect, ids))
        if self.is_shown:
            self._say(f"{len(ids):,} tests, about {minutes(self._left())}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Remember a test that starts, here or in a worker, before its name is printed."""
        self.began[nodeid] = time.monotonic()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Name a failure at once."""
        if report.failed and report.nodeid not in self.failed:
            self.failed.add(report.nodeid)
            if self.is_shown:
                self._say(f"FAILED {report.nodeid}")

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """It has ended."""
        self.ended += self.began.pop(nodeid, 0.0) > 0.0
        self._spent += self._expect(nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Print no letter for a test where there are lines of progress."""
        if not self.is_shown or self.config.getoption("verbose") > 0:
            return None
        category = report.outcome if report.when == "call" or not report.passed else ""
        if report.failed and report.when != "call":
            category = "error"
        return category, "", ""

    def _tick(self) -> None:
        while not self._over.wait(EVERY):
            self._say(self._state() if self.collected else "collecting")

    def _state(self) -> str:
        count = len(self.collected)
        text = f"{self.ended:,} of {count:,} ({100 * self.ended // count} %)"
        if self.failed:
            text += f", {len(self.failed)} failed"
        slowest = min(list(self.began.items()), key=lambda test: test[1], default=("", 0.0))[0]
        return f"{text}, about {minutes(self._left())} left; {durations.module_of(slowest)}"

    def _say(self, text: str) -> None:
        reporter: Any = self.config.pluginmanager.getplugin("terminalreporter")
        if reporter is not None:
            reporter.ensure_newline()
            reporter.write_line(f"{minutes(time.monotonic() - self._start):>5}  {text}")
            reporter.flush()

    # The end -------------------------------------------------------------------------------------

    def pytest_keyboard_interrupt(self) -> None:
        """The run is ended, by Ctrl-C or by the signal."""
        self.is_early = True

    def pytest_sessionfinish(self) -> None:
        """Say no more."""
        self._over.set()

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """List the tests that were in progress."""
        if not self.is_early:
            return
        terminalreporter.section("ended early")
        count = len(self.collected)
        terminalreporter.write_line(f"{self.ended} of {count} tests had ended")
        if not count:
            terminalreporter.write_line("tests were still being collected")
        now = time.monotonic()
        for nodeid, began in self.began.items():
            terminalreporter.write_line(f"in progress for {now - began:.0f} s: {nodeid}")

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """End the run; with an exit code of its own pytest would print no summary."""
        signal.signal(number, signal.SIG_IGN)  # `timeout` signals its child, and then the group
        pytest.exit("ended by SIGTERM")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--progress`."""
    text = "print a line of progress every few seconds, and no dot for each test"
    parser.addoption("--progress", action="store_true", help=text)


def pytest_configure(config: pytest.Config) -> None:
    """Take SIGTERM for the request to end in order, in the controller and in each worker."""
    expected = durations.select(durations.read(), config.getoption("markexpr"))
    plugin = Progress(config, expected)
    config.pluginmanager.register(plugin)
    signal.signal(signal.SIGTERM, plugin.on_signal)
