"""A workflow file as people write it: the tables `[workflow]` and `[[step]]`, word by word.

Everything else in the file belongs to the configuration (`config.toml` explains it): agents, models,
routes, hooks, permissions and the rest are a layer of it that holds for the run.
"""

import re
from datetime import date, datetime, time
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from ..declaration import Declaration, Several
from ..document import is_list, is_table
from ..fault import shown
from ..name import UserName

__all__ = [
    "ACTION_KEYS",
    "AskLine",
    "GoalLine",
    "JudgeLine",
    "RetryLine",
    "StepLine",
    "WorkflowFile",
    "WorkflowLine",
]

ACTION_KEYS = ("run", "shell", "prompt", "goal", "judge", "ask", "workflow")
"""Keys that say what a step does."""


def _check_name(name: str) -> str:
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,63}", name):
        return name
    raise ValueError(
        "is not a name here: begin with a letter, then letters, digits, `_` and `-`, at most 64"
    )


def _check_variable(value: Any) -> Any:
    """Refuse what no template could use: dates, which JSON has not."""
    if isinstance(value, datetime | date | time):
        raise ValueError("must be a text, a number, true, false, a list or a table, not a date")
    inner: list[Any] = [*value.values()] if is_table(value) else value if is_list(value) else []
    for one in inner:
        _check_variable(one)
    return value


def _check_items(value: Any) -> Any:
    if is_list(value):
        return tuple(_check_variable(value))
    if isinstance(value, str) and value.strip():
        return value
    raise ValueError(f"must be an expression in quotes, or a list, not {shown(value)}")


def _check_words(words: tuple[str, ...]) -> tuple[str, ...]:
    if not words or not words[0].strip():
        raise ValueError("must begin with a program")
    if any("\0" in word for word in words):
        raise ValueError("holds a NUL character, which no program can be given")
    return words


def _check_text(text: str) -> str:
    if text.strip():
        return text
    raise ValueError("must not be empty")


def _check_code(code: int) -> int:
    if 0 <= code <= 255:
        return code
    raise ValueError(f"must be from 0 to 255, not {code}")


_Name = Annotated[str, AfterValidator(_check_name)]
_Any = Annotated[Any, BeforeValidator(_check_variable)]
_Items = Annotated[
    Any, BeforeValidator(_check_items), WithJsonSchema({"type": ["string", "array"]})
]
_Words = Annotated[Several[str], AfterValidator(_check_words)]
_Text = Annotated[
    str, AfterValidator(_check_text), WithJsonSchema({"type": "string", "minLength": 1})
]
_Code = Annotated[
    int,
    AfterValidator(_check_code),
    WithJsonSchema({"type": "integer", "minimum": 0, "maximum": 255}),
]
_Seconds = Annotated[float, Field(ge=0)]


class WorkflowLine(Declaration, frozen=True):
    """`[workflow]`."""

    name: UserName | None = None
    description: str = ""
    vars: dict[_Name, _Any] = Field(default_factory=dict[str, Any])
    required: Several[_Name] = ()
    parallel: Annotated[int, Field(ge=1)] = 8
    timeout: _Seconds = 0.0
    output: str = ""


class RetryLine(Declaration, frozen=True):
    """`retry`: how often, and how many seconds to wait before the first time."""

    max: Annotated[int, Field(ge=0)]
    backoff: _Seconds = 1.0


class GoalLine(Declaration, frozen=True):
    """`goal`: what must be true before an agent's step is done."""

    text: _Text
    gates: Several[_Words] = ()
    max_turns: Annotated[int, Field(ge=1)] | None = None


class JudgeLine(Declaration, frozen=True):
    """`judge`: what must be true, of what, and who says so."""

    text: _Text
    of: str = ""
    agent: str = ""


class AskLine(Declaration, frozen=True):
    """`ask`: a question to the person."""

    text: _Text
    options: Several[_Text] = ("yes", "no")
    default: str | None = None
    timeout: _Seconds = 0.0


class StepLine(Declaration, frozen=True):
    """`[[step]]`."""

    id: _Name
    description: str = ""
    run: _Words | None = None
    shell: _Text | None = None
    agent: str | None = None
    prompt: _Text | None = None
    goal: GoalLine | None = None
    judge: JudgeLine | None = None
    ask: AskLine | None = None
    workflow: _Text | None = None
    vars: dict[_Name, _Any] | None = None
    needs: Several[str] = ()
    when: _Text | None = None
    for_each: _Items | None = None
    parallel: Annotated[int, Field(ge=1)] | None = None
    retry: RetryLine | None = None
    timeout: _Seconds = 0.0
    output: Literal["text", "lines", "json"] | None = None
    json_schema: Annotated[dict[str, Any] | None, Field(alias="schema")] = None
    env: dict[str, str] | None = None
    cwd: str | None = None
    exit_codes: Annotated[Several[_Code], Field(min_length=1)] | None = None
    continue_on_error: bool = False
    idempotent: bool = False
    is_final: Annotated[bool, Field(alias="finally")] = False


class WorkflowFile(Declaration, frozen=True):
    """What is a workflow's own in its file."""

    workflow: WorkflowLine
    step: Annotated[Several[StepLine], Field(min_length=1)]
