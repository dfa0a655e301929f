"""With which steps a failed run is tried again: pure, from what was declared and how each ended."""

import pytest

from steersman.actors.decisions.run_plan import StepPlan
from steersman.journal.entries import StepReopened, WorkflowCopy
from steersman.journal.log import IndexMap
from steersman.journal.run_record import RunRecord, StepRecord, apply_to_run
from steersman.workflows.flow.reading import parse_workflow

SOURCE = """
[workflow]
name = "x"
[[step]]
id = "a"
for_each = ["1", "2", "3"]
run = ["true"]
[[step]]
id = "b"
needs = ["a"]
run = ["true"]
[[step]]
id = "care"
needs = ["a"]
when = "steps.a.failed"
run = ["true"]
[[step]]
id = "c"
needs = ["b"]
run = ["true"]
[[step]]
id = "may"
continue_on_error = true
run = ["true"]
[[step]]
id = "apart"
run = ["true"]
[[step]]
id = "end"
finally = true
run = ["true"]
"""
PLAN = StepPlan(parse_workflow("x.toml", SOURCE))
UNDOES = """
[workflow]
name = "x"
[[step]]
id = "find"
run = ["true"]
[[step]]
id = "change"
needs = ["find"]
run = ["true"]
[[step]]
id = "back"
needs = ["change"]
when = "steps.change.status == 'failed'"
run = ["true"]
[[step]]
id = "tell"
needs = ["back"]
redo = ["change"]
run = ["false"]
"""


def tried(ends: str, plan: StepPlan = PLAN) -> list[str]:
    """Return the work to repeat; `ends` has a letter for each step, and names in capitals start again."""
    states = {"d": "done", "f": "failed", "s": "skipped", "b": "blocked", "0": "failed"}
    steps: dict[str, StepRecord] = {}
    for name, letter in zip(plan.steps, ends, strict=True):
        marks = "" if letter in "sb0" else "dfw" if letter == "f" else "d"
        steps[name] = StepRecord(id=name, state=states[letter], marks=marks)
    run = RunRecord(
        workflow=WorkflowCopy(name="x", file="x.toml", folder="", source=SOURCE), steps=steps
    )
    return [one.step.upper() if one.is_anew else one.step for one in plan.reopened(run)]


@pytest.mark.parametrize(
    ("ends", "again"),
    [
        ("fbsbddd", ["a", "B", "CARE", "C", "END"]),
        ("fbfbddd", ["a", "B", "CARE", "C", "END"]),  # what was to take care of it failed, too
        ("fbdbddd", ["a", "B", "CARE", "C", "END"]),  # taken care of, and yet it blocked others
        ("0bsbddd", ["A", "B", "CARE", "C", "END"]),  # its own condition was in error
        ("dfsbddd", ["b", "C", "END"]),
        ("dddfddd", ["c", "END"]),
        ("ddsdffd", ["apart", "END"]),  # one that may fail stays as it is
        ("ddsdddf", ["end"]),
        ("ddsdfdd", []),
    ],
)
def test_failed_steps_continue_and_later_ones_restart(ends: str, again: list[str]) -> None:
    """Steps in the order of the file: a, b, care, c, may, apart, end."""
    assert tried(ends) == again


def test_a_step_that_only_the_time_limit_blocked_restarts() -> None:
    """Nothing failed, the run took too long."""
    assert tried("ddsbddd") == ["C", "END"]


def test_a_step_may_say_what_is_done_anew_because_of_it() -> None:
    """Whatever undid work names it: that, and all behind it, restarts, though it was done or handled."""
    plan = StepPlan(parse_workflow("x.toml", UNDOES))
    assert tried("dfdf", plan) == ["CHANGE", "BACK", "TELL"]
    assert tried("dffb", plan) == ["change", "BACK", "TELL"]  # it was not undone


def test_what_is_tried_again_has_all_its_attempts_again() -> None:
    """The attempts of a step's failed work count from zero again; work that is done stays done."""
    failed = StepRecord(id="a", state="failed", marks="dfw", attempts=IndexMap({"0": 2, "1": 3}))
    run = RunRecord(
        workflow=WorkflowCopy(name="x", file="x.toml", folder="", source=SOURCE),
        steps={"a": failed},
    )
    run = apply_to_run(run, StepReopened(step="a"), 1.0)
    step = run.steps["a"]
    assert (step.state, list(step.those("done")), step.attempts) == ("interrupted", [0], {"0": 2})
    assert list(step.those("waiting")) == [1, 2]
