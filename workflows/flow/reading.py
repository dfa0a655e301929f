"""From a workflow's file to its spec, or to all its problems at once.

Here is what the file alone can tell. Whether its agents, models, programs and other workflows are
there is another question (`check.py`), and one that every machine answers for itself.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from ...machines.errors import TemplateError
from ...machines.value import Value
from ..config import check_layer
from ..document import (
    Diagnostic,
    Document,
    config_error,
    diagnose,
    is_list,
    is_table,
    parse_document,
    read_document,
)
from ..json_schema import schema_problems
from ..problem import Problem, Where, dotted
from ..suggestions import suggested
from ..typed_table import known_keys, read_table
from .graph import order_problems, shared_ids
from .scope import (
    TemplatePlace,
    TemplateUse,
    handled,
    only_path,
    read_templates,
    slots_of,
    use_problems,
)
from .spec import (
    Action,
    AgentAction,
    CallAction,
    Form,
    Kind,
    Output,
    Retry,
    RunAction,
    ShellAction,
    StepSpec,
    WorkflowAction,
    WorkflowSpec,
)
from .template import is_template, parse_expression
from .workflow_file import ACTION_KEYS, StepLine, WorkflowFile, WorkflowLine

# What is sound in a file that has problems, so that the rest of it can be checked as well -----------


class Salvaged(Value):
    """The sound part of a file; `numbers` are the places of its steps, counted from 0.

    `broken` are the ids of the steps that were left out.
    """

    file: WorkflowFile
    numbers: tuple[int, ...]
    broken: frozenset[str] = frozenset()


_ALONE = frozenset(
    "continue_on_error cwd description env exit_codes idempotent retry timeout when".split()
)
"""Keys of a step on which no other one depends."""


def salvage(data: Mapping[str, Any], wrong: Iterable[Where]) -> Salvaged:
    """Keep the valid part of a file's data, in which these paths are wrong.

    A step is kept without a wrong key if nothing else is right or wrong by that key.
    """
    faults = [where for where in wrong if where[:1] == ("step",) and len(where) > 1]
    faulty = {where[1] for where in faults if len(where) < 3 or where[2] not in _ALONE}
    lines: list[StepLine] = []
    numbers: list[int] = []
    broken: set[str] = set()
    steps = data.get("step")
    for number, raw in enumerate(steps if is_list(steps) else ()):
        if number not in faulty and is_table(raw):
            left_out = {where[2] for where in faults if where[1] == number}
            kept = {key: value for key, value in raw.items() if key not in left_out}
            line, _ = read_table(StepLine, kept)
            assert line is not None, "what is left is right"
            lines.append(line)
            numbers.append(number)
        elif is_table(raw) and isinstance(name := raw.get("id"), str):
            broken.add(name)
    file = WorkflowFile(workflow=_head(data.get("workflow")), step=tuple(lines))
    return Salvaged(file=file, numbers=tuple(numbers), broken=frozenset(broken))


def _head(raw: object) -> WorkflowLine:
    head, _ = read_table(WorkflowLine, raw)
    if head is None:
        table = raw if is_table(raw) else {}
        variables, required = table.get("vars"), table.get("required")
        names = [name for name in required if isinstance(name, str)] if is_list(required) else []
        head = WorkflowLine(vars=variables if is_table(variables) else {}, required=tuple(names))
    return head


_OWN_KEYS: Final = {
    "agent": (Kind.AGENT,),
    "cwd": (Kind.RUN, Kind.SHELL, Kind.CALL),
    "env": (Kind.RUN, Kind.SHELL, Kind.CALL),
    "exit_codes": (Kind.RUN, Kind.SHELL),
    "output": (Kind.RUN, Kind.SHELL, Kind.AGENT),
    "remote": (Kind.RUN, Kind.SHELL, Kind.CALL),
    "vars": (Kind.WORKFLOW,),
    "with": (Kind.CALL,),
}
"""Keys that only steps of some kinds have."""
_FIELDS: Final = {"with": "given"}
"""Fields of a step's line that are not called like their keys, which Python has a use for."""

_SHELLS: Final = frozenset({"ash", "bash", "dash", "ksh", "sh", "zsh"})


def step_spec(line: StepLine, number: int) -> StepSpec:
    """Return the spec of a step; `conflicting_keys` has found no problem in it."""
    usual: Form = "json" if line.call is not None else "text"
    return StepSpec(
        id=line.id,
        number=number,
        action=_action(line),
        description=line.description,
        needs=line.needs,
        when=(line.when or "").strip(),
        for_each=line.for_each,
        parallel=line.parallel or 1,
        retry=line.retry or Retry(max=0),
        timeout=line.timeout,
        output=Output(form=line.output or usual, schema=line.json_schema),
        env=line.env or {},
        cwd=line.cwd or "",
        exit_codes=line.exit_codes or (0,),
        continue_on_error=line.continue_on_error,
        idempotent=line.idempotent,
        is_final=line.is_final,
        redo=line.redo,
        remote=line.remote,
    )


def _action(line: StepLine) -> Action:
    if line.run is not None:
        return RunAction(words=line.run)
    if line.shell is not None:
        return ShellAction(text=line.shell)
    if line.call is not None:
        return CallAction(place=line.call, arguments=line.given or {})
    if line.workflow is not None:
        return WorkflowAction(name=line.workflow, variables=line.vars or {})
    agent = AgentAction(prompt=line.prompt or "", agent=line.agent or "", goal=line.goal)
    return line.judge or line.ask or agent


def conflicting_keys(line: StepLine, number: int) -> Iterator[Problem]:
    """Find keys of a step that exclude each other."""
    where = ("step", number)
    kinds = _kinds(line)
    if not kinds:
        hint = "a step has one of " + ", ".join(f"`{key}`" for key in ACTION_KEYS)
        message = f"step `{line.id}` does nothing"
        if line.agent is not None:
            message, hint = f"step `{line.id}` has an agent but no prompt", "add `prompt`"
        yield Problem((*where, "id"), message, hint)
        return
    if len(kinds) > 1:
        first, second = list(kinds.values())[:2]
        message = f"step `{line.id}` has `{first}` and `{second}`"
        yield Problem(
            (*where, second), message, "a step does one thing: make two steps of it", at_value=False
        )
        return
    (kind,) = kinds
    for key, fitting in _OWN_KEYS.items():
        if getattr(line, _FIELDS.get(key, key)) is not None and kind not in fitting:
            verb = " or ".join(f"`{'prompt' if kind is Kind.AGENT else kind}`" for kind in fitting)
            message = f"`{key}` is not for a step with `{kinds[kind]}`"
            yield Problem((*where, key), message, f"only steps with {verb} have it", at_value=False)
    yield from _odds(line, number)


def _kinds(line: StepLine) -> dict[Kind, str]:
    """Name the kinds that a step's keys ask for, each with the first of these keys."""
    found: dict[Kind, str] = {}
    for key in ACTION_KEYS:
        if getattr(line, key) is not None:
            found.setdefault(Kind.AGENT if key in ("prompt", "goal") else Kind(key), key)
    return found


def _odds(line: StepLine, number: int) -> Iterator[Problem]:
    where: Where = ("step", number)
    if line.parallel is not None and line.for_each is None:
        hint = "steps run in parallel anyway, as far as their `needs` allow"
        yield Problem(
            (*where, "parallel"), "`parallel` is for steps with `for_each`", hint, at_value=False
        )
    if line.json_schema is not None and line.output != "json" and line.call is None:
        hint = 'add `output = "json"`'
        yield Problem((*where, "schema"), "`schema` is for JSON output", hint, at_value=False)
    if line.ask and line.ask.default is not None and line.ask.options:
        if line.ask.default not in line.ask.options:
            known = ", ".join(f"`{option}`" for option in line.ask.options)
            message = f"`default` must be one of the options {known}, not `{line.ask.default}`"
            yield Problem((*where, "ask", "default"), message)
    if line.shell and is_template(line.shell):
        hint = (
            'put it into the step\'s `env`, as in `env = { NAME = "{{ … }}" }`, and write "$NAME"'
        )
        message = "a text for the shell is no template: a value would become shell text"
        yield Problem((*where, "shell"), message, hint)
    commands: list[tuple[Where, tuple[str, ...]]] = [((*where, "run"), line.run or ())]
    for at, gate in enumerate(line.goal.gates if line.goal else ()):
        commands.append(((*where, "goal", "gates", at), gate))
    for place, words in commands:
        if text := _shell_text(words):
            hint = 'write "$1" in it, and the value as a separate argument after it: '
            hint += '["sh", "-c", "wc -l \\"$1\\"", "sh", "{{ item }}"]'
            message = "a value in a text for the shell becomes shell text"
            yield Problem((*place, text), message, hint)


def _shell_text(words: tuple[str, ...]) -> int:
    """Return the index of the argument that a shell runs as code, if a template is in it; else 0."""
    if not words or words[0].rsplit("/", 1)[-1] not in _SHELLS:
        return 0
    for number, word in enumerate(words[1:], 1):
        if word.startswith("-") and not word.startswith("--") and "c" in word:
            text = number + 1
            return text if text < len(words) and is_template(words[text]) else 0
        if not word.startswith("-"):
            return 0
    return 0


_OTHERS: Final = {
    "call": "function python",
    "cwd": "dir workdir working_directory",
    "env": "environment",
    "for_each": "foreach loop matrix with_items",
    "id": "name",
    "needs": "after dependencies depends_on requires",
    "remote": "ray resources",
    "retry": "retries",
    "run": "args cmd command",
    "shell": "script",
    "when": "condition if",
    "workflow": "uses",
}
"""Keys of steps, with the names that other programs have for them."""
_WAYS: Final = {
    "ask": 'write a table, as in `ask = { text = "Go on?" }`',
    "goal": 'write a table, as in `goal = { text = "the tests pass" }`',
    "judge": 'write a table, as in `judge = { text = "it is right", of = "…" }`',
    "remote": 'write a table, as in `remote = { cpus = 1, inputs = ["a.txt"] }`',
    "retry": "write a table, as in `retry = { max = 3 }`",
    "call": 'write `call = "package.module:function"`',
    "run": 'write a list, as in `run = ["ls", "-l"]`, or `shell = "ls -l"`',
}


def translated(problem: Problem) -> Problem:
    """Give a problem a hint if a file has no step, or has another program's name for a key."""
    if problem.message == "`step` is missing":
        return replace(problem, hint="add a table `[[step]]` for each thing to do")
    if problem.where[:1] != ("step",) or len(problem.where) != 3:
        return problem
    key = str(problem.where[2])
    ours = next((ours for ours, others in _OTHERS.items() if key in others.split()), "")
    if problem.is_unknown and ours:
        meant = dotted((*problem.where[:-1], ours))
        return replace(problem, hint=f"did you mean `{meant}`?")
    if not problem.is_unknown and key in _WAYS and " must be " in problem.message:
        return replace(problem, hint=_WAYS[key])
    return problem


# Whether what a `for_each` goes through can be a list ---------------------------------------------


def item_problems(spec: WorkflowSpec) -> Iterator[Problem]:
    """Find each `for_each` whose value is never a list."""
    steps = {step.id: step for step in spec.steps}
    for step in spec.steps:
        if not isinstance(step.for_each, str):
            continue
        try:
            path = only_path(parse_expression(step.for_each))
        except TemplateError:
            continue  # the check of all templates reports it
        match path:
            case ("vars", name) if name in (*spec.variables, *spec.required):
                if not isinstance(spec.variables.get(name, ""), list):
                    message = f"`for_each` goes through `vars.{name}`, which is no list"
                    hint = f'give it a list: `{name} = ["…"]`, or `vars.{name}.split()`'
                    yield _problem(step, message, hint)
            case ("steps", name, "output") if name in steps:
                yield from _output(step, steps[name])
            case ("steps", name) if name in steps:
                message = f"`for_each` goes through `steps.{name}`, which is a table"
                yield _problem(step, message, f"did you mean `steps.{name}.output`?")
            case _:  # it may be a list: only the run can tell
                continue


def _output(step: StepSpec, source: StepSpec) -> Iterator[Problem]:
    if source.for_each is not None or source.kind is Kind.WORKFLOW:
        return
    if source.output.form == "text":
        message = f"`for_each` goes through `steps.{source.id}.output`, which is a text"
        hint = f'add `output = "lines"` to step `{source.id}`, for one item a line'
        if source.kind in (Kind.JUDGE, Kind.ASK):
            hint = "use a step that makes a list"
        yield _problem(step, message, hint)


def _problem(step: StepSpec, message: str, hint: str) -> Problem:
    return Problem(("step", step.number, "for_each"), message, hint)


_OWN = ("workflow", "step")
_ABSENT = {
    "machine": "machines are the same in every run; a step is bounded by its `timeout`, "
    "`retry` and `parallel`, a run's by those of `[workflow]`"
}
"""Tables that a workflow's file cannot have, with the reason."""


def load_workflow(path: Path) -> WorkflowSpec:
    """Read a workflow's file. Raises one `ConfigError` that reports every problem."""
    document, diagnostics = read_document(path)
    return _whole(document, diagnostics)


def parse_workflow(file: str, source: str) -> WorkflowSpec:
    """Read a workflow from its text; `file` is where that came from. Raises as `load_workflow`."""
    return _whole(*parse_document(file, source.encode()))


def _whole(document: Document, diagnostics: list[Diagnostic]) -> WorkflowSpec:
    if diagnostics:
        raise config_error(diagnostics)
    reading = read_workflow(document)
    if reading.diagnostics:
        raise config_error(reading.diagnostics)
    return reading.spec


class Reading(Value):
    """The content of a file: the spec of its valid part, the uses of its templates, and its problems."""

    spec: WorkflowSpec
    uses: list[TemplateUse]
    diagnostics: list[Diagnostic]


def read_workflow(document: Document) -> Reading:
    """Make a spec of the valid part of a parsed file, and report all its problems."""
    layer = settings_layer(document)
    declared, problems = _declared(document)
    spec = _spec(document, declared, layer)
    slots = [slot for step in spec.steps for slot in slots_of(step)]
    if spec.output:
        slots.append(TemplatePlace(("workflow", "output"), spec.output, None))
    uses = list(read_templates(slots))
    problems += _problems_together(spec, uses, declared.broken)
    for line, number in zip(declared.file.step, declared.numbers, strict=True):
        problems += conflicting_keys(line, number)
    of_layer = check_layer(layer, known_keys(WorkflowFile))
    diagnostics = [*map(_with_reason, of_layer), *diagnose(document, problems)]
    found = sorted(diagnostics, key=lambda one: (one.line, one.column))
    return Reading(spec=_with_handles(spec, uses), uses=uses, diagnostics=found)


def _declared(document: Document) -> tuple[Salvaged, list[Problem]]:
    """Validate the tables of the workflow; invalid parts are left out."""
    own = {key: value for key, value in document.data.items() if key in _OWN}
    file, problems = read_table(WorkflowFile, own)
    if file is not None:
        return Salvaged(file=file, numbers=tuple(range(len(file.step)))), []
    found = [translated(problem) for problem in suggested(problems, WorkflowFile)]
    return salvage(own, [problem.where for problem in problems]), found


def _with_reason(diagnostic: Diagnostic) -> Diagnostic:
    """Add the reason to the problem of a table that a workflow's file cannot have."""
    hint = _ABSENT.get(dotted(diagnostic.problem.where), "")
    if not (hint and diagnostic.problem.is_unknown):
        return diagnostic
    return replace(diagnostic, problem=replace(diagnostic.problem, hint=hint))


def settings_layer(document: Document) -> Document:
    """Return the layer of the configuration in a workflow's file."""
    data = {key: value for key, value in document.data.items() if key not in _OWN}
    return replace(document, data=data)


def _spec(document: Document, declared: Salvaged, layer: Document) -> WorkflowSpec:
    head, path = declared.file.workflow, Path(document.file)
    name = head.name or re.sub(r"[^A-Za-z0-9_.-]+", "-", path.stem).strip("-.")[:64] or "workflow"
    lines = zip(declared.file.step, declared.numbers, strict=True)
    steps = tuple(step_spec(line, number) for line, number in lines)
    return WorkflowSpec(
        name=name,
        file=document.file,
        folder=str(path.parent.resolve()),
        source=document.text,
        steps=steps,
        description=head.description,
        variables=head.vars,
        required=head.required,
        parallel=head.parallel,
        timeout=head.timeout,
        output=head.output,
        settings=layer.data,
    )


def _problems_together(
    spec: WorkflowSpec, uses: Sequence[TemplateUse], broken: frozenset[str]
) -> Iterator[Problem]:
    """Find problems of several steps: their order, and the names in their templates."""
    for number, name in enumerate(spec.required):
        if name in spec.variables:
            message = f"`{name}` is required and has a default"
            yield Problem(("workflow", "required", number), message, "remove one of them")
    if len({step.id for step in spec.steps}) < len(spec.steps):
        yield from shared_ids(spec.steps)
        return  # what else is found would be of the wrong one of two steps
    yield from order_problems(spec.steps, broken)
    yield from use_problems(uses, spec.steps, (*spec.variables, *spec.required), broken)
    yield from item_problems(spec)
    for step in spec.steps:
        if step.output.schema is not None:
            where = ("step", step.number, "schema")
            yield from schema_problems(step.output.schema, where, is_strict=True)


def _with_handles(spec: WorkflowSpec, uses: Sequence[TemplateUse]) -> WorkflowSpec:
    looked = {use.slot.where: handled(use) for use in uses}
    steps = tuple(
        replace(
            step, handles=looked.get(("step", step.number, "when"), frozenset()) & {*step.needs}
        )
        for step in spec.steps
    )
    return replace(spec, steps=steps)
