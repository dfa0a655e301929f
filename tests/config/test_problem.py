"""The messages about problems in any declared file."""

from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta

from steersman.workflows.config import shipped
from steersman.workflows.problem import Problem, dotted, shown
from steersman.workflows.typed_table import TypedTable, read_table


class Part(TypedTable):
    """A table in a table."""

    low: int = 0
    high: int = 9

    def check(self) -> None:
        """Refuse bounds that are the wrong way round."""
        if self.low > self.high:
            raise ValueError("has `low` above `high`")


class Whole(TypedTable):
    """Something else that people might declare."""

    version: Literal[1, 2] = 1
    small: Annotated[int, Meta(le=5)] = 0
    token: int = 0
    parts: tuple[Part, ...] = ()

    def check(self) -> None:
        """Refuse more parts than it says."""
        if len(self.parts) > self.small:
            raise ValueError("there are more `parts` than `small` says")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({"version": 3}, Problem(("version",), "`version` must be one of `1`, `2`, not 3")),
        (
            {"small": 7},
            Problem(("small",), "`small` is wrong: Input should be less than or equal to 5"),
        ),
        ({"token": "x"}, Problem(("token",), "`token` must be a whole number, not what it is")),
        (
            {"small": 1, "parts": [{"low": 10}]},
            Problem(("parts", 0), "`parts[0]` has `low` above `high`"),
        ),
        ({"parts": [{}]}, Problem((), "there are more `parts` than `small` says")),
        (
            {"parts": [{"lo": 1}]},
            Problem(
                ("parts", 0, "lo"),
                "unknown key `parts[0].lo`",
                value=1,
                at_value=False,
                is_unknown=True,
            ),
        ),
    ],
)
def test_every_kind_of_fault_is_a_sentence(data: dict[str, Any], problem: Problem) -> None:
    """Wrong values, and what the tables' own checks say of them, are reported with their path."""
    assert read_table(Whole, data) == (None, [problem])


def test_what_was_declared_stays() -> None:
    """Settings cannot be changed after they were read."""
    with pytest.raises(AttributeError, match="immutable"):
        setattr(shipped(), "default_agent", "judge")  # noqa: B010 - a type checker forbids the rest


@pytest.mark.parametrize(
    ("where", "text"),
    [
        (("permissions", "rules", 0, "tool"), "permissions.rules[0].tool"),
        (("agents", "a b", "model"), 'agents."a b".model'),
        (("models", "*"), "models.*"),
        ((), ""),
    ],
)
def test_paths_are_written_as_people_do(where: tuple[str | int, ...], text: str) -> None:
    """A path reads like a key of the file."""
    assert dotted(where) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (1.5, "1.5"),
        ({"a": 1}, "a table"),
        ([1], "a list"),
        ("\x1b", '"\\u001b"'),
        ("x" * 99, '"' + "x" * 39 + '…"'),
    ],
)
def test_values_are_shown_short_and_harmless(value: object, text: str) -> None:
    """A value is repeated as it might stand in the file, cut and without control characters."""
    assert shown(value) == text
