"""Attempts at a run's work: how each is begun, by a process, a session or a person, and how it ends.

An attempt is an entry before it is anything else. What is decided in answer to one message is gathered,
and handed to the session as one: the result of one attempt and the beginning of the next are one commit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...journal import entries as e
from ...journal import run_entries as r
from ...journal.cancel_record import CancelRecord
from ...journal.run_record import RunRecord, StepRecord
from ...machines.delegation import Delegate, ResumeChildren
from ...machines.errors import TemplateError
from ...machines.orders import TakeSteers
from ...machines.workflow_order import SetRunTimer
from ...workflows.flow.kind import Kind
from ...workflows.flow.spec import AskAction, StepSpec, WorkflowSpec
from ...workflows.flow.template import render
from ..actor import Actor
from ..decisions.decision import Decision
from ..decisions.intake import taken_in
from ..ledger import Ledger, LedgerHandle
from .plan import Plan
from .values import Values
from .work import Came, command, errand

if TYPE_CHECKING:
    from ..system import ActorSystem

__all__ = ["COMMANDS", "Attempts", "Open", "by_default"]

COMMANDS = (Kind.RUN, Kind.SHELL)
NOBODY = "nobody can be asked, and it has no `default`"


@dataclass(slots=True)
class Open:
    """An attempt that runs: whose it is, which session does it, or what a person is asked.

    `overdue` says why it was stopped for good, where the time for it was up.
    """

    step: StepSpec
    index: int
    call: str
    child: str = ""
    asked: r.StepAsked | None = None
    overdue: str = ""

    @property
    def is_command(self) -> bool:
        """Whether a process does it."""
        return self.step.kind in COMMANDS

    @property
    def is_errand(self) -> bool:
        """Whether a session of its own does it."""
        return not self.is_command and self.step.kind is not Kind.ASK


class Attempts(Actor):
    """What a run has in hand: `open` are the attempts that run, by their call."""

    def __init__(self, system: ActorSystem, ledger: Ledger, turn: str) -> None:
        super().__init__(system)
        workflow = ledger.environment.workflow
        assert isinstance(workflow, WorkflowSpec)
        self.ledger = LedgerHandle(ledger, self, "turn")
        self.id = turn
        self.epoch = ledger.record.turns[turn].epoch
        self.plan = Plan(workflow)
        place = (ledger.record.id, ledger.record.folder)
        self.values = Values(self.plan.spec, lambda: self.run, *place)
        self.open: dict[str, Open] = {}
        self._rested: list[tuple[str, int]] = []
        self._looked: dict[str, bool] = {}
        self._errands: list[tuple[StepSpec, int]] = []
        self._given: set[str] = set()
        self._asked = False
        self._said = ""
        self._is_late = False
        self._has_patience = True
        self._concluded = 0
        self._effects: list[Any] = []
        self._urgent: list[Any] = []

    @property
    def run(self) -> RunRecord:
        """The run, as everything that was decided until now has left it."""
        run = self.ledger.record.run
        assert run is not None, "a run without a workflow"
        return run

    @property
    def cancel(self) -> CancelRecord | None:
        """The newest stop of this turn that is not over: it is planned, or has taken effect."""
        found = [
            stop
            for stop in self.ledger.record.interrupts.values()
            if stop.turn == self.id and stop.state in ("planned", "stopping")
        ]
        return found[-1] if found else None

    # Beginning ------------------------------------------------------------------------------------

    def _begin(self, step: StepSpec, record: StepRecord, index: int) -> None:
        if step.kind in COMMANDS:
            self._begin_command(step, record, index)
        elif isinstance(step.action, AskAction):
            self._ask(step, step.action, record, index)
        elif record.children.get(str(index)) and record.state_of(index) == "interrupted":
            self._take_up(step, record, index)
        elif step.kind is not Kind.AGENT:
            self._send_off(step, index)
        else:
            self._errands.append((step, index))

    def _begin_command(self, step: StepSpec, record: StepRecord, index: int) -> None:
        call = self._start(step, record, index)
        values = self.values.of_item(self.values.now(), record, index)
        try:
            self._effects.append(command(step, values, self.id, self.epoch, call))
        except TemplateError as error:
            self._conclude(self.open.pop(call), ("failed", r.WorkResult(reason=error.message)))

    def _begin_errands(self) -> None:
        """Send sessions of their own off, with what people said for them in the meantime."""
        queue = self.ledger.record.queue
        if self.cancel is not None or not self._errands:
            self._errands.clear()
            return
        if queue.steers(self.id):
            if not self._asked:
                self._asked = True
                self.ledger.tell("queue", TakeSteers(self.id, 2))
            return
        steered = [
            item
            for item in queue.items.values()
            if (item.state, item.turn) == ("steered", self.id)
            and not item.for_children
            and item.id not in self._given
        ]
        self._given.update(item.id for item in steered)
        said = taken_in(steered)
        self._said = "\n\n".join(filter(None, (self._said, said)))
        errands, self._errands = self._errands, []
        for step, index in errands:
            self._send_off(step, index)

    def _send_off(self, step: StepSpec, index: int) -> None:
        record, is_agent = self.run.steps[step.id], step.kind is Kind.AGENT
        call = self._start(step, record, index, is_child=True)
        values = self.values.of_item(self.values.now(), record, index)
        name = f"{step.id}-{index + 1}" if record.is_many else step.id
        lineage = self.ledger.record.turns[self.id].lineage
        bare = Delegate(self.id, self.epoch, call, {"name": name}, lineage)
        try:
            said = self._said if is_agent else ""
            order = errand(step, values, bare, said, self.ledger.environment.helpers)
        except TemplateError as error:
            self._conclude(self.open.pop(call), ("failed", r.WorkResult(reason=error.message)))
            return
        self._said = "" if is_agent else self._said
        self._effects.append(order)
        if step.timeout:
            self._effects.append(SetRunTimer(f"limit {call}", step.timeout, self.epoch))

    def _note_sessions(self) -> None:
        """Note which sessions were sent off."""
        waiting = {one.call: one for one in self.open.values() if one.is_errand and not one.child}
        for child in self.ledger.record.children.values() if waiting else ():
            if child.call in waiting:
                waiting[child.call].child = child.name

    def _take_up(self, step: StepSpec, record: StepRecord, index: int) -> None:
        """Wait for a session that goes on with the run, or take what it came to meanwhile."""
        name = record.children[str(index)]
        call = self._start(step, record, index, is_child=True)
        self.open[call].child = name
        child = self.ledger.record.children.get(name)
        if child is not None and child.state == "interrupted":
            # a crash may have come between the turn and its resuming: it is still another's
            order = ResumeChildren((child.turn,), self.id, self.ledger.record.epoch)
            self.ledger.tell("children", order)
        if step.timeout:
            self._effects.append(SetRunTimer(f"limit {call}", step.timeout, self.epoch))

    def _ask(self, step: StepSpec, action: AskAction, record: StepRecord, index: int) -> None:
        call = self._start(step, record, index)
        values = self.values.of_item(self.values.now(), record, index)
        try:
            text = render(action.text, values)
            options = tuple(render(one, values) for one in action.options)
            default = None if action.default is None else render(action.default, values)
        except TemplateError as error:
            self._conclude(self.open.pop(call), ("failed", r.WorkResult(reason=error.message)))
            return
        if not self.ledger.environment.policy.can_ask:
            self._conclude(self.open.pop(call), by_default(default, NOBODY))
            return
        question = f"q-{self.ledger.environment.path}{call}"
        asked = r.StepAsked(self.id, step.id, index, question, text, options, default)
        self.open[call].asked = asked
        self._note(asked)
        seconds = action.timeout or step.timeout
        if seconds:
            self._effects.append(SetRunTimer(f"ask {call}", seconds, self.epoch))

    def _start(self, step: StepSpec, record: StepRecord, index: int, is_child: bool = False) -> str:
        """Note that an attempt begins, and return its name."""
        call = f"{self.id}.w{self.run.calls_made + 1}"
        attempt = record.attempts.get(str(index), 1)
        if record.state_of(index) == "resting":
            attempt += 1
        self._note(r.ItemStarted(self.id, step.id, index, call, attempt, is_child))
        self.open[call] = Open(step, index, call)
        return call

    # Ending ---------------------------------------------------------------------------------------

    def _conclude(self, one: Open, came: Came) -> None:
        """Note how an attempt ended; one that failed may be followed by another."""
        status, result = came
        self._concluded += 1
        record = self.run.steps[one.step.id]
        attempt = record.attempts.get(str(one.index), 1)
        if status == "failed" and attempt <= one.step.retry.max and not self._is_late:
            self._note(r.ItemEnded(self.id, one.step.id, one.index, "retry", result))
            timer = f"rest {one.index} {one.step.id}"
            self._effects.append(SetRunTimer(timer, one.step.retry.delay(attempt), self.epoch))
            return
        self._note(r.ItemEnded(self.id, one.step.id, one.index, status, result))

    # Small things ---------------------------------------------------------------------------------

    def _note(self, entry: e.Entry) -> None:
        self.ledger.decide(Decision(entries=(entry,)))

    def _flush(self) -> None:
        """Hand on what is to be done since the last time, as one."""
        if self._effects or self._urgent:
            effects, urgent = tuple(self._effects), tuple(self._urgent)
            self._effects, self._urgent = [], []
            self.ledger.decide(Decision(effects=effects, urgent=urgent))


def by_default(default: str | None, why: str) -> Came:
    """Say what a question comes to that nobody answers."""
    if default is None:
        return "failed", r.WorkResult(reason=why)
    return "ok", r.WorkResult(default, more={"by": "default"})
