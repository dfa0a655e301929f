"""Single decisions: what is decided about a record, without an actor that carries it out."""

import re
from pathlib import Path
from typing import Any

import pytest
from simulation.single import TOOLS, has, program, run, say

from steersman.actors.decisions import (
    calls,
    compacting,
    goals,
    queueing,
    rearrangement,
    reverting,
    routing,
    running,
    stopping,
)
from steersman.actors.ledger import Outbox, OutboxItem
from steersman.journal import entries as e
from steersman.journal.record import CancelRecord
from steersman.journal.turn_record import CallRecord
from steersman.machines.delivery import Relation
from steersman.machines.disposition import Intent
from steersman.machines.goal_messages import ChangeGoal, SetGoal
from steersman.machines.lifecycles import REASONS
from steersman.machines.messages import (
    Compact,
    Interrupt,
    QueueChange,
    ResumeQueue,
    Revert,
    UserMessage,
)
from steersman.machines.policy import CompactionPolicy
from steersman.machines.port_results import ModelFailed
from steersman.machines.transient_events import MessageRejected
from steersman.machines.workflow_messages import Reopen
from steersman.simulator.program import SimulatedProgram

ACTORS = Path(__file__).resolve().parents[2] / "actors"


def asking(**settings: Any) -> SimulatedProgram:
    """Begin a program whose first turn asks its model."""
    made = program(**settings)
    say(made, "work", client_id="c1")
    run(made, lambda: bool(made.ports.models))
    return made


def queued(made: SimulatedProgram, text: str) -> None:
    """Queue a message behind the turn that runs."""
    count = len(made.record.queue.waiting())
    made.say(UserMessage(type="normal", content=text, intent=Intent.EXPLICIT_QUEUE))
    run(made, lambda: len(made.record.queue.waiting()) > count)


def kinds(decision: Any) -> list[type[Any]]:
    """Return the types of what a decision writes."""
    return [type(entry) for entry in decision.entries]


# The queue ----------------------------------------------------------------------------------------


def test_what_runs_cannot_be_recalled() -> None:
    """Only a message that waits is taken back by its key."""
    made = asking()
    assert not queueing.recall(made.record, "c1")
    assert not queueing.recall(made.record, "unknown")


def test_a_withdrawal_names_what_it_took() -> None:
    """The reply has the number and the text."""
    made = asking()
    queued(made, "later")
    reply = rearrangement.withdraw(made.record.queue, 2).reply
    assert (reply["withdrawn"], reply["text"]) == ([2], "later")


def test_a_waiting_message_that_is_sent_in_while_nothing_runs_passes_the_hold() -> None:
    """It runs at once, as one that is said now does; what is held stays held."""
    made = asking()
    queued(made, "later")
    made.say(QueueChange(op="hold"))
    run(made, lambda: made.record.queue.state == "held")
    run(made)
    decision = rearrangement.steer(made.record.queue, QueueChange(op="steer", number=2))
    assert decision.entries == (
        e.Requeued(item="m2", why=rearrangement.NOTHING_RUNS, past_hold=True),
    )


def test_a_waiting_message_can_be_sent_to_nobody_who_is_not_there() -> None:
    """A child that does not work is no recipient; the parent always is."""
    made = asking()
    queued(made, "later")
    unknown = QueueChange(op="steer", number=2, to="kid")
    assert routing.steer_waiting(made.record, unknown, made.environment).reply["ok"] is False
    parent = QueueChange(op="steer", number=2, to="parent")
    addressed = routing.steer_waiting(made.record, parent, made.environment).entries
    assert addressed == (e.SteerAddressed(item="m2", turn="t1"),)


def test_a_stop_of_the_same_moment_as_a_later_message_is_not_undone() -> None:
    """What was said last is taken back, also if the clock did not move in between."""
    made = asking()
    stop = UserMessage(
        type="interrupt", content="stop", intent=Intent.INTERRUPT_BARE, matched="stop"
    )
    made.timeline.now += 1.0
    made.say(stop)
    run(made, has(made, e.InterruptRequested))
    now = made.timeline.now
    assert routing._newest_stop(made.record, now) is not None
    say(made, "later", Intent.EXPLICIT_QUEUE)
    run(made, lambda: made.record.queue.taken == "m2")
    assert made.timeline.now == now
    assert routing._newest_stop(made.record, now) is None


# Stops and reverts --------------------------------------------------------------------------------


def test_a_stop_says_whose_it_is() -> None:
    """The entry has the sender, and the client's key."""
    made = asking()
    order = Interrupt(cause="stop", user="ann", client_id="k")
    [entry] = [
        one
        for one in stopping.interrupt(made.record, order, made.environment).entries
        if isinstance(one, e.InterruptRequested)
    ]
    assert (entry.user, entry.client_id, entry.turn) == ("ann", "k", "t1")


def test_a_planned_stop_takes_effect_on_the_turn_and_its_children_alone() -> None:
    """What is beside the turn, and the goal, were stopped when it was planned."""
    made = asking()
    planned = CancelRecord(id="i1", turn="t1", cause="stop", state="planned")
    entry = stopping.take_effect(planned, made.environment)
    assert set(entry.reaches) == {Relation.SELF, Relation.FOREGROUND_CHILD}


def test_a_revert_stops_the_turn_and_a_dry_run_does_not() -> None:
    """Files that a turn still writes are not restored under it."""
    made = asking()
    real = reverting.revert(made.record, Revert(scope="turn"), made.environment)
    assert kinds(real)[:2] == [e.RevertAsked, e.InterruptRequested]
    assert (real.entries[0].turn, real.entries[0].turns) == ("t1", ("t1",))
    dry = reverting.revert(made.record, Revert(scope="turn", is_dry_run=True), made.environment)
    assert kinds(dry) == [e.RevertAsked]


def test_a_revert_names_the_turns_that_went_on_from_others() -> None:
    """A turn and the one that it resumed are one piece of work."""
    made = program(TOOLS)
    say(made, "work")
    run(made, lambda: bool(made.ports.tools))
    made.say(Interrupt(cause="stop"))
    run(made)
    made.say(ResumeQueue())
    run(made, lambda: made.record.turn == "t2")
    asked = e.RevertAsked(id="r1", scope="turn")
    assert reverting.order_of(made.record, asked).resumed == (("t2", "t1"),)


# Goals --------------------------------------------------------------------------------------------


def test_a_goal_can_be_paused_and_dropped_while_a_turn_runs() -> None:
    """Only what begins one has to wait for the end of the turn."""
    made = asking()
    assert goals.obstacle(made.record, ChangeGoal(op="pause")) is None
    assert goals.obstacle(made.record, ChangeGoal(op="clear")) is None
    assert goals.obstacle(made.record, ChangeGoal(op="resume")) is not None
    assert goals.obstacle(made.record, SetGoal(text="x")) is not None
    assert goals.obstacle(made.record, SetGoal(text="x", is_next=True)) is None


def test_a_pause_leaves_the_turn_of_a_goal_that_was_interrupted() -> None:
    """It takes back what waits; a dropped goal takes back what was interrupted, too."""
    made = program()
    made.say(SetGoal(text="all tests pass"))
    run(made, lambda: bool(made.ports.models))
    made.say(Interrupt(cause="stop"))
    run(made)
    assert [item.state for item in made.record.queue.of_goal("g1", "interrupted")] == [
        "interrupted"
    ]
    assert goals.withdrawn(made.record, "g1", "pending") == ()
    assert goals.withdrawn(made.record, "g1") == (e.Withdrawn(item="m1"),)


def test_every_reason_of_a_pause_has_words() -> None:
    """What the code gives as a reason is in the table, and nothing else is."""
    code = "\n".join(path.read_text() for path in sorted(ACTORS.rglob("*.py")))
    given = set(re.findall(r'_pause\([^,]+, "(\w+)"', code))
    given |= set(re.findall(r'GoalPaused\([^)]*reason="(\w+)"', code))
    given |= set(re.findall(r'return "(interrupt|budget)", "', code))
    assert given == set(REASONS)


@pytest.mark.parametrize(
    ("limit", "is_fault"),
    [
        ({"max_turns": 0}, True),
        ({"max_turns": 1}, False),
        ({"max_tokens": 0}, True),
        ({"max_tokens": 1}, False),
        ({"max_minutes": 0.0}, True),
        ({"max_minutes": float("inf")}, True),
        ({"max_minutes": 0.5}, False),
        ({"gates": ((),)}, True),
        ({"gates": (("",),)}, True),
        ({"gates": (("true",),)}, False),
    ],
)
def test_limits_of_a_goal_make_sense(limit: dict[str, Any], *, is_fault: bool) -> None:
    """A goal without a turn, a token, a minute or a command as gate is refused."""
    assert bool(goals._fault(SetGoal(text="x", **limit))) is is_fault


# Runs, calls, compaction --------------------------------------------------------------------------


def test_a_conversation_is_no_run() -> None:
    """It has nothing to try again, and no work whose outcome is unknown."""
    made = asking()
    run(made)
    assert running.try_again(made.record, made.environment).reply["ok"] is False
    assert running.reopen(made.record, Reopen(work=(("a", 0),), is_done=True)).reply["ok"] is False
    assert running.reopen(made.record, Reopen(work=(), is_done=True)).reply["ok"] is True


@pytest.mark.parametrize("is_allowed", [True, False])
def test_an_agent_of_another_maker_gets_the_answer_of_the_person(*, is_allowed: bool) -> None:
    """Its call begins, or is refused, in the journal and in the word to the agent."""
    made = asking()
    call = CallRecord(id="t1.s1.c1", tool="shell", wire_id="w1", arguments={})
    decision = calls._answer_agent(made.record.turns["t1"], call, is_allowed)
    [word] = decision.effects
    assert getattr(word, "is_allowed", None) is is_allowed
    assert isinstance(decision.entries[0], e.ToolRefused) is not is_allowed


def test_room_is_made_for_a_server_only_where_that_is_automatic() -> None:
    """A conversation that is too long for the server is summed up once, unless that was forbidden."""
    made = asking()
    turn = made.record.turns["t1"]
    too_long = ModelFailed(
        turn="t1", epoch=turn.epoch, step=turn.step, reason="x", is_too_long=True
    )
    assert compacting.overflows(made.record, too_long, CompactionPolicy())
    assert not compacting.overflows(made.record, too_long, CompactionPolicy(is_auto=False))


def test_what_matters_most_is_part_of_the_wish_for_a_summary() -> None:
    """`/compact WISH` asks the model for that; without a wish nothing is added."""
    for wish in ("", "the names"):
        made = asking()
        run(made)
        made.say(Compact(wish=wish))
        run(made, has(made, e.CompactionBegun))
        turn = made.record.turns[made.record.turn]
        cut = compacting._Cut(dropped=1, tokens=1)
        asked = compacting._question(made.record, cut, False, CompactionPolicy())[-1].text
        assert turn.id == "t2"
        assert ("What matters most: the names" in asked) is bool(wish)
        assert asked.startswith(compacting.ASK)


# The outbox ---------------------------------------------------------------------------------------


def test_what_is_lost_goes_back_to_its_sender() -> None:
    """A person's message that was never durable is given back, once; a goal's and a result are not."""
    outbox = Outbox(0)
    said = e.Queued(item="m1", number=1, text="hello", said_as="turn", client_id="c1")
    of_goal = e.Queued(item="m2", number=2, text="go on", said_as="turn", goal="g1")
    rejected = MessageRejected(reason="full", text="more", client_id="c2")
    outbox.hold(OutboxItem(seq=1, entry=said))
    outbox.hold(OutboxItem(seq=2, entry=of_goal))
    outbox.hold(OutboxItem(seq=2, facts=(rejected,)))
    back = MessageRejected(reason="store_failed", text="hello", client_id="c1")
    assert list(outbox.lost()) == [back, rejected]
    assert list(outbox.lost()) == []
