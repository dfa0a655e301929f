"""What all suites share: bounds that fit the machine, the seeds of a run, and what a run prints."""

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from random import SystemRandom

import pytest
from support import patience

import steersman

pytest_plugins = [
    "support.clean_root",
    "support.coroutines",
    "support.durations",
    "support.postgres_server",
    "support.progress",
    "support.second_try",
]

ROOT = Path(__file__).resolve().parents[1]
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SEEDS = "STEERSMAN_SEEDS"
"""The first seed of all that is drawn in a run; a run that is given one draws the same again."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--slower`; workers and the processes of tests find it in their environment."""
    text = f"multiply every bound of a wait by this (otherwise by {patience.FACTOR:g})"
    parser.addoption("--slower", type=float, metavar="N", help=text)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Refuse to test another checkout than this one; hand on the seeds, and how slow the machine is.

    What `nohup` or a shell has ignored would be ignored by the programs that are tested, too.
    """
    for number in SIGNALS:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(
                number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            )
    found = Path(steersman.__file__).resolve().parent
    if found != ROOT:
        pytest.exit(
            f"`import steersman` finds {found}; `make test` sets up this checkout's .venv", 4
        )
    if slower := config.getoption("slower"):
        os.environ[patience.VARIABLE] = patience.given = str(slower)
    first = int(os.environ.setdefault(SEEDS, str(SystemRandom().randrange(1 << 31))))
    if config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(first)


@pytest.fixture(autouse=True)
def same_signals() -> Iterator[None]:
    """Let no test leave a signal ignored: what a later one starts from here would ignore it, too."""
    before = [signal.getsignal(number) for number in SIGNALS]
    yield
    for number, handler in zip(SIGNALS, before, strict=True):
        if signal.getsignal(number) != handler:
            signal.signal(number, handler)


def pytest_report_header() -> str:
    """Print what repeats this run's draws."""
    return f"seeds: {SEEDS}={os.environ[SEEDS]}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give every test as much more time as the waits inside."""
    usual = float(config.getini("timeout"))
    for item in items:
        marker = item.get_closest_marker("timeout")
        quiet = marker.args[0] if marker else usual
        item.add_marker(pytest.mark.timeout(patience.seconds(quiet)), append=False)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name the seeds that were drawn for the simulator, and what their runs came upon."""
    noted = [
        value
        for outcome in ("passed", "failed")
        for report in terminalreporter.getreports(outcome)
        for name, value in report.user_properties
        if name == "simulation"
    ]
    if noted:
        from simulation.coverage import summary

        terminalreporter.section("simulation")
        for line in summary(noted):
            terminalreporter.write_line(line)


def pytest_collection_finish() -> None:
    """Keep what was collected out of every later look for garbage: it stays."""
    gc.collect()
    gc.freeze()
