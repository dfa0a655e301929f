"""The plan of a run: which steps may begin now, and how the run ended. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Literal

from ...journal import entries as e
from ...journal.run_record import RunRecord, StepRecord
from ...machines.steps import ENDED, STEP
from ...machines.value import Value
from ...workflows.flow.graph import levels, waits_for
from ...workflows.flow.spec import StepSpec, WorkflowSpec
from .run_work import Values

Verdict = Literal["ask", "block"]

_NOT_HANDLED = ("failed", "skipped", "blocked")
"""How a step ends that leaves the failure of another as it is."""


class Due(Value):
    """A step whose turn it is: to be asked whether it begins, or `block`, because of `need`."""

    step: StepSpec
    verdict: Verdict
    need: str = ""


class StepPlan:
    """One workflow's order of steps, and the values of its templates."""

    def __init__(self, spec: WorkflowSpec) -> None:
        self.spec = spec
        self.values = Values(spec)
        self.steps = {step.id: step for step in spec.steps}
        self._needs = waits_for(spec.steps)
        self._usual = frozenset(step.id for step in spec.steps if not step.is_final)

    def due(self, run: RunRecord) -> Iterator[Due]:
        """Give the waiting steps whose needs have all ended, in the order of the file."""
        for step in self.spec.steps:
            if run.step(step.id).state != STEP.initial:
                continue
            if all(run.step(need).state in ENDED for need in self._needs[step.id]):
                need = next(self._obstacles(step, run), "")
                yield Due(step=step, verdict="block" if need else "ask", need=need)

    def going(self, run: RunRecord) -> Iterator[tuple[StepSpec, StepRecord]]:
        """Give the steps that run, in the order of the file."""
        for step in self.spec.steps:
            record = run.steps.get(step.id)
            if record is not None and record.state == "running":
                yield step, record

    def _obstacles(self, step: StepSpec, run: RunRecord) -> Iterator[str]:
        """Name the needs because of which a step cannot begin."""
        for need in step.needs:
            is_usual = step.is_final and need in self._usual
            if not is_usual and need not in step.handles and self._is_bad(need, run):
                yield need

    def _is_bad(self, name: str, run: RunRecord) -> bool:
        state = run.step(name).state
        return state == "blocked" or (state == "failed" and not self.steps[name].continue_on_error)

    def is_over(self, run: RunRecord) -> bool:
        """Whether every step has ended."""
        return all(run.step(name).state in ENDED for name in self.steps)

    def fault(self, run: RunRecord) -> str:
        """Say why the run failed; empty if it did not.

        A failure counts unless the step says that it does not matter, or another, whose condition
        looks at it, has run and is done. Where that one has failed, too, it is named: it was to repair
        the first. What blocked a step is named in its place.
        """
        failed = [
            step
            for step in self.spec.steps
            if self._counts(step.id, run) and run.step(step.id).state != "blocked"
        ]
        repaired = {name for step in failed for name in step.handles}
        for step in [step for step in failed if step.id not in repaired] or failed:
            return f"step `{step.id}` failed: {run.step(step.id).reason}"
        blocked = [name for name in self.steps if run.step(name).state == "blocked"]
        return (
            f"step `{blocked[0]}` could not run: {run.step(blocked[0]).reason}" if blocked else ""
        )

    def reopened(self, run: RunRecord) -> Iterator[e.StepReopened]:
        """Say with which steps a failed run is tried again, in the order of the file.

        Those whose failure counts, with what of them is not done; and, from the start, those that
        followed from it: blocked or skipped ones, those whose condition looked at it, final ones, and
        those that one of them says to `redo`, with all behind them.
        """
        culprits = self._culprits(run)
        redone = {name for culprit in culprits for name in self.steps[culprit].redo}
        redone |= self._behind(redone)
        behind = self._behind(culprits | redone)
        for step in self.spec.steps:
            record = run.step(step.id)
            follows = step.is_final or record.state in ("skipped", "blocked")
            if step.id in redone and record.state in ENDED:
                yield e.StepReopened(step=step.id, is_anew=True)
            elif (
                step.id in behind and record.state in ENDED and (follows or culprits & step.handles)
            ):
                yield e.StepReopened(step=step.id, is_anew=True)
            elif step.id in culprits:
                yield e.StepReopened(step=step.id, is_anew=not record.total)

    def _behind(self, first: AbstractSet[str]) -> set[str]:
        """Name the steps that need one of these, directly or not."""
        found = set[str]()
        for names in levels(self._needs):
            found |= {name for name in names if {*self._needs[name]} & (first | found)}
        return found

    def _culprits(self, run: RunRecord) -> set[str]:
        """Name the steps because of which a run failed, behind all that was blocked by them."""
        found, seen = set[str](), set[str]()
        looked_at = [name for name in self.steps if self._counts(name, run)]
        while looked_at:
            name = looked_at.pop()
            obstacles = [*self._obstacles(self.steps[name], run)]
            if run.step(name).state == "failed" or not obstacles:
                found.add(name)
            looked_at += [obstacle for obstacle in obstacles if obstacle not in seen]
            seen.update(obstacles)
        return found

    def _counts(self, name: str, run: RunRecord) -> bool:
        return self._is_bad(name, run) and not self._is_handled(name, run)

    def _is_handled(self, name: str, run: RunRecord) -> bool:
        """Whether a step that looks at the failure is done, or has not ended where the run broke off."""
        return any(
            name in step.handles and run.step(step.id).state not in _NOT_HANDLED
            for step in self.spec.steps
        )
