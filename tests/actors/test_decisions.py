"""Single decisions: what is decided about a record, without an actor that carries it out."""

from copy import copy
from typing import Any

import pytest
from msgspec.structs import replace
from simulation.single import TOOLS, asking, has, kinds, program, run, say

from steersman.actors.decisions import (
    calls,
    compacting,
    queueing,
    rearrangement,
    resuming,
    reverting,
    routing,
    running,
    stopping,
    turning,
)
from steersman.actors.ledger import Outbox, OutboxItem
from steersman.journal import entries as e
from steersman.journal.queue_record import ItemRecord, QueueRecord
from steersman.journal.record import StopRecord
from steersman.journal.turn_record import CallRecord
from steersman.machines import protocol as m
from steersman.machines.context import Fill
from steersman.machines.conversation import ChatMessage, ToolRequest
from steersman.machines.delivery import Relation
from steersman.machines.disposition import Intent
from steersman.machines.policy import CompactionPolicy
from steersman.simulator.program import SimulatedProgram


def queued(made: SimulatedProgram, text: str) -> None:
    """Queue a message behind the turn that runs."""
    count = len(made.record.queue.waiting())
    say(made, text, Intent.EXPLICIT_QUEUE)
    run(made, lambda: len(made.record.queue.waiting()) > count)


# The queue ----------------------------------------------------------------------------------------


def test_what_runs_cannot_be_recalled() -> None:
    """Only a message that waits is taken back by its key."""
    made = asking()
    assert not queueing.recall(made.record, m.Recall(key="c1"), made.environment)
    assert not queueing.recall(made.record, m.Recall(key="unknown"), made.environment)


def test_a_message_that_another_replaced_can_be_withdrawn_by_its_number() -> None:
    """Its turn was stopped for the other; it waits apart, until a person wants it or not."""
    made = asking()
    say(made, "instead")
    run(made, has(made, e.Interrupted))
    assert [item.id for item in made.record.queue.superseded()] == ["m1"]
    decision = rearrangement.withdraw(made.record.queue, 1)
    assert decision.entries == (e.Withdrawn(item="m1"),)


def test_what_was_stopped_for_a_message_goes_back_with_it() -> None:
    """Of the messages whose turns were replaced only the newest is offered again."""
    made = asking()
    for text in ("instead", "or rather"):
        count = len(made.record.queue.superseded())
        made.timeline.now += 1.0
        say(made, text)
        run(made, lambda count=count: len(made.record.queue.superseded()) > count)  # type: ignore[misc]
    decision = rearrangement.take_back(made.record.queue, made.timeline.now)
    assert decision.reply["offered"] == 2
    assert e.Requeued(item="m2", why="taken back") in decision.entries


@pytest.mark.parametrize(
    ("said_as", "state", "age", "expected"),
    [
        ("interrupt", "running", 1.0, {"ok": True, "stop": "t1"}),
        ("interrupt", "running", rearrangement.MOMENT, {"ok": True, "stop": "t1"}),
        ("interrupt", "running", rearrangement.MOMENT + 0.1, {"ok": False}),
        ("interrupt", "pending", 1.0, {"ok": True}),
        ("interrupt", "done", 1.0, {"ok": False}),
        ("turn", "running", 1.0, {"ok": False}),
        ("queue", "pending", 1.0, {"ok": False}),
    ],
)
def test_what_can_be_taken_back(
    said_as: str, state: str, age: float, expected: dict[str, Any]
) -> None:
    """A message that interrupted, for a moment: it waits again, and its own turn is to be stopped."""
    item = ItemRecord(
        id="m1",
        number=1,
        said=m.Said(text="x"),
        routed=m.Routed(said_as=said_as),
        state=state,
        turn="t1",
        taken=10.0,
    )
    queue = QueueRecord(made=1, number=1, items={"m1": item}, order=("m1",), taken="m1")
    reply = rearrangement.take_back(queue, 10.0 + age).reply
    assert {key: reply.get(key) for key in expected} == expected


@pytest.mark.parametrize(
    ("others", "offered"),
    [
        (("superseded",), 1),
        (("interrupted",), 1),
        (("superseded", "running"), None),
        (("done",), None),
    ],
)
def test_what_was_stopped_for_it_is_offered_unless_another_runs(
    others: tuple[str, ...], offered: int | None
) -> None:
    """The message that is taken back runs itself, and counts for none of those."""
    states = (*others, "running")
    items = {
        f"m{number}": ItemRecord(
            id=f"m{number}",
            number=number,
            said=m.Said(text="x"),
            routed=m.Routed(said_as="interrupt"),
            state=state,
            taken=1.0,
        )
        for number, state in enumerate(states, start=1)
    }
    newest = f"m{len(states)}"
    queue = QueueRecord(made=9, number=9, items=items, order=tuple(items), taken=newest)
    assert rearrangement.take_back(queue, 2.0).reply["offered"] == offered


def test_what_is_resumed_by_its_number_is_listed_first() -> None:
    """It runs before what waited longer, so that no list says otherwise."""
    made = asking()
    for text in ("one", "two", "three"):
        queued(made, text)
    made.say(m.QueueChange(op="hold"))
    run(made, lambda: made.record.queue.state == "held")
    made.say(m.ResumeQueue(number=4))
    run(made, lambda: made.record.queue.state == "open")
    assert [item.number for item in made.record.queue.live()] == [1, 4, 2, 3]


@pytest.mark.parametrize(("newest", "first"), [("t2", 1), ("t3", 2)])
def test_a_resume_begins_with_what_the_newest_turn_replaced(newest: str, first: int) -> None:
    """What is held runs after it; what was replaced before that, only by its number."""
    made = asking()
    replaced = ItemRecord(id="m1", number=1, said=m.Said(text="x"), state="superseded", turn="t1")
    waiting = ItemRecord(id="m2", number=2, said=m.Said(text="y"))
    queue = QueueRecord(
        made=2, number=2, items={"m1": replaced, "m2": waiting}, order=("m1", "m2"), state="held"
    )
    record = replace(made.record, queue=queue, turn=newest)
    reply = resuming.resume(record, m.ResumeQueue()).reply
    assert (reply["number"], reply["restored"]) == (first, 3 - first)


def test_a_steer_that_is_taken_back_offers_no_turn() -> None:
    """It stopped none; what another message replaced stays as it is."""
    before = ItemRecord(id="m1", number=1, said=m.Said(text="x"), state="superseded")
    steer = ItemRecord(
        id="m2",
        number=2,
        said=m.Said(text="y"),
        routed=m.Routed(said_as="steer"),
        for_turn="t2",
        taken=1.0,
    )
    queue = QueueRecord(
        made=2, number=2, items={"m1": before, "m2": steer}, order=("m1", "m2"), taken="m2"
    )
    decision = rearrangement.take_back(queue, 2.0)
    assert (decision.reply["ok"], decision.reply["offered"]) == (True, None)
    assert [entry.item for entry in decision.entries if isinstance(entry, e.Requeued)] == ["m2"]


@pytest.mark.parametrize("kind", m.ItemKind)
def test_only_somebodys_words_are_edited(kind: m.ItemKind) -> None:
    """It waits like a message, and says nothing to the model that a person could change."""
    item = ItemRecord(id="m1", number=1, said=m.Said(text="x"), kind=kind)
    queue = QueueRecord(made=1, number=1, items={"m1": item}, order=("m1",))
    change = m.QueueChange(op="begin_edit", number=1, editor="e1")
    assert rearrangement.begin_edit(queue, change).reply["ok"] is (kind in m.SPOKEN)


def test_a_waiting_message_that_is_sent_in_while_nothing_runs_passes_the_hold() -> None:
    """It runs at once, as one that is said now does; what is held stays held."""
    made = asking()
    queued(made, "later")
    made.say(m.QueueChange(op="hold"))
    run(made, lambda: made.record.queue.state == "held")
    run(made)
    decision = rearrangement.steer(made.record.queue, m.QueueChange(op="steer", number=2))
    assert decision.entries == (
        e.Requeued(item="m2", why=rearrangement.NOTHING_RUNS, past_hold=True),
    )


def test_a_waiting_message_can_be_sent_to_nobody_who_is_not_there() -> None:
    """A child that does not work is no recipient; the parent always is."""
    made = asking()
    queued(made, "later")
    unknown = m.QueueChange(op="steer", number=2, to="kid")
    assert routing.steer_waiting(made.record, unknown, made.environment).reply["ok"] is False
    parent = m.QueueChange(op="steer", number=2, to="parent")
    addressed = routing.steer_waiting(made.record, parent, made.environment).entries
    assert addressed == (e.SteerAddressed(item="m2", turn="t1"),)


def test_a_stop_of_the_same_moment_as_a_later_message_is_not_undone() -> None:
    """What was said last is taken back, also if the clock did not move in between."""
    made = asking()
    made.timeline.now += 1.0
    say(made, "stop", Intent.INTERRUPT_BARE, matched="stop")
    run(made, has(made, e.InterruptRequested))
    now = made.timeline.now
    assert routing._newest_stop(made.record, now) is not None
    say(made, "later", Intent.EXPLICIT_QUEUE)
    run(made, lambda: made.record.queue.taken == "m2")
    assert made.timeline.now == now
    assert routing._newest_stop(made.record, now) is None


# Stops and reverts --------------------------------------------------------------------------------


def test_a_planned_stop_takes_effect_on_the_turn_alone() -> None:
    """Its children, what is beside it, and the goal were told when it was planned."""
    made = asking()
    planned = StopRecord(id="i1", turn="t1", order=m.StopOrder(cause="stop"), state="planned")
    entry = stopping.take_effect(planned, made.environment)
    assert entry.reaches == (Relation.SELF,)


def test_a_revert_stops_the_turn_and_a_dry_run_does_not() -> None:
    """Files that a turn still writes are not restored under it."""
    made = asking()
    real = reverting.revert(made.record, m.Revert(scope="turn"), made.environment)
    assert kinds(real)[:2] == [e.RevertAsked, e.InterruptRequested]
    assert (real.entries[0].turn, real.entries[0].turns) == ("t1", ("t1",))
    dry = reverting.revert(made.record, m.Revert(scope="turn", is_dry_run=True), made.environment)
    assert kinds(dry) == [e.RevertAsked]


def test_a_revert_names_the_turns_that_went_on_from_others() -> None:
    """A turn and the one that it resumed are one piece of work."""
    made = program(TOOLS)
    say(made, "work")
    run(made, lambda: bool(made.ports.tools))
    made.say(m.Interrupt(order=m.StopOrder(cause="stop")))
    run(made)
    made.say(m.ResumeQueue())
    run(made, lambda: made.record.turn == "t2")
    asked = e.RevertAsked(id="r1", scope="turn")
    assert reverting.order_of(made.record, asked).resumed == (("t2", "t1"),)


# Runs, calls, compaction --------------------------------------------------------------------------


def test_a_conversation_is_no_run() -> None:
    """It has nothing to try again, and no work whose outcome is unknown."""
    made = asking()
    run(made)
    record, environment = made.record, made.environment
    assert running.try_again(record, m.TryAgain(), environment).reply["ok"] is False
    unknown, nothing = m.Reopen(work=(("a", 0),), is_done=True), m.Reopen(work=(), is_done=True)
    assert running.reopen(record, unknown, environment).reply["ok"] is False
    assert running.reopen(record, nothing, environment).reply["ok"] is True


@pytest.mark.parametrize("is_allowed", [True, False])
def test_an_agent_of_another_maker_gets_the_answer_of_the_person(*, is_allowed: bool) -> None:
    """Its call begins, or is refused, in the journal and in the word to the agent."""
    made = asking()
    call = CallRecord(id="t1.s1.c1", tool="shell", arguments={})
    decision = calls._answer_agent(made.record.turns["t1"], call, is_allowed)
    [word] = decision.effects
    assert getattr(word, "is_allowed", None) is is_allowed
    assert isinstance(decision.entries[0], e.ToolRefused) is not is_allowed


@pytest.mark.parametrize(
    ("tool", "asks", "follows"),
    [
        ("read", False, [e.ToolIntended]),
        ("deny_write", False, [e.ToolIntended]),
        ("read", True, [e.ToolIntended]),
        ("ask_read", True, [e.QuestionAsked]),
        ("deny_write", True, [e.ToolRefused]),
    ],
)
def test_a_call_of_an_agent_begins_unless_it_asks(
    tool: str, follows: list[type[Any]], *, asks: bool
) -> None:
    """What it does without a question has begun; of what it asks the permission rules decide."""
    made = asking(can_ask=True)
    request = ToolRequest(call="t1.s1.c1.1", tool=tool, arguments={})
    called = m.AgentCalled(call="t1.s1.c1", request=request, asks=asks)
    decision = calls.agent_called(made.record.turns["t1"], called, made.environment)
    assert kinds(decision) == [e.CallReported, *follows]


@pytest.mark.parametrize(
    ("state", "ends"),
    [
        ("requested", [e.ToolRefused]),
        ("asking", [e.QuestionAnswered, e.ToolRefused]),
        ("running", [e.ToolEnded]),
        ("stopping", [e.ToolEnded]),
    ],
)
def test_a_call_of_an_agent_ends_with_the_agent(state: str, ends: list[type[Any]]) -> None:
    """What had begun has ended; what had not is skipped, and its question is withdrawn."""
    call = CallRecord(id="c1", tool="shell", arguments={}, state=state)
    assert [type(entry) for entry in turning._ended_inner("t1", call, "killed")] == ends


def test_room_is_made_for_a_server_only_where_that_is_automatic() -> None:
    """A conversation that is too long for the server is summed up once, unless that was forbidden."""
    made = asking()
    turn = made.record.turns["t1"]
    too_long = m.ModelFailed(
        turn="t1", epoch=turn.epoch, step=turn.step, reason="x", is_too_long=True
    )
    assert compacting.overflows(made.record, too_long, CompactionPolicy())
    assert not compacting.overflows(made.record, too_long, CompactionPolicy(is_auto=False))


@pytest.mark.parametrize(
    ("is_too_long", "window", "is_shortened"),
    [
        (False, 0, False),
        (False, 100_000, False),
        (False, 1_000, True),
        (True, 100_000, False),
        (True, 0, True),
    ],
)
def test_what_would_not_fit_is_left_out_of_the_wish_for_a_summary(
    window: int, *, is_too_long: bool, is_shortened: bool
) -> None:
    """Old results of tools are left out if the whole is longer than the window; else none need be.

    Without a window that is known, some go all the same if the server found it too long.
    """
    record, policy = results_of_tools(), CompactionPolicy(window=window)
    cut = compacting._Cut(dropped=len(record.conversation), tokens=5_000)
    asked = compacting._question(record, cut, is_too_long, policy)
    assert (asked[:-1] != tuple(record.conversation)) is is_shortened


def results_of_tools() -> Any:
    """Return the record of a conversation with ten long results of tools."""
    made = asking()
    record = copy(made.record)
    words = ChatMessage(role="tool", text="word " * 400, call="c")
    record.conversation = type(record.conversation)((*record.conversation, *(words,) * 10))
    return record


def test_only_a_restore_that_had_begun_goes_on_after_a_crash() -> None:
    """One that waits for its turn to end is begun then, as it would have been."""
    made = asking()
    made.say(m.Revert(scope="turn"))
    run(made, has(made, e.RevertAsked))
    (revert,) = made.record.reverts.values()
    assert revert.state == "asked"
    assert not reverting.take_up(made.record)
    run(made, has(made, e.RevertStarted))
    assert len(reverting.take_up(made.record).effects) == 1


def test_a_server_has_counted_none_of_what_replaced_its_messages() -> None:
    """The count of messages is that of those which are still there, and never less than none."""
    made = asking()
    record = copy(made.record)
    record.fill, record.spoken = Fill(tokens=50, messages=3), 20
    assert turning.fill_of(record) == Fill(tokens=50, messages=0)
    record.spoken = len(record.conversation) + 1
    record.fill = Fill(tokens=50, messages=2)
    assert turning.fill_of(record) == Fill(tokens=50, messages=1)


# The outbox ---------------------------------------------------------------------------------------


def test_what_is_lost_goes_back_to_its_sender() -> None:
    """A person's message that was never durable is given back, once; a goal's and a result are not."""
    outbox = Outbox(0)
    said = e.Queued(item="m1", number=1, said=m.Said(text="hello", client_id="c1"))
    of_goal = e.Queued(
        item="m2", number=2, said=m.Said(text="go on"), goal="g1", item_kind=m.ItemKind.GOAL
    )
    rejected = m.MessageRejected(reason="full", said=m.Said(text="more", client_id="c2"))
    outbox.hold(OutboxItem(seq=1, entry=said))
    outbox.hold(OutboxItem(seq=2, entry=of_goal))
    outbox.hold(OutboxItem(seq=2, facts=(rejected,)))
    back = m.MessageRejected(reason="store_failed", said=m.Said(text="hello", client_id="c1"))
    assert list(outbox.lost()) == [back, rejected]
    assert list(outbox.lost()) == []
