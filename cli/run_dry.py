"""`run --dry-run`: what a run would do, in which order, as text and as a diagram."""

from __future__ import annotations

from ..gateway.running import RunPlan
from ..gateway.terminal import clean
from ..workflows.flow.graph import levels, waits_for
from ..workflows.flow.spec import RunAction, ShellAction, StepSpec, WorkflowSpec
from .page import show, show_document

__all__ = ["show_plan"]


def show_plan(plan: RunPlan, *, as_json: bool) -> int:
    """Print the plan; nothing runs."""
    spec = plan.spec
    if as_json:
        steps = [_data(step) for step in spec.steps]
        show_document({"workflow": spec.name, "variables": dict(plan.variables), "steps": steps})
        return 0
    show(clean(f"Workflow {spec.name}: {spec.description}".rstrip(": ")))
    for name, value in plan.variables.items():
        show(clean(f"  {name} = {value}"))
    for number, level in enumerate(levels(waits_for(spec.steps)), 1):
        for name in level:
            show(clean(f"{number:>3}. {_line(spec.step(name))}"))
    show("")
    show(clean(_mermaid(spec)))
    return 0


def _line(step: StepSpec) -> str:
    parts = [f"{step.id}: {_what(step)}"]
    parts += [f"for each of {_items(step)}, {step.parallel} at a time"] if step.for_each else []
    parts += [f"when {step.when}"] if step.when else []
    parts += [f"after {', '.join(step.needs)}"] if step.needs else []
    parts += [f"up to {step.retry.max} times more"] if step.retry.max else []
    parts += ["at the end, however that came"] if step.is_final else []
    return "; ".join(parts)


def _items(step: StepSpec) -> str:
    return step.for_each if isinstance(step.for_each, str) else f"{len(step.for_each or ())} items"


def _what(step: StepSpec) -> str:
    match step.action:
        case RunAction(words):
            return f"run {' '.join(words)}"
        case ShellAction(text):
            return f"shell {text.strip().splitlines()[0]}"
        case _:
            return str(step.kind)


def _data(step: StepSpec) -> dict[str, object]:
    each = step.for_each if isinstance(step.for_each, str) else list(step.for_each or ()) or None
    about: dict[str, object] = {"step": step.id, "kind": str(step.kind), "needs": list(step.needs)}
    return {**about, "when": step.when or None, "for_each": each, "finally": step.is_final}


def _mermaid(spec: WorkflowSpec) -> str:
    lines = ["flowchart TD"]
    for step in spec.steps:
        shape = f'["{step.id}"]' if step.for_each is None else f'[["{step.id}"]]'
        lines.append(f"    s{step.number}{shape}")
    number = {step.id: step.number for step in spec.steps}
    for step in spec.steps:
        label = '|"when"|' if step.when else ""
        lines += [f"    s{number[need]} -->{label} s{step.number}" for need in step.needs]
    return "\n".join(lines)
