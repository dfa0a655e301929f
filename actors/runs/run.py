"""The run actor and the steps of its run.

A run takes the place of an agent's turn, and is stopped like one. A stop gives the commands that run a
moment to end, since most do, and what has ended need not be done again. Sessions are stopped at once:
they go on where they were. A second stop, or the end of that moment, stops the commands, too. Nothing
here waits: commands run in the ports, agents in sessions of their own, and the outcome of either comes
back as a message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ...journal import entries as e
from ...journal.record import CancelRecord
from ...journal.run_record import StepRecord
from ...machines import protocol as m
from ...machines.conversation import ChatMessage, cut_short
from ...machines.errors import TemplateError
from ...machines.steps import UNDECIDED
from ...workflows.flow.spec import Kind, StepSpec
from ...workflows.flow.template import holds, items_of, render
from ..decisions import stopping
from ..decisions.decision import Decision, answer, refused_with
from ..decisions.turning import is_dead
from ..ledger import Ledger, Member
from .attempt import Attempts, OpenAttempt, RunContext, by_default
from .work import COMMANDS

if TYPE_CHECKING:
    from ..system import ActorSystem


OVERTIME: Final = "the run took longer than its `timeout`"
STOP_GRACE: Final = 1.0
"""Seconds that commands have to end when a run is stopped."""
MOST_NAMES: Final = 10
"""Work that a reason names; of more it says how much."""
INTERRUPTED: Final = "[Interrupted.]"
NO_ANSWER: Final = "there was no answer in time"
LATE: Final = "it took longer than {:g} s"


class Steps:
    """The steps of one run: begins those that the plan names, gives them work, ends them.

    `looked` are those for which the folder is looked at, and whether that is done.
    """

    def __init__(self, context: RunContext, attempts: Attempts) -> None:
        self._context, self._attempts = context, attempts
        self.looked: dict[str, bool] = {}

    def feed(self) -> None:
        """Give the running steps as much work as there is room for; end those without any left."""
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
            for due_step in due:
                if due_step.verdict == "block":
                    why = f"step `{due_step.need}` failed"
                    self._end(due_step.step, "blocked", why)
                elif self._context.run.is_late and not due_step.step.is_final:
                    self._end(due_step.step, "blocked", OVERTIME)
                else:
                    self._begin_step(due_step.step)

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
                m.LookBefore(turn=self._context.id, epoch=self._context.epoch, step=step.id)
            )

    def is_stuck(self) -> bool:
        """Whether only work of unknown outcome is left, which a person decides about."""
        run = self._context.run
        going = [record for _, record in self._context.plan.going(run)]
        return (  # the cheapest first: this is asked after every result
            not self._attempts.open
            and not self._attempts.count()
            and all(self.looked.get(record.id, True) for record in going)
            and all(record.first("waiting", "interrupted", "resting") is None for record in going)
            and bool(run.unknown())
        )

    def _is_through(self, step: StepSpec, record: StepRecord) -> bool:
        """Whether a step has nothing left to do: all is done, or something failed and that counts."""
        if record.first("running") is not None or self._attempts.count(step):
            return False
        is_stopped = self._context.run.is_late and not step.is_final
        is_stopped |= record.count("failed") > 0 and not step.continue_on_error
        return is_stopped or record.first("waiting", "interrupted", "resting", "unknown") is None

    def _end_step(self, step: StepSpec, record: StepRecord) -> None:
        failed = list(record.those("failed"))
        left = record.first("waiting", "interrupted", "resting", "unknown")
        is_cut = self._context.run.is_late and left is not None
        status = "failed" if failed or is_cut else "done"
        reason = OVERTIME if is_cut else ""
        if failed:
            reason = record.result(failed[0]).reason
            if record.is_many:
                first = f"first item `{record.name(failed[0])}`: {reason}"
                reason = f"{len(failed)} of {record.total} failed, {first}"
        if self.looked.pop(step.id, None) is not None:
            self._context.at_once(m.LookAfter(turn=self._context.id, step=step.id))
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
        """Whether the run may begin another item; sessions are bounded as those of any turn are."""
        most = self._context.member.environment.delegation.max_children
        is_session = step.kind not in (*COMMANDS, Kind.ASK)
        if is_session and self._attempts.sessions() >= most:
            return False
        at_work = len(self._attempts.open) + self._attempts.count()
        return at_work < self._context.plan.spec.parallel


class Run(Member):
    """One turn of a run: from the beginning, or from where it was interrupted, to an end.

    `is_stop_timed`: a planned stop waits for commands to end, no longer than `STOP_GRACE`.
    """

    role = "turn"

    def __init__(self, system: ActorSystem, ledger: Ledger, turn: str) -> None:
        super().__init__(system, ledger)
        self.context = RunContext(self, turn)
        self.attempts = Attempts(self.context)
        self.steps = Steps(self.context, self.attempts)
        self.is_stop_timed = False

    @property
    def id(self) -> str:
        """The turn that it is."""
        return self.context.id

    def on_start(self) -> None:
        """Take up what was interrupted, and begin what can begin."""
        self.enlist()
        run, limit = self.context.run, self.context.plan.spec.timeout
        for name, index in run.unknown():
            if self.attempts.may_repeat(self.context.plan.steps[name], index):
                self.context.note(e.ItemReopened(step=name, index=index))
        if limit and run.worked < limit:
            self.context.later(m.SetTimer(timer=m.Timer(kind="run"), seconds=limit - run.worked))
        elif limit and not run.is_late:
            self.context.note(e.RunOverdue(turn=self.id))
        for record in list(self.context.run.steps.values()):
            if record.state == "interrupted":
                self.context.note(e.StepStarted(turn=self.context.id, step=record.id))
                self.steps.look(self.context.plan.steps[record.id])
        self.steps.begin_due()
        self._go_on()

    def on_receive(self, message: Any) -> Any:
        """Decide what a result, a timer, an answer or an interrupt means for the run."""
        match message:
            case m.ToolFinished():
                self.attempts.finished(message)
            case m.Looked(step=name):
                self.steps.looked[name] = True
            case m.Wake():
                self.awake()
                self.attempts.asked = False
            case m.SteerWaits():
                pass
            case m.TimerFired(timer=timer):
                self._time_is_up(timer)
            case m.Answer():
                return self._answered(message)
            case m.ModelNoticed(text=text):
                self.ledger.publish(m.Notice(text=text))
            case _:
                return super().on_receive(message)
        self._go_on()
        return None

    # Due work -------------------------------------------------------------------------------------

    def _go_on(self) -> None:
        """Obey a stop; begin what there is room for, end what is over; have it all done at once."""
        self._obey_stop()
        self.attempts.follow_children()
        if self.context.may_begin:
            self.steps.feed()
            while self.attempts.follow_children():  # a session that is taken up may be over already
                self.steps.feed()
            self.attempts.begin_sessions()
            if self.context.plan.is_over(self.context.run) and not self.attempts.open:
                self._finish()
            elif self.steps.is_stuck():
                self._give_up()
        self.context.flush()
        if self.context.run.state == "interrupting":
            self._end_stopped()

    def _finish(self) -> None:
        """End the run: with what it leaves behind, or with why it failed."""
        fault = self.context.plan.fault(self.context.run) or (
            OVERTIME if self.context.run.is_late else ""
        )
        text = fault
        if not fault:
            try:
                output = self.context.plan.spec.output
                text = render(output, self.context.values.now()) if output else ""
            except TemplateError as error:
                fault = text = f"`workflow.output` {error.message}"
        status = "failed" if fault else "completed"
        said = (
            ChatMessage(role="assistant", text=text or f"[{self.context.plan.spec.name}: done]"),
        )
        self.context.note(
            e.TurnEnded(turn=self.context.id, status=status, reason=fault, messages=said)
        )
        self.context.flush()
        self.stop()

    def _give_up(self) -> None:
        """End the run here, since a person has to say what became of some of its work."""
        for name in self.steps.looked:
            self.context.at_once(m.LookAfter(turn=self.context.id, step=name))
        run = self.context.run
        names = [run.steps[step].name(at) for step, at in run.unknown()]
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        fault = f"{UNDECIDED}{', '.join(names[:MOST_NAMES])}{more}"
        said = (ChatMessage(role="assistant", text=fault),)
        self.context.note(
            e.TurnEnded(turn=self.context.id, status="failed", reason=fault, messages=said)
        )
        self.context.flush()
        self.stop()

    # The end by cancel ----------------------------------------------------------------------------

    def _obey_stop(self) -> None:
        """End here; while a planned stop waits for commands, only when the last has ended."""
        stop = self.context.cancel
        if stop is not None and self.context.run.state == "running":
            has_commands = any(attempt.is_command for attempt in self.attempts.open.values())
            if stop.state == "planned" and has_commands:
                if not self.is_stop_timed:
                    self.is_stop_timed = True
                    self.context.later(
                        m.SetTimer(
                            timer=m.Timer(kind="stop"), seconds=STOP_GRACE, epoch=self.context.epoch
                        )
                    )
            else:
                self._cut(stop)

    def _cut(self, stop: CancelRecord) -> None:
        """End here; what runs is stopped, and its results are awaited."""
        self.attempts.forget_sessions()
        for attempt in [attempt for attempt in self.attempts.open.values() if attempt.asked]:
            del self.attempts.open[attempt.call]
            self.context.note(
                e.ItemEnded(
                    turn=self.context.id,
                    step=attempt.step.id,
                    index=attempt.index,
                    status="interrupted",
                )
            )
        planned: tuple[e.Entry, ...] = ()
        if stop.state == "planned":
            planned = (stopping.take_effect(stop, self.environment),)
        over = e.Interrupted(
            turn=self.context.id, cause=stop.order.cause, checkpoint=self._checkpoint()
        )
        held = stopping.holds_after(self.record, stop.order.cause, self.environment)
        self.decide(Decision(entries=(*planned, over, *held), urgent=tuple(self._stops())))

    def _stops(self) -> list[m.StopTool | m.StopChild]:
        """Order the commands that run to stop, and sessions that have not begun yet.

        The stop itself reaches those that have.
        """
        return [
            (m.StopTool if attempt.is_command else m.StopChild)(
                turn=self.context.id, epoch=self.context.epoch, call=attempt.call
            )
            for attempt in self.attempts.open.values()
            if attempt.is_command or (attempt.is_session and not attempt.child)
        ]

    def _checkpoint(self) -> dict[str, Any] | None:
        """Say how far the newest step with items is."""
        for step in reversed(tuple(self.context.run.steps.values())):
            if step.is_many and step.state == "running":
                return {"done": step.count("done"), "total": step.total, "unit": "item"}
        return None

    def _end_stopped(self) -> None:
        """When everything that was started is dead, say so, and end."""
        if self.attempts.open or not is_dead(self.record):
            return
        for name in self.steps.looked:
            self.context.at_once(m.LookAfter(turn=self.context.id, step=name))
        stop = self.context.cancel
        killed, survivors = stopping.died_of(self.record, self.context.id)
        killed, survivors = self.attempts.killed + killed, self.attempts.survivors + survivors
        said = (cut_short("", INTERRUPTED),)
        order = stop.order.epoch if stop is not None else 0
        self.context.note(
            e.Stopped(
                turn=self.context.id, killed=killed, survivors=survivors, messages=said, order=order
            )
        )
        self.context.flush()
        self.stop()

    # Time -----------------------------------------------------------------------------------------

    def _time_is_up(self, timer: m.Timer) -> None:
        if self.context.run.state != "running":
            return
        cancel = self.context.cancel
        if timer.kind == "stop" and cancel is not None:
            self._cut(cancel)
            self.context.flush()
        elif timer.kind == "rest":
            self.attempts.rested(timer.about, timer.index)
        elif timer.kind in ("limit", "ask") and timer.about in self.attempts.open:
            self._limit(self.attempts.open[timer.about])
        elif timer.kind == "run" and cancel is None:
            self.context.note(e.RunOverdue(turn=self.id))
            self._stop_late()

    def _stop_late(self) -> None:
        """Stop all that runs, not to be resumed: the whole run took too long."""
        for attempt in list(self.attempts.open.values()):
            if attempt.asked is not None:
                self.attempts.fail(attempt.call, OVERTIME)
                continue
            attempt.overdue = OVERTIME
            if attempt.is_command:
                self.context.at_once(
                    m.StopTool(turn=self.context.id, epoch=self.context.epoch, call=attempt.call)
                )
            elif attempt.child:
                self.ledger.tell("children", m.EndChild(child=attempt.child))

    def _limit(self, attempt: OpenAttempt) -> None:
        """A session or a person took too long."""
        if attempt.asked is not None:
            del self.attempts.open[attempt.call]
            self.attempts.conclude(attempt, by_default(attempt.asked.default, NO_ANSWER))
        elif attempt.child:
            attempt.overdue = LATE.format(attempt.step.timeout)
            self.ledger.tell("children", m.EndChild(child=attempt.child))

    # Answers --------------------------------------------------------------------------------------

    def _answered(self, message: m.Answer) -> dict[str, Any]:
        attempt, asked = next(
            (
                (attempt, attempt.asked)
                for attempt in self.attempts.open.values()
                if attempt.asked and attempt.asked.question == message.question
            ),
            (None, None),
        )
        if attempt is None or asked is None:
            return refused_with(f"no question `{message.question}` is open")
        said = message.choice if message.choice == "deny" else spoken(message)
        text = chosen(asked.options, said)
        is_unanswered = message.choice == "deny" and bool(message.reason)
        if text is None and not is_unanswered:
            known = ", ".join(asked.options)
            return refused_with(f"`{said}` is no answer; there are: {known}")
        del self.attempts.open[attempt.call]
        if text is None or is_unanswered:
            self.attempts.conclude(attempt, by_default(asked.default, NO_ANSWER))
        else:
            self.attempts.conclude(attempt, ("ok", e.WorkResult(output=text, more={"by": "user"})))
        self._go_on()
        return answer()


def spoken(message: m.Answer) -> str:
    """Return an answer of several words, of which the first one was read as the choice."""
    return " ".join(filter(None, (message.choice, message.reason)))


def chosen(options: tuple[str, ...], said: str) -> str | None:
    """Return the option that an answer means, by its text or number; none if it means none."""
    if not options:
        return said
    by_number = {str(number): option for number, option in enumerate(options, 1)}
    by_word = {option.casefold(): option for option in options}
    word = said.strip().casefold()
    return by_word.get(word) or by_number.get(word)
