"""One `[[step]]` by itself: what it does, and whether its keys fit that."""

from collections.abc import Iterator
from typing import Final

from ..fault import Fault, Where
from .spec import (
    Action,
    AgentAction,
    AskAction,
    GoalSpec,
    JudgeAction,
    Kind,
    Output,
    Retry,
    RunAction,
    ShellAction,
    StepSpec,
    WorkflowAction,
)
from .template import is_template
from .workflow_file import ACTION_KEYS, GoalLine, StepLine

_OWN_KEYS: Final = {
    "agent": (Kind.AGENT,),
    "cwd": (Kind.RUN, Kind.SHELL),
    "env": (Kind.RUN, Kind.SHELL),
    "exit_codes": (Kind.RUN, Kind.SHELL),
    "output": (Kind.RUN, Kind.SHELL, Kind.AGENT),
    "vars": (Kind.WORKFLOW,),
}
"""Keys that only steps of some kinds have."""

_SHELLS: Final = frozenset({"ash", "bash", "dash", "ksh", "sh", "zsh"})


def step_spec(line: StepLine, number: int) -> StepSpec:
    """Return a step as runs go by it; `misfits` has found nothing in it."""
    retry = Retry(line.retry.max, line.retry.backoff) if line.retry else Retry()
    return StepSpec(
        line.id,
        number,
        _action(line),
        line.description,
        line.needs,
        (line.when or "").strip(),
        line.for_each,
        line.parallel or 1,
        retry,
        line.timeout,
        Output(line.output or "text", line.json_schema),
        line.env or {},
        line.cwd or "",
        line.exit_codes or (0,),
        line.continue_on_error,
        line.idempotent,
        line.is_final,
    )


def _action(line: StepLine) -> Action:
    if line.run is not None:
        return RunAction(line.run)
    if line.shell is not None:
        return ShellAction(line.shell)
    if line.judge is not None:
        return JudgeAction(line.judge.text, line.judge.of, line.judge.agent)
    if line.ask is not None:
        ask = line.ask
        return AskAction(ask.text, ask.options, ask.default, ask.timeout)
    if line.workflow is not None:
        return WorkflowAction(line.workflow, line.vars or {})
    return AgentAction(line.prompt or "", line.agent or "", _goal(line.goal))


def _goal(line: GoalLine | None) -> GoalSpec | None:
    return None if line is None else GoalSpec(line.text, line.gates, line.max_turns or 0)


def misfits(line: StepLine, number: int) -> Iterator[Fault]:
    """Find what does not go together in a step."""
    where = ("step", number)
    kinds = _kinds(line)
    if not kinds:
        hint = "a step has one of " + ", ".join(f"`{key}`" for key in ACTION_KEYS)
        message = f"step `{line.id}` does nothing"
        if line.agent is not None:
            message, hint = (
                f"step `{line.id}` has an agent and nothing to say to it",
                "add `prompt`",
            )
        yield Fault((*where, "id"), message, hint)
        return
    if len(kinds) > 1:
        first, second = list(kinds.values())[:2]
        message = f"step `{line.id}` has `{first}` and `{second}`"
        yield Fault(
            (*where, second), message, "a step does one thing: make two steps of it", None, False
        )
        return
    (kind,) = kinds
    for key, fitting in _OWN_KEYS.items():
        if getattr(line, key) is not None and kind not in fitting:
            verb = " or ".join(f"`{'prompt' if one is Kind.AGENT else one}`" for one in fitting)
            message = f"`{key}` is not for a step with `{kinds[kind]}`"
            yield Fault((*where, key), message, f"only steps with {verb} have it", None, False)
    yield from _odds(line, number)


def _kinds(line: StepLine) -> dict[Kind, str]:
    """Name the kinds that a step's keys ask for, each with the first of these keys."""
    found: dict[Kind, str] = {}
    for key in ACTION_KEYS:
        if getattr(line, key) is not None:
            found.setdefault(Kind.AGENT if key in ("prompt", "goal") else Kind(key), key)
    return found


def _odds(line: StepLine, number: int) -> Iterator[Fault]:
    where: Where = ("step", number)
    if line.parallel is not None and line.for_each is None:
        hint = "steps run side by side anyhow, as far as their `needs` let them"
        yield Fault(
            (*where, "parallel"), "`parallel` is for steps with `for_each`", hint, None, False
        )
    if line.json_schema is not None and line.output != "json":
        hint = 'add `output = "json"`'
        yield Fault((*where, "schema"), "`schema` is for JSON output", hint, None, False)
    if line.ask and line.ask.default is not None and line.ask.options:
        if line.ask.default not in line.ask.options:
            known = ", ".join(f"`{option}`" for option in line.ask.options)
            message = f"`default` must be one of the options {known}, not `{line.ask.default}`"
            yield Fault((*where, "ask", "default"), message)
    if line.shell and is_template(line.shell):
        hint = (
            'put it into the step\'s `env`, as in `env = { NAME = "{{ … }}" }`, and write "$NAME"'
        )
        message = "a text for the shell is no template: a value would become shell text"
        yield Fault((*where, "shell"), message, hint)
    commands: list[tuple[Where, tuple[str, ...]]] = []
    if line.run:
        commands.append(((*where, "run"), line.run))
    for at, gate in enumerate(line.goal.gates if line.goal else ()):
        commands.append(((*where, "goal", "gates", at), gate))
    yield from _shell_faults(commands)


def _shell_faults(commands: list[tuple[Where, tuple[str, ...]]]) -> Iterator[Fault]:
    for where, words in commands:
        if not (place := _shell_text(words)):
            continue
        hint = 'write "$1" in it, and the value as an argument of its own behind it: '
        hint += '["sh", "-c", "wc -l \\"$1\\"", "sh", "{{ item }}"]'
        message = "a value in a text for the shell becomes shell text"
        yield Fault((*where, place), message, hint)


def _shell_text(words: tuple[str, ...]) -> int:
    """Find the word that a shell runs as its text, if a value is put into it; 0 if there is none."""
    program = words[0].rsplit("/", 1)[-1]
    if program not in _SHELLS:
        return 0
    for number, word in enumerate(words[1:], 1):
        if word.startswith("-") and not word.startswith("--") and "c" in word:
            text = number + 1
            return text if text < len(words) and is_template(words[text]) else 0
        if not word.startswith("-"):
            return 0
    return 0
