"""Older names: each is replaced by the newer one, and named, in whatever holds it."""

import warnings
from typing import Any

import pytest

import steersman
from steersman.machines import deprecation
from steersman.machines.deprecation import (
    Deprecation,
    OlderName,
    rename_keys,
    renamed_arguments,
)

TABLE = (
    Deprecation("command", "sessions find", "sessions search", "0.1"),
    Deprecation("option", "sessions list --bytes", "sessions list --size", "0.1"),
    Deprecation("option", "chat --quick", "chat --plain", "0.1"),
    Deprecation("key", "mode", "busy.mode", "0.9"),
    Deprecation("key", "models.*.url", "models.*.base_url", "0.1"),
    Deprecation("key", "step.*.cmd", "step.*.run", "1.9"),
    Deprecation("member", "Machine.halt", "Machine.stop", "0.1"),
)


@pytest.mark.parametrize(
    ("typed", "meant", "older"),
    [
        ("sessions find zod", "sessions search zod", ["sessions find"]),
        ("sessions search find", "sessions search find", []),
        ("find sessions", "find sessions", []),
        ("sessions list --bytes --json", "sessions list --size --json", ["sessions list --bytes"]),
        ("sessions show --bytes", "sessions show --bytes", []),
        ("chat --quick=1 -- --quick", "chat --plain=1 -- --quick", ["chat --quick"]),
        ("--quick", "--plain", ["chat --quick"]),
        ("", "", []),
    ],
)
def test_a_command_line(typed: str, meant: str, older: list[str]) -> None:
    """Commands at its start, options of their command, and no words behind `--`."""
    words, said = renamed_arguments(typed.split(), TABLE)
    assert words == meant.split()
    assert said == [row.warning for row in TABLE if row.old in older]


@pytest.mark.parametrize(
    ("data", "meant", "count"),
    [
        ({"mode": 1}, {"busy": {"mode": 1}}, 1),
        ({"mode": 1, "busy": {"mode": 2, "x": 3}}, {"busy": {"mode": 2, "x": 3}}, 1),
        ({"mode": 1, "busy": 2}, {"busy": 2}, 1),
        ({"busy": {"mode": 2}}, {"busy": {"mode": 2}}, 0),
        (
            {"models": {"a": {"url": 1}, "b": {"url": 2}, "c": 3}},
            {"models": {"a": {"base_url": 1}, "b": {"base_url": 2}, "c": 3}},
            2,
        ),
        ({"step": [{"cmd": 1}, {"run": 2}]}, {"step": [{"run": 1}, {"run": 2}]}, 1),
        ({"models": [], "step": {}}, {"models": [], "step": {}}, 0),
    ],
)
def test_a_file(data: dict[str, Any], meant: dict[str, Any], count: int) -> None:
    """Keys move, also to another table and in lists; a newer one that is there counts."""
    said = rename_keys(data, TABLE)
    assert (data, len(said)) == (meant, count)


def test_the_warning_says_what_to_do_and_until_when() -> None:
    """It names both, the version of the newer name, and that without the older one."""
    assert TABLE[0].warning == (
        "the command `sessions find` is deprecated since 0.1 and removed in 0.2: "
        "use `sessions search`"
    )
    assert (TABLE[3].until, TABLE[5].until) == ("0.10", "1.10")


def test_no_row_outlives_its_time() -> None:
    """The minor version that is to be without an older name has no row for it."""
    now = tuple(map(int, steersman.__version__.split(".")[:2]))
    rows = deprecation.DEPRECATED
    assert [row.old for row in rows if tuple(map(int, row.until.split("."))) <= now] == []


class Machine:
    """A class with a method that had another name."""

    halt = OlderName(TABLE)

    def stop(self, why: str) -> str:
        """Return why it stops."""
        return f"stopped: {why}"


def test_a_method_under_its_older_name() -> None:
    """It is the same method, of an object and of the class, and the line that uses it is warned."""
    machine = Machine()
    for use in (lambda: machine.halt("x"), lambda: Machine.halt(machine, "x")):
        with pytest.warns(DeprecationWarning, match="use `Machine.stop`") as caught:
            assert use() == "stopped: x"
        assert [warning.filename for warning in caught] == [__file__]


def test_what_is_not_deprecated_is_not_there() -> None:
    """A name that the package never had is an error, and warns nobody."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(AttributeError, match="has no attribute `Runtime`"):
            steersman.Runtime  # noqa: B018
