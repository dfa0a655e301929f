"""The names in a workflow's templates: which exist, and which are used."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, assert_never

from jinja2 import nodes

from ...machines.errors import TemplateError
from ...machines.value import Value
from ..document import is_list, is_table
from ..problem import Problem, Where, did_you_mean
from .graph import ancestors, listed, waits_for
from .spec import (
    FIELDS,
    ITEM_FIELDS,
    OUTCOME_FIELDS,
    STATUSES,
    VERDICTS,
    AgentAction,
    AskAction,
    CallAction,
    JudgeAction,
    RunAction,
    ShellAction,
    StepSpec,
    WorkflowAction,
)
from .template import is_template, parse_expression, parse_template

# The names that templates and expressions refer to: `vars.glob`, `steps.find.output`, `item` --------

_NAME: Final = r"(?!true\b|false\b|none\b|not\b)[a-z][A-Za-z0-9_]*(?:\.[A-Za-z][A-Za-z0-9_]*)*"
_PLAIN: Final = re.compile(rf"\{{\{{ ?({_NAME}) ?\}}\}}")
_DEPTH: Final = 3  # names of a path; deeper ones are not needed


class Reference(Value, kw_only=False):
    """A path of names, as far as it stands there: `("steps", "find", "output")`.

    `line` is that of the template, from 1. `said` is the word that it is compared with, if it is.
    """

    path: tuple[str, ...]
    line: int
    said: str | None = None


def references(tree: nodes.Template) -> list[Reference]:
    """List what a tree refers to from outside, in the order of the text."""
    found: list[Reference] = []
    _collect(tree, frozenset({"range"}), found)
    return found


def plain_references(text: str, *, is_expression: bool) -> list[Reference] | None:
    """List what a text refers to if it holds nothing but plain paths; None for any other.

    Most texts are so, and parsing takes much longer.
    """
    if is_expression:
        whole = re.fullmatch(_NAME, text)
        return [Reference(tuple(text.split(".")[:_DEPTH]), 1)] if whole else None
    pieces = _PLAIN.split(text)
    if any("{" in piece for piece in pieces[::2]):
        return None
    lines = [text.count("\n", 0, match.start()) + 1 for match in _PLAIN.finditer(text)]
    paths = [tuple(path.split(".")[:_DEPTH]) for path in pieces[1::2]]
    return [Reference(path, line) for path, line in zip(paths, lines, strict=True)]


def only_path(tree: nodes.Template) -> tuple[str, ...]:
    """Return the path of an expression that is only a path."""
    match tree.body:
        case [nodes.Output(nodes=[expression])]:
            return _path(expression)
        case _:
            return ()


def _collect(node: nodes.Node, bound: frozenset[str], found: list[Reference]) -> None:
    if path := _path(node):
        if path[0] not in bound:
            found.append(Reference(path[:_DEPTH], node.lineno))
        return
    if isinstance(node, nodes.For):
        _collect(node.iter, bound, found)
        bound = bound | {name.name for name in node.target.find_all(nodes.Name)} | {"loop"}
        if isinstance(node.target, nodes.Name):
            bound = bound | {node.target.name}
        parts = [*([node.test] if node.test else []), *node.body, *node.else_]
    elif said := _comparison(node):
        found += [said] if said.path[0] not in bound else []
        return
    else:
        parts = list(node.iter_child_nodes())
    for part in parts:
        _collect(part, bound, found)


def _comparison(node: nodes.Node) -> Reference | None:
    """Recognise `PATH == "word"` and `!=`, either way round."""
    match node:
        case nodes.Compare(expr=left, ops=[nodes.Operand(op="eq" | "ne", expr=right)]):
            for compared, other in ((left, right), (right, left)):
                path = _path(compared)
                if path and isinstance(other, nodes.Const) and isinstance(other.value, str):
                    return Reference(path[:_DEPTH], node.lineno, said=other.value)
            return None
        case _:
            return None


def _path(node: nodes.Node) -> tuple[str, ...]:
    """Read a chain of names and constant indexes; empty for other expressions."""
    names: list[str] = []
    while True:
        match node:
            case nodes.Name():
                return (node.name, *reversed(names))
            case nodes.Getattr():
                names.append(node.attr)
                node = node.node
            case nodes.Getitem(arg=nodes.Const(value=str(name))):
                names.append(name)
                node = node.node
            case nodes.Getitem(arg=nodes.Const()):
                names = []  # what stands behind a number is not looked at
                node = node.node
            case _:
                return ()


# Whether these names exist where they are used -----------------------------------------------------

RUN_FIELDS: Final[Mapping[str, Mapping[str, str]]] = {
    "run": {"id": "the id of the run", "folder": "the folder that it works in"},
    "workflow": {"name": "its name", "folder": "the folder of its file"},
}
"""Names that every template has besides `vars` and `steps`, and their fields."""


class TemplatePlace(Value, kw_only=False):
    """The position of a template or an expression in the file; `step` is None in `[workflow]`."""

    where: Where
    text: str
    step: StepSpec | None
    is_expression: bool = False
    has_item: bool = False


class TemplateUse(Value, kw_only=False):
    """A slot and its references; a problem instead if it is not a valid template."""

    slot: TemplatePlace
    references: tuple[Reference, ...] = ()
    problems: tuple[Problem, ...] = ()


def slots_of(step: StepSpec) -> Iterator[TemplatePlace]:
    """List all templates and expressions of a step."""
    where = ("step", step.number)
    if step.when:
        yield TemplatePlace((*where, "when"), step.when, step, is_expression=True)
    if isinstance(step.for_each, str):
        yield TemplatePlace((*where, "for_each"), step.for_each, step, is_expression=True)
    elif step.for_each is not None:
        for place, text in _texts(list(step.for_each), (*where, "for_each")):
            yield TemplatePlace(place, text, step)
    has_item = step.for_each is not None
    for place, text in [*_action_texts(step, where), *_texts(dict(step.env), (*where, "env"))]:
        yield TemplatePlace(place, text, step, has_item=has_item)
    if step.remote is not None:
        paths = {"inputs": list(step.remote.inputs), "outputs": list(step.remote.outputs)}
        for place, text in _texts(paths, (*where, "remote")):
            yield TemplatePlace(place, text, step, has_item=has_item)
    if step.cwd:
        yield TemplatePlace((*where, "cwd"), step.cwd, step, has_item=has_item)


def _action_texts(step: StepSpec, where: Where) -> Iterator[tuple[Where, str]]:
    match step.action:
        case RunAction(words=words):
            yield from _texts(list(words), (*where, "run"))
        case ShellAction():
            return  # its text is no template
        case CallAction(arguments=arguments):
            yield from _texts(dict(arguments), (*where, "with"))
        case AgentAction(prompt=prompt, goal=goal):
            yield (*where, "prompt"), prompt
            if goal:
                yield (*where, "goal", "text"), goal.text
                yield from _texts([list(gate) for gate in goal.gates], (*where, "goal", "gates"))
        case JudgeAction(text=text, of=of):
            yield (*where, "judge", "text"), text
            yield (*where, "judge", "of"), of
        case AskAction(text=text, options=options, default=default):
            yield (*where, "ask", "text"), text
            yield from _texts(list(options), (*where, "ask", "options"))
            yield (*where, "ask", "default"), default or ""
        case WorkflowAction(variables=variables):
            yield from _texts(dict(variables), (*where, "vars"))
        case _:
            assert_never(step.action)


def _texts(value: Any, where: Where) -> Iterator[tuple[Where, str]]:
    """List the texts in a value, with their paths."""
    if isinstance(value, str):
        yield where, value
    elif is_table(value):
        for name, inner in value.items():
            yield from _texts(inner, (*where, name))
    elif is_list(value):
        for number, inner in enumerate(value):
            yield from _texts(inner, (*where, number))


def read_templates(slots: Sequence[TemplatePlace]) -> Iterator[TemplateUse]:
    """Parse the templates; equal texts once."""
    seen: dict[tuple[str, bool], tuple[Reference, ...]] = {}
    for slot in slots:
        if not slot.is_expression and not is_template(slot.text):
            continue
        key = (slot.text, slot.is_expression)
        try:
            if key not in seen:
                seen[key] = tuple(_references(slot))
            yield TemplateUse(slot, seen[key])
        except TemplateError as error:
            yield TemplateUse(slot, (), (_problem(slot, error.message, error.hint, error.line),))


def _references(slot: TemplatePlace) -> list[Reference]:
    plain = plain_references(slot.text, is_expression=slot.is_expression)
    if plain is not None:
        return plain
    return references((parse_expression if slot.is_expression else parse_template)(slot.text))


def _problem(slot: TemplatePlace, message: str, hint: str, line: int = 1) -> Problem:
    place = f" (line {line} of it)" if line > 1 else ""
    name = next(part for part in reversed(slot.where) if isinstance(part, str))
    return Problem(slot.where, f"`{name}` {message}{place}", hint)


def fields_of(step: StepSpec) -> Mapping[str, str]:
    """List the fields that templates find under a step's name."""
    fields = FIELDS[step.kind]
    return {**fields, **ITEM_FIELDS} if step.for_each is not None else fields


def use_problems(
    uses: Sequence[TemplateUse],
    steps: Sequence[StepSpec],
    variables: Sequence[str],
    broken: frozenset[str] = frozenset(),
) -> Iterator[Problem]:
    """Find names in templates that do not exist, or not yet.

    `broken` are ids of steps that are there, and wrong: nothing is said of them.
    """
    known = {step.id: step for step in steps}
    before = ancestors(waits_for(steps))
    for use in uses:
        yield from use.problems
        for reference in use.references:
            if not broken.isdisjoint(reference.path[1:2]):
                continue
            match reference.path[0]:
                case "vars":
                    yield from _variable_problems(use.slot, reference, variables)
                case "steps":
                    yield from _step_problems(use.slot, reference, known, before)
                case "run" | "workflow":
                    yield from _run_problems(use.slot, reference)
                case name if name not in _tails(use.references, (*known, *variables)):
                    yield from _name_problems(use.slot, reference)
                case _:
                    continue


def _name_problems(slot: TemplatePlace, reference: Reference) -> Iterator[Problem]:
    name, *_ = reference.path
    if name in ("item", "index"):
        if not slot.has_item:
            is_early = slot.step is not None and slot.step.for_each is not None
            hint = "`when` and `for_each` are asked once, before there are items"
            hint = hint if is_early else "only a step with `for_each` has one"
            yield _problem(slot, f"uses `{name}`, which is not there", hint, reference.line)
        return
    roots = ["vars", "steps", *RUN_FIELDS, *(["item", "index"] if slot.has_item else [])]
    hint = did_you_mean(name, roots) or f"known: {listed(roots)}"
    yield _problem(slot, f"uses `{name}`, which is not there", hint, reference.line)


def _variable_problems(
    slot: TemplatePlace, reference: Reference, variables: Sequence[str]
) -> Iterator[Problem]:
    if len(reference.path) > 1 and reference.path[1] not in variables:
        name = reference.path[1]
        hint = _meant("vars", name, variables) or "add it to `[workflow.vars]`"
        yield _problem(slot, f"uses `vars.{name}`, which is not there", hint, reference.line)


def _step_problems(
    slot: TemplatePlace,
    reference: Reference,
    steps: Mapping[str, StepSpec],
    before: Mapping[str, frozenset[str]],
) -> Iterator[Problem]:
    if len(reference.path) < 2:
        return
    name = reference.path[1]
    if name not in steps:
        hint = _meant("steps", name, list(steps)) or f"steps: {listed(steps)}"
        yield _problem(slot, f"uses step `{name}`, which is not there", hint, reference.line)
        return
    if slot.step is not None and name not in before[slot.step.id]:
        is_itself = name == slot.step.id
        hint = "the output of a step exists when it has ended" if is_itself else ""
        hint = hint or f'add "{name}" to the `needs` of `{slot.step.id}`'
        said = "itself" if is_itself else f"step `{name}`, which may not have run yet"
        yield _problem(slot, f"uses {said}", hint, reference.line)
        return
    if len(reference.path) > 2:
        yield from _field_problems(slot, reference, steps[name])


def _field_problems(slot: TemplatePlace, reference: Reference, step: StepSpec) -> Iterator[Problem]:
    field, fields = reference.path[2], fields_of(step)
    if field not in fields:
        has = f"a step with `{step.kind}` has {listed(fields)}"
        message = f"uses `steps.{step.id}.{field}`, which is not there"
        yield _problem(slot, message, did_you_mean(field, fields, has), reference.line)
    words = {"status": STATUSES, "verdict": VERDICTS}.get(field, ())
    if reference.said is not None and words and reference.said not in words:
        hint = did_you_mean(reference.said, words) or f"it is one of {listed(words)}"
        message = f"compares `steps.{step.id}.{field}` with `{reference.said}`, which it never is"
        yield _problem(slot, message, hint, reference.line)


def _run_problems(slot: TemplatePlace, reference: Reference) -> Iterator[Problem]:
    name, *rest = reference.path
    if rest and rest[0] not in RUN_FIELDS[name]:
        hint = f"it has {listed(RUN_FIELDS[name])}"
        yield _problem(slot, f"uses `{name}.{rest[0]}`, which is not there", hint, reference.line)


def handled(use: TemplateUse) -> frozenset[str]:
    """Name the steps whose state a condition reads."""
    return frozenset(
        reference.path[1]
        for reference in use.references
        if reference.path[0] == "steps"
        and len(reference.path) > 2
        and reference.path[2] in OUTCOME_FIELDS
    )


def _tails(references: Sequence[Reference], names: Sequence[str]) -> Iterator[str]:
    """Name the operand after the minus of `steps.fix-it`, so that the problem is reported once."""
    for reference in references:
        if len(reference.path) > 1 and (dashed := _dashed(reference.path[1], names)):
            yield from dashed.removeprefix(f"{reference.path[1]}-").split("-")


def _meant(root: str, name: str, names: Sequence[str]) -> str:
    """Suggest a similar name, if there is one."""
    if dashed := _dashed(name, names):
        return f'`-` is minus here: write `{root}["{dashed}"]`'
    return did_you_mean(name, names).replace("`", f"`{root}.", 1)


def _dashed(name: str, names: Any) -> str:
    return next((candidate for candidate in names if candidate.startswith(f"{name}-")), "")
