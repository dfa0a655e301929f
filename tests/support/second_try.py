"""A pytest plugin: a failed test of real processes may be tried once more, and is then named.

`.ci/run` alone uses it: a machine that others share may stall a program past a test's patience. After a
run with failures, `--second-try FILE -n 0` runs those again that had started programs. A test that passes
then is printed as `FLAKY`, and its name is added to the file. One that started no program, or whose
cases are drawn from seeds, is never tried again: what it found is a fault.
"""

from pathlib import Path

import pytest
from support import durations

_FAILED = "steersman/failed"
_SEEDED = ("tests/simulation/", "tests/soak/")


class SecondTry:
    """Remembers what failed in a run, and whether it may be tried again."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.is_second = bool(config.getoption("second_try"))
        self.earlier: dict[str, bool] = self.config.cache.get(_FAILED, {}) if self.is_second else {}
        self.failed: dict[str, bool] = {}
        self.programs: set[str] = set()

    @property
    def final(self) -> list[str]:
        """The earlier failures that are not tried again."""
        return [nodeid for nodeid, may_repeat in self.earlier.items() if not may_repeat]

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Leave what failed and may be tried again."""
        if self.is_second:
            again = [item for item in items if self.earlier.get(item.nodeid)]
            config.hook.pytest_deselected(items=[item for item in items if item not in again])
            items[:] = again

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failure."""
        if durations.programs_of(report):
            self.programs.add(report.nodeid)
        if report.failed:
            is_drawn = report.nodeid.startswith(_SEEDED) or "hypothesis" in report.keywords
            self.failed[report.nodeid] = not is_drawn and report.nodeid in self.programs

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Keep the failures for the second try; fail a second try that leaves some out."""
        if self.is_second and self.final:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        elif not self.is_second:
            self.config.cache.set(_FAILED, self.failed)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name what is flaky, and what was not tried again."""
        if not self.is_second:
            return
        passed = {report.nodeid for report in terminalreporter.getreports("passed")}
        flaky = [nodeid for nodeid in self.earlier if nodeid in passed - self.failed.keys()]
        with Path(self.config.getoption("second_try")).open("a", encoding="utf-8") as names:
            for nodeid in flaky:
                names.write(f"{nodeid}\n")
                terminalreporter.write_line(f"FLAKY {nodeid}")
        for nodeid in self.final:
            terminalreporter.write_line(f"FAILED, and is not tried again: {nodeid}")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--second-try`."""
    text = (
        "run what failed in the last run once more, if it started programs; add what passes to FILE"
    )
    parser.addoption("--second-try", metavar="FILE", help=text)


def pytest_configure(config: pytest.Config) -> None:
    """Note failures where reports arrive, in a run that keeps anything."""
    if hasattr(config, "cache") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(SecondTry(config))
