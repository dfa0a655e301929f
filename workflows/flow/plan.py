"""The plan of a run: its steps in order, as far as they are known before it starts."""

import re
from collections.abc import Mapping
from html import escape
from typing import Any, assert_never

from ...machines.errors import TemplateError
from ...machines.value import Value
from .graph import levels, waits_for
from .spec import (
    AgentAction,
    AskAction,
    CallAction,
    JudgeAction,
    RunAction,
    ShellAction,
    StepSpec,
    WorkflowAction,
    WorkflowSpec,
)
from .template import items_of, render

_WIDTH = 72  # characters of what a step does


class PlannedStep(Value):
    """A step in its place; `does` is one line, with what is known of its variables filled in.

    `items` counts what `for_each` goes through; -1 where only the run can tell, 0 without one.
    """

    step: StepSpec
    does: str
    items: int = 0

    @property
    def notes(self) -> tuple[str, ...]:
        """The properties of the step, each in a few words."""
        step = self.step
        many = f"{self.items} items" if self.items >= 0 else f"each of {step.for_each}"
        side = f", {step.parallel} at a time" if step.parallel > 1 else ""
        said = (
            (step.for_each is not None, f"{many}{side}"),
            (bool(step.when), f"when {step.when}"),
            (bool(step.retry.max), f"tried {step.retry.max + 1} times"),
            (bool(step.timeout), f"{step.timeout:g} s at most"),
            (step.continue_on_error, "may fail"),
        )
        return tuple(note for is_so, note in said if is_so)


class StepLevels(Value):
    """Steps by level: those of one may run side by side, and each needs some of the one before.

    `last` are the levels of the steps at the end, whatever comes before.
    """

    name: str
    levels: tuple[tuple[PlannedStep, ...], ...]
    last: tuple[tuple[PlannedStep, ...], ...] = ()

    @property
    def steps(self) -> tuple[PlannedStep, ...]:
        """All steps, in an order in which they could run one by one."""
        return tuple(step for level in (*self.levels, *self.last) for step in level)


def plan_of(spec: WorkflowSpec, variables: Mapping[str, Any]) -> StepLevels:
    """Put the steps of a checked workflow in order; `variables` are all of the run's."""
    steps = {step.id: step for step in spec.steps}
    values = {"vars": variables}
    usual = {
        name: needs for name, needs in waits_for(spec.steps).items() if not steps[name].is_final
    }
    final = {
        step.id: tuple(need for need in step.needs if steps[need].is_final)
        for step in spec.steps
        if step.is_final
    }
    return StepLevels(
        name=spec.name, levels=_planned(usual, steps, values), last=_planned(final, steps, values)
    )


def _planned(
    needs: Mapping[str, tuple[str, ...]], steps: Mapping[str, StepSpec], values: Mapping[str, Any]
) -> tuple[tuple[PlannedStep, ...], ...]:
    return tuple(
        tuple(
            PlannedStep(
                step=steps[name], does=_does(steps[name], values), items=_count(steps[name], values)
            )
            for name in sorted(names, key=lambda name: steps[name].number)
        )
        for names in levels(needs)
    )


def _count(step: StepSpec, values: Mapping[str, Any]) -> int:
    if step.for_each is None:
        return 0
    if isinstance(step.for_each, tuple):
        return len(step.for_each)
    try:
        return len(items_of(step.for_each, values))
    except TemplateError:
        return -1


def _does(step: StepSpec, values: Mapping[str, Any]) -> str:
    match step.action:
        case RunAction(words=words):
            text = " ".join(_filled(word, values) for word in words)
        case ShellAction(text=text):
            text = f"sh: {text}"
        case CallAction(place=place):
            text = f"call {place}"
        case AgentAction(prompt=prompt, agent=agent, goal=goal):
            said = prompt or (goal.text if goal else "")
            text = f"{agent or 'agent'}: {_filled(said, values)}"
        case JudgeAction(text=text, of=_, agent=agent):
            text = f"{agent or 'judge'}: {_filled(text, values)}"
        case AskAction(text=text):
            text = f"ask: {_filled(text, values)}"
        case WorkflowAction(name=name):
            text = f"workflow {name}"
        case _:
            assert_never(step.action)
    text = " ".join(text.split())
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"


def _filled(text: str, values: Mapping[str, Any]) -> str:
    """Fill in the parts that need only variables."""

    def fill(found: re.Match[str]) -> str:
        try:
            return render(found[0], values)
        except TemplateError:
            return found[0]

    return re.sub(r"\{\{[^{}]*\}\}", fill, text)


def draw_plan(plan: StepLevels) -> str:
    """Write a plan as text: a line a step, under the number of its level."""
    width = max(len(planned.step.id) for planned in plan.steps)
    lines = [f"{plan.name}: {len(plan.steps)} steps"]
    for number, level in enumerate(plan.levels, 1):
        lines += _level(f"{number}", level, width)
    for level in plan.last:
        lines += _level("finally", level, width)
    return "\n".join(lines)


def _level(name: str, level: tuple[PlannedStep, ...], width: int) -> list[str]:
    lines: list[str] = []
    for planned in level:
        lines.append(f"{name:>7}  {planned.step.id:<{width}}  {planned.does}")
        lines += [f"{'':>7}  {'':<{width}}    {note}" for note in planned.notes]
        name = ""
    return lines


def plan_data(plan: StepLevels) -> dict[str, Any]:
    """Return a plan as data that JSON can hold."""
    numbered = [(number, level) for number, level in enumerate((*plan.levels, *plan.last), 1)]
    return {
        "workflow": plan.name,
        "steps": [
            {
                "step": planned.step.id,
                "kind": str(planned.step.kind),
                "level": number,
                "needs": list(planned.step.needs),
                "does": planned.does,
                "items": None if planned.items < 0 else planned.items,
                "when": planned.step.when,
                "finally": planned.step.is_final,
            }
            for number, level in numbered
            for planned in level
        ],
    }


def plan_mermaid(plan: StepLevels) -> str:
    """Draw a plan as a Mermaid flowchart: solid arrows for needs, dotted ones to the end."""
    names = {planned.step.id: f"s{planned.step.number}" for planned in plan.steps}
    needed = {need for planned in plan.steps for need in planned.step.needs}
    lines = ["flowchart TD"]
    for planned in plan.steps:
        opening, closing = ("{{", "}}") if planned.step.when else ("[", "]")
        text = "<br>".join(_escaped(part) for part in (planned.step.id, *planned.notes))
        lines.append(f'    {names[planned.step.id]}{opening}"{text}"{closing}')
    for planned in plan.steps:
        lines += [f"    {names[need]} --> {names[planned.step.id]}" for need in planned.step.needs]
    ends = [
        planned.step.id
        for level in plan.levels
        for planned in level
        if planned.step.id not in needed
    ]
    first = [planned.step for planned in (plan.last[0] if plan.last else ())]
    lines += [f"    {names[end]} -.-> {names[step.id]}" for step in first for end in ends]
    return "\n".join(lines)


def _escaped(text: str) -> str:
    text = escape(text, quote=False).replace('"', "&quot;")
    return "".join(char if char.isprintable() else " " for char in text)
