"""A person's decisions about a workflow's run: work of unknown outcome, and another try."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from ...journal import entries as e
from ...journal.record import SessionRecord
from ...machines import protocol as m
from ...machines.lifecycles import RUN
from ...machines.steps import UNDECIDED
from . import queueing, resuming
from .decision import Decision, answer, refusal

if TYPE_CHECKING:
    from ...journal.run_record import RunRecord
    from ...workflows.flow.spec import WorkflowSpec
    from ..environment import Environment


def obstacle(record: SessionRecord, environment: Environment) -> str:
    """Say why a run cannot go on as it is; empty if it can, and for a session that is no run."""
    run, spec = record.run, environment.workflow
    if run is None or spec is None:
        return ""
    if run.state in RUN.final:
        return f"the run has {run.state} already"
    if run.state == "failed":
        return f"the run has failed; `steersman run --resume {record.id}` tries it again"
    return undecided(run, spec)


def undecided(run: RunRecord, spec: WorkflowSpec) -> str:
    """Name the work that a person has to decide about before a run can go on; empty if there is none."""
    idempotent = {step.id for step in spec.steps if step.idempotent}
    unknown = [run.steps[step].name(at) for step, at in run.unknown() if step not in idempotent]
    return f"{UNDECIDED}{', '.join(unknown)}" if unknown else ""


def reopen(record: SessionRecord, message: m.Reopen, environment: Environment) -> Decision:
    """Open work of unknown outcome again, or note that it was found to be done."""
    run = record.run
    unknown = set(run.unknown()) if run is not None else set[tuple[str, int]]()
    if record.state != "idle" or not set(message.work) <= unknown:
        return refusal("only work of unknown outcome can be opened again")
    entries = tuple(
        e.ItemReopened(step=step, index=at, is_done=message.is_done) for step, at in message.work
    )
    return Decision(entries=entries, reply=answer())


def try_again(record: SessionRecord, message: m.TryAgain, environment: Environment) -> Decision:
    """Make the steps ready because of which a run failed, and begin another turn with them."""
    from .run_plan import StepPlan  # templates take their time to import

    run, spec = record.run, environment.workflow
    if run is None or spec is None or run.state != "failed" or record.state != "idle":
        return refusal("only a run that has failed can be tried again")
    if why := undecided(run, spec):
        return refusal(why)
    plan = StepPlan(spec)
    reopened = tuple(plan.reopened(run))
    if not reopened and plan.is_over(run):
        return refusal(f"none of its steps failed, but {run.reason}")
    there = [
        item
        for item in record.queue.special()
        if item.kind is m.ItemKind.RETRY and item.state == "pending"
    ]
    if there:  # a crash came before its turn began
        begun = resuming.resume(record, m.ResumeQueue(number=there[0].number))
    else:
        said = m.Said(text=f"run {run.workflow.name}")
        order = m.Enqueue(said=said, is_next=True, kind=m.ItemKind.RETRY)
        begun = queueing.enqueue(record, order, environment)
    return Decision(entries=reopened) + replace(begun, reply=answer())
