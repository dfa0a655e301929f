"""What is allowed in a workflow and yet probably not meant."""

from collections.abc import Iterator, Sequence

from ...machines.errors import TemplateError
from ..fault import Fault
from .kind import Kind
from .scope import TemplateUse
from .spec import StepSpec, WorkflowSpec
from .template import evaluate

__all__ = ["crowd_doubts", "doubts"]


def doubts(spec: WorkflowSpec, uses: Sequence[TemplateUse]) -> Iterator[Fault]:
    """Find variables and outputs that nobody uses, and steps that can never run."""
    paths = {reference.path[:2] for use in uses for reference in use.references}
    for name in spec.variables:
        if not {("vars",), ("vars", name)} & paths:
            hint = "take it away, or use it as `{{ vars." + name + " }}`"
            yield Fault(
                ("workflow", "vars", name), f"nothing uses the variable `{name}`", hint, None, False
            )
    if ("steps",) not in paths:
        for step in spec.steps:
            if step.output.form != "text" and ("steps", step.id) not in paths:
                where = ("step", step.number, "output")
                yield Fault(
                    where, f"nothing uses the output of step `{step.id}`", "take `output` away"
                )
    yield from _unreachable(spec.steps, uses)


def crowd_doubts(spec: WorkflowSpec, most: int) -> Iterator[Fault]:
    """Find steps that would have more sessions work at a time than `delegation.max_children` allows."""
    for step in spec.steps:
        if step.parallel > most and step.kind in (Kind.AGENT, Kind.JUDGE, Kind.WORKFLOW):
            message = (
                f"step `{step.id}` has {step.parallel} at a time, "
                f"but no more than {most} sessions work at a time"
            )
            hint = f"add `[delegation]` with `max_children = {step.parallel}`, or ask for fewer"
            yield Fault(("step", step.number, "parallel"), message, hint)


def _unreachable(steps: Sequence[StepSpec], uses: Sequence[TemplateUse]) -> Iterator[Fault]:
    fixed = {use.slot.where for use in uses if not use.references and not use.faults}
    for step in steps:
        where = ("step", step.number, "when")
        if step.when and where in fixed and not _may_hold(step.when):
            message = f"step `{step.id}` never runs: its condition is never true"
            yield Fault(where, message, "a condition looks at `vars` or `steps`")
        if step.for_each == ():
            where = ("step", step.number, "for_each")
            yield Fault(where, f"step `{step.id}` never runs: it has no items")


def _may_hold(expression: str) -> bool:
    try:
        return bool(evaluate(expression, {}))
    except TemplateError:
        return True
