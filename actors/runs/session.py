"""A run as a session: its turn is a workflow's steps, its children are the steps' own sessions.

Everything else is as in any session: what people say is routed by the same two tables, a stop reaches
whom they name, the journal is the same, and a revert gives back what the run's turns changed. What
differs is here: who takes a turn, what a message waits for, and what becomes of a child's end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from pykka import ActorRef

from ...journal import entries as e
from ...journal import run_entries as r
from ...journal.child_record import ChildRecord
from ...journal.codec import decode, encode
from ...journal.run_record import RunRecord
from ...machines.delegation import ResumeChildren
from ...machines.effects import Effect, StopTool
from ...machines.messages import Answer, QueueChange, ResumeQueue
from ...machines.orders import Enqueue, Journalled
from ...machines.run import RUN
from ...machines.subagent import SUBAGENT
from ...machines.workflow_order import ChildCame, LookAfter, Reopen, SetRunTimer, TryAgain
from ...workflows.flow.spec import WorkflowSpec
from ..actor import Forward
from ..mailbox import tell
from ..session import Session
from ..supervisor import ChildSpec
from .plan import Plan
from .run import Run

__all__ = ["RunSession"]


AGAIN: Final = "again"
"""The purpose of an item that nobody said: a failed run is to be tried again."""


class RunSession(Session):
    """One run, as people and other programs speak to it."""

    run_type: type[Run] = Run

    @property
    def _run(self) -> RunRecord:
        run = self.record.run
        assert run is not None, "a run without a workflow"
        return run

    @property
    def _spec(self) -> WorkflowSpec:
        spec = self._environment.workflow
        assert spec is not None, "a run without a workflow"
        return spec

    def on_receive(self, message: Any) -> Any:
        """Take in what the run asks of its session."""
        if isinstance(message, ChildCame):
            child = self.record.children.get(message.name)
            if child is not None and child.state == "interrupted":
                # a crash may have come between the turn and its resuming: it is still another's
                self._nursery.tell(ResumeChildren((child.turn,), self.record.turn))
            self._tell_of_child(message.name, is_asked=True)
            return None
        return super().on_receive(message)

    def _obey(self, message: Any) -> Any:
        match message:
            case Reopen():
                return self._reopen(message)
            case TryAgain():
                return self._try_again()
            case ResumeQueue() if obstacle := self._obstacle():
                return {"ok": False, "reason": obstacle}
            case Answer() if message.question in self._run.questions and self._turn is not None:
                return Forward(self._turn)
            case _:
                return super()._obey(message)

    def _obstacle(self) -> str:
        """Say why the run cannot go on as it is."""
        run = self._run
        if run.state in RUN.final:
            return f"the run has {run.state} already"
        if run.state == "failed":
            return f"the run has failed; `steersman run --resume {self.record.id}` tries it again"
        idempotent = {one.id for one in self._spec.steps if one.idempotent}
        unknown = [run.steps[step].name(at) for step, at in run.unknown() if step not in idempotent]
        if not unknown:
            return ""
        return f"nobody knows how this ended: {', '.join(unknown)}"

    def _reopen(self, message: Reopen) -> dict[str, Any]:
        unknown = set(self._run.unknown())
        if self.record.state != "idle" or not set(message.work) <= unknown:
            return {"ok": False, "reason": "only work of unknown outcome can be opened again"}
        for step, index in message.work:
            self._say(r.ItemReopened(step, index, message.is_done))
        return {"ok": True}

    def _try_again(self) -> dict[str, Any]:
        """Make the steps ready because of which the run failed, and begin another turn with them."""
        run, plan = self._run, Plan(self._spec)
        if run.state != "failed" or self.record.state != "idle":
            return {"ok": False, "reason": "only a run that has failed can be tried again"}
        reopened = list(plan.reopened(run))
        if not reopened and plan.is_over(run):
            return {"ok": False, "reason": f"none of its steps failed, but {run.reason}"}
        for entry in reopened:
            self._say(entry)
        there = [one for one in self.record.queue.waiting() if one.purpose == AGAIN]
        if there:  # a crash came before its turn began
            self._queue.tell(ResumeQueue(there[0].number))
            return {"ok": True}
        self._shift("start")
        text = f"run {run.workflow.name}"
        self._queue.tell(Enqueue(text, "turn", "", "", "", "", is_next=True, purpose=AGAIN))
        self._start_next()
        return {"ok": True}

    # The run as a turn ----------------------------------------------------------------------------

    def _start_turn(self, entry: e.TurnStarted) -> None:
        record = self.record
        copy = decode(RunRecord, encode(self._run))

        def start() -> ActorRef[Any]:
            return self.run_type.start(
                self.system,
                entry.turn,
                entry.epoch,
                copy,
                self.actor_ref,
                self._queue,
                self._environment,
                (record.id, record.folder),
            )

        for one in record.queue.waiting():  # said in an earlier turn, and no agent began since
            if not one.purpose:
                self._queue.tell(QueueChange("steer", one.number))
        self.start_child(ChildSpec("turn", start, "temporary"))
        if entry.resumes:
            self._nursery.tell(ResumeChildren(self._resumed(entry.resumes), entry.turn))

    def _start_next_if_idle(self) -> None:
        """Let nothing but the run itself take a turn: what people said waits for its agents."""
        item = self.record.queue.next_item()
        run = self._run
        is_run = item is not None and (run.item in ("", item.id) or item.purpose == AGAIN)
        if is_run and run.state not in RUN.final:
            super()._start_next_if_idle()
        elif item is not None and self._is_free:
            self._queue.tell(QueueChange("hold"))

    def _waiting(self, order: Enqueue) -> Enqueue:
        """What waits in a run waits for the next agent that begins."""
        is_running = self.record.running is not None
        return replace(order, for_turn=self.record.turn, is_next=False) if is_running else order

    # Its children ---------------------------------------------------------------------------------

    def _react(self, entry: e.Entry) -> None:
        if isinstance(entry, e.ChildStarted) and self._turn is not None:
            tell(self._turn, Journalled(entry))
        super()._react(entry)

    def _give_back(
        self, name: str, killed: tuple[int, ...] = (), survivors: tuple[int, ...] = ()
    ) -> None:
        self._tell_of_child(name, killed, survivors)

    def _tell_of_child(
        self,
        name: str,
        killed: tuple[int, ...] = (),
        survivors: tuple[int, ...] = (),
        is_asked: bool = False,
    ) -> None:
        """Tell the run what became of a child, once something has."""
        turn, child = self._turn, self.record.children.get(name)
        if turn is None:
            return
        if child is None:
            tell(turn, ChildCame(name, "failed", reason="its session is not known any more"))
        elif child.state in SUBAGENT.final or not (is_asked or child.is_at_work):
            came = ChildCame(
                name,
                child.state,
                child.text,
                child.reason,
                child.session,
                _more(child),
                killed,
                survivors,
            )
            tell(turn, came)

    # Effects --------------------------------------------------------------------------------------

    def _perform(self, effect: Effect) -> None:
        """Send what a run's own effects come to to the run."""
        match effect:
            case SetRunTimer():
                self._environment.perform(effect, self._turn)
            case _:
                super()._perform(effect)

    def _stopping(self) -> Iterator[Effect]:
        """Name everything to be stopped so that nothing of the run is left."""
        yield from super()._stopping()
        run = self._run
        for step, index in run.running():
            call = step.calls.get(str(index))
            if call and str(index) not in step.children:
                yield StopTool(run.turn, self.record.epoch, call)
        for name in [one.id for one in run.steps.values() if one.state == "running"]:
            yield LookAfter(run.turn, name)


def _more(child: ChildRecord) -> dict[str, Any]:
    """Say what became of a child's goal, if it had one."""
    is_achieved = bool(child.goal) and child.state == "completed"
    goal = "achieved" if is_achieved else "failed" if child.goal else ""
    return {"turns": child.steps, "goal": goal, "reason": child.reason}
