"""A pytest plugin: how long tests take, and which of them run real programs.

`make test-all ARGS=--keep-durations` writes what it measured to `tests/durations.toml`. From there come
the time that a run says it takes, and the house test of what `make test` covers. A test whose report has
the property `programs` started so many, and `kills` is how many it ended by SIGKILL before its teardown.
"""

import sys
import tomllib
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import pytest

__all__ = ["FILE", "NIGHTLY", "Part", "module_of", "programs_of", "read", "select"]

FILE = Path(__file__).resolve().parents[1] / "durations.toml"
NIGHTLY = "nightly"

_HEAD = """\
# Written by `make test-all ARGS=--keep-durations`. For each module, what `make test` runs, and what only
# `make test-all` runs: cases, seconds, programs that were started, and those ended by SIGKILL.
"""
_START = frozenset({"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn"})
_KILL = frozenset({"os.kill", "os.killpg"})


@dataclass
class Part:
    """What was measured of the tests of one module that belong to one part of the suite."""

    cases: int = 0
    seconds: float = 0.0
    programs: int = 0
    kills: int = 0

    def add(self, other: Self) -> None:
        """Count another one in."""
        self.cases += other.cases
        self.seconds += other.seconds
        self.programs += other.programs
        self.kills += other.kills


Durations = Mapping[str, Mapping[str, Part]]
"""By module, below `tests/`, and then by part: `daily` or `nightly`."""


def read(file: Path = FILE) -> dict[str, dict[str, Part]]:
    """Return what was measured last; nothing if the file is missing."""
    if not file.exists():
        return {}
    rows = tomllib.loads(file.read_text(encoding="utf-8"))
    return {
        module: {part: Part(*values) for part, values in parts.items()}
        for module, parts in rows.items()
    }


def select(durations: Durations, expression: str) -> dict[str, Part]:
    """Return the part of each module that pytest runs with this expression of markers."""
    wanted = {f"not {NIGHTLY}": ["daily"], NIGHTLY: [NIGHTLY]}.get(expression, ["daily", NIGHTLY])
    selected: dict[str, Part] = {}
    for module, parts in durations.items():
        for part in wanted:
            if part in parts:
                selected.setdefault(module, Part()).add(parts[part])
    return selected


def module_of(nodeid: str) -> str:
    """Return the module of a test, as its path below `tests/`."""
    return nodeid.partition("::")[0].removeprefix("tests/")


def programs_of(report: pytest.TestReport) -> int:
    """Return how many programs a test had started by the end of this phase."""
    return sum(value for name, value in report.user_properties if name == "programs")


@dataclass(eq=False)
class Programs:
    """Counts the programs that this process starts, and those that it ends by SIGKILL."""

    started: int = 0
    killed: int = 0

    def note(
        self,
        event: str,
        arguments: tuple[Any, ...],
        start: frozenset[str] = _START,
        kill: frozenset[str] = _KILL,
    ) -> None:
        """Count an event of the interpreter; at its end, no global is left to look at."""
        if event in start:
            self.started += 1
        elif event in kill and arguments[1] == 9:
            self.killed += 1

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self) -> None:
        """Count from zero: what was started while tests were collected belongs to none."""
        self.started = self.killed = 0

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Note in the report what was started and killed; what a teardown kills is no crash."""
        report = yield
        if call.when == "setup":
            found = {"programs": self.started, "kills": 0}
        else:
            found = {"programs": self.started, "kills": self.killed if call.when == "call" else 0}
        self.started = self.killed = 0
        report.user_properties += [(name, value) for name, value in found.items() if value]
        return report


@dataclass(eq=False)
class Keeper:
    """Adds up what the reports of a run say, and writes it at its end."""

    nightly: set[str] = field(default_factory=set)
    found: dict[str, dict[str, Part]] = field(default_factory=dict)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add a phase of a test."""
        part = NIGHTLY if NIGHTLY in report.keywords else "daily"
        parts = self.found.setdefault(module_of(report.nodeid), {})
        kills = sum(value for name, value in report.user_properties if name == "kills")
        parts.setdefault(part, Part()).add(
            Part(report.when == "setup", report.duration, programs_of(report), kills)
        )

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Write the file, with what earlier runs measured of what this one did not run."""
        if exitstatus == pytest.ExitCode.INTERRUPTED:
            return  # parts of modules are no measurement
        modules = read()
        for module, parts in self.found.items():
            modules[module] = modules.get(module, {}) | parts
        kept = {name: modules[name] for name in modules if (FILE.parent / name).exists()}
        FILE.write_text(_HEAD + "".join(_lines(kept)), encoding="utf-8")


def _lines(found: Durations) -> Iterable[str]:
    for module, parts in sorted(found.items()):
        cells = (
            f"{name} = [{part.cases}, {part.seconds:.2f}, {part.programs}, {part.kills}]"
            for name, part in sorted(parts.items())
        )
        yield f'"{module}" = {{ {", ".join(cells)} }}\n'


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--keep-durations`."""
    text = "write what the modules of this run take to tests/durations.toml"
    parser.addoption("--keep-durations", action="store_true", help=text)


def pytest_configure(config: pytest.Config) -> None:
    """Count programs where tests run, and keep what they took where reports arrive."""
    programs = Programs()
    sys.addaudithook(programs.note)
    config.pluginmanager.register(programs)
    if config.getoption("keep_durations") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Keeper())
