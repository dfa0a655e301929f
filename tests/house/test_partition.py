"""What `make test` runs: at least one real test of each promise, command group, machine and interface.

A test is real if it starts programs, as it was measured for `tests/durations.toml`; one of a promise
about crashes ends a program by SIGKILL, too.
"""

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from simulation.rules import RULES
from support import durations
from support.durations import NIGHTLY, Part
from support.echo import walk

from steersman.gateway.commands.registry import DECLARED
from steersman.machines.catalogue import MACHINES
from steersman.workflows.plugins import GATEWAYS

MOST_SECONDS = 1_200.0
"""Seconds of all tests of `make test`, as measured with four at a time: five minutes."""
MACHINE_TESTS = {
    "session": "blackbox/test_session_commands.py",
    "queue": "blackbox/test_queue_commands.py",
    "item": "blackbox/test_saved_queue.py",
    "turn": "blackbox/test_turn.py",
    "call": "blackbox/test_crash.py",
    "interrupt": "blackbox/test_interrupt.py",
    "goal": "blackbox/test_goal.py",
    "judge": "blackbox/test_goal.py",
    "subagent": "blackbox/test_delegation.py",
    "child": "blackbox/test_delegation.py",
    "run": "blackbox/test_run.py",
    "step": "blackbox/test_run_ends.py",
    "work": "extensions/ray/test_refusals.py",
    "revert": "blackbox/test_revert.py",
    "restore": "cli/test_restore.py",
}
INTERFACE_TESTS = {
    "chat": "screen/test_keys.py",
    "chat --json": "blackbox/test_turn.py",
    "chat --plain": "blackbox/test_input.py",
    "attach": "blackbox/test_attach.py",
    "send": "blackbox/test_data_elsewhere.py",
    "run": "blackbox/test_run.py",
    "acp": "blackbox/test_data_elsewhere.py",
    "mcp": "blackbox/test_data_elsewhere.py",
    "serve": "blackbox/test_serve.py",
    "page": "web/test_page.py",
    "library": "library/test_sessions.py",
    "node": "blackbox/test_node.py",
    "irc": "extensions/irc/test_irc.py",
    "matrix": "extensions/matrix/test_matrix.py",
    "telegram": "extensions/telegram/test_telegram.py",
}

SHIPPED = {name for name, at in GATEWAYS.by_name.items() if at.distribution == "steersman"}
"""The chat platforms."""


@pytest.fixture
def daily(request: pytest.FixtureRequest, root: Path) -> dict[str, list[pytest.Item]]:
    """The tests of `make test` by module, in a run that collects every suite."""
    found: dict[str, list[pytest.Item]] = {}
    for item in request.session.items:
        if item.get_closest_marker(NIGHTLY) is None:
            found.setdefault(durations.module_of(item.nodeid), []).append(item)
    tests = root / "tests"
    for path in (tests / "extensions").rglob("test_*.py"):  # run when their extension is touched
        found.setdefault(path.relative_to(tests).as_posix(), [])
    suites = {path.parent.name for path in tests.glob("*/test_*.py")}
    if missing := suites - {module.partition("/")[0] for module in found}:
        pytest.skip(f"only a run of all suites knows; this one is without {', '.join(missing)}")
    return found


@pytest.fixture
def measured() -> dict[str, Part]:
    """What `make test` took of each module, when it was measured."""
    return durations.select(durations.read(), f"not {NIGHTLY}")


def real(modules: Iterable[str], measured: Mapping[str, Part]) -> list[Part]:
    """Return what was measured of those modules that start programs."""
    parts = [measured[module] for module in modules if module in measured]
    return [part for part in parts if part.programs]


def test_each_promise_has_a_real_test(root: Path, daily: Any, measured: dict[str, Part]) -> None:
    """One of its tests starts programs, and kills one if the promise is about crashes."""
    rows = tomllib.loads((root / "docs" / "promises.toml").read_text(encoding="utf-8"))
    for row in rows["promise"]:
        found = real(daily.keys() & row["tests"], measured)
        assert found, f"`make test` runs no program for: {row['text']}"
        if row.get("crash"):
            assert any(part.kills for part in found), f"nothing is killed for: {row['text']}"


def test_each_command_group_has_a_real_test(daily: Any, measured: dict[str, Part]) -> None:
    """A test that checks the data of one of its commands starts programs."""
    checked = {
        name
        for module, items in daily.items()
        if real([module], measured)
        for item in items
        for marker in item.iter_markers("checks_data")
        for name in marker.args
    }
    groups = {name.partition(" ")[0] for name, _ in walk()}
    assert groups - {name.partition(" ")[0] for name in checked} == set()
    sections = {command.group for command in DECLARED.values()}
    assert (
        sections
        - {DECLARED[name.removeprefix("/")].group for name in checked if name.startswith("/")}
        == set()
    )


@pytest.mark.parametrize(
    ("tests", "names"),
    [
        (MACHINE_TESTS, {*MACHINES}),
        (INTERFACE_TESTS, SHIPPED | INTERFACE_TESTS.keys()),
    ],
    ids=["machines", "interfaces"],
)
def test_each_has_a_real_test(
    tests: Mapping[str, str], names: set[str], daily: Any, measured: dict[str, Part]
) -> None:
    """The module that is named for it starts programs in `make test`."""
    assert tests.keys() == names
    without = {
        name for name, module in tests.items() if not real(daily.keys() & {module}, measured)
    }
    assert without == set()


def test_each_rule_has_its_test(daily: Any) -> None:
    """A rule of the code that is broken makes a test of `make test` fail."""
    functions = {item.nodeid.partition("[")[0] for items in daily.values() for item in items}
    assert {at.test for rule in RULES for at in rule.breaks} - functions == set()


def test_the_day_is_short(daily: Any, measured: dict[str, Part]) -> None:
    """What `make test` always runs took little enough when it was measured.

    The tests of an extension come to it where the extension was touched, and in continuous integration.
    """
    run = [
        part
        for module, part in measured.items()
        if daily.get(module) and not module.startswith("extensions/")
    ]
    assert sum(part.seconds for part in run) < MOST_SECONDS
