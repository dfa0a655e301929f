"""A workflow, read and checked, as frozen values. Runs follow it.

Texts that may hold `{{ … }}` are kept as they were written, and filled in when their step begins
(`template.py`). Every number of seconds is a float; 0 means that there is no bound. What is a table of
its own in the file is kept as it was read; the keys of a step are sorted by what it does.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, field

from ...machines.value import Value
from ..problem import shown
from ..settings import Size, check_command
from ..typed_table import Check, TypedTable, must

# What the keys of a step may hold -----------------------------------------------------------------


def inner_path(text: str) -> str:
    """Return a path in the run's folder in its shortest form. Raises `ValueError` for any other."""
    if not text or "\0" in text:
        raise ValueError("is no path")
    if text.startswith(("/", "~")):
        raise ValueError(f"must be relative to the run's folder, not `{text}`")
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise ValueError(f"must stay inside the run's folder, and `{text}` may leave it")
    return "/".join(parts) or "."


def _check_inner(text: str) -> str:
    """Look at a path that is written out; one that is filled in is looked at by the run."""
    from .template import is_template

    if not is_template(text):
        inner_path(text)
    elif text.startswith(("/", "~")):
        raise ValueError(f"must be relative to the run's folder, not {shown(text)}")
    return text


_TEXT: Final = {"type": "string", "minLength": 1}
_NO_NAME = "is not a name here: begin with a letter, then letters, digits, `_` and `-`, at most 64"
Name = Annotated[
    str, must(lambda name: re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,63}", name), _NO_NAME)
]
Text = Annotated[str, must(str.strip, "must not be empty", _TEXT)]
Words = Annotated[tuple[str, ...], Check(check_command)]
Seconds = Annotated[float, Meta(ge=0)]
_Inner = Annotated[str, Check(_check_inner, _TEXT)]

# What a step can do, and what templates of others can say about it afterwards ---------------------


class Kind(StrEnum):
    """The action of a step."""

    RUN = "run"
    SHELL = "shell"
    CALL = "call"
    AGENT = "agent"
    JUDGE = "judge"
    ASK = "ask"
    WORKFLOW = "workflow"


STATUSES: Final = ("done", "failed", "skipped", "blocked")
"""The final states of a step."""
VERDICTS: Final = ("done", "continue", "impossible")
"""The verdicts of a judge."""

_ALL: Final = {
    "status": "`done`, `failed`, `skipped` (its own `when` was false) or `blocked` (a need failed)",
    "output": "its output: a text, a list of lines, or JSON data; with `for_each` a list",
    "error": "why it failed, in a sentence; else empty",
}
_COMMAND: Final = {
    **_ALL,
    "exit_code": "the exit code, the negative signal number, or none if unknown",
    "stderr": "its standard error",
}

FIELDS: Final[Mapping[Kind, Mapping[str, str]]] = {
    Kind.RUN: _COMMAND,
    Kind.SHELL: _COMMAND,
    Kind.CALL: {**_ALL, "stderr": "what it printed"},
    Kind.AGENT: {
        **_ALL,
        "goal": "the final state of the goal, such as `achieved`; else empty",
        "reason": "the judge's reason",
        "turns": "number of turns",
    },
    Kind.JUDGE: {**_ALL, "verdict": "`done`, `continue` or `impossible`", "reason": "why"},
    Kind.ASK: {**_ALL, "by": "`user` or `default`"},
    Kind.WORKFLOW: {**_ALL, "run": "the id of its run"},
}
"""Fields of `steps.ID`, by kind, each with its meaning."""

ITEM_FIELDS: Final = {
    "items": "one record per item, in order, with `item`, `index` and the fields of its kind",
    "done": "number of items done",
    "failed": "number of items failed",
    "total": "number of items",
}
"""Fields that a step with `for_each` has besides; its `exit_code` is the first that is no success."""

OUTCOME_FIELDS: Final = frozenset({"status", "error", "exit_code", "failed"})
"""Fields by which a condition looks at how a step ended, and so takes its failure upon itself."""


Form = Literal["text", "lines", "json"]


class RunAction(Value):
    """A program and its arguments; each is a template, and a list fills in one argument an item."""

    words: tuple[str, ...]


class ShellAction(Value):
    """A text for `sh -c`. It is no template: values reach it through the step's `env` alone."""

    text: str


class CallAction(Value):
    """A Python function as `package.module:function`; texts in its `arguments` are templates."""

    place: str
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])


class GoalSpec(TypedTable):
    """The condition that ends an agent's step; see `docs/goals.md`."""

    text: Text
    """The condition, for the judge. A template."""
    gates: tuple[Words, ...] = ()
    """Commands that must succeed before the judge is asked. Templates."""
    max_turns: Annotated[int, Meta(ge=1)] | None = None
    """Maximum number of turns; if left out, as configured."""


class AgentAction(Value):
    """A session of an agent; `prompt` is its first message, the goal's own text where it is empty.

    `agent` is empty where the configuration's default agent is meant.
    """

    prompt: str
    agent: str = ""
    goal: GoalSpec | None = None


class JudgeAction(TypedTable):
    """A question to a judge, an agent that answers with a verdict and a reason."""

    text: Text
    """The statement to judge. A template."""
    of: str = ""
    """The text to judge it by. A template."""
    agent: str = ""
    """The judging agent; if left out, `goals.judge`."""


class AskAction(TypedTable):
    """A question to the person who watches the run."""

    text: Text
    """The question. A template."""
    options: tuple[Text, ...] = ("yes", "no")
    """The possible answers; empty: any text."""
    default: str | None = None
    """The answer if the person gives none; without a default the step then fails."""
    timeout: Seconds = 0.0
    """Seconds to wait for an answer; 0: no limit."""


class WorkflowAction(Value):
    """Another workflow: a name, or a path beside this file. Texts in `variables` are templates."""

    name: str
    variables: Mapping[str, Any] = field(default_factory=dict[str, Any])


Action = (
    RunAction | ShellAction | CallAction | AgentAction | JudgeAction | AskAction | WorkflowAction
)


_KINDS: Final[Mapping[type[Action], Kind]] = {
    RunAction: Kind.RUN,
    ShellAction: Kind.SHELL,
    CallAction: Kind.CALL,
    AgentAction: Kind.AGENT,
    JudgeAction: Kind.JUDGE,
    AskAction: Kind.ASK,
    WorkflowAction: Kind.WORKFLOW,
}


class Retry(TypedTable):
    """How a failed attempt is repeated."""

    max: Annotated[int, Meta(ge=0)]
    """Maximum number of repetitions."""
    backoff: Seconds = 1.0
    """Seconds before the first repetition; doubled for each further one."""

    def delay(self, attempt: int) -> float:
        """Seconds to wait after failed attempt number `attempt` (from 1); at most ten minutes."""
        return min(self.backoff * 2.0 ** min(attempt - 1, 60), 600.0)


class Output(Value):
    """The format of a step's output; `schema` is a JSON Schema for `json`, or None."""

    form: Form = "text"
    schema: Mapping[str, Any] | None = None


class RemoteNeeds(TypedTable):
    """What a command needs where it runs; with `steersman run --on` that is another machine."""

    cpus: Annotated[float, Meta(ge=0)] = 1.0
    """Processors; a fraction is possible."""
    gpus: Annotated[float, Meta(ge=0)] = 0.0
    """GPUs; a fraction is possible."""
    memory: Size | None = None
    """Memory, such as `"1 GiB"`; if left out, it is not reserved."""
    inputs: tuple[_Inner, ...] = ()
    """Files and folders that the command reads, relative to the run's folder. Templates."""
    outputs: tuple[_Inner, ...] = ()
    """Files and folders that the command makes, relative to the run's folder. Templates. If one is not
    there afterwards, the step fails."""


class StepSpec(Value):
    """One step.

    `when` and a `for_each` that is a text are expressions; a tuple of items is taken as it stands.
    `timeout` bounds each attempt, `exit_codes` are those that count as success. `handles` are the
    needs whose outcome `when` looks at: it is asked also when these have failed. `is_final`
    (`finally` in the file): it runs at the end, however that came. `redo` are the steps to do anew when
    a run that failed because of it is tried again. `remote`: its command may run on another machine.
    `number` is its place in the file, from 0.
    """

    id: str
    number: int
    action: Action
    description: str = ""
    needs: tuple[str, ...] = ()
    when: str = ""
    for_each: str | tuple[Any, ...] | None = None
    parallel: int = 1
    retry: Retry = Retry(max=0)
    timeout: float = 0.0
    output: Output = Output()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    cwd: str = ""
    exit_codes: tuple[int, ...] = (0,)
    continue_on_error: bool = False
    idempotent: bool = False
    is_final: bool = False
    redo: tuple[str, ...] = ()
    remote: RemoteNeeds | None = None
    handles: frozenset[str] = frozenset()

    @property
    def kind(self) -> Kind:
        """The kind of the action, in one word."""
        return _KINDS[type(self.action)]


class WorkflowSpec(Value):
    """A whole workflow, its steps in the order of the file.

    `file` is its path as it was given, or what else it is called; `folder` is where paths beside it
    begin; `source` is its text, from which the same spec can be read again. `variables` have their
    defaults; those in `required` have none and are texts. `parallel` bounds how many commands and
    sessions of a run work at a time, `timeout` the whole run, `output` is a template for what the
    run leaves behind. `settings` is what the file says for the configuration: a layer of its own.
    """

    name: str
    file: str
    folder: str
    source: str
    steps: tuple[StepSpec, ...]
    description: str = ""
    variables: Mapping[str, Any] = field(default_factory=dict[str, Any])
    required: tuple[str, ...] = ()
    parallel: int = 8
    timeout: float = 0.0
    output: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def step(self, name: str) -> StepSpec:
        """Return the step of this id. Raises `KeyError`."""
        for step in self.steps:
            if step.id == name:
                return step
        raise KeyError(name)
