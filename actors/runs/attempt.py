"""Attempts at a run's work: how each is begun, by a process, a session or a person, and how it ends.

An attempt is an entry before it is anything else. What is decided in answer to one message is gathered,
and handed to the session as one: the result of one attempt and the beginning of the next are one commit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pykka import ActorRef

from ...journal import entries as e
from ...journal import run_entries as r
from ...journal.run_record import RunRecord, StepRecord, apply_to_run
from ...machines.delegation import Delegate
from ...machines.errors import TemplateError
from ...machines.orders import Decided, InterruptTurn, SteersTaken, TakeSteers
from ...machines.workflow_order import ChildCame, SetRunTimer
from ...workflows.flow.kind import Kind
from ...workflows.flow.spec import AskAction, StepSpec, WorkflowSpec
from ...workflows.flow.template import render
from ..actor import Actor
from .plan import Plan
from .values import Values
from .work import Came, command, errand

if TYPE_CHECKING:
    from ..environment import Environment
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
    is_taken_up: bool = False

    @property
    def is_command(self) -> bool:
        """Whether a process does it."""
        return self.step.kind in COMMANDS

    @property
    def is_errand(self) -> bool:
        """Whether a session of its own does it."""
        return not self.is_command and self.step.kind is not Kind.ASK


class Attempts(Actor):
    """What a run has in hand. `run` is its own copy of the run's record.

    `open` are the attempts that run, by their call; `cancel` is a stop that was asked for.
    """

    def __init__(
        self,
        system: ActorSystem,
        turn: str,
        epoch: int,
        run: RunRecord,
        session: ActorRef[Any],
        queue: ActorRef[Any],
        environment: Environment,
        place: tuple[str, str],
    ) -> None:
        super().__init__(system)
        assert isinstance(environment.workflow, WorkflowSpec)
        self.turn, self.epoch, self.run = turn, epoch, run
        self.plan = Plan(environment.workflow)
        self.values = Values(self.plan.spec, run, *place)
        self.open: dict[str, Open] = {}
        self.cancel: InterruptTurn | None = None
        self._session, self._queue, self._environment = session, queue, environment
        self._rested: list[tuple[str, int]] = []
        self._looked: dict[str, bool] = {}
        self._errands: list[tuple[StepSpec, int]] = []
        self._said = ""
        self._is_late = False
        self._concluded = 0
        self._entries: list[e.Entry] = []
        self._effects: list[Any] = []
        self._urgent: list[Any] = []

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
            if len(self._errands) == 1:
                self._queue.tell(TakeSteers(self.turn, 2, False, self.actor_ref))

    def _begin_command(self, step: StepSpec, record: StepRecord, index: int) -> None:
        call = self._start(step, record, index)
        values = self.values.of_item(self.values.now(), record, index)
        try:
            self._effects.append(command(step, values, self.turn, self.epoch, call))
        except TemplateError as error:
            self._conclude(self.open.pop(call), ("failed", r.WorkResult(reason=error.message)))

    def _begin_errand(self, message: SteersTaken) -> None:
        """Send a session of its own off, with what people said for it in the meantime."""
        if message.items:
            said = "\n\n".join(one.text for one in message.messages)
            self._said = "\n\n".join(filter(None, (self._said, said)))
        errands, self._errands = self._errands, []
        if self.cancel is not None:
            return
        for step, index in errands:
            self._send_off(step, index)

    def _send_off(self, step: StepSpec, index: int) -> None:
        record, is_agent = self.run.steps[step.id], step.kind is Kind.AGENT
        call = self._start(step, record, index, is_child=True)
        values = self.values.of_item(self.values.now(), record, index)
        name = f"{step.id}-{index + 1}" if record.is_many else step.id
        bare = Delegate(self.turn, self.epoch, call, {"name": name})
        try:
            said = self._said if is_agent else ""
            order = errand(step, values, bare, said, self._environment.helpers)
        except TemplateError as error:
            self._conclude(self.open.pop(call), ("failed", r.WorkResult(reason=error.message)))
            return
        self._said = "" if is_agent else self._said
        self._effects.append(order)
        if step.timeout:
            self._effects.append(SetRunTimer(f"limit {call}", step.timeout, self.epoch))

    def _sent(self, entry: e.Entry) -> None:
        """Note which session was sent off."""
        apply_to_run(self.run, entry, self.system.now())
        one = self.open.get(entry.call) if isinstance(entry, e.ChildStarted) else None
        if one is not None and isinstance(entry, e.ChildStarted):
            one.child = entry.child

    def _take_up(self, step: StepSpec, record: StepRecord, index: int) -> None:
        """Wait for a session that goes on with the run, or take what it came to meanwhile."""
        name = record.children[str(index)]
        call = self._start(step, record, index, is_child=True)
        self.open[call].child, self.open[call].is_taken_up = name, True
        self._session.tell(ChildCame(name, "wanted"))
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
        if not self._environment.policy.can_ask:
            self._conclude(self.open.pop(call), by_default(default, NOBODY))
            return
        question = f"q-{self._environment.path}{call}"
        asked = r.StepAsked(self.turn, step.id, index, question, text, options, default)
        self.open[call].asked = asked
        self._note(asked)
        seconds = action.timeout or step.timeout
        if seconds:
            self._effects.append(SetRunTimer(f"ask {call}", seconds, self.epoch))

    def _start(self, step: StepSpec, record: StepRecord, index: int, is_child: bool = False) -> str:
        """Note that an attempt begins, and return its name."""
        call = f"{self.turn}.w{self.run.calls_made + 1}"
        attempt = record.attempts.get(str(index), 1)
        if record.state_of(index) == "resting":
            attempt += 1
        self._note(r.ItemStarted(self.turn, step.id, index, call, attempt, is_child))
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
            self._note(r.ItemEnded(self.turn, one.step.id, one.index, "retry", result))
            timer = f"rest {one.index} {one.step.id}"
            self._effects.append(SetRunTimer(timer, one.step.retry.delay(attempt), self.epoch))
            return
        self._note(r.ItemEnded(self.turn, one.step.id, one.index, status, result))

    # Small things ---------------------------------------------------------------------------------

    def _note(self, entry: e.Entry) -> None:
        apply_to_run(self.run, entry, self.system.now())
        self._entries.append(entry)

    def _flush(self) -> None:
        """Hand on what was decided since the last time, as one."""
        if self._entries or self._effects or self._urgent:
            decided = tuple(self._entries), tuple(self._effects), tuple(self._urgent)
            self._entries, self._effects, self._urgent = [], [], []
            self._session.tell(Decided(self.name, *decided))


def by_default(default: str | None, why: str) -> Came:
    """Say what a question comes to that nobody answers."""
    if default is None:
        return "failed", r.WorkResult(reason=why)
    return "ok", r.WorkResult(default, more={"by": "default"})
