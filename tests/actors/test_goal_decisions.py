"""Decisions about goals: orders, budgets, and what the turn before a boundary did."""

import re
from copy import copy
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from simulation.single import asking, entries, has, kinds, program, run

from steersman.actors.decisions import goals, queueing
from steersman.journal import entries as e
from steersman.journal.goal_record import GoalRecord
from steersman.journal.queue_record import ItemRecord, QueueRecord
from steersman.journal.turn_record import CallRecord
from steersman.machines import protocol as m
from steersman.machines.lifecycles import REASONS
from steersman.machines.policy import GoalPolicy

ACTORS = Path(__file__).resolve().parents[2] / "actors"


def test_a_goal_can_be_paused_and_dropped_while_a_turn_runs() -> None:
    """Only what begins one has to wait for the end of the turn."""
    made = asking()
    assert goals.obstacle(made.record, m.ChangeGoal(op="pause")) is None
    assert goals.obstacle(made.record, m.ChangeGoal(op="clear")) is None
    assert goals.obstacle(made.record, m.ChangeGoal(op="resume")) is None  # there is no goal
    assert goals.obstacle(made.record, m.SetGoal(text="x")) is not None
    assert goals.obstacle(made.record, m.SetGoal(text="x", is_next=True)) is None


def test_a_pause_leaves_the_turn_of_a_goal_that_was_interrupted() -> None:
    """It takes back what waits; a dropped goal takes back what was interrupted, too."""
    made = program()
    made.say(m.SetGoal(text="all tests pass"))
    run(made, lambda: bool(made.ports.models))
    made.say(m.Interrupt(order=m.StopOrder(cause="stop")))
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
    assert bool(goals._fault(m.SetGoal(text="x", **limit))) is is_fault


def test_a_goal_that_is_over_is_not_replaced() -> None:
    """It is no more than what was before: only one that is pursued or paused is cleared."""
    made = asking()
    run(made)
    made.say(m.SetGoal(text="one"))
    run(made, lambda: made.record.goals.is_pursued)
    decision = goals.order(made.record, m.SetGoal(text="two"), made.environment.goals)
    assert decision.reply["replaced"] == "one"
    assert e.GoalCleared in kinds(decision)
    made.say(m.ChangeGoal(op="clear"))
    run(made, has(made, e.GoalCleared))
    decision = goals.order(made.record, m.SetGoal(text="two"), made.environment.goals)
    assert decision.reply["replaced"] is None
    assert kinds(decision) == [e.GoalSet]


def test_what_a_goal_does_not_say_of_its_budget_is_configured() -> None:
    """Turns, tokens, minutes and gates: those of the goal come first."""
    made = asking()
    policy = GoalPolicy(max_turns=7, max_tokens=70, max_minutes=2.0, gates=(("true",),))
    (bare,) = goals.order(made.record, m.SetGoal(text="x"), policy).entries
    expected = e.GoalSet(
        goal="g1",
        text="x",
        max_turns=7,
        max_tokens=70,
        max_seconds=120.0,
        gates=(("true",),),
        epoch=made.record.epoch,
        boundary="t1",
    )
    assert bare == expected
    own = m.SetGoal(text="x", max_turns=1, max_tokens=2, max_minutes=0.5, gates=())
    (given,) = goals.order(made.record, own, policy).entries
    assert given == replace(expected, max_turns=1, max_tokens=2, max_seconds=30.0, gates=())


def test_a_goals_message_that_comes_after_its_interrupted_one_takes_its_number() -> None:
    """The interrupted message is withdrawn; numbers begin again where no other is left."""
    made = asking()
    run(made)
    made.say(m.SetGoal(text="all is done"))
    run(made, lambda: made.record.turn == "t2" and bool(made.ports.models))
    made.say(m.Interrupt(order=m.StopOrder(cause="stop")))
    run(made)
    made.say(m.ChangeGoal(op="resume"))
    run(made, lambda: made.record.turn == "t3")
    (gone,) = entries(made, e.Withdrawn)
    queued = [entry for entry in entries(made, e.Queued) if entry.goal]
    assert gone.item == queued[0].item
    assert queued[1].number == 1


def test_the_first_message_of_a_goal_waits_behind_what_waits() -> None:
    """It has the next number and the last place; alone it has the first of both."""
    made = program()
    run(made)
    made.say(m.SetGoal(text="all is done"))
    run(made, has(made, e.GoalSet))
    record = copy(made.record)
    first = m.GoalMessage(goal="g1", said=m.Said(text="go"), is_first=True)
    record.queue = QueueRecord(made=4)
    (alone,) = queueing.enqueue_goal(record, first, made.environment).entries
    expected = e.Queued(
        item="m5",
        number=1,
        said=m.Said(text="go"),
        routed=m.Routed(said_as="goal", rule="goal"),
        position=1,
        goal="g1",
        item_kind=m.ItemKind.GOAL,
    )
    assert alone == expected
    waiting = ItemRecord(id="m4", number=6, said=m.Said(text="x"))
    record.queue = QueueRecord(made=4, number=6, items={"m4": waiting}, order=("m4",))
    (behind,) = queueing.enqueue_goal(record, first, made.environment).entries
    assert behind == replace(expected, number=7, position=2)


@pytest.mark.parametrize(
    ("items", "order", "state", "expected"),
    [
        ((), {}, "open", "queued"),
        ((), {}, "held", "queued past the hold"),
        ((), {}, "closed", "nothing"),
        ((), {"goal": "g2"}, "open", "nothing"),
        ((), {"after": "t1"}, "open", "queued"),
        ((), {"after": "t7"}, "open", "nothing"),
        ((("turn", "running", ""),), {}, "open", "nothing"),
        ((("turn", "running", ""),), {"is_first": True}, "open", "queued"),
        ((("queue", "pending", ""),), {}, "open", "nothing"),
        ((("queue", "pending", ""),), {"is_first": True}, "open", "queued"),
        ((("goal", "pending", "g1"),), {"is_first": True}, "open", "nothing"),
        ((("goal", "running", "g1"),), {"is_first": True}, "open", "nothing"),
        ((("goal", "interrupted", "g1"),), {}, "open", "m1 withdrawn, queued"),
    ],
)
def test_a_message_that_continues_a_goal_waits_for_those_of_people(
    items: tuple[tuple[str, str, str], ...], order: dict[str, Any], state: str, expected: str
) -> None:
    """It is queued when nothing else runs or waits; the first of a goal waits in the queue."""
    made = program()
    run(made)
    made.say(m.SetGoal(text="all is done"))
    run(made, has(made, e.GoalSet))
    record = copy(made.record)
    known = {
        f"m{number}": ItemRecord(
            id=f"m{number}",
            number=number,
            said=m.Said(text="x"),
            routed=m.Routed(said_as=said_as),
            state=its_state,
            goal=goal,
            kind=m.ItemKind.GOAL if goal else m.ItemKind.MESSAGE,
        )
        for number, (said_as, its_state, goal) in enumerate(items, start=1)
    }
    record.queue = QueueRecord(made=4, number=4, items=known, order=tuple(known), state=state)
    message = m.GoalMessage(**{"goal": "g1", "said": m.Said(text="go"), **order})
    said = list[str]()
    for entry in queueing.enqueue_goal(record, message, made.environment).entries:
        if isinstance(entry, e.Withdrawn):
            said.append(f"{entry.item} withdrawn")
        else:
            assert isinstance(entry, e.Queued)
            said.append("queued past the hold" if entry.past_hold else "queued")
    assert (", ".join(said) or "nothing") == expected


def test_a_turn_that_delegated_may_have_changed_something() -> None:
    """What its subagents did to the files is not known to it; a turn that only looked changed nothing."""
    for tool, may_have in (("read", False), ("write", True), ("delegate", True)):
        made = asking()
        run(made)
        call = CallRecord(id="c1", tool=tool, arguments={}, state="done")
        record = copy(made.record)
        record.turns = {"t1": replace(record.turns["t1"], calls={"c1": call})}
        goal: Any = GoalRecord(id="g1", text="x", max_turns=9)
        assert goals.rest(record, goal, made.environment).may_have_changed is may_have, tool
