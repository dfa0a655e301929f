"""The events of a workflow's run, beside those of its session."""

from __future__ import annotations

from typing import assert_never

from ...journal import entries as e
from ...journal.fold import EntryKinds
from ...journal.record import SessionRecord
from ...journal.run_record import RunRecord, StepRecord
from . import contract as c

_Shown = e.AnyRunEntry | e.TurnStarted | e.TurnEnded | e.Stopped
_SHOWN = EntryKinds[_Shown](_Shown)
_STATE_OF_ITEM = {"ok": "done", "retry": "retrying"}


def of_run(entry: e.Entry, record: SessionRecord, run: RunRecord, at: c.Stamp) -> list[c.Event]:
    """Return the events of an entry that concern a run; of most entries none."""
    if not _SHOWN.include(entry):
        return []
    match entry:
        case e.TurnStarted():
            return [
                c.RunStartedEvent(
                    type="run_started",
                    **at,
                    run=record.id,
                    workflow=run.workflow.name,
                    resumed=record.turns_made > 1,
                )
            ]
        case e.TurnEnded():
            event = _ended(record.id, run, at)
            text = entry.messages[-1].text if entry.messages else ""
            is_output = text != f"[{run.workflow.name}: done]"  # else it has none
            if text and is_output and entry.status == "completed":
                event["output"] = text
            return [event]
        case e.Stopped() if entry.turn:
            return [_ended(record.id, run, at)]
        case e.StepStarted() | e.StepEnded():
            return [c.StepEvent(type="step", **at, **step_view(run.steps[entry.step]))]
        case e.ItemStarted() | e.ItemEnded():
            return _of_item(entry, run.steps[entry.step], at)
        case e.StepAsked():
            return [step_question(entry, at, is_many=run.steps[entry.step].is_many)]
        case e.Stopped() | e.NoEvent():
            return []
        case _:
            assert_never(entry)


def step_question(entry: e.StepAsked, at: c.Stamp, *, is_many: bool) -> c.StepQuestionEvent:
    """Return the event of a step's question; `is_many`: the step has an item for each."""
    question = c.StepQuestionEvent(
        type="question",
        **at,
        id=entry.question,
        kind="ask",
        tool="ask",
        step=entry.step,
        arguments={"text": entry.text},
        options=list(entry.options),
        default=entry.default,
    )
    if is_many:
        question["index"] = entry.index
    return question


def _of_item(entry: e.ItemStarted | e.ItemEnded, step: StepRecord, at: c.Stamp) -> list[c.Event]:
    state = "running" if isinstance(entry, e.ItemStarted) else entry.status
    if not step.is_many and state in ("running", "ok", "failed"):
        return []  # the step's own event says it
    event = c.StepEvent(type="step", **at, step=step.id, state=_STATE_OF_ITEM.get(state, state))
    if step.is_many:
        event["item"] = step.items[entry.index]
        event["index"] = entry.index
        event["done"] = step.count("done")
        event["total"] = step.total
    if isinstance(entry, e.ItemEnded):
        _add_result(event, entry.result)
    elif entry.attempt > 1:
        event["attempt"] = entry.attempt
    return [event]


def _add_result(view: c.StepView | c.StepEvent, result: e.WorkResult) -> None:
    if result.exit_code is not None:
        view["exit_code"] = result.exit_code
    if result.reason:
        view["reason"] = result.reason
    if result.is_unanswered:
        view["unanswered"] = True


def step_view(step: StepRecord) -> c.StepView:
    """Return a step as programs see it."""
    view = c.StepView(step=step.id, state=step.state)
    if step.is_many:
        view["done"] = step.count("done")
        view["failed"] = step.count("failed")
        view["total"] = step.total
    elif step.state in ("done", "failed") and step.total:
        _add_result(view, step.result(0))
    if step.reason:
        view["reason"] = step.reason
    return view


def _ended(session: str, run: RunRecord, at: c.Stamp) -> c.RunEndedEvent:
    steps = [step_view(step) for step in run.steps.values()]
    event = c.RunEndedEvent(type="run_ended", **at, run=session, status=run.state, steps=steps)
    if run.reason:
        event["reason"] = run.reason
    return event
