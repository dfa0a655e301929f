"""A workflow file as people write it: the tables `[workflow]` and `[[step]]`, word by word.

Everything else in the file belongs to the configuration (`config.toml` explains it): agents, models,
routes, hooks, permissions and the rest are a layer of it that holds for the run.
"""

import os
import re
import shlex
from datetime import date, datetime, time
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, field

from ...machines.errors import UsageError
from ...machines.value import Value
from ..document import is_list, is_table, read_document
from ..home_folder import expanded
from ..paths import Paths
from ..problem import did_you_mean, shown
from ..suggestions import UserName, is_path
from ..trust import BESIDE, counts, state_of
from ..typed_table import Check, TypedTable, must
from .spec import (
    AskAction,
    Form,
    GoalSpec,
    JudgeAction,
    Name,
    RemoteNeeds,
    Retry,
    Seconds,
    Text,
    Words,
)

# Which workflows have a name: those of a person, those that are shipped, those of a trusted folder
# A name is looked up in this order, so that a folder from somewhere else can't put its own file in the
# place of one that a person knows. A path is always just that file, and a bare word never one.


SHIPPED_WORKFLOWS = Path(__file__).parent.parent / "library"


class NamedWorkflow(Value):
    """A workflow that can be run by its name; `origin` is user, built-in or project.

    `is_hidden`: an earlier one has the same name, or the folder is not trusted; this one is reached by
    its path alone.
    """

    name: str
    origin: str
    path: Path
    description: str
    is_hidden: bool = False


def list_workflows(paths: Paths, folder: Path) -> list[NamedWorkflow]:
    """List all workflows with a name, in the order in which names are looked up."""
    found: list[NamedWorkflow] = []
    places = {
        "user": paths.config / "workflows",
        "built-in": SHIPPED_WORKFLOWS,
        "project": folder / BESIDE / "workflows",
    }
    for origin, place in places.items():
        is_foreign = origin == "project" and not counts(paths, folder, BESIDE)
        for path in sorted(place.glob("*.toml")):
            is_hidden = is_foreign or any(workflow.name == path.stem for workflow in found)
            found.append(
                NamedWorkflow(
                    name=path.stem,
                    origin=origin,
                    path=path,
                    description=_description(path),
                    is_hidden=is_hidden,
                )
            )
    return found


def find_workflow(name: str, paths: Paths, folder: Path) -> Path:
    """Return the file that a name or a path in `folder` means. Raises `UsageError` with the nearest."""
    if is_path(name):
        return folder / expanded(name)
    listed = list_workflows(paths, folder)
    for workflow in listed:
        if workflow.name == name and not workflow.is_hidden:
            return workflow.path
    names = [workflow.name for workflow in listed if not workflow.is_hidden]
    ours = [workflow.path for workflow in listed if workflow.name == name]
    file = os.path.relpath(ours[0], folder) if ours else f"./{name}"
    if " " in name:
        raise UsageError(
            f"there is no workflow `{name}`",
            f"`steersman chat {shlex.quote(name)}` asks an agent; `run` runs a workflow's file",
        )
    known = f"known: {', '.join(names)}; a file is given by its path, as `{file}`"
    if ours:
        known += f", which {state_of(paths, folder, BESIDE)}: `steersman trust`"
    raise UsageError(
        f"there is no workflow `{name}`", known if ours else did_you_mean(name, names, known)
    )


def _description(path: Path) -> str:
    """Read the description in a file, also if other parts are invalid."""
    document, _ = read_document(path)
    head = document.data.get("workflow")
    description = head.get("description") if is_table(head) else ""
    return description.strip() if isinstance(description, str) else ""


STARTER = Path(__file__).parent.parent / "starter.toml"


def starter(name: str) -> str:
    """Return the commented example that `steersman workflow new` writes, under this name."""
    return STARTER.read_text(encoding="utf-8").replace("starter", name)


ACTION_KEYS = ("run", "shell", "call", "prompt", "goal", "judge", "ask", "workflow")
"""Keys of the actions of a step."""


def _check_variable(value: Any) -> Any:
    """Refuse dates: JSON has none, so no template could use them."""
    if isinstance(value, datetime | date | time):
        raise ValueError("must be a text, a number, true, false, a list or a table, not a date")
    inner: list[Any] = [*value.values()] if is_table(value) else value if is_list(value) else []
    for element in inner:
        _check_variable(element)
    return value


def _check_items(value: Any) -> Any:
    if is_list(value):
        return tuple(_check_variable(value))
    if isinstance(value, str) and value.strip():
        return value
    raise ValueError(f"must be an expression in quotes, or a list, not {shown(value)}")


_Any = Annotated[Any, Check(_check_variable)]
_Items = Annotated[Any, Check(_check_items, {"type": ["string", "array"]})]
_PLACE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
"""The form of a place; whether anything is there is not looked at, since a check imports no code."""
_Place = Annotated[
    str,
    must(lambda place: _PLACE.fullmatch(place), "must be `package.module:function`, not {}"),
]
_CODES = {"type": "integer", "minimum": 0, "maximum": 255}
_Code = Annotated[int, must(lambda code: 0 <= code <= 255, "must be from 0 to 255, not {}", _CODES)]


class WorkflowLine(TypedTable):
    """Name, variables and bounds of the whole workflow."""

    name: UserName | None = None
    """Its name; if left out, the name of the file."""
    description: str = ""
    """What it does, in one sentence, for lists."""
    vars: dict[Name, _Any] = field(default_factory=dict[str, Any])
    """Variables with default values; `--var NAME=VALUE` sets another value."""
    required: tuple[Name, ...] = ()
    """Variables without a default; each run must set them."""
    parallel: Annotated[int, Meta(ge=1)] = 8
    """Maximum number of commands and sessions that run in parallel."""
    timeout: Seconds = 0.0
    """Seconds that the run may work, all its parts together; 0: no limit."""
    output: str = ""
    """Template for the output of the run, printed at its end."""


class StepLine(TypedTable):
    """One step: its action (one of the first keys), conditions, repetition and output."""

    id: Name
    """The name of the step, for `needs` and `steps.ID`."""
    description: str = ""
    """What the step does, for people."""
    run: Words | None = None
    """A program and its arguments. Each is a template and stays one argument."""
    shell: Text | None = None
    """A text for `sh -c`. Not a template: pass values in `env`."""
    call: _Place | None = None
    """A Python function, `package.module:function`, that runs in a process of its own. What it returns
    is the output."""
    given: dict[Name, _Any] | None = field(default=None, name="with")
    """Arguments of the function. Texts are templates."""
    agent: str | None = None
    """The agent that gets `prompt`; if left out, `default_agent`."""
    prompt: Text | None = None
    """The first message to an agent, in a new session. A template."""
    goal: GoalSpec | None = None
    """The agent's goal; its text is the prompt if there is none."""
    judge: JudgeAction | None = None
    """A question to a judge; the answer is a verdict."""
    ask: AskAction | None = None
    """A question to the person; the answer is the output."""
    workflow: Text | None = None
    """Another workflow: its name, or a path relative to this file."""
    vars: dict[Name, _Any] | None = None
    """Variables for that workflow. Texts are templates."""
    needs: tuple[str, ...] = ()
    """Steps that must have ended before this one begins."""
    when: Text | None = None
    """Condition, an expression; if false, the step is skipped."""
    for_each: _Items | None = None
    """A list, or an expression for one: the step runs for each item."""
    parallel: Annotated[int, Meta(ge=1)] | None = None
    """How many items run in parallel; if left out, 1."""
    retry: Retry | None = None
    """Repetition of failed attempts."""
    timeout: Seconds = 0.0
    """Time limit for each attempt in seconds; 0: no limit."""
    output: Form | None = None
    """How the output is read; if left out, `text`."""
    json_schema: dict[str, Any] | None = field(default=None, name="schema")
    """JSON Schema that the output must match."""
    remote: RemoteNeeds | None = None
    """What the command needs where it runs; see [Remote steps](#remote-steps)."""
    env: dict[str, str] | None = None
    """Environment variables. Templates."""
    cwd: str | None = None
    """Folder of a command, relative to the run's folder. A template."""
    exit_codes: Annotated[tuple[_Code, ...], Meta(min_length=1)] | None = None
    """Exit codes that count as success; if left out, `[0]`."""
    continue_on_error: bool = False
    """Whether other steps continue as if it were done when it fails."""
    idempotent: bool = False
    """Whether it may run again if a crash left its outcome unknown; otherwise a resumed run asks."""
    is_final: bool = field(default=False, name="finally")
    """Whether it runs at the end, after all other steps, whatever their outcome."""
    redo: tuple[str, ...] = ()
    """Steps to do anew, with all behind them, if a run that failed because of this one is tried again."""


class WorkflowFile(TypedTable):
    """The tables of the workflow in its file."""

    step: Annotated[tuple[StepLine, ...], Meta(min_length=1)]
    """The steps, in any order."""
    workflow: WorkflowLine = WorkflowLine()
    """Settings of the whole workflow."""
