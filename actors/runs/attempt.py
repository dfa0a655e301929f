"""Attempts at a run's work: how each is begun, by a process, a session or a person, and how it ends.

An attempt is an entry before it is anything else. What is decided in answer to one message is gathered,
and handed to the session as one: the result of one attempt and the beginning of the next are one commit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from ...journal import entries as e
from ...journal.record import CancelRecord
from ...journal.run_record import RunRecord, StepRecord
from ...machines import protocol as m
from ...machines.errors import TemplateError
from ...workflows.flow.spec import AskAction, Kind, StepSpec, WorkflowSpec
from ...workflows.flow.template import render
from ..decisions.decision import Decision
from ..decisions.intake import taken_in
from .plan import StepPlan
from .work import COMMANDS, Outcome, Values, command, delegation, of_child, of_command

if TYPE_CHECKING:
    from ..ledger import Member


MOST_LOSSES = 3
"""How often a worker may die under an item that is repeated: the item may be the cause."""
NO_PERSON = "no person can be asked, and it has no `default`"


class OpenAttempt(Struct, kw_only=True):
    """An attempt that runs: whose it is, which session does it, or what a person is asked.

    `overdue` says why it was stopped permanently, where the time for it was up.
    """

    step: StepSpec
    index: int
    call: str
    child: str = ""
    asked: e.StepAsked | None = None
    overdue: str = ""

    @property
    def is_command(self) -> bool:
        """Whether a process does it."""
        return self.step.kind in COMMANDS

    @property
    def is_session(self) -> bool:
        """Whether a session of its own does it."""
        return not self.is_command and self.step.kind is not Kind.ASK


class RunContext:
    """The context that the parts of a run share: its plan and values, and the effects of one message."""

    def __init__(self, member: Member, turn: str) -> None:
        record, workflow = member.record, member.environment.workflow
        assert isinstance(workflow, WorkflowSpec)
        self.member = member
        self.id = turn
        self.epoch = record.turns[turn].epoch
        self.plan = StepPlan(workflow)
        self.values = Values(workflow, lambda: self.run, record.id, record.folder)
        self._effects: list[m.Effect] = []
        self._urgent: list[m.Effect] = []

    @property
    def run(self) -> RunRecord:
        """The run, as everything that was decided until now has left it."""
        run = self.member.record.run
        assert run is not None, "a run without a workflow"
        return run

    @property
    def cancel(self) -> CancelRecord | None:
        """The newest stop of this turn that is not over: it is planned, or has taken effect."""
        found = [
            stop
            for stop in self.member.record.interrupts.values()
            if stop.turn == self.id and stop.state in ("planned", "stopping")
        ]
        return found[-1] if found else None

    @property
    def may_begin(self) -> bool:
        """Whether something may begin: the run runs, and no stop is on its way to it."""
        return self.run.state == "running" and self.cancel is None

    def values_of(self, record: StepRecord, index: int) -> dict[str, Any]:
        """Return what a template finds that is filled in for one item of a step."""
        return self.values.of_item(self.values.now(), record, index)

    def note(self, entry: e.Entry) -> None:
        """Journal an entry."""
        self.member.decide(Decision(entries=(entry,)))

    def later(self, effect: m.Effect) -> None:
        """Have something done once all that is decided now is durable."""
        self._effects.append(effect)

    def at_once(self, effect: m.Effect) -> None:
        """Have something stopped, or looked at for the last time, without waiting for a commit."""
        self._urgent.append(effect)

    def flush(self) -> None:
        """Hand on what is to be done since the last time, as one."""
        if self._effects or self._urgent:
            effects, urgent = tuple(self._effects), tuple(self._urgent)
            self._effects, self._urgent = [], []
            self.member.decide(Decision(effects=effects, urgent=urgent))


class Attempts:
    """The attempts of a run: `open` are those that run, by their call.

    `asked`: the queue was asked for steers, and has not answered. `concluded` counts the attempts that
    came to an end; `killed` and `survivors` are processes of those that were stopped. `_unsent` are the
    items whose sessions are not started yet.
    """

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self.open: dict[str, OpenAttempt] = {}
        self.asked = False
        self.concluded = 0
        self.killed: tuple[int, ...] = ()
        self.survivors: tuple[int, ...] = ()
        self._rested: list[tuple[str, int]] = []
        self._unsent: list[tuple[StepSpec, int]] = []
        self._given: set[str] = set()
        self._said = ""

    def count(self, step: StepSpec | None = None) -> int:
        """Return how many sessions wait to be started, of all steps or of one."""
        return sum(step is None or unsent is step for unsent, _ in self._unsent)

    def sessions(self) -> int:
        """Return how many sessions are at work or wait to be started."""
        return self.count() + sum(attempt.is_session for attempt in self.open.values())

    def forget_sessions(self) -> None:
        """Start no session any more that waits for that."""
        self._unsent.clear()

    def rested(self, step: str, index: int) -> None:
        """The pause before another attempt is over."""
        self._rested.append((step, index))

    def next_of(self, step: StepSpec, record: StepRecord) -> int | None:
        """Return which item of a step is to be attempted next; none if there is none."""
        for item in self._rested:
            if item[0] == step.id:
                self._rested.remove(item)
                return item[1]
        reserved = {index for other, index in self._unsent if other is step}
        if not reserved:
            return record.first("waiting", "interrupted")
        return next(
            (at for at in record.those("waiting", "interrupted") if at not in reserved), None
        )

    # Beginning ------------------------------------------------------------------------------------

    def begin(self, step: StepSpec, record: StepRecord, index: int) -> None:
        """Begin an attempt at an item of a step."""
        if step.kind in COMMANDS:
            self._begin_command(step, record, index)
        elif isinstance(step.action, AskAction):
            self._ask(step, step.action, record, index)
        elif record.children.get(str(index)) and record.state_of(index) == "interrupted":
            self._take_up(step, record, index)
        elif step.kind is not Kind.AGENT:
            self._start_session(step, index)
        else:
            self._unsent.append((step, index))

    def _begin_command(self, step: StepSpec, record: StepRecord, index: int) -> None:
        call = self._start(step, record, index)
        values = self._context.values_of(record, index)
        try:
            self._context.later(command(step, values, self._context.id, self._context.epoch, call))
        except TemplateError as error:
            self.fail(call, error.message)

    def begin_sessions(self) -> None:
        """Start sessions of their own, with the steers for them that came in the meantime."""
        queue = self._context.member.record.queue
        if not self._unsent:
            return
        if queue.steers(self._context.id):
            if not self.asked:
                self.asked = True
                self._context.member.ledger.tell(
                    "queue", m.TakeSteers(turn=self._context.id, step=2)
                )
            return
        steered = [
            item
            for item in queue.items.values()
            if (item.state, item.turn) == ("steered", self._context.id)
            and not item.for_children
            and item.id not in self._given
        ]
        self._given.update(item.id for item in steered)
        said = taken_in(steered)
        self._said = "\n\n".join(filter(None, (self._said, said)))
        unsent, self._unsent = self._unsent, []
        for step, index in unsent:
            self._start_session(step, index)

    def _start_session(self, step: StepSpec, index: int) -> None:
        record, is_agent = self._context.run.steps[step.id], step.kind is Kind.AGENT
        call = self._start(step, record, index, is_child=True)
        values = self._context.values_of(record, index)
        name = f"{step.id}-{index + 1}" if record.is_many else step.id
        session = self._context.member.record
        bare = m.Delegate(
            turn=self._context.id,
            epoch=session.epoch,
            call=call,
            arguments={"name": name},
            ancestors=session.turns[self._context.id].ancestors,
        )
        try:
            said = self._said if is_agent else ""
            order = delegation(step, values, bare, said, self._context.member.environment)
        except TemplateError as error:
            self.fail(call, error.message)
            return
        self._said = "" if is_agent else self._said
        self._context.later(order)
        if step.timeout:
            self._context.later(
                m.SetTimer(
                    timer=m.Timer(kind="limit", about=call),
                    seconds=step.timeout,
                    epoch=self._context.epoch,
                )
            )

    def _note_sessions(self) -> None:
        """Note which sessions were started."""
        waiting = {
            attempt.call: attempt
            for attempt in self.open.values()
            if attempt.is_session and not attempt.child
        }
        for child in self._context.member.record.children.values() if waiting else ():
            if child.call in waiting:
                waiting[child.call].child = child.name

    def _take_up(self, step: StepSpec, record: StepRecord, index: int) -> None:
        """Wait for a session that goes on with the run, or take the outcome that it has meanwhile."""
        name = record.children[str(index)]
        call = self._start(step, record, index, is_child=True)
        self.open[call].child = name
        child = self._context.member.record.children.get(name)
        if child is not None and child.state == "interrupted":
            # a crash may have come between the turn and its resuming: it is still another's
            order = m.ResumeChildren(
                earlier=(child.turn,),
                turn=self._context.id,
                epoch=self._context.member.record.epoch,
            )
            self._context.member.ledger.tell("children", order)
        if step.timeout:
            self._context.later(
                m.SetTimer(
                    timer=m.Timer(kind="limit", about=call),
                    seconds=step.timeout,
                    epoch=self._context.epoch,
                )
            )

    def _ask(self, step: StepSpec, action: AskAction, record: StepRecord, index: int) -> None:
        call = self._start(step, record, index)
        values = self._context.values_of(record, index)
        try:
            text = render(action.text, values)
            options = tuple(render(option, values) for option in action.options)
            default = None if action.default is None else render(action.default, values)
        except TemplateError as error:
            self.fail(call, error.message)
            return
        if not self._context.member.environment.policy.can_ask:
            self.conclude(self.open.pop(call), by_default(default, NO_PERSON))
            return
        question = m.question_id(self._context.member.environment.path, call)
        asked = e.StepAsked(
            turn=self._context.id,
            step=step.id,
            index=index,
            question=question,
            text=text,
            options=options,
            default=default,
        )
        self.open[call].asked = asked
        self._context.note(asked)
        seconds = action.timeout or step.timeout
        if seconds:
            self._context.later(
                m.SetTimer(
                    timer=m.Timer(kind="ask", about=call),
                    seconds=seconds,
                    epoch=self._context.epoch,
                )
            )

    def _start(self, step: StepSpec, record: StepRecord, index: int, is_child: bool = False) -> str:
        """Note that an attempt begins, and return its name."""
        call = f"{self._context.id}.w{self._context.run.calls_made + 1}"
        number = record.attempts.get(str(index), 1)
        if record.state_of(index) == "resting":
            number += 1
        self._context.note(
            e.ItemStarted(
                turn=self._context.id,
                step=step.id,
                index=index,
                call=call,
                attempt=number,
                is_child=is_child,
            )
        )
        self.open[call] = OpenAttempt(step=step, index=index, call=call)
        return call

    def fail(self, call: str, reason: str) -> None:
        """End an attempt that could not begin, or took too long."""
        self.conclude(self.open.pop(call), ("failed", e.WorkResult(reason=reason)))

    # Ending ---------------------------------------------------------------------------------------

    def conclude(self, attempt: OpenAttempt, outcome: Outcome) -> None:
        """Note how an attempt ended; one that failed may be followed by another."""
        status, result = outcome
        self.concluded += 1
        record = self._context.run.steps[attempt.step.id]
        number = record.attempts.get(str(attempt.index), 1)
        if (
            status == "failed"
            and number <= attempt.step.retry.max
            and not self._context.run.is_late
        ):
            self._context.note(
                e.ItemEnded(
                    turn=self._context.id,
                    step=attempt.step.id,
                    index=attempt.index,
                    status="retry",
                    result=result,
                )
            )
            timer = m.Timer(kind="rest", about=attempt.step.id, index=attempt.index)
            self._context.later(
                m.SetTimer(
                    timer=timer, seconds=attempt.step.retry.delay(number), epoch=self._context.epoch
                )
            )
            return
        self._context.note(
            e.ItemEnded(
                turn=self._context.id,
                step=attempt.step.id,
                index=attempt.index,
                status=status,
                result=result,
            )
        )

    # Results --------------------------------------------------------------------------------------

    def finished(self, message: m.ToolFinished) -> None:
        """A command has ended, or a session could not be started."""
        attempt = self.open.pop(message.call, None)
        if attempt is None:
            return
        ended = message.result
        if ended.status == "unknown":
            self._lose(attempt, ended)
            return
        is_stopped = ended.status == "killed" and not self._context.run.is_late
        if self._context.run.state != "running" or is_stopped:
            self._interrupt(attempt, ended.killed, ended.survivors)
        else:
            self.conclude(attempt, _in_time(attempt, of_command(attempt.step, ended)))

    def _lose(self, attempt: OpenAttempt, ended: m.ToolResult) -> None:
        """Note that the outcome of a command is unknown; it may begin again if that does no harm."""
        step, index = attempt.step, attempt.index
        self.concluded += 1
        self._context.note(
            e.ItemEnded(
                turn=self._context.id,
                step=step.id,
                index=index,
                status="unknown",
                result=e.WorkResult(errors=ended.errors, reason=ended.text),
            )
        )
        if self.may_repeat(step, index) and not self._context.run.is_late:
            self._context.note(e.ItemReopened(step=step.id, index=index))

    def may_repeat(self, step: StepSpec, index: int) -> bool:
        """Whether work of unknown outcome is done again unasked: no harm, no dead workers."""
        losses = self._context.run.steps[step.id].losses.get(str(index), 0)
        return step.idempotent and losses < MOST_LOSSES

    def follow_children(self) -> bool:
        """Take in the outcomes of sessions that work for steps; whether there was any."""
        self._note_sessions()
        has_ended = False
        for attempt in [attempt for attempt in self.open.values() if attempt.child]:
            came = self._came(attempt)
            if came is None or attempt.call not in self.open:
                continue
            has_ended = True
            del self.open[attempt.call]
            is_stopped = came.state == "interrupted" and not self._context.may_begin
            if is_stopped or self._context.run.state != "running":
                self._interrupt(attempt, (), ())
            else:
                self.conclude(attempt, _in_time(attempt, of_child(attempt.step, came)))
                if came.state == "interrupted":
                    self._context.member.ledger.wake("children")  # it is given up
        return has_ended

    def _came(self, attempt: OpenAttempt) -> m.ChildCame | None:
        """Return how a step's session ended, once it has."""
        child = self._context.member.record.children.get(attempt.child)
        if child is None:
            reason = "its session is not known any more"
            return m.ChildCame(name=attempt.child, state="failed", reason=reason)
        is_anothers = child.state == "interrupted" and child.turn != self._context.id
        is_resuming = is_anothers and self._context.may_begin
        if child.is_at_work or is_resuming:
            return None
        is_achieved = bool(child.goal) and child.state == "completed"
        goal = "achieved" if is_achieved else "failed" if child.goal else ""
        more = {"turns": child.steps, "goal": goal, "reason": child.reason}
        return m.ChildCame(
            name=child.name,
            state=child.state,
            text=child.text,
            reason=child.reason,
            session=child.session,
            more=more,
        )

    def _interrupt(
        self, attempt: OpenAttempt, killed: tuple[int, ...], survivors: tuple[int, ...]
    ) -> None:
        """Note that an attempt was stopped: it can go on, or be made again."""
        self.killed += killed
        self.survivors += survivors
        self._context.note(
            e.ItemEnded(
                turn=self._context.id,
                step=attempt.step.id,
                index=attempt.index,
                status="interrupted",
            )
        )


def by_default(default: str | None, why: str) -> Outcome:
    """Return the outcome of a question that is not answered."""
    if default is None:
        return "failed", e.WorkResult(reason=why, is_unanswered=True)
    return "ok", e.WorkResult(output=default, more={"by": "default"})


def _in_time(attempt: OpenAttempt, outcome: Outcome) -> Outcome:
    """Return the outcome of an attempt, or that its time was up."""
    status, result = outcome
    is_overdue = attempt.overdue and status == "failed"
    return (status, replace(result, reason=attempt.overdue)) if is_overdue else outcome
