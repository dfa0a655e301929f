"""`run --dry-run`: what a run would do, in which order, as text and as a diagram."""

from __future__ import annotations

from ...gateway.running import RunPlan
from ...gateway.terminal import clean
from ...workflows.flow.plan import draw_plan, plan_data, plan_mermaid, plan_of
from ..page import show, show_document


def show_plan(run: RunPlan, *, as_json: bool) -> int:
    """Print the plan; nothing runs."""
    plan = plan_of(run.spec, run.variables)
    if as_json:
        show_document({**plan_data(plan), "variables": dict(run.variables)})
        return 0
    if run.spec.description:
        show(clean(run.spec.description))
    for name, value in run.variables.items():
        show(clean(f"  {name} = {value}"))
    show("")
    show(clean(draw_plan(plan)))
    show("")
    show(clean(plan_mermaid(plan)))
    return 0
