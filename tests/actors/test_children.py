"""Which interrupted children are left behind, which go on, and when one has ended."""

from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from steersman.actors.children import ChildSlot, SteerRelay
from steersman.actors.decisions.children import is_stale, resumable, stopped
from steersman.actors.decisions.queries import given_up
from steersman.actors.decisions.results import way_home
from steersman.journal.child_record import ChildRecord, apply_to_children
from steersman.journal.entries import SteerArrived, WorkflowCopy
from steersman.journal.queue_record import ItemRecord, QueueRecord
from steersman.journal.record import SessionRecord
from steersman.journal.run_record import RunRecord, StepRecord
from steersman.machines import protocol as m
from steersman.machines.delivery import Relation
from steersman.machines.policy import DelegationPolicy
from steersman.machines.result_routing import DEFAULT_RETURNS, Return

KID = ChildRecord(
    name="kid",
    session="s1-1",
    agent="scout",
    task="look",
    relation=Relation.FOREGROUND_CHILD,
    turn="t1",
    state="interrupted",
)
ORDER = m.ResumeChildren(earlier=("t1",), turn="t2", epoch=1)
ENVIRONMENT: Any = SimpleNamespace(returns=DEFAULT_RETURNS, delegation=DelegationPolicy())


def record_of(child: ChildRecord, awaited: str, state: str = "idle") -> SessionRecord:
    """Return a run's session, one step of which waits for a child of this name."""
    record = SessionRecord()
    record.state = state
    record.children = {child.name: child}
    steps = {"agent": StepRecord(id="agent", marks="r", children={"0": awaited})}
    workflow = WorkflowCopy(name="job", file="job.toml", folder="/", source="")
    record.run = RunRecord(workflow=workflow, steps=steps)
    return record


def test_a_child_that_another_attempt_has_replaced_is_given_up() -> None:
    """Its step waits for another: it ends, and does not go on with the run."""
    record = record_of(KID, "kid-2")
    assert given_up(record) == [KID]
    assert resumable(record, ORDER) == []


def test_a_child_that_its_step_waits_for_goes_on() -> None:
    """It is not given up, and the order to resume means it."""
    record = record_of(KID, "kid")
    assert given_up(record) == []
    assert resumable(record, ORDER) == [KID]


@pytest.mark.parametrize("state", ["leaving", "finalizing"])
def test_a_session_that_ends_gives_nobody_up(state: str) -> None:
    """What becomes of its children then is decided with its end."""
    assert given_up(record_of(KID, "kid-2", state)) == []


@pytest.mark.parametrize(
    "child",
    [
        replace(KID, state="working"),
        replace(KID, state="completed"),
        replace(KID, relation=Relation.BACKGROUND_CHILD),
        replace(KID, relation=Relation.SIDE_TALK),
    ],
    ids=["works", "is done", "background", "side talk"],
)
def test_only_stopped_children_of_steps_are_given_up(child: ChildRecord) -> None:
    """A child that works is stopped first; for others no step ever waited."""
    assert given_up(record_of(child, "kid-2")) == []


def of_turn(state: str) -> SessionRecord:
    """Return a conversation's session whose child waited for a turn; `state` is that of its message."""
    record = record_of(KID, "kid-2")
    record.run = None
    item = ItemRecord(id="m1", number=1, said=m.Said(text="work"), state=state, turn="t1")
    record.queue = QueueRecord(items={"m1": item})
    return record


@pytest.mark.parametrize("state", ["running", "interrupted", "superseded", "unanswered"])
def test_a_child_whose_turn_can_go_on_is_not_given_up(state: str) -> None:
    """A conversation's stopped children stay as long as their turn does."""
    record = of_turn(state)
    assert given_up(record) == []
    assert resumable(record, ORDER) == [KID]


@pytest.mark.parametrize("state", ["withdrawn", "done", "failed"])
def test_a_child_goes_with_its_turn(state: str) -> None:
    """What it has done so far is for nobody: it is no answer that could begin or enter anything."""
    record = of_turn(state)
    assert given_up(record) == [KID]
    assert way_home(record, KID, ENVIRONMENT).action is Return.KEEP


@pytest.mark.parametrize("state", ["waiting", "working", "stopping"])
@pytest.mark.parametrize("is_kept", [False, True])
@pytest.mark.parametrize(("ordered", "stopped_at"), [(0, 0), (8, 10), (10, 8)])
def test_a_child_whose_session_is_closed_is_not_at_work(
    state: str, is_kept: bool, ordered: int, stopped_at: int
) -> None:
    """Whatever it was ordered, and whatever reached it before, it goes on only when it is resumed."""
    child = replace(KID, state=state, is_kept=is_kept, epoch=ordered, stopped=stopped_at)
    record = SessionRecord(children={"kid": child})
    children = record.children
    for entry in stopped(record, child, None, ENVIRONMENT).entries:
        children = apply_to_children(children, entry, 0.0)
    can_go_on = state == "stopping" and is_kept
    assert children["kid"].state == ("interrupted" if can_go_on else "cancelled")


@pytest.mark.parametrize("state", ["working", "stopping"])
def test_a_late_answer_to_an_earlier_stop_ends_no_child(state: str) -> None:
    """The child was resumed, or stopped again, since; it answers that, too."""
    child = replace(KID, state=state, is_kept=True, epoch=9, stopped=10)
    report = m.ChildReport(name="kid", kind="stopped", order=8)
    assert is_stale(child, report)
    assert not is_stale(child, replace(report, order=10))


def test_a_steer_that_a_beginning_child_was_handed_arrives_once() -> None:
    """The order to pass it on may come after the child has begun, and was handed all that waits."""
    said = m.Said(text="hurry")
    item = ItemRecord(id="m2", number=2, said=said, for_children={"kid": ""})
    queue = QueueRecord(items={"m2": item}, order=("m2",))
    record = SessionRecord(id="s1", queue=queue, children={"kid": replace(KID, state="working")})
    decided: list[Any] = []
    environment = SimpleNamespace(delegation=DelegationPolicy(steer_deadline=0.0))
    member: Any = SimpleNamespace(record=record, environment=environment, decide=decided.append)
    slot = ChildSlot(number=1)
    relay = SteerRelay(member, {"kid": slot})
    relay.hand_on("kid", slot)
    relay.pass_steer(m.PassSteer(item="m2", names=("kid",), said=said))
    report = m.ChildReport(name="kid", kind="steered", key="s1:m2", turn="t1", step=2)
    relay.arrived(report, slot)
    relay.arrived(report, slot)
    arrived = SteerArrived(item="m2", child="kid", turn="t1", step=2)
    assert [decision.entries for decision in decided] == [(arrived,)]
