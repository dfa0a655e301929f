"""The messages about problems in any declared file."""

from typing import Annotated, Any, Literal

import pytest
from pydantic import Field, ValidationError, model_validator

from steersman.workflows.config import shipped
from steersman.workflows.declaration import Declaration, Several
from steersman.workflows.problem import Problem, dotted, problems_of, shown


class Part(Declaration, frozen=True):
    """A table in a table."""

    low: int = 0
    high: int = 9

    @model_validator(mode="after")
    def _is_ordered(self) -> "Part":
        if self.low > self.high:
            raise ValueError("has `low` above `high`")
        return self


class Whole(Declaration, frozen=True):
    """Something else that people might declare."""

    version: Literal[1, 2] = 1
    small: Annotated[int, Field(le=5)] = 0
    token: int = 0
    parts: Several[Part] = ()

    @model_validator(mode="after")
    def _has_no_more_parts_than_small(self) -> "Whole":
        if len(self.parts) > self.small:
            raise ValueError("there are more `parts` than `small` says")
        return self


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (
            {"version": 3},
            Problem(where=("version",), message="`version` must be one of `1`, `2`, not 3"),
        ),
        (
            {"small": 7},
            Problem(
                where=("small",),
                message="`small` is wrong: Input should be less than or equal to 5",
            ),
        ),
        (
            {"token": "x"},
            Problem(where=("token",), message="`token` must be a whole number, not what it is"),
        ),
        (
            {"small": 1, "parts": [{"low": 10}]},
            Problem(where=("parts", 0), message="`parts[0]` has `low` above `high`"),
        ),
        ({"parts": [{}]}, Problem(where=(), message="there are more `parts` than `small` says")),
        (
            {"parts": [{"lo": 1}]},
            Problem(
                where=("parts", 0, "lo"),
                message="unknown key `parts[0].lo`",
                value=1,
                at_value=False,
                is_unknown=True,
            ),
        ),
    ],
)
def test_every_kind_of_fault_is_a_sentence(data: dict[str, Any], problem: Problem) -> None:
    """Errors of pydantic and of a model's own validators are reported with their path."""
    with pytest.raises(ValidationError) as caught:
        Whole.model_validate(data)
    assert problems_of(caught.value) == [problem]


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
