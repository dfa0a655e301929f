"""The steps of a run: which of them begin, are fed with work, and have ended.

What may begin is said by the plan, which is pure; here it is begun.
"""

from __future__ import annotations

from ...journal import entries as e
from ...journal.run_record import StepRecord
from ...machines.errors import TemplateError
from ...machines.workflow_messages import LookAfter, LookBefore
from ...workflows.flow.spec import Kind, StepSpec
from ...workflows.flow.template import holds, items_of
from .attempt import COMMANDS, Attempts, RunContext

OVERTIME = "the run took longer than its `timeout`"


class Steps:
    """The steps of one run; `looked` are those at whose folder something looks, and whether it has."""

    def __init__(self, context: RunContext, attempts: Attempts) -> None:
        self._context, self._attempts = context, attempts
        self.looked: dict[str, bool] = {}

    def feed(self) -> None:
        """Give the steps that run as much work as there is room for; end those that are through."""
        has_ended = True
        while has_ended:
            has_ended = False
            for step, _ in list(self._context.plan.going(self._context.run)):
                record = self._context.run.steps[step.id]
                if record.state != "running":
                    continue
                if self._is_through(step, record):
                    self._end_step(step, record)
                    has_ended = True
                elif self.looked.get(step.id, True):
                    concluded = self._attempts.concluded
                    self._fill(step)
                    has_ended |= (
                        self._attempts.concluded > concluded
                    )  # some work is over as it begins
            if has_ended:
                self.begin_due()

    def begin_due(self) -> None:
        """Begin the steps whose needs have ended, until no more follow from that."""
        while due := list(self._context.plan.due(self._context.run)):
            for one in due:
                if one.verdict == "block":
                    why = f"step `{one.need}` failed"
                    self._end(one.step, "blocked", why)
                elif self._context.is_late and not one.step.is_final:
                    self._end(one.step, "blocked", OVERTIME)
                else:
                    self._begin_step(one.step)

    def _begin_step(self, step: StepSpec) -> None:
        values = self._context.values.now()
        try:
            if step.when and not holds(step.when, values):
                self._end(step, "skipped", "its `when` does not hold")
                return
            items = None if step.for_each is None else items_of(step.for_each, values)
        except TemplateError as error:
            self._end(step, "failed", str(error.message))
            return
        self._context.note(e.StepStarted(turn=self._context.id, step=step.id, items=items))
        self.look(step)

    def look(self, step: StepSpec) -> None:
        """Have the folder looked at before the first command of a step."""
        if step.kind in COMMANDS:
            self.looked[step.id] = False
            self._context.later(
                LookBefore(turn=self._context.id, epoch=self._context.epoch, step=step.id)
            )

    def _is_through(self, step: StepSpec, record: StepRecord) -> bool:
        """Whether a step has nothing left to do: all is done, or something failed and that counts."""
        if record.first("running", "resting") is not None or self._attempts.count(step):
            return False
        is_stopped = self._context.is_late and not step.is_final
        is_stopped |= record.count("failed") > 0 and not step.continue_on_error
        return is_stopped or record.first("waiting", "interrupted") is None

    def _end_step(self, step: StepSpec, record: StepRecord) -> None:
        failed = list(record.those("failed"))
        is_cut = self._context.is_late and record.first("waiting", "interrupted") is not None
        status = "failed" if failed or is_cut else "done"
        reason = OVERTIME if is_cut else ""
        if failed:
            reason = record.result(failed[0]).reason
            if record.is_many:
                first = f"the first {record.name(failed[0])}: {reason}"
                reason = f"{len(failed)} of {record.total} failed, {first}"
        if self.looked.pop(step.id, None) is not None:
            self._context.at_once(LookAfter(turn=self._context.id, step=step.id))
        self._end(step, status, reason)

    def _end(self, step: StepSpec, status: str, reason: str) -> None:
        self._context.note(
            e.StepEnded(turn=self._context.id, step=step.id, status=status, reason=reason)
        )

    def _fill(self, step: StepSpec) -> None:
        """Begin as many items of a step as there is room for."""
        while self._has_room(step):
            record = self._context.run.steps[step.id]
            if record.count("failed") and not step.continue_on_error:
                return
            if record.count("running") + self._attempts.count(step) >= max(1, step.parallel):
                return
            index = self._attempts.next_of(step, record)
            if index is None:
                return
            self._attempts.begin(step, record, index)

    def _has_room(self, step: StepSpec) -> bool:
        """Whether the run may begin one more; sessions are bounded as those of any other are."""
        most = self._context.ledger.environment.delegation.max_children
        is_session = step.kind not in (*COMMANDS, Kind.ASK)
        if is_session and self._attempts.sessions() >= most:
            return False
        at_work = len(self._attempts.open) + self._attempts.count()
        return at_work < self._context.plan.spec.parallel
