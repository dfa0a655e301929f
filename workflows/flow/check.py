"""The check of a workflow before it runs: of its file, and of its surroundings.

Errors stop a run; warnings are about what is probably not meant.
"""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ...machines.errors import TemplateError
from ...machines.value import Value
from ..config import Config, try_load
from ..document import Diagnostic, Document, config_error, diagnose, read_document
from ..paths import Paths
from ..plugins import AGENTS
from ..problem import Problem, Where, did_you_mean
from .inclusion import inclusion_problems, with_included
from .reading import read_workflow, settings_layer
from .scope import TemplateUse
from .spec import AgentAction, JudgeAction, Kind, RunAction, StepSpec, WorkflowSpec
from .template import evaluate, is_template

# Whether the programs that a workflow runs are there ----------------------------------------------


def program_doubts(
    spec: WorkflowSpec, folder: Path, environ: Mapping[str, str]
) -> Iterator[Problem]:
    """Find programs that are not installed now; an earlier step may install them."""
    for step in spec.steps:
        if is_template(step.cwd):
            continue
        base = folder / step.cwd
        if step.cwd and not os.path.isdir(base):
            message, hint = f"there is no folder `{step.cwd}` now", "an earlier step may create it"
            yield Problem(("step", step.number, "cwd"), message, hint)
        for where, program in _programs(step):
            if is_template(program):
                continue
            is_path = "/" in program
            if not shutil.which(
                str(base / program) if is_path else program, path=environ.get("PATH")
            ):
                place = "at this path" if is_path else "on the PATH"
                hint = f"it was searched {place}; an earlier step may install it"
                yield Problem(where, f"there is no program `{program}` now", hint)


def _programs(step: StepSpec) -> Iterator[tuple[Where, str]]:
    where: Where = ("step", step.number)
    action = step.action
    if isinstance(action, RunAction):
        yield (*where, "run"), action.words[0]
    elif isinstance(action, AgentAction) and action.goal is not None:
        for place, words in enumerate(action.goal.gates):
            yield (*where, "goal", "gates", place), words[0]


# What is allowed in a workflow and yet probably not meant -----------------------------------------


def doubts(spec: WorkflowSpec, uses: Sequence[TemplateUse]) -> Iterator[Problem]:
    """Find variables and outputs that are never used, and steps that can never run."""
    paths = {reference.path[:2] for use in uses for reference in use.references}
    for name in spec.variables:
        if not {("vars",), ("vars", name)} & paths:
            hint = "remove it, or use it as `{{ vars." + name + " }}`"
            yield Problem(
                ("workflow", "vars", name),
                f"nothing uses the variable `{name}`",
                hint,
                at_value=False,
            )
    if ("steps",) not in paths:
        for step in spec.steps:
            is_asked = step.output.form != "text" and step.kind is not Kind.CALL
            if is_asked and ("steps", step.id) not in paths:
                where = ("step", step.number, "output")
                yield Problem(
                    where, f"nothing uses the output of step `{step.id}`", "remove `output`"
                )
    yield from _unreachable(spec.steps, uses)


def sending_doubts(spec: WorkflowSpec) -> Iterator[Problem]:
    """Find programs in the run's folder that a remote step needs and does not send."""
    for step in spec.steps:
        action, remote = step.action, step.remote
        if remote is None or step.cwd or not isinstance(action, RunAction):
            continue
        program = action.words[0]
        if "/" not in program or program.startswith("/") or is_template(program):
            continue
        path = os.path.normpath(program)
        sent = [os.path.normpath(name) for name in remote.inputs]
        is_sent = any(name == "." or f"{path}/".startswith(f"{name}/") for name in sent)
        if not (is_sent or any(map(is_template, sent))):
            message = f"step `{step.id}` runs `{program}`, which is not among its `inputs`"
            hint = f'add "{path}": on another machine the step has only what is sent'
            yield Problem(("step", step.number, "run"), message, hint)


def crowd_doubts(spec: WorkflowSpec, most: int) -> Iterator[Problem]:
    """Find steps that would have more sessions work at a time than `delegation.max_children` allows."""
    for step in spec.steps:
        if step.parallel > most and step.kind in (Kind.AGENT, Kind.JUDGE, Kind.WORKFLOW):
            message = (
                f"step `{step.id}` has {step.parallel} at a time, "
                f"but no more than {most} sessions work at a time"
            )
            hint = f"add `[delegation]` with `max_children = {step.parallel}`, or ask for fewer"
            yield Problem(("step", step.number, "parallel"), message, hint)


def _unreachable(steps: Sequence[StepSpec], uses: Sequence[TemplateUse]) -> Iterator[Problem]:
    fixed = {use.slot.where for use in uses if not use.references and not use.problems}
    for step in steps:
        where = ("step", step.number, "when")
        if step.when and where in fixed:
            with suppress(TemplateError):
                if not evaluate(step.when, {}):
                    message = f"step `{step.id}` never runs: its condition is never true"
                    yield Problem(where, message, "a condition uses `vars` or `steps`")
        if step.for_each == ():
            where = ("step", step.number, "for_each")
            yield Problem(where, f"step `{step.id}` never runs: it has no items")


class Surroundings(Value):
    """The surroundings of a run: the configuration, the folder, the environment."""

    paths: Paths
    folder: Path
    environ: Mapping[str, str]


class Checked(Value):
    """The result of a check; `spec` and `config` are set as far as they could be made."""

    document: Document
    errors: tuple[Diagnostic, ...]
    spec: WorkflowSpec | None = None
    config: Config | None = None
    warnings: tuple[Diagnostic, ...] = ()


def check_file(path: Path, around: Surroundings) -> Checked:
    """Check a workflow's file with all it needs; nothing is raised, nothing runs."""
    document, unreadable = read_document(path)
    if unreadable:
        return Checked(document=document, errors=tuple(unreadable))
    reading = read_workflow(document)
    spec, diagnostics = reading.spec, [*reading.diagnostics]
    layer = with_included(settings_layer(document), spec, around.paths)
    config, of_config = try_load(around.paths, around.folder, around.environ, workflow=layer)
    diagnostics += of_config
    problems = [*_agent_problems(spec, config), *inclusion_problems(spec, around.paths)]
    diagnostics += diagnose(document, problems)
    warnings = [*program_doubts(spec, around.folder, around.environ)]
    warnings += sending_doubts(spec)
    warnings += (Problem((), said) for said in document.warnings)
    warnings += crowd_doubts(spec, config.delegation.max_children) if config is not None else ()
    if not diagnostics:  # otherwise what is not used may well be what is misspelt
        warnings += doubts(spec, reading.uses)
    errors = _unique(diagnostics, document.file)
    doubted = tuple(diagnose(document, warnings))
    return Checked(document=document, spec=spec, config=config, errors=errors, warnings=doubted)


def checked_workflow(path: Path, around: Surroundings) -> tuple[WorkflowSpec, Config]:
    """Return a workflow that may run, and the configuration it runs with.

    Raises one `ConfigError` that reports every problem.
    """
    checked = check_file(path, around)
    if checked.errors or checked.spec is None or checked.config is None:
        raise config_error(list(checked.errors))
    return checked.spec, checked.config


def _unique(diagnostics: list[Diagnostic], file: str) -> tuple[Diagnostic, ...]:
    """Report each problem once, those of the workflow itself first, in the order of the text."""
    found: dict[tuple[str, int, int, str], Diagnostic] = {}
    for one in diagnostics:
        found.setdefault((one.document.file, one.line, one.column, one.problem.message), one)
    unique = found.values()
    return tuple(sorted(unique, key=lambda one: (one.document.file != file, one.line, one.column)))


def _agent_problems(spec: WorkflowSpec, config: Config | None) -> Iterator[Problem]:
    """Find agents that are not declared."""
    if config is None:
        return  # its own problems are reported elsewhere
    for step in spec.steps:
        match step.action:
            case AgentAction(agent=name):
                key: tuple[str, ...] = ("agent",)
            case JudgeAction(agent=name):
                key = ("judge", "agent")
            case _:
                continue
        if name and name not in config.agents and name not in AGENTS.by_name:
            known = (*config.agents, *AGENTS.by_name)
            add = f"add a table `[agents.{name}]`; known: {', '.join(known)}"
            message = f"step `{step.id}` names the agent `{name}`, which is not there"
            yield Problem(("step", step.number, *key), message, did_you_mean(name, known) or add)
