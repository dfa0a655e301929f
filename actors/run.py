"""The run actor: a turn that is a workflow. It is the authority on its steps.

Nothing here waits: commands run in the ports, agents in sessions of their own, and the outcome of either
comes back as a message. `decisions/run_steps.py` says what is due, `decisions/run_attempts.py` what each
message means for an attempt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..machines import protocol as m
from ..workflows.flow.spec import WorkflowSpec
from .decisions.run_attempts import RunView, answered, finished
from .decisions.run_plan import StepPlan
from .decisions.run_steps import due, taken_up, time_is_up
from .ledger import Ledger, Member

if TYPE_CHECKING:
    from .kernel.system import ActorSystem


class Run(Member):
    """One turn of a run: from the beginning, or from where it was interrupted, to an end."""

    role = "turn"

    def __init__(self, system: ActorSystem, ledger: Ledger, turn: str) -> None:
        super().__init__(system, ledger)
        assert isinstance(self.environment.workflow, WorkflowSpec)
        self.id = turn
        self.plan = StepPlan(self.environment.workflow)

    @property
    def _view(self) -> RunView:
        return RunView(record=self.record, environment=self.environment, plan=self.plan)

    def on_start(self) -> None:
        """Take up what was interrupted, and begin what can begin."""
        self.enlist()
        self.decide(taken_up(self._view))
        self._attend()

    def on_receive(self, message: Any) -> Any:
        """Take in a result, an answer or the end of a time; then do what is due."""
        reply = self._take(message)
        self._attend()
        return reply

    def _take(self, message: Any) -> Any:
        match message:
            case m.ToolFinished():
                return self.decide(finished(self._view, message))
            case m.TimerFired(timer=timer):
                return self.decide(time_is_up(self._view, timer))
            case m.Answer():
                return self.decide(answered(self._view, message))
            case m.Wake():
                return self.awake()
            case m.ModelNoticed(text=text):
                return self.ledger.publish(m.Notice(text=text))
            case m.SteerWaits():
                return None
            case _:
                return super().on_receive(message)

    def _attend(self) -> None:
        """Do what the record says is due, one thing after the other; end with the turn."""
        if self.record.turn != self.id:
            return  # it ends with the next message
        while decision := due(self._view):
            if not self.accepts(decision) or not decision.entries:
                break
        if self.record.turns[self.id].is_over:
            self.stop()
