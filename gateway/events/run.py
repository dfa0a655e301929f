"""What machine interfaces are told of a workflow's run, beside what they are told of its session."""

from __future__ import annotations

from typing import Any

from ...journal import entries as e
from ...journal import run_entries as r
from ...journal.record import SessionRecord
from ...journal.run_record import RunRecord, StepRecord

_STATE_OF_ITEM = {"ok": "done", "retry": "retrying"}


def of_run(entry: e.Entry, record: SessionRecord) -> list[dict[str, Any]]:
    """Return the events of an entry, with the record as it is with this entry folded."""
    run = record.run
    if run is None:
        return []
    match entry:
        case e.TurnStarted():
            started = {"run": record.id, "workflow": run.workflow.name}
            return [{"type": "run_started", **started, "resumed": record.turns_made > 1}]
        case e.TurnEnded():
            return [{**_ended(record.id, run), **_left(entry, run)}]
        case e.Stopped() if entry.turn:
            return [_ended(record.id, run)]
        case r.StepStarted() | r.StepEnded():
            return [{"type": "step", **step_view(run.steps[entry.step])}]
        case r.ItemStarted() | r.ItemEnded():
            return _of_item(entry, run.steps[entry.step])
        case r.StepAsked():
            question = {"id": entry.question, "kind": "ask", "tool": "ask", "step": entry.step}
            asked = {"text": entry.text}
            options = {"options": list(entry.options), "default": entry.default}
            return [{"type": "question", **question, "arguments": asked, **options}]
        case _:
            return []


def _of_item(entry: r.ItemStarted | r.ItemEnded, step: StepRecord) -> list[dict[str, Any]]:
    state = "running" if isinstance(entry, r.ItemStarted) else entry.status
    if not step.is_many and state in ("running", "ok", "failed"):
        return []  # the step's own event says it
    event: dict[str, Any] = {"type": "step", "step": step.id}
    event["state"] = _STATE_OF_ITEM.get(state, state)
    if step.is_many:
        event |= {"item": step.items[entry.index], "index": entry.index}
        event |= {"done": step.count("done"), "total": step.total}
    if isinstance(entry, r.ItemEnded):
        event |= _of_result(entry.result)
    elif entry.attempt > 1:
        event["attempt"] = entry.attempt
    return [event]


def _of_result(result: r.WorkResult) -> dict[str, Any]:
    told: dict[str, Any] = {}
    if result.exit_code is not None:
        told["exit_code"] = result.exit_code
    if result.reason:
        told["reason"] = result.reason
    return told


def step_view(step: StepRecord) -> dict[str, Any]:
    """Show a step as programs see it."""
    told: dict[str, Any] = {"step": step.id, "state": step.state}
    if step.is_many:
        told |= {"done": step.count("done"), "failed": step.count("failed"), "total": step.total}
    elif step.state in ("done", "failed") and step.total:
        told |= _of_result(step.result(0))
    return {**told, "reason": step.reason} if step.reason else told


def run_view(session: str, run: RunRecord) -> dict[str, Any]:
    """Show a run as programs see it: what it is, how it is, and its steps that have begun or ended."""
    unknown = [{"step": name, "index": at} for name, at in run.unknown()]
    return {
        "run": session,
        "workflow": run.workflow.name,
        "file": run.workflow.file,
        "status": run.state,
        "steps": [step_view(one) for one in run.steps.values()],
        **({"reason": run.reason} if run.reason else {}),
        **({"unknown": unknown} if unknown else {}),
    }


def _left(entry: e.TurnEnded, run: RunRecord) -> dict[str, Any]:
    """Tell what a run that succeeded leaves behind, if its workflow says that it leaves something."""
    said = entry.messages[-1].text if entry.messages else ""
    is_told = entry.status == "completed" and said and said != f"[{run.workflow.name}: done]"
    return {"output": said} if is_told else {}


def _ended(session: str, run: RunRecord) -> dict[str, Any]:
    view = run_view(session, run)
    event: dict[str, Any] = {"type": "run_ended"}
    for name in ("run", "status", "steps", "reason"):
        if name in view:
            event[name] = view[name]
    return event
