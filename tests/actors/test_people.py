"""People who may not do everything: a session that several of them share, on simulated ports."""

from typing import Any

import pytest
from simulation.single import TALK, entries, facts, performed, program, run

from steersman.actors.decisions import handlers
from steersman.gateway.speaker import Speaker
from steersman.journal import entries as e
from steersman.machines import protocol as m
from steersman.machines.disposition import Intent
from steersman.machines.people import DEFAULT_RIGHTS, Deed, FromPerson, Right
from steersman.simulator.program import SimulatedProgram

SEED = 1
BARE = {"type": "interrupt", "intent": Intent.INTERRUPT_BARE, "matched": "stop"}
MORE = {
    "type": "interrupt",
    "intent": Intent.INTERRUPT_MORE,
    "matched": "instead",
    "then": "make the exit code 2 instead",
}
STEER = {"type": "steer", "intent": Intent.EXPLICIT_STEER}


def of(user: str, message: m.Message, *more: Right) -> m.Message:
    """Sign a message of a person, who has some rights beyond the usual ones."""
    return Speaker(user=user, may=(*DEFAULT_RIGHTS, *more)).signed(message)


def said(user: str, key: str, *more: Right, text: str = "use tabs", **what: Any) -> m.Message:
    """Write what a person says."""
    return of(user, m.UserMessage(said=m.Said(text=text, user=user, client_id=key), **what), *more)


@pytest.fixture
def shared() -> SimulatedProgram:
    """Ann's turn runs."""
    made = program(TALK, seed=SEED)
    made.say(said("ann", "a1", type="normal", text="work", intent=Intent.CONVERSE))
    run(made, lambda: bool(performed(made, m.CallModel)))
    assert made.record.running is not None
    return made


def ask(made: SimulatedProgram, order: m.Message) -> dict[str, Any]:
    """Give an order, and return the answer."""
    asked = made.session.ask(order, block=False)
    run(made, lambda: not made.dispatcher.ready)
    found: dict[str, Any] = asked.get(timeout=0)
    return found


def test_nobody_stops_the_turn_of_another(shared: SimulatedProgram) -> None:
    """Bo's "stop" is given back with the reason; Ann's turn goes on to its end."""
    shared.say(said("bo", "b1", **BARE))
    run(shared)
    (given_back,) = facts(shared, m.MessageRejected)
    assert given_back.reason == "not_allowed"
    assert given_back.hint == "it is ann's, and you do not have the right `stop`"
    assert not entries(shared, e.InterruptRequested)
    assert shared.record.turns["t1"].state == "completed"


def test_a_message_that_would_stop_another_waits(shared: SimulatedProgram) -> None:
    """What says more than to stop is not lost: it is queued, and says why."""
    shared.say(said("bo", "b1", **MORE))
    shared.say(said("bo", "b2", **STEER))
    run(shared)
    queued = [entry for entry in entries(shared, e.Queued) if entry.said.user == "bo"]
    assert [(one.routed.said_as, one.routed.ack) for one in queued] == [("queue", "not_yours")] * 2
    assert [turn.state for turn in shared.record.turns.values()] == ["completed"] * 3


def test_one_stops_and_steers_ones_own_turn(shared: SimulatedProgram) -> None:
    """Whoever began the turn needs no right beyond the usual ones."""
    shared.say(said("ann", "a2", **STEER))
    shared.say(said("ann", "a3", **BARE))
    run(shared)
    assert len(entries(shared, e.InterruptRequested)) == 1
    assert shared.record.turns["t1"].state == "interrupted"


def test_the_right_to_stop_is_for_anybodys_turn(shared: SimulatedProgram) -> None:
    """With it, the same message stops."""
    shared.say(said("bo", "b1", Right.STOP, **BARE))
    run(shared)
    assert shared.record.turns["t1"].state == "interrupted"


def test_whoever_may_not_speak_is_given_back_everything(shared: SimulatedProgram) -> None:
    """Messages and side talks of somebody without rights are not kept."""
    plain: dict[str, Any] = {"type": "normal", "intent": Intent.CONVERSE}
    shared.say(
        FromPerson(
            message=m.UserMessage(said=m.Said(text="hi", user="eve"), **plain), user="eve", may=()
        )
    )
    shared.say(
        FromPerson(message=m.SideTalk(said=m.Said(text="psst", user="eve")), user="eve", may=())
    )
    run(shared)
    assert [fact.reason for fact in facts(shared, m.MessageRejected)] == ["not_allowed"] * 2
    assert {item.said.user for item in shared.record.queue.items.values()} == {"ann"}


@pytest.mark.parametrize(
    "order",
    [
        m.Interrupt(order=m.StopOrder(cause="stop")),
        m.QueueChange(op="withdraw", number=2),
        m.QueueChange(op="edit", number=2, said=m.Said(text="no")),
        m.QueueChange(op="move", number=2, position=1),
        m.QueueChange(op="steer", number=3),
        m.QueueChange(op="clear"),
        m.QueueChange(op="hold"),
        m.ResumeQueue(number=2),
        m.SetGoal(text="mine"),
        m.PolicyChange(busy_mode="interrupt"),
    ],
    ids=lambda order: f"{type(order).__name__} {getattr(order, 'op', '')}".strip(),
)
def test_orders_about_others_are_refused(shared: SimulatedProgram, order: m.Message) -> None:
    """Nothing of what others said is changed by somebody without the right to do that."""
    queue: dict[str, Any] = {"type": "normal", "intent": Intent.EXPLICIT_QUEUE}
    shared.say(said("ann", "a2", text="next", **queue))
    shared.say(said("bo", "b1", text="mine", **queue))
    run(shared, lambda: len(shared.record.queue.items) == 3)
    before = len(shared.record.queue.live())
    answer = ask(shared, of("bo", order))
    assert answer["ok"] is False
    assert "you do not have the right" in answer["reason"]
    assert len(shared.record.queue.live()) == before


def test_one_changes_ones_own_messages(shared: SimulatedProgram) -> None:
    """A message of one's own can be edited and taken back."""
    queue: dict[str, Any] = {"type": "normal", "intent": Intent.EXPLICIT_QUEUE}
    shared.say(said("bo", "b1", text="mine", **queue))
    run(shared, lambda: len(shared.record.queue.items) == 2)
    assert ask(shared, of("bo", m.QueueChange(op="edit", number=2, said=m.Said(text="better"))))[
        "ok"
    ]
    assert ask(shared, of("bo", m.QueueChange(op="withdraw")))["ok"]
    run(shared)
    assert list(shared.record.turns) == ["t1"]


def test_gates_of_a_goal_need_the_right_to_approve(shared: SimulatedProgram) -> None:
    """A gate is a command that runs without a question."""
    order = m.SetGoal(text="tests pass", gates=(("rm", "-rf", "x"),))
    answer = ask(shared, of("bo", order, Right.STEER, Right.STOP))
    assert answer["reason"] == "you do not have the right `approve`"


@pytest.mark.parametrize(
    ("deed", "messages"),
    [
        (Deed.SPEAK, [m.SideTalk(said=m.Said(text="why?")), m.ResumeQueue()]),
        (
            Deed.STEER,
            [
                m.ResumeQueue(number=1),
                m.SetGoal(text="x"),
                m.ChangeGoal(op="pause"),
                m.Rename(name="x"),
            ],
        ),
        (Deed.STEER, [m.Compact(wish="")]),
        (Deed.STOP, [m.Revert(scope="turn"), m.TakeBack(), m.EndChild(child="kid")]),
        (
            Deed.APPROVE,
            [m.SetGoal(text="x", gates=(("true",),)), m.PolicyChange(busy_mode="queue")],
        ),
    ],
)
def test_each_order_needs_the_right_to_its_deed(
    shared: SimulatedProgram, deed: Deed, messages: list[Any]
) -> None:
    """Speech is free; what changes the work of others, ends it, or allows more, is not."""
    for message in messages:
        assert handlers.concern(shared.record, of("bo", message))[0] is deed, message


@pytest.mark.parametrize("op", ["withdraw", "edit", "begin_edit", "keep"])
def test_a_message_of_another_is_changed_with_the_right_to_stop(
    shared: SimulatedProgram, op: Any
) -> None:
    """One's own takes no right, and that of another is whose the refusal names."""
    shared.say(said("bo", "b1", type="normal", text="later", intent=Intent.EXPLICIT_QUEUE))
    run(shared, lambda: len(shared.record.queue.items) == 2)
    change = m.QueueChange(op=op, number=2, said=m.Said(text="x"), editor="e")
    assert handlers.concern(shared.record, of("bo", change)) == (Deed.SPEAK, "")
    assert handlers.concern(shared.record, of("ann", change)) == (Deed.STOP, "bo")


def test_each_message_of_a_person_has_a_row() -> None:
    """One that is forgotten would silently need the right to approve, and be refused offline."""
    assert set(m.Request.__subclasses__()) == set(handlers.HANDLERS)
