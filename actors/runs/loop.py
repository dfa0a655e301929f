"""The loop of a run: what of a workflow's steps begins, and what follows from their results.

What may begin is said by the plan, which is pure; here it is begun. Nothing here waits: commands run in
the ports, agents in sessions of their own, and what becomes of either comes back as a message.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...journal import entries as e
from ...journal import run_entries as r
from ...journal.run_record import StepRecord
from ...machines.conversation import ChatMessage
from ...machines.errors import TemplateError
from ...machines.facts import Noticed
from ...machines.messages import Answer
from ...machines.orders import Inspect, SteerWaits, TimerFired, Wake
from ...machines.results import ModelNoticed, ToolFinished
from ...machines.workflow_order import ChildCame, LookAfter, LookBefore, Looked, SetRunTimer
from ...workflows.flow.kind import Kind
from ...workflows.flow.spec import StepSpec
from ...workflows.flow.template import holds, items_of, render
from .attempt import COMMANDS, Attempts, Open
from .work import Came, of_child, of_command

__all__ = ["LATE", "OVERTIME", "RunLoop"]

OVERTIME = "the run took longer than its `timeout`"
LATE = "it took longer than {:g} s"


class RunLoop(Attempts):
    """One turn of a run, apart from how it is stopped."""

    def on_start(self) -> None:
        """Take up what was interrupted, and begin what can begin."""
        self.ledger.enlist()
        for name, index in self.run.unknown():
            if self.plan.steps[name].idempotent:
                self._note(r.ItemReopened(name, index))
        if self.plan.spec.timeout:
            self._effects.append(SetRunTimer("run", self.plan.spec.timeout))
        for record in list(self.run.steps.values()):
            if record.state == "interrupted":
                self._note(r.StepStarted(self.id, record.id))
                self._look(self.plan.steps[record.id])
        self._begin_steps()
        self._go_on()

    def on_receive(self, message: Any) -> Any:
        """Decide what a result, a timer, an answer or an interrupt means for the run."""
        match message:
            case ToolFinished():
                self._finished(message)
            case Looked(step=name):
                self._looked[name] = True
            case Wake():
                self.ledger.awake()
                self._asked = False
            case SteerWaits():
                pass
            case TimerFired(name=name):
                self._time_is_up(name)
            case Answer():
                return self._answered(message)
            case ModelNoticed(text=text):
                self.ledger.environment.ears.pass_on(Noticed(text))
            case Inspect():
                return {"state": self.run.state, "open": sorted(self.open)}
            case _:
                return super().on_receive(message)
        self._go_on()
        return None

    # The loop -------------------------------------------------------------------------------------

    def _go_on(self) -> None:
        """Begin what there is room for, end what is over, and have it all journalled at once."""
        self._follow_children()
        if self.cancel is None and self.run.state == "running":
            self._feed()
            while self._follow_children():  # a session that is taken up may be over already
                self._feed()
            self._begin_errands()
            if self.plan.is_over(self.run) and not self.open:
                self._finish()
        self._flush()

    def _feed(self) -> None:
        has_ended = True
        while has_ended:
            has_ended = False
            for step, _ in list(self.plan.going(self.run)):
                record = self.run.steps[step.id]
                if record.state != "running":
                    continue
                if self._is_through(step, record):
                    self._end_step(step, record)
                    has_ended = True
                elif self._looked.get(step.id, True):
                    concluded = self._concluded
                    self._fill(step)
                    has_ended |= self._concluded > concluded  # some work is over as it begins
            if has_ended:
                self._begin_steps()

    def _begin_steps(self) -> None:
        """Begin the steps whose needs have ended, until no more follow from that."""
        while due := list(self.plan.due(self.run)):
            for one in due:
                if one.verdict == "block":
                    why = f"step `{one.need}` failed"
                    self._note(r.StepEnded(self.id, one.step.id, "blocked", why))
                elif self._is_late and not one.step.is_final:
                    self._note(r.StepEnded(self.id, one.step.id, "blocked", OVERTIME))
                else:
                    self._begin_step(one.step)

    def _begin_step(self, step: StepSpec) -> None:
        values = self.values.now()
        try:
            if step.when and not holds(step.when, values):
                self._note(r.StepEnded(self.id, step.id, "skipped", "its `when` does not hold"))
                return
            items = None if step.for_each is None else items_of(step.for_each, values)
        except TemplateError as error:
            self._note(r.StepEnded(self.id, step.id, "failed", str(error.message)))
            return
        self._note(r.StepStarted(self.id, step.id, items))
        self._look(step)

    def _look(self, step: StepSpec) -> None:
        """Have the folder looked at before the first command of a step."""
        if step.kind in COMMANDS:
            self._looked[step.id] = False
            self._effects.append(LookBefore(self.id, self.epoch, step.id))

    def _is_through(self, step: StepSpec, record: StepRecord) -> bool:
        """Whether a step has nothing left to do: all is done, or something failed and that counts."""
        if record.first("running", "resting") is not None or self._has_errand(step):
            return False
        is_stopped = self._is_late and not step.is_final
        is_stopped |= record.count("failed") > 0 and not step.continue_on_error
        return is_stopped or record.first("waiting", "interrupted") is None

    def _end_step(self, step: StepSpec, record: StepRecord) -> None:
        failed = list(record.those("failed"))
        is_cut = self._is_late and record.first("waiting", "interrupted") is not None
        status = "failed" if failed or is_cut else "done"
        reason = OVERTIME if is_cut else ""
        if failed:
            reason = record.result(failed[0]).reason
            if record.is_many:
                first = f"the first {record.name(failed[0])}: {reason}"
                reason = f"{len(failed)} of {record.total} failed, {first}"
        if self._looked.pop(step.id, None) is not None:
            self._urgent.append(LookAfter(self.id, step.id))
        self._note(r.StepEnded(self.id, step.id, status, reason))

    def _fill(self, step: StepSpec) -> None:
        """Begin as many items of a step as there is room for."""
        while self._has_room(step):
            record = self.run.steps[step.id]
            if record.count("failed") and not step.continue_on_error:
                return
            if record.count("running") + self._has_errand(step) >= max(1, step.parallel):
                return
            index = self._next(step, record)
            if index is None:
                return
            self._begin(step, record, index)

    def _has_room(self, step: StepSpec) -> bool:
        """Whether the run may begin one more; sessions are bounded as those of any other are."""
        errands = len(self._errands)
        if step.kind not in (*COMMANDS, Kind.ASK):
            sessions = errands + sum(one.is_errand for one in self.open.values())
            if sessions >= self.ledger.environment.delegation.max_children:
                return False
        return len(self.open) + errands < self.plan.spec.parallel

    def _next(self, step: StepSpec, record: StepRecord) -> int | None:
        for one in self._rested:
            if one[0] == step.id:
                self._rested.remove(one)
                return one[1]
        reserved = {index for other, index in self._errands if other is step}
        if not reserved:
            return record.first("waiting", "interrupted")
        return next(
            (at for at in record.those("waiting", "interrupted") if at not in reserved), None
        )

    def _has_errand(self, step: StepSpec) -> int:
        return sum(one is step for one, _ in self._errands)

    def _finish(self) -> None:
        """End the run: with what it leaves behind, or with why it failed."""
        fault = self.plan.fault(self.run) or (OVERTIME if self._is_late else "")
        text = fault
        if not fault:
            try:
                output = self.plan.spec.output
                text = render(output, self.values.now()) if output else ""
            except TemplateError as error:
                fault = text = f"`workflow.output` {error.message}"
        status = "failed" if fault else "completed"
        said = (ChatMessage("assistant", text or f"[{self.plan.spec.name}: done]"),)
        self._note(e.TurnEnded(self.id, status, fault, messages=said))
        self._flush()
        self.stop()

    # Results --------------------------------------------------------------------------------------

    def _finished(self, message: ToolFinished) -> None:
        """A command has ended, or a session could not be sent off."""
        one = self.open.pop(message.call, None)
        if one is None:
            return
        if self.run.state != "running" or (message.status == "killed" and not self._is_late):
            self._lay_down(one, message.killed, message.survivors)
        else:
            self._conclude(one, _in_time(one, of_command(one.step, message)))

    def _follow_children(self) -> bool:
        """Take in what became of the sessions that work for steps; whether anything has."""
        self._note_sessions()
        has_come = False
        for one in [one for one in self.open.values() if one.child]:
            came = self._came(one)
            if came is None or one.call not in self.open:
                continue
            has_come = True
            del self.open[one.call]
            if came.state == "interrupted" or self.run.state != "running":
                self._lay_down(one, (), ())
            else:
                self._conclude(one, _in_time(one, of_child(one.step, came)))
        return has_come

    def _came(self, one: Open) -> ChildCame | None:
        """Return what became of a step's session, once something has."""
        child = self.ledger.record.children.get(one.child)
        if child is None:
            reason = "its session is not known any more"
            return ChildCame(one.child, "failed", reason=reason)
        is_going_on = self.run.state == "running" and self.cancel is None
        is_resuming = child.state == "interrupted" and child.turn != self.id and is_going_on
        if child.is_at_work or is_resuming:
            return None
        is_achieved = bool(child.goal) and child.state == "completed"
        goal = "achieved" if is_achieved else "failed" if child.goal else ""
        more = {"turns": child.steps, "goal": goal, "reason": child.reason}
        return ChildCame(child.name, child.state, child.text, child.reason, child.session, more)

    def _lay_down(self, one: Open, killed: tuple[int, ...], survivors: tuple[int, ...]) -> None:
        """Note that an attempt was stopped: it can go on, or be made again."""
        raise NotImplementedError

    def _time_is_up(self, timer: str) -> None:
        raise NotImplementedError

    def _answered(self, message: Answer) -> dict[str, Any]:
        raise NotImplementedError


def _in_time(one: Open, came: Came) -> Came:
    """Say what an attempt came to, or that the time for it was up."""
    status, result = came
    is_overdue = one.overdue and status == "failed"
    return (status, replace(result, reason=one.overdue)) if is_overdue else came
