"""What is due in a run: which steps begin, which items are attempted, and how steps and run end.

A run takes the place of an agent's turn, and is stopped like one. A stop gives the commands that run a
moment to end, since most do, and what has ended need not be done again. Sessions are stopped at once:
they go on where they were. A second stop, or the end of that moment, stops the commands, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...journal import entries as e
from ...journal.record import StopRecord
from ...journal.run_record import StepRecord
from ...machines import protocol as m
from ...machines.conversation import ChatMessage, cut_short
from ...machines.errors import TemplateError
from ...machines.steps import UNDECIDED
from ...workflows.flow.spec import Kind, StepSpec
from ...workflows.flow.template import holds, items_of, render
from . import stopping
from .decision import NOTHING, Decision
from .run_attempts import (
    OVERTIME,
    RunView,
    begin,
    interrupted,
    is_taken_up,
    limited,
    may_repeat,
    outcomes_of_children,
    stopped_late,
)
from .run_work import COMMANDS
from .turning import is_dead

STOP_GRACE = 1.0
"""Seconds that commands have to end when a run is stopped."""
MOST_NAMES = 10
"""Work that a reason names; of more it says how much."""
INTERRUPTED = "[Interrupted.]"


# The beginning, and time --------------------------------------------------------------------------


def taken_up(view: RunView) -> Decision:
    """Take up what was interrupted as the run's turn begins, and set the limit of its time."""
    run, limit = view.run, view.plan.spec.timeout
    entries: list[e.Entry] = [
        e.ItemReopened(step=name, index=index)
        for name, index in run.unknown()
        if may_repeat(view.plan.steps[name], run.steps[name].losses.get(str(index), 0))
    ]
    effects: list[m.Effect] = []
    if limit and run.worked < limit:
        effects.append(m.SetTimer(timer=m.Timer(kind="run"), seconds=limit - run.worked))
    elif limit and not run.is_late:
        entries.append(e.RunOverdue(turn=view.turn))
    entries += [
        e.StepStarted(turn=view.turn, step=record.id)
        for record in run.steps.values()
        if record.state == "interrupted"
    ]
    return Decision(entries=tuple(entries), effects=tuple(effects))


def time_is_up(view: RunView, timer: m.Timer) -> Decision:
    """Decide what the end of a time means that the run had set."""
    run, stop = view.run, view.stop
    if run.state != "running":
        return NOTHING
    match timer.kind:
        case "stop" if stop is not None:
            return _cut(view, stop)
        case "rest" if run.steps[timer.about].state_of(timer.index) == "resting":
            return Decision(entries=(e.ItemReopened(step=timer.about, index=timer.index),))
        case "limit" | "ask" if timer.about in run.open:
            return limited(view, run.open[timer.about])
        case "run" if stop is None:
            return stopped_late(view)
        case _:
            return NOTHING


# Due work -----------------------------------------------------------------------------------------


def due(view: RunView) -> Decision:
    """Decide what follows from the record as it is: to be asked until no more entries follow."""
    if view.run.state == "interrupting":
        return outcomes_of_children(view) or _end_stopped(view)
    if view.run.state != "running":
        return NOTHING
    stop = view.stop
    if stop is not None:
        return _stopped(view, stop)
    return (
        outcomes_of_children(view)
        or _end_steps(view)
        or _begin_steps(view)
        or _fill(view)
        or _end(view)
    )


def _end_steps(view: RunView) -> Decision:
    """End the steps that have nothing left to do."""
    found = NOTHING
    for step, record in view.plan.going(view.run):
        if _is_through(view, step, record):
            found += _ended_step(view, step, record)
    return found


def _is_through(view: RunView, step: StepSpec, record: StepRecord) -> bool:
    """Whether a step has nothing left to do: all is done, or something failed and that counts."""
    if record.first("running") is not None:
        return False
    if view.run.is_late and not step.is_final:
        return True
    if record.count("failed") and not step.continue_on_error:
        return True
    return record.first("waiting", "interrupted", "resting", "unknown") is None


def _ended_step(view: RunView, step: StepSpec, record: StepRecord) -> Decision:
    failed = list(record.those("failed"))
    left = record.first("waiting", "interrupted", "resting", "unknown")
    is_cut = view.run.is_late and left is not None
    reason = OVERTIME if is_cut else ""
    if failed:
        reason = record.result(failed[0]).reason
        if record.is_many:
            first = f"first item `{record.name(failed[0])}`: {reason}"
            reason = f"{len(failed)} of {record.total} failed, {first}"
    status = "failed" if failed or is_cut else "done"
    ended = e.StepEnded(turn=view.turn, step=step.id, status=status, reason=reason)
    look = m.LookAfter(turn=view.turn, step=step.id)
    return Decision(entries=(ended,), urgent=(look,) if step.kind in COMMANDS else ())


def _begin_steps(view: RunView) -> Decision:
    """Begin the steps whose needs have ended, or say why they do not begin."""
    entries: list[e.Entry] = []
    for due_step in view.plan.due(view.run):
        step = due_step.step
        if due_step.verdict == "block":
            is_failed = view.run.step(due_step.need).state == "failed"
            why = f"step `{due_step.need}` {'failed' if is_failed else 'was blocked'}"
            entries.append(_not_begun(view, step, "blocked", why))
        elif view.run.is_late and not step.is_final:
            entries.append(_not_begun(view, step, "blocked", OVERTIME))
        else:
            entries.append(_begun_step(view, step))
    return Decision(entries=tuple(entries))


def _begun_step(view: RunView, step: StepSpec) -> e.Entry:
    values = view.plan.values.of(view.record)
    try:
        if step.when and not holds(step.when, values):
            return _not_begun(view, step, "skipped", "its `when` does not hold")
        items = None if step.for_each is None else items_of(step.for_each, values)
    except TemplateError as error:
        return _not_begun(view, step, "failed", str(error.message))
    return e.StepStarted(turn=view.turn, step=step.id, items=items)


def _not_begun(view: RunView, step: StepSpec, status: str, reason: str) -> e.StepEnded:
    return e.StepEnded(turn=view.turn, step=step.id, status=status, reason=reason)


def _fill(view: RunView) -> Decision:
    """Begin as much of the running steps' work as there is room for.

    Agents begin with what people have said to the run; while that still waits, they do not begin.
    """
    run, plan, most = view.run, view.plan, view.environment.delegation.max_children
    at_work, sessions = len(run.open), sum(known.is_child for known in run.open.values())
    is_said = bool(view.record.queue.steers(view.turn))
    found, made, said, is_awaited = NOTHING, run.calls_made, run.said, False
    for step, record in plan.going(run):
        is_agent = step.kind is Kind.AGENT
        is_session = step.kind not in (*COMMANDS, Kind.ASK)
        busy = record.count("running")
        for index in _next_items(step, record):
            is_full = at_work >= plan.spec.parallel or busy >= max(1, step.parallel)
            if is_full or (is_session and sessions >= most):
                break
            is_new_agent = is_agent and not is_taken_up(record, index)
            if is_new_agent and is_said:
                is_awaited = True
                break
            made, at_work, busy, sessions = made + 1, at_work + 1, busy + 1, sessions + is_session
            given = said if is_new_agent else ""
            begun = begin(view, step, index, f"{view.turn}.w{made}", given)
            found += begun
            if isinstance(begun.entries[-1], e.ItemEnded):
                break  # what follows from that is asked for first
            said = "" if given else said
    asks = m.TakeSteers(turn=view.turn, step=2)
    return found + Decision(orders=(("queue", asks),)) if is_awaited else found


def _next_items(step: StepSpec, record: StepRecord) -> Iterator[int]:
    """Give the items of a step that may begin, in order."""
    if not record.count("failed") or step.continue_on_error:
        yield from record.those("waiting", "interrupted")


# The end ------------------------------------------------------------------------------------------


def _end(view: RunView) -> Decision:
    """End the run if every step has ended, or a person has to say what became of some work."""
    run = view.run
    if run.open:
        return NOTHING
    if view.plan.is_over(run):
        return _finished(view)
    if not _is_stuck(view):
        return NOTHING
    names = [run.steps[step].name(at) for step, at in run.unknown()]
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    fault = f"{UNDECIDED}{', '.join(names[:MOST_NAMES])}{more}"
    return Decision(entries=(_ended_turn(view, "failed", fault, fault),), urgent=_looks(view))


def _is_stuck(view: RunView) -> bool:
    """Whether only work of unknown outcome is left, which a person decides about."""
    going = [record for _, record in view.plan.going(view.run)]
    left = (record.first("waiting", "interrupted", "resting") for record in going)
    return all(item is None for item in left) and bool(view.run.unknown())


def _finished(view: RunView) -> Decision:
    """End the run: with what it leaves behind, or with why it failed."""
    spec = view.plan.spec
    fault = view.plan.fault(view.run) or (OVERTIME if view.run.is_late else "")
    text = fault
    if not fault and spec.output:
        try:
            text = render(spec.output, view.plan.values.of(view.record))
        except TemplateError as error:
            fault = text = f"`workflow.output` {error.message}"
    status = "failed" if fault else "completed"
    return Decision(entries=(_ended_turn(view, status, fault, text or f"[{spec.name}: done]"),))


def _ended_turn(view: RunView, status: str, reason: str, text: str) -> e.TurnEnded:
    said = (ChatMessage(role="assistant", text=text),)
    return e.TurnEnded(turn=view.turn, status=status, reason=reason, messages=said)


def _looks(view: RunView) -> tuple[m.LookAfter, ...]:
    """Have the folder looked at after the commands of the steps that run."""
    return tuple(
        m.LookAfter(turn=view.turn, step=step.id)
        for step, _ in view.plan.going(view.run)
        if step.kind in COMMANDS
    )


# Stops --------------------------------------------------------------------------------------------


def _stopped(view: RunView, stop: StopRecord) -> Decision:
    """End here; while a planned stop waits for commands, only when the last has ended."""
    if stop.state != "planned" or not any(map(view.is_command, view.run.open.values())):
        return _cut(view, stop)
    over = outcomes_of_children(view)
    if over:
        return over
    timer = m.Timer(kind="stop")
    return Decision(effects=(m.SetTimer(timer=timer, seconds=STOP_GRACE, epoch=view.epoch),))


def _cut(view: RunView, stop: StopRecord) -> Decision:
    """End here; what runs is stopped, and its results are awaited."""
    asked = (interrupted(known, view.turn) for known in view.run.open.values() if known.asked)
    takes_effect = stopping.take_effect(stop, view.environment)
    planned = (takes_effect,) if stop.state == "planned" else ()
    over = e.Interrupted(turn=view.turn, cause=stop.order.cause, checkpoint=_checkpoint(view))
    held = stopping.holds_after(view.record, stop.order.cause, view.environment)
    return Decision(entries=(*asked, *planned, over, *held), urgent=tuple(_stops(view)))


def _stops(view: RunView) -> Iterator[m.StopTool | m.StopChild]:
    """Order the commands that run to stop, and sessions that have not begun yet.

    The stop itself reaches those that have.
    """
    for attempt in view.run.open.values():
        if view.is_command(attempt):
            yield m.StopTool(turn=view.turn, epoch=view.epoch, call=attempt.call)
        elif attempt.is_child and not view.child_of(attempt):
            yield m.StopChild(turn=view.turn, epoch=view.epoch, call=attempt.call)


def _checkpoint(view: RunView) -> dict[str, Any] | None:
    """Say how far the newest step with items is."""
    for step in reversed(tuple(view.run.steps.values())):
        if step.is_many and step.state == "running":
            return {"done": step.count("done"), "total": step.total, "unit": "item"}
    return None


def _end_stopped(view: RunView) -> Decision:
    """When everything that was started is dead, say so."""
    run, stop = view.run, view.stop
    if run.open or not is_dead(view.record):
        return NOTHING
    killed, survivors = stopping.died_of(view.record, view.turn)
    stopped = e.Stopped(
        turn=view.turn,
        killed=run.killed + killed,
        survivors=run.survivors + survivors,
        messages=(cut_short("", INTERRUPTED),),
        order=stop.order.epoch if stop is not None else 0,
    )
    return Decision(entries=(stopped,), urgent=_looks(view))
