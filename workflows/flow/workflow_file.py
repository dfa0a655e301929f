"""A workflow file as people write it: the tables `[workflow]` and `[[step]]`, word by word.

Everything else in the file belongs to the configuration (`config.toml` explains it): agents, models,
routes, hooks, permissions and the rest are a layer of it that holds for the run.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from ...machines.errors import UsageError
from ..document import Declaration, Document, Several, is_list, is_table, parse_document
from ..fault import shown
from ..paths import Paths
from ..spelling import UserName

# Which workflows have a name: those of a person, those that are shipped, those of a folder --------
# A name is looked up in this order, so that a folder from somewhere else can't put its own file in the
# place of one that a person knows. A path is always just that file.


SHIPPED_WORKFLOWS = Path(__file__).parent.parent / "library"


@dataclass(frozen=True, slots=True)
class NamedWorkflow:
    """One that can be run by its name; `origin` is user, built-in or project.

    `is_hidden`: an earlier one has the same name, and this one is reached by its path alone.
    """

    name: str
    origin: str
    path: Path
    description: str
    is_hidden: bool = False


def list_workflows(paths: Paths, folder: Path) -> list[NamedWorkflow]:
    """List all workflows with a name, in the order in which names are looked up."""
    found: list[NamedWorkflow] = []
    for origin, place in _places(paths, folder):
        for path in sorted(place.glob("*.toml")):
            is_hidden = any(one.name == path.stem for one in found)
            found.append(NamedWorkflow(path.stem, origin, path, _description(path), is_hidden))
    return found


def find_workflow(name: str, paths: Paths, folder: Path) -> Path:
    """Return the file that a name or a path in `folder` means. Raises `UsageError` with the nearest."""
    path = folder / Path(name).expanduser()
    if os.path.isfile(path) or "/" in name or name.endswith(".toml"):
        return path
    known = [one for one in list_workflows(paths, folder) if not one.is_hidden]
    for one in known:
        if one.name == name:
            return one.path
    names = [one.name for one in known]
    near = get_close_matches(name, names, 1)
    meant = f"did you mean `{near[0]}`? " if near else ""
    raise UsageError(
        f"there is no workflow `{name}`", f"{meant}known: {', '.join(names)}; or give a file"
    )


def _places(paths: Paths, folder: Path) -> Iterator[tuple[str, Path]]:
    yield "user", paths.config / "workflows"
    yield "built-in", SHIPPED_WORKFLOWS
    yield "project", folder / ".steersman" / "workflows"


def _description(path: Path) -> str:
    """Read what a file says of itself, whatever else may be wrong in it."""
    try:
        document, _ = parse_document(str(path), path.read_bytes())
    except OSError:
        document = Document(str(path))
    head = document.data.get("workflow")
    description = head.get("description") if is_table(head) else ""
    return description.strip() if isinstance(description, str) else ""


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
    """What the workflow is called, and what holds for all of it."""

    name: Annotated[
        UserName | None, Field(description="Its name; the file's, when it is left out.")
    ] = None
    description: Annotated[str, Field(description="What it does, in a sentence for lists.")] = ""
    vars: Annotated[
        dict[_Name, _Any],
        Field(description="Variables with their defaults; `--var NAME=VALUE` sets another value."),
    ] = Field(default_factory=dict[str, Any])
    required: Annotated[
        Several[_Name],
        Field(description="Names of variables without a default: a run has to be given them."),
    ] = ()
    parallel: Annotated[
        int,
        Field(ge=1, description="How many commands and sessions of a run work at a time, at most."),
    ] = 8
    timeout: Annotated[_Seconds, Field(description="Seconds for the whole run; 0: no bound.")] = 0.0
    output: Annotated[
        str, Field(description="Template for what the run leaves: printed at its end.")
    ] = ""


class RetryLine(Declaration, frozen=True):
    """How a failed attempt is repeated."""

    max: Annotated[int, Field(ge=0, description="How many times it is repeated, at most.")]
    backoff: Annotated[
        _Seconds, Field(description="Seconds before the first time; doubled each time after.")
    ] = 1.0


class GoalLine(Declaration, frozen=True):
    """What must be true before an agent's step is done; `docs/goals.md` tells more."""

    text: Annotated[_Text, Field(description="What must be true, for the judge. A template.")]
    gates: Annotated[
        Several[_Words],
        Field(description="Commands that must succeed before the judge is asked. Templates."),
    ] = ()
    max_turns: Annotated[
        int | None, Field(ge=1, description="Turns that it may take; as configured if left out.")
    ] = None


class JudgeLine(Declaration, frozen=True):
    """A question to a judge, an agent that answers with a verdict and a reason."""

    text: Annotated[_Text, Field(description="What should be true. A template.")]
    of: Annotated[str, Field(description="What it is about. A template.")] = ""
    agent: Annotated[str, Field(description="Who judges; `goals.judge` if left out.")] = ""


class AskLine(Declaration, frozen=True):
    """A question to the person who watches the run."""

    text: Annotated[_Text, Field(description="The question. A template.")]
    options: Annotated[
        Several[_Text], Field(description="The answers to choose from; empty: any text.")
    ] = ("yes", "no")
    default: Annotated[
        str | None,
        Field(description="The answer where nobody gives one; without it the step then fails."),
    ] = None
    timeout: Annotated[
        _Seconds, Field(description="Seconds to wait for an answer; 0: for ever.")
    ] = 0.0


class StepLine(Declaration, frozen=True):
    """One step: what it does (one of the first keys), when, how often, and what becomes of it."""

    id: Annotated[_Name, Field(description="Its name, for `needs` and `steps.ID`.")]
    description: Annotated[str, Field(description="What it does, for people.")] = ""
    run: Annotated[
        _Words | None,
        Field(description="A program and its arguments. Each is a template, and stays one."),
    ] = None
    shell: Annotated[
        _Text | None,
        Field(description="A text for `sh -c`. No template: values come in by `env`."),
    ] = None
    agent: Annotated[
        str | None,
        Field(description="The agent that gets `prompt`; `default_agent` if left out."),
    ] = None
    prompt: Annotated[
        _Text | None,
        Field(description="What an agent is told, in a session of its own. A template."),
    ] = None
    goal: Annotated[
        GoalLine | None,
        Field(
            description="When the agent's work is done; its text is the prompt if there is none."
        ),
    ] = None
    judge: Annotated[
        JudgeLine | None, Field(description="A question to a judge; the answer is a verdict.")
    ] = None
    ask: Annotated[
        AskLine | None, Field(description="A question to the person; the answer is the output.")
    ] = None
    workflow: Annotated[
        _Text | None, Field(description="Another workflow: its name, or a path beside this file.")
    ] = None
    vars: Annotated[
        dict[_Name, _Any] | None, Field(description="Variables for it. Texts are templates.")
    ] = None
    needs: Annotated[
        Several[str], Field(description="Steps that must have ended before this one begins.")
    ] = ()
    when: Annotated[
        _Text | None,
        Field(description="Condition, an expression: when it is false the step is skipped."),
    ] = None
    for_each: Annotated[
        _Items | None,
        Field(description="Expression for a list, or a list: the step is done for each item."),
    ] = None
    parallel: Annotated[
        int | None,
        Field(ge=1, description="How many items are worked on at a time; 1 if left out."),
    ] = None
    retry: Annotated[
        RetryLine | None, Field(description="Whether a failed attempt is repeated.")
    ] = None
    timeout: Annotated[
        _Seconds, Field(description="Seconds for each attempt; 0: as long as it takes.")
    ] = 0.0
    output: Annotated[
        Literal["text", "lines", "json"] | None,
        Field(description="How what it says is read; `text` if left out."),
    ] = None
    json_schema: Annotated[
        dict[str, Any] | None,
        Field(alias="schema", description="JSON Schema that its JSON must fit, or it has failed."),
    ] = None
    env: Annotated[
        dict[str, str] | None, Field(description="Variables of the environment. Templates.")
    ] = None
    cwd: Annotated[
        str | None, Field(description="Folder for a command, from the run's own. A template.")
    ] = None
    exit_codes: Annotated[
        Several[_Code] | None,
        Field(min_length=1, description="Exit codes that are no failure; `[0]` if left out."),
    ] = None
    continue_on_error: Annotated[
        bool, Field(description="Whether others go on as if it were done when it fails.")
    ] = False
    idempotent: Annotated[
        bool,
        Field(
            description="Whether it may run again when a crash left open whether it had ended; "
            "otherwise a resumed run asks."
        ),
    ] = False
    is_final: Annotated[
        bool,
        Field(
            alias="finally",
            description="Whether it runs at the end, behind all others, however they ended.",
        ),
    ] = False


class WorkflowFile(Declaration, frozen=True):
    """What is a workflow's own in its file."""

    workflow: Annotated[WorkflowLine, Field(description="What holds for the whole of it.")]
    step: Annotated[Several[StepLine], Field(min_length=1, description="The steps, in any order.")]
