"""What counts as progress of a turn, and what as a repetition."""

from collections.abc import Iterable, Sequence

import pytest

from steersman.machines.progress import CallOutcome, TurnProgress, after_step, outcome

MISSING = "Error: `notes.tx`: No such file"


def made(tool: str, text: str = "fine", status: str = "ok", **more: object) -> CallOutcome:
    """Return the outcome of a call without a command of its own, unless `more` says so."""
    return outcome(tool, {"path": tool}, status, text, **{"has_run": False, **more})  # type: ignore[arg-type]


def after(steps: Iterable[CallOutcome | Sequence[CallOutcome]]) -> TurnProgress:
    """Fold some steps, of one call each where no list is given."""
    progress = TurnProgress()
    for step in steps:
        progress = after_step(progress, [step] if isinstance(step, CallOutcome) else step)
    return progress


@pytest.mark.parametrize("period", range(1, 9))
def test_a_cycle_is_found_whatever_its_length(period: int) -> None:
    """From its second round on each step is a repetition; one step more than the first counts as two."""
    cycle = [made(f"step{number}") for number in range(period)]
    once = after(cycle)
    assert (once.count(8), once.kind) == (0, "")
    progress = after([*cycle, *cycle[:1]])
    assert (progress.count(8), progress.kind) == (2, "calls" if period == 1 else "cycle")
    assert after([*cycle * 2, *cycle]).count(8) == 2 * period + 1
    assert after(cycle * 3).count(period - 1) == 0
    assert "step" in progress.evidence


def test_another_result_is_progress() -> None:
    """The same command with another output has shown something new."""
    progress = after([made("shell", f"line {number}") for number in range(9)])
    assert progress.count(8) == 0


def test_a_change_is_progress_once() -> None:
    """After a change the same look is a new one; to write back what was there before is none."""
    look, write, back = made("read"), made("a", changed=["x"]), made("b", changed=["x"])
    assert after([look, write, look, back, look]).count(8) == 0
    progress = after([look, write, look, back, look, write, look, back, look, write, look])
    assert (progress.count(8), progress.kind) == (6, "cycle")


def test_failures_of_one_kind_are_none_whatever_they_were_about() -> None:
    """Another name in the arguments and in the error makes no other failure; another reason does."""
    fails = [
        outcome("read", {"path": f"n{n}"}, "failed", MISSING.replace("tx", f"t{n}"), has_run=False)
        for n in range(4)
    ]
    progress = after(fails)
    assert (progress.count(8), progress.kind) == (4, "errors")
    other = outcome("read", {"path": "n"}, "failed", "Error: it is a folder", has_run=False)
    assert after([*fails, other]).count(8) == 1
    ran = [
        outcome("shell", {"command": f"make {n}"}, "failed", "[exit code 2]", has_run=True)
        for n in range(9)
    ]
    assert after(ran).count(8) == 0


def test_a_poll_does_not_count() -> None:
    """A tool that declares that it waits for something outside may be asked again and again."""
    poll = made("status", is_poll=True)
    assert after([poll] * 20).count(8) == 0
    assert after([made("read"), *[poll] * 3, made("read")]).count(8) == 2


def test_calls_side_by_side_are_one_step() -> None:
    """Their order does not matter."""
    left, right = made("left"), made("right")
    assert after([[left, right], [right, left], [left, right]]).count(8) == 3
    assert after([[left, right], [left]]).count(8) == 0
