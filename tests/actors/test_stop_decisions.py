"""What a stop decides: what it reaches, when it takes effect, and what of it the journal keeps."""

from collections.abc import Iterator
from copy import copy
from typing import Any

import pytest
from msgspec.structs import replace
from simulation.scene import answer, delegation, has_asked, scene, start_child
from simulation.single import has, run, say

from steersman.actors.decisions import goals, queueing, stopping
from steersman.journal import entries as e
from steersman.machines import protocol as m
from steersman.machines.delivery import Cause, Relation
from steersman.machines.disposition import Intent
from steersman.simulator.program import SimulatedProgram
from steersman.simulator.session import SimulatedRun
from steersman.workflows.flow.reading import parse_workflow

HURRIED = (Cause.SIGNAL, Cause.FINALIZE, Cause.NEW, Cause.PARENT)
WORKFLOW = """
[workflow]
name = "two"
[[step]]
id = "command"
run = ["true"]
[[step]]
id = "agent"
prompt = "look"
"""


@pytest.fixture
def turn() -> Iterator[SimulatedProgram]:
    """A turn that asks its model."""
    with scene() as made:
        say(made, "work")
        run(made, has_asked(made))
        yield made


@pytest.fixture
def workflow() -> Iterator[SimulatedProgram]:
    """A run with a command and an agent at work."""
    plan = {"run": SimulatedRun(spec=parse_workflow("two.toml", WORKFLOW))}
    with scene(plan=plan) as made:
        say(made, "run two", Intent.EXPLICIT_QUEUE)
        run(made, lambda: bool(made.ports.tools) and has_asked(made, "s1-1")())
        yield made


def test_the_whole_of_a_stop_is_journalled(turn: SimulatedProgram) -> None:
    """Its receipt, its cause, and the relations that the table names; nothing that no client said."""
    (entry,) = stopping.stop(turn.record, m.StopOrder(cause="stop"), turn.environment).entries
    assert entry == e.InterruptRequested(
        receipt="i1",
        turn="t1",
        order=m.StopOrder(cause="stop"),
        reaches=tuple(map(str, stopping.DOWNWARD)),
    )


@pytest.mark.parametrize("cause", [Cause.STOP, Cause.BUDGET, *HURRIED])
def test_a_run_lets_its_commands_end_unless_there_is_no_time(
    workflow: SimulatedProgram, cause: Cause
) -> None:
    """A stop is planned while a command runs, and reaches agents at once; in a hurry, everything."""
    is_hurried = cause in HURRIED
    decision = stopping.stop(workflow.record, m.StopOrder(cause=cause), workflow.environment)
    entry: Any = decision.entries[0]
    assert isinstance(entry, e.InterruptRequested if is_hurried else e.InterruptPlanned)
    assert Relation.FOREGROUND_CHILD in entry.reaches
    assert (Relation.SELF in entry.reaches) is is_hurried


def test_a_patient_stop_detaches_now_the_child_that_outlives_it() -> None:
    """The stop is planned, since a call runs; the child that it spares leaves the turn."""
    plan = {"delegation": delegation(detached=("scout",))}
    with scene(plan=plan, interrupt_at="boundary") as made:
        say(made, "work")
        run(made, has_asked(made))
        answer(made, start_child("kid", agent="scout"))
        run(made, has_asked(made, "s1-1"))
        stop = m.StopOrder(cause="bare_word")
        detached, planned = stopping.stop(made.record, stop, made.environment).entries
        assert detached == e.ChildDetached(child="kid")
        assert isinstance(planned, e.InterruptPlanned)
        assert planned.spares == ("kid",)


def test_a_goal_that_is_paused_is_not_stopped(turn: SimulatedProgram) -> None:
    """Nothing is at work: the stop is noted, and no goal is named in the reply."""
    answer(turn)
    run(turn)
    turn.say(m.SetGoal(text="all is done"))
    run(turn, lambda: turn.record.turn == "t2" and has_asked(turn)())
    turn.say(m.ChangeGoal(op="pause"))
    run(turn, has(turn, e.GoalPaused))
    answer(turn)
    run(turn)
    assert (turn.record.state, turn.record.goals.current) == ("idle", "g1")
    decision = stopping.stop(turn.record, m.StopOrder(cause="stop"), turn.environment)
    assert [type(entry) for entry in decision.entries] == [e.StopNoted]
    assert decision.reply["interrupted"] is None
    assert "goal" not in decision.reply


def test_a_goal_that_a_limit_stopped_says_so(turn: SimulatedProgram) -> None:
    """The newest stop that reached goals is the reason, not one before it."""
    turn.say(m.Interrupt(order=m.StopOrder(cause="stop")))
    run(turn, has(turn, e.Stopped))
    turn.say(m.SetGoal(text="all is done"))
    run(turn, lambda: turn.record.turn == "t2" and has_asked(turn)())
    turn.say(m.Interrupt(order=m.StopOrder(cause="budget")))
    run(turn)
    assert goals.stopped_by(turn.record)[0] == "budget"


@pytest.mark.parametrize(("state", "is_past"), [("interrupted", False), ("completed", True)])
def test_a_steer_that_came_after_a_hold_runs_unless_its_turn_was_stopped(
    turn: SimulatedProgram, state: str, *, is_past: bool
) -> None:
    """What was said to a turn that ran past a hold runs behind it; a stop was meant for it, too."""
    answer(turn)
    run(turn)
    say(turn, "later", Intent.EXPLICIT_QUEUE)
    record = copy(turn.record)
    item = replace(
        record.queue.items["m1"], id="m9", state="pending", for_turn="t1", past_hold=True
    )
    record.queue = record.queue.having(item, order=(*record.queue.order, "m9"))
    record.turns = {**record.turns, "t1": replace(record.turns["t1"], state=state)}
    (requeued,) = queueing.due(record, turn.environment).entries
    assert isinstance(requeued, e.Requeued)
    assert requeued.past_hold is is_past
