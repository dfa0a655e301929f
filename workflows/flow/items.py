"""Whether what a `for_each` goes through can be a list."""

from collections.abc import Iterator

from ...machines.errors import TemplateError
from ..fault import Fault
from .kind import Kind
from .spec import StepSpec, WorkflowSpec
from .template import parse_expression
from .usage import only_path

__all__ = ["item_faults"]


def item_faults(spec: WorkflowSpec) -> Iterator[Fault]:
    """Find a `for_each` that names something which is never a list."""
    steps = {step.id: step for step in spec.steps}
    for step in spec.steps:
        if not isinstance(step.for_each, str):
            continue
        try:
            path = only_path(parse_expression(step.for_each))
        except TemplateError:
            continue  # told where all templates are looked at
        match path:
            case ("vars", name) if name in (*spec.variables, *spec.required):
                yield from _variable(step, name, spec)
            case ("steps", name, "output") if name in steps:
                yield from _output(step, steps[name])
            case ("steps", name) if name in steps:
                message = f"`for_each` goes through `steps.{name}`, which is a table"
                yield _fault(step, message, f"did you mean `steps.{name}.output`?")
            case _:
                pass


def _variable(step: StepSpec, name: str, spec: WorkflowSpec) -> Iterator[Fault]:
    if not isinstance(spec.variables.get(name, ""), list):
        message = f"`for_each` goes through `vars.{name}`, which is no list"
        yield _fault(step, message, f'give it a list: `{name} = ["…"]`, or `vars.{name}.split()`')


def _output(step: StepSpec, source: StepSpec) -> Iterator[Fault]:
    if source.for_each is not None or source.kind is Kind.WORKFLOW:
        return
    if source.output.form == "text":
        message = f"`for_each` goes through `steps.{source.id}.output`, which is a text"
        hint = f'add `output = "lines"` to step `{source.id}`, for one item a line'
        if source.kind in (Kind.JUDGE, Kind.ASK):
            hint = "use a step that makes a list"
        yield _fault(step, message, hint)


def _fault(step: StepSpec, message: str, hint: str) -> Fault:
    return Fault(("step", step.number, "for_each"), message, hint)
