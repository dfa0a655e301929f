"""A workflow file as people write it: the tables `[workflow]` and `[[step]]`, word by word.

Everything else in the file belongs to the configuration (`config.toml` explains it): agents, models,
routes, hooks, permissions and the rest are a layer of it that holds for the run.
"""

import os
import re
from collections.abc import Iterator
from datetime import date, datetime, time
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from ...machines.errors import UsageError
from ...machines.value import Value
from ..declaration import Declaration, Several
from ..document import is_list, is_table, read_document
from ..home_folder import expanded
from ..paths import Paths
from ..problem import shown
from ..settings import Size
from ..suggestions import UserName, is_path
from ..trust import is_trusted
from .spec import inner_path
from .template import is_template

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
    for origin, place in _places(paths, folder):
        is_foreign = origin == "project" and not is_trusted(paths, folder)
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
    near = get_close_matches(name, names, 1)
    meant = f"did you mean `{near[0]}`? " if near else ""
    ours = [workflow.path for workflow in listed if workflow.name == name]
    file = os.path.relpath(ours[0], folder) if ours else f"./{name}"
    raise UsageError(
        f"there is no workflow `{name}`",
        f"{meant}known: {', '.join(names)}; a file is given by its path, as `{file}`",
    )


def _places(paths: Paths, folder: Path) -> Iterator[tuple[str, Path]]:
    yield "user", paths.config / "workflows"
    yield "built-in", SHIPPED_WORKFLOWS
    yield "project", folder / ".steersman" / "workflows"


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


def _check_name(name: str) -> str:
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,63}", name):
        return name
    raise ValueError(
        "is not a name here: begin with a letter, then letters, digits, `_` and `-`, at most 64"
    )


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


def _check_words(words: tuple[str, ...]) -> tuple[str, ...]:
    if not words or not words[0].strip():
        raise ValueError("must begin with a program")
    if any("\0" in word for word in words):
        raise ValueError("contains a NUL character")
    return words


def _check_text(text: str) -> str:
    if text.strip():
        return text
    raise ValueError("must not be empty")


def _check_place(place: str) -> str:
    """Look at the form alone: a check imports no code."""
    if re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*", place):
        return place
    raise ValueError(f"must be `package.module:function`, not {shown(place)}")


def _check_code(code: int) -> int:
    if 0 <= code <= 255:
        return code
    raise ValueError(f"must be from 0 to 255, not {code}")


def _check_inner(text: str) -> str:
    """Look at a path that is written out; one that is filled in is looked at by the run."""
    if not is_template(text):
        inner_path(text)
    elif text.startswith(("/", "~")):
        raise ValueError(f"must be relative to the run's folder, not {shown(text)}")
    return text


_Name = Annotated[str, AfterValidator(_check_name)]
_Any = Annotated[Any, BeforeValidator(_check_variable)]
_Items = Annotated[
    Any, BeforeValidator(_check_items), WithJsonSchema({"type": ["string", "array"]})
]
_Words = Annotated[Several[str], AfterValidator(_check_words)]
_Text = Annotated[
    str, AfterValidator(_check_text), WithJsonSchema({"type": "string", "minLength": 1})
]
_Place = Annotated[str, AfterValidator(_check_place)]
_Code = Annotated[
    int,
    AfterValidator(_check_code),
    WithJsonSchema({"type": "integer", "minimum": 0, "maximum": 255}),
]
_Seconds = Annotated[float, Field(ge=0)]
_Inner = Annotated[
    str, AfterValidator(_check_inner), WithJsonSchema({"type": "string", "minLength": 1})
]


class WorkflowLine(Declaration, frozen=True):
    """Name, variables and bounds of the whole workflow."""

    name: Annotated[
        UserName | None, Field(description="Its name; if left out, the name of the file.")
    ] = None
    description: Annotated[str, Field(description="What it does, in one sentence, for lists.")] = ""
    vars: Annotated[
        dict[_Name, _Any],
        Field(description="Variables with default values; `--var NAME=VALUE` sets another value."),
    ] = Field(default_factory=dict[str, Any])
    required: Annotated[
        Several[_Name],
        Field(description="Variables without a default; each run must set them."),
    ] = ()
    parallel: Annotated[
        int,
        Field(ge=1, description="Maximum number of commands and sessions that run in parallel."),
    ] = 8
    timeout: Annotated[
        _Seconds,
        Field(description="Seconds that the run may work, all its parts together; 0: no limit."),
    ] = 0.0
    output: Annotated[
        str, Field(description="Template for the output of the run, printed at its end.")
    ] = ""


class RetryLine(Declaration, frozen=True):
    """How a failed attempt is repeated."""

    max: Annotated[int, Field(ge=0, description="Maximum number of repetitions.")]
    backoff: Annotated[
        _Seconds,
        Field(description="Seconds before the first repetition; doubled for each further one."),
    ] = 1.0


class GoalLine(Declaration, frozen=True):
    """The condition that ends an agent's step; see `docs/goals.md`."""

    text: Annotated[_Text, Field(description="The condition, for the judge. A template.")]
    gates: Annotated[
        Several[_Words],
        Field(description="Commands that must succeed before the judge is asked. Templates."),
    ] = ()
    max_turns: Annotated[
        int | None, Field(ge=1, description="Maximum number of turns; if left out, as configured.")
    ] = None


class JudgeLine(Declaration, frozen=True):
    """A question to a judge, an agent that answers with a verdict and a reason."""

    text: Annotated[_Text, Field(description="The statement to judge. A template.")]
    of: Annotated[str, Field(description="The text to judge it by. A template.")] = ""
    agent: Annotated[str, Field(description="The judging agent; if left out, `goals.judge`.")] = ""


class AskLine(Declaration, frozen=True):
    """A question to the person who watches the run."""

    text: Annotated[_Text, Field(description="The question. A template.")]
    options: Annotated[
        Several[_Text], Field(description="The possible answers; empty: any text.")
    ] = ("yes", "no")
    default: Annotated[
        str | None,
        Field(
            description="The answer if the person gives none; without a default the step then fails."
        ),
    ] = None
    timeout: Annotated[
        _Seconds, Field(description="Seconds to wait for an answer; 0: no limit.")
    ] = 0.0


class RemoteLine(Declaration, frozen=True):
    """What a command needs where it runs; with `steersman run --on` that is another machine."""

    cpus: Annotated[float, Field(ge=0, description="Processors; a fraction is possible.")] = 1.0
    gpus: Annotated[float, Field(ge=0, description="GPUs; a fraction is possible.")] = 0.0
    memory: Annotated[
        Size | None,
        Field(description='Memory, such as `"1 GiB"`; if left out, it is not reserved.'),
    ] = None
    inputs: Annotated[
        Several[_Inner],
        Field(
            description="Files and folders that the command reads, relative to the run's folder. "
            "Templates."
        ),
    ] = ()
    outputs: Annotated[
        Several[_Inner],
        Field(
            description="Files and folders that the command makes, relative to the run's folder. "
            "Templates. If one is not there afterwards, the step fails."
        ),
    ] = ()


class StepLine(Declaration, frozen=True):
    """One step: its action (one of the first keys), conditions, repetition and output."""

    id: Annotated[_Name, Field(description="The name of the step, for `needs` and `steps.ID`.")]
    description: Annotated[str, Field(description="What the step does, for people.")] = ""
    run: Annotated[
        _Words | None,
        Field(
            description="A program and its arguments. Each is a template and stays one argument."
        ),
    ] = None
    shell: Annotated[
        _Text | None,
        Field(description="A text for `sh -c`. Not a template: pass values in `env`."),
    ] = None
    call: Annotated[
        _Place | None,
        Field(
            description="A Python function, `package.module:function`, that runs in a process of its "
            "own. What it returns is the output."
        ),
    ] = None
    given: Annotated[
        dict[_Name, _Any] | None,
        Field(alias="with", description="Arguments of the function. Texts are templates."),
    ] = None
    agent: Annotated[
        str | None,
        Field(description="The agent that gets `prompt`; if left out, `default_agent`."),
    ] = None
    prompt: Annotated[
        _Text | None,
        Field(description="The first message to an agent, in a new session. A template."),
    ] = None
    goal: Annotated[
        GoalLine | None,
        Field(description="The agent's goal; its text is the prompt if there is none."),
    ] = None
    judge: Annotated[
        JudgeLine | None, Field(description="A question to a judge; the answer is a verdict.")
    ] = None
    ask: Annotated[
        AskLine | None, Field(description="A question to the person; the answer is the output.")
    ] = None
    workflow: Annotated[
        _Text | None,
        Field(description="Another workflow: its name, or a path relative to this file."),
    ] = None
    vars: Annotated[
        dict[_Name, _Any] | None,
        Field(description="Variables for that workflow. Texts are templates."),
    ] = None
    needs: Annotated[
        Several[str], Field(description="Steps that must have ended before this one begins.")
    ] = ()
    when: Annotated[
        _Text | None,
        Field(description="Condition, an expression; if false, the step is skipped."),
    ] = None
    for_each: Annotated[
        _Items | None,
        Field(description="A list, or an expression for one: the step runs for each item."),
    ] = None
    parallel: Annotated[
        int | None,
        Field(ge=1, description="How many items run in parallel; if left out, 1."),
    ] = None
    retry: Annotated[RetryLine | None, Field(description="Repetition of failed attempts.")] = None
    timeout: Annotated[
        _Seconds, Field(description="Time limit for each attempt in seconds; 0: no limit.")
    ] = 0.0
    output: Annotated[
        Literal["text", "lines", "json"] | None,
        Field(description="How the output is read; if left out, `text`."),
    ] = None
    json_schema: Annotated[
        dict[str, Any] | None,
        Field(alias="schema", description="JSON Schema that the output must match."),
    ] = None
    remote: Annotated[
        RemoteLine | None,
        Field(
            description="What the command needs where it runs; see [Remote steps](#remote-steps)."
        ),
    ] = None
    env: Annotated[
        dict[str, str] | None, Field(description="Environment variables. Templates.")
    ] = None
    cwd: Annotated[
        str | None,
        Field(description="Folder of a command, relative to the run's folder. A template."),
    ] = None
    exit_codes: Annotated[
        Several[_Code] | None,
        Field(min_length=1, description="Exit codes that count as success; if left out, `[0]`."),
    ] = None
    continue_on_error: Annotated[
        bool, Field(description="Whether other steps continue as if it were done when it fails.")
    ] = False
    idempotent: Annotated[
        bool,
        Field(
            description="Whether it may run again if a crash left its outcome unknown; "
            "otherwise a resumed run asks."
        ),
    ] = False
    is_final: Annotated[
        bool,
        Field(
            alias="finally",
            description="Whether it runs at the end, after all other steps, whatever their outcome.",
        ),
    ] = False


class WorkflowFile(Declaration, frozen=True):
    """The tables of the workflow in its file."""

    workflow: Annotated[WorkflowLine, Field(description="Settings of the whole workflow.")]
    step: Annotated[Several[StepLine], Field(min_length=1, description="The steps, in any order.")]
