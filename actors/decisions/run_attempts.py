"""Attempts at a run's work: how each begins, as a process, a session or a question, and how it ends.

An attempt is an entry before it is anything else; those that are under way are in the record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from ...journal import entries as e
from ...journal.child_record import ChildRecord
from ...journal.record import SessionRecord, StopRecord
from ...journal.run_record import Attempt, RunRecord, StepRecord
from ...machines import protocol as m
from ...machines.conversation import ToolRequest
from ...machines.errors import TemplateError
from ...machines.steps import chosen
from ...machines.value import Value
from ...workflows.flow.spec import AskAction, Kind, StepSpec
from ...workflows.flow.template import render
from ...workflows.tools import STEP
from .decision import NOTHING, Decision, answer, refusal
from .run_plan import StepPlan
from .run_work import COMMANDS, Outcome, command, delegation, of_child, of_command, with_item

if TYPE_CHECKING:
    from ..environment import Environment

MOST_LOSSES = 3
"""How often a worker may die under an item that is repeated: the item may be the cause."""
NO_PERSON = "no person can be asked, and it has no `default`"
NO_ANSWER = "there was no answer in time"
HELD_UNASKED = "it is held, and no person can be asked"
DENIED = "a person did not let it begin"
CHOICES_OF_HELD = ("run", "skip", "fail")
OVERTIME = "the run took longer than its `timeout`"
LATE = "it took longer than {:g} s"
OVERDUE = "overdue"
"""The cause by which a session is ended that took too long."""


class RunView(Value):
    """A run at the moment of a decision: its session, its environment, and the plan of its workflow."""

    record: SessionRecord
    environment: Environment
    plan: StepPlan

    @property
    def run(self) -> RunRecord:
        """The run itself."""
        assert self.record.run is not None, "a run without a workflow"
        return self.record.run

    @property
    def turn(self) -> str:
        """The turn of the session that the run is."""
        return self.run.turn

    @property
    def epoch(self) -> int:
        """The epoch of that turn."""
        return self.record.turns[self.turn].epoch

    @property
    def stop(self) -> StopRecord | None:
        """The newest stop of the turn that is not over: it is planned, or has taken effect."""
        found = [
            stop
            for stop in self.record.stops.values()
            if stop.turn == self.turn and stop.state in ("planned", "stopping")
        ]
        return found[-1] if found else None

    @property
    def may_begin(self) -> bool:
        """Whether something may begin: the run runs, and no stop is on its way to it."""
        return self.run.state == "running" and self.stop is None

    def step_of(self, attempt: Attempt) -> StepSpec:
        """Return the step that an attempt is for."""
        return self.plan.steps[attempt.step]

    def child_of(self, attempt: Attempt) -> str:
        """Name the session that makes an attempt; empty if it has not begun, or none does."""
        children = self.run.steps[attempt.step].children
        return children.get(str(attempt.index), "") if attempt.is_child else ""

    def is_command(self, attempt: Attempt) -> bool:
        """Whether a process makes an attempt."""
        return self.step_of(attempt).kind in COMMANDS


# Beginning ----------------------------------------------------------------------------------------


def begin(view: RunView, step: StepSpec, index: int, call: str, said: str = "") -> Decision:
    """Begin an attempt at an item of a step, or let it fail; `said` is for an agent to take in."""
    record = view.run.steps[step.id]
    is_begun = is_taken_up(record, index)  # a person has let it begin
    is_held = not is_begun and _is_held(view, step, _name(record, index), call)
    started = e.ItemStarted(
        turn=view.turn,
        step=step.id,
        index=index,
        call=call,
        attempt=record.attempts.get(str(index), 1),
        is_child=_is_session(step) and not is_held,
        is_told=bool(said) and not is_held,
    )
    if is_held:
        return Decision(entries=(started,)) + _hold(view, step, index, call)
    try:
        begun = _begun(view, step, record, index, call, said)
    except TemplateError as error:
        failed = "failed", e.WorkResult(reason=str(error.message))
        return Decision(entries=(replace(started, is_told=False),)) + conclude(
            view, step, index, failed
        )
    return Decision(entries=(started,)) + begun


def _begun(
    view: RunView, step: StepSpec, record: StepRecord, index: int, call: str, said: str
) -> Decision:
    values = with_item(view.plan.values.of(view.record), record, index)
    if step.kind in COMMANDS:
        return Decision(effects=(command(step, values, view.turn, view.epoch, call),))
    if isinstance(step.action, AskAction):
        return _ask(view, step, step.action, index, call, values)
    limits = (_timer(view, "limit", call, step.timeout),) if step.timeout else ()
    if is_taken_up(record, index):
        return Decision(effects=limits) + _resume(view, record.children[str(index)])
    bare = m.Delegate(
        turn=view.turn,
        epoch=view.record.epoch,
        call=call,
        arguments={"name": _name(record, index)},
        ancestors=view.record.turns[view.turn].ancestors,
    )
    return Decision(effects=(delegation(step, values, bare, said, view.environment), *limits))


def _name(record: StepRecord, index: int) -> str:
    """Return what a step's work is called: by the step, and by the number of its item."""
    return f"{record.id}-{index + 1}" if record.is_many else record.id


def _is_session(step: StepSpec) -> bool:
    return step.kind not in (*COMMANDS, Kind.ASK)


def _is_held(view: RunView, step: StepSpec, name: str, call: str) -> bool:
    """Whether a person wants to be asked before this work begins."""
    if step.kind is Kind.ASK:
        return False
    request = ToolRequest(call=call, tool=STEP, arguments={"step": name})
    return view.environment.tool_policy.permit(request).is_hold


def _hold(view: RunView, step: StepSpec, index: int, call: str) -> Decision:
    """Ask whether work may begin that is held."""
    if not view.environment.policy.can_ask:
        return conclude(view, step, index, by_default(None, HELD_UNASKED))
    asked = e.StepAsked(
        turn=view.turn,
        step=step.id,
        index=index,
        question=m.question_id(view.environment.path, call),
        text=f"{_name(view.run.steps[step.id], index)} is held. What now?",
        options=CHOICES_OF_HELD,
        is_hold=True,
    )
    return Decision(entries=(asked,))


def _released(view: RunView, step: StepSpec, attempt: Attempt, choice: str) -> Decision:
    """Do with held work what a person chose."""
    index = attempt.index
    if choice == "skip":
        return conclude(view, step, index, ("ok", e.WorkResult(more={"by": "user"})))
    if choice == "fail":
        return conclude(view, step, index, ("failed", e.WorkResult(reason=DENIED)))
    record = view.run.steps[step.id]
    is_new_agent = step.kind is Kind.AGENT and not is_taken_up(record, index)
    said = view.run.said if is_new_agent else ""
    released = e.StepReleased(
        turn=view.turn,
        step=step.id,
        index=index,
        is_child=_is_session(step),
        is_told=bool(said),
    )
    try:
        begun = _begun(view, step, record, index, attempt.call, said)
    except TemplateError as error:
        failed = "failed", e.WorkResult(reason=str(error.message))
        return conclude(view, step, index, failed)
    return Decision(entries=(released,)) + begun


def is_taken_up(record: StepRecord, index: int) -> bool:
    """Whether an item goes on in the session that was interrupted with it."""
    return bool(record.children.get(str(index))) and record.state_of(index) == "interrupted"


def _resume(view: RunView, name: str) -> Decision:
    """Let a session go on with the run; it may have an outcome already."""
    child = view.record.children.get(name)
    if child is None or child.state != "interrupted":
        return NOTHING
    # a crash may have come between the turn and its resuming: it is still another's
    order = m.ResumeChildren(earlier=(child.turn,), turn=view.turn, epoch=view.record.epoch)
    return Decision(orders=(("children", order),))


def _ask(
    view: RunView,
    step: StepSpec,
    action: AskAction,
    index: int,
    call: str,
    values: dict[str, object],
) -> Decision:
    text = render(action.text, values)
    options = tuple(render(option, values) for option in action.options)
    default = None if action.default is None else render(action.default, values)
    if not view.environment.policy.can_ask:
        return conclude(view, step, index, by_default(default, NO_PERSON))
    asked = e.StepAsked(
        turn=view.turn,
        step=step.id,
        index=index,
        question=m.question_id(view.environment.path, call),
        text=text,
        options=options,
        default=default,
    )
    seconds = action.timeout or step.timeout
    limits = (_timer(view, "ask", call, seconds),) if seconds else ()
    return Decision(entries=(asked,), effects=limits)


def _timer(view: RunView, kind: str, about: str, seconds: float, index: int = 0) -> m.SetTimer:
    timer = m.Timer(kind=kind, about=about, index=index)
    return m.SetTimer(timer=timer, seconds=seconds, epoch=view.epoch)


# Ending -------------------------------------------------------------------------------------------


def conclude(view: RunView, step: StepSpec, index: int, outcome: Outcome) -> Decision:
    """Note how an attempt ended; one that failed may be followed by another, after a pause."""
    status, result = outcome
    number = view.run.steps[step.id].attempts.get(str(index), 1)
    if status == "failed" and number <= step.retry.max and not view.run.is_late:
        pause = _timer(view, "rest", step.id, step.retry.delay(number), index)
        return Decision(entries=(_ended(view, step, index, "retry", result),), effects=(pause,))
    return Decision(entries=(_ended(view, step, index, status, result),))


def _ended(
    view: RunView, step: StepSpec, index: int, status: str, result: e.WorkResult
) -> e.ItemEnded:
    return e.ItemEnded(turn=view.turn, step=step.id, index=index, status=status, result=result)


def by_default(default: str | None, why: str) -> Outcome:
    """Return the outcome of a question that is not answered."""
    if default is None:
        return "failed", e.WorkResult(reason=why, is_unanswered=True)
    return "ok", e.WorkResult(output=default, more={"by": "default"})


def interrupted(
    attempt: Attempt, turn: str, killed: tuple[int, ...] = (), survivors: tuple[int, ...] = ()
) -> e.ItemEnded:
    """Return the entry of an attempt that was stopped: it can go on, or be made again."""
    return e.ItemEnded(
        turn=turn,
        step=attempt.step,
        index=attempt.index,
        status="interrupted",
        killed=killed,
        survivors=survivors,
    )


def finished(view: RunView, message: m.ToolFinished) -> Decision:
    """A command has ended, or a session could not be started."""
    attempt, ended = view.run.open.get(message.call), message.result
    if attempt is None:
        return NOTHING
    step, index = view.step_of(attempt), attempt.index
    if ended.status == "unknown":
        return _lost(view, step, index, ended)
    is_late = view.run.is_late
    if view.run.state != "running" or (ended.status == "killed" and not is_late):
        return Decision(entries=(interrupted(attempt, view.turn, ended.killed, ended.survivors),))
    status, result = of_command(step, ended)
    if status == "failed" and is_late and (not step.is_final or ended.status == "killed"):
        result = replace(result, reason=OVERTIME)
    return conclude(view, step, index, (status, result))


def _lost(view: RunView, step: StepSpec, index: int, ended: m.ToolResult) -> Decision:
    """Note that the outcome of a command is unknown; it may begin again if that does no harm."""
    result = e.WorkResult(errors=ended.errors, reason=ended.text)
    lost = _ended(view, step, index, "unknown", result)
    losses = view.run.steps[step.id].losses.get(str(index), 0) + 1
    if may_repeat(step, losses) and not view.run.is_late:
        return Decision(entries=(lost, e.ItemReopened(step=step.id, index=index)))
    return Decision(entries=(lost,))


def may_repeat(step: StepSpec, losses: int) -> bool:
    """Whether work of unknown outcome is done again unasked: no harm, no dead workers."""
    return step.idempotent and losses < MOST_LOSSES


def outcomes_of_children(view: RunView) -> Decision:
    """Take in the outcomes of the sessions that work for steps and are over."""
    found = NOTHING
    for attempt in view.run.open.values():
        if name := view.child_of(attempt):
            found += _outcome_of(view, attempt, view.record.children.get(name))
    return found


def _outcome_of(view: RunView, attempt: Attempt, child: ChildRecord | None) -> Decision:
    step = view.step_of(attempt)
    if child is None:
        lost = e.WorkResult(reason="its session is not known any more")
        return conclude(view, step, attempt.index, ("failed", lost))
    is_cut = child.state == "interrupted"
    if child.is_at_work or (is_cut and child.turn != view.turn and view.may_begin):
        return NOTHING
    if view.run.state != "running" or (is_cut and not view.may_begin):
        return Decision(entries=(interrupted(attempt, view.turn),))
    status, result = of_child(step, child)
    if status == "failed" and child.cause == OVERDUE:
        why = OVERTIME if view.run.is_late else LATE.format(step.timeout)
        result = replace(result, reason=why)
    ended = conclude(view, step, attempt.index, (status, result))
    given_up = Decision(orders=(("children", m.Wake()),)) if is_cut else NOTHING
    return ended + given_up


# Answers and time ---------------------------------------------------------------------------------


def answered(view: RunView, message: m.Answer) -> Decision:
    """Take the answer to a step's question."""
    attempt = view.run.questions.get(message.question)
    if attempt is None or attempt.asked is None:
        return refusal(f"no question `{message.question}` is open")
    step, asked = view.step_of(attempt), attempt.asked
    said = message.choice
    if said != "deny":  # of an answer of several words, the first one was read as the choice
        said = " ".join(filter(None, (message.choice, message.reason)))
    text = chosen(asked.options, said)
    is_unanswered = message.choice == "deny" and bool(message.reason)
    if text is None and not is_unanswered:
        known = ", ".join(asked.options)
        return refusal(f"`{said}` is no answer; there are: {known}")
    if asked.is_hold and text is not None:
        decision = _released(view, step, attempt, text)
    elif text is None or is_unanswered:
        why = f"it was not answered: {message.reason}"
        decision = conclude(view, step, attempt.index, by_default(asked.default, why))
    else:
        outcome = "ok", e.WorkResult(output=text, more={"by": "user"})
        decision = conclude(view, step, attempt.index, outcome)
    entries = (
        replace(entry, user=message.user)
        if isinstance(entry, e.ItemEnded | e.StepReleased)
        else entry
        for entry in decision.entries
    )
    return replace(decision, entries=tuple(entries), reply=answer())


def limited(view: RunView, attempt: Attempt) -> Decision:
    """A session or a person took too long."""
    step = view.step_of(attempt)
    if attempt.asked is not None:
        return conclude(view, step, attempt.index, by_default(attempt.asked.default, NO_ANSWER))
    if name := view.child_of(attempt):
        return Decision(orders=(("children", m.EndChild(child=name, cause=OVERDUE)),))
    return NOTHING


def stopped_late(view: RunView) -> Decision:
    """Stop all that runs, not to be resumed: the whole run took too long."""
    found = Decision(entries=(e.RunOverdue(turn=view.turn),))
    for attempt in view.run.open.values():
        if attempt.asked is not None:
            failed = e.WorkResult(reason=OVERTIME)
            step = view.step_of(attempt)
            found += Decision(entries=(_ended(view, step, attempt.index, "failed", failed),))
        elif view.is_command(attempt):
            stop = m.StopTool(turn=view.turn, epoch=view.epoch, call=attempt.call)
            found += Decision(urgent=(stop,))
        else:
            found += limited(view, attempt)
    return found
