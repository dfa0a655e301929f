"""A workflow's steps: the machines of a step and of its work, and the words by which a run is known."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, cast

from .errors import UsageError
from .json_shape import parse_json
from .machine import Machine, State, Transition

# The machines of a step and of its work: one piece of work for each item --------------------------
# A step without `for_each` has one piece. Work is tried once or, with `retry`, several times; each try is
# durable before it begins. What the death of the program, or of the worker on another machine, cut off
# is `unknown`: it may or may not have had its effect, and is only done again if the step says that it
# may be, or a person does.
#
# When a failed run is tried again, a step that failed is reopened: what is done of it stays done. Steps
# that followed from its end are reset, as if they had never begun.


UNDECIDED: Final = "outcome unknown: "
"""How the reason begins for which a run ends when only work is left that a person decides about."""
ENDED = ("done", "failed", "skipped", "blocked")
"""The states of a step that has ended, as far as this attempt at the run goes."""

STEP = Machine(
    name="step",
    doc="One step of a workflow's run.",
    initial="waiting",
    states=(
        State(name="waiting", doc="A need has not ended yet."),
        State(name="running", doc="Some of its work runs, or is about to."),
        State(name="interrupted", doc="The run was interrupted; finished items stay done."),
        State(name="done", doc="All its work is done."),
        State(name="failed", doc="Some of its work failed, or it could not begin."),
        State(name="skipped", doc="Its own condition did not hold."),
        State(name="blocked", doc="A need failed."),
    ),
    transitions=(
        Transition(event="start", source=("waiting", "interrupted"), dest="running"),
        Transition(event="skip", source=("waiting",), dest="skipped"),
        Transition(event="block", source=("waiting",), dest="blocked"),
        Transition(event="finish", source=("running",), dest="done"),
        Transition(event="fail", source=("waiting", "running", "interrupted"), dest="failed"),
        Transition(event="interrupt", source=("running",), dest="interrupted"),
        Transition(
            event="interrupt", source=("waiting", "interrupted", *ENDED), ignored="it does not run"
        ),
        Transition(event="reopen", source=("failed",), dest="interrupted"),
        Transition(event="reset", source=ENDED, dest="waiting"),
    ),
    control=("interrupt",),
)

WORK = Machine(
    name="work",
    doc="A step's work for one item, one attempt after another.",
    initial="waiting",
    states=(
        State(name="waiting", doc="It begins when there is room."),
        State(name="running", doc="An attempt is durable, and runs or is about to."),
        State(name="resting", doc="An attempt failed; after a pause it waits for the next."),
        State(
            name="interrupted", doc="It was stopped; it starts again, or its session is resumed."
        ),
        State(name="unknown", doc="The program or its worker died while it ran."),
        State(name="done", doc="It succeeded.", is_final=True),
        State(name="failed", doc="Its last attempt failed."),
    ),
    transitions=(
        Transition(event="start", source=("waiting", "interrupted"), dest="running"),
        Transition(event="succeed", source=("running",), dest="done"),
        Transition(event="retry", source=("running",), dest="resting"),
        Transition(event="fail", source=("running", "waiting"), dest="failed"),
        Transition(event="interrupt", source=("running",), dest="interrupted"),
        Transition(event="interrupt", source=("resting",), dest="waiting"),
        Transition(
            event="interrupt",
            source=("waiting", "interrupted", "unknown", "failed"),
            ignored="it does not run",
        ),
        Transition(event="lose", source=("running",), dest="unknown"),
        Transition(event="lose", source=("resting",), dest="waiting"),
        Transition(event="again", source=("resting", "unknown", "failed"), dest="waiting"),
        Transition(event="settle", source=("unknown",), dest="done"),
    ),
    control=("interrupt",),
)


# Workflows within workflows -----------------------------------------------------------------------
# A step that is a workflow is a child of the run, as a subagent is: its agent's name and its task say so.


WORKFLOW: Final = "workflow "
"""How the name of an agent begins that is no agent but another workflow."""


def included(name: str, variables: Mapping[str, Any]) -> str:
    """Write the task of a workflow that is a step of another; `given_in` reads it."""
    said = json.dumps(dict(variables), ensure_ascii=False) if variables else ""
    return f"run {name} {said}".rstrip()


def given_in(name: str, task: str) -> dict[str, Any]:
    """Read the variables out of a task. Raises `UsageError` for what is none."""
    found: Any = None
    said = task.removeprefix(f"run {name}").strip()
    with suppress(ValueError):
        found = parse_json(said) if said else {}
    if not isinstance(found, dict):
        raise UsageError(f"`{task[:80]}` does not run the workflow `{name}`")
    return cast("dict[str, Any]", found)


def chosen(options: Sequence[str], said: str) -> str | None:
    """Return the option that an answer means, by text, number or initial; none if it means none."""
    if not options:
        return said
    by_number = {str(number): option for number, option in enumerate(options, 1)}
    by_word = {option.casefold(): option for option in options}
    word = said.strip().casefold()
    by_initial = [option for option in options if option.casefold()[:1] == word]
    initial = by_initial[0] if len(by_initial) == 1 else None
    return by_word.get(word) or by_number.get(word) or initial
