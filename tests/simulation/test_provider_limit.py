"""A turn whose provider takes no call before a time that it told, in virtual time."""

from random import Random

import pytest
from simulation.single import entries, finish, has, performed, run, say

from steersman.actors.kernel.mailbox import reply
from steersman.journal import entries as e
from steersman.machines import protocol as m
from steersman.machines.delivery import DEFAULT_DELIVERIES, Cause, Delivery, DeliveryRow, Relation
from steersman.machines.disposition import Intent
from steersman.machines.policy import Limits
from steersman.machines.routing import Table, when
from steersman.simulator.ports import Chances
from steersman.simulator.program import SimulatedProgram
from steersman.simulator.session import SimulationPlan

HOUR = 3600.0


def refused(
    wait_minutes: float = 90.0, again: float = HOUR, table: Table[DeliveryRow] = DEFAULT_DELIVERIES
) -> SimulatedProgram:
    """A session whose first call is refused for an hour."""
    made = SimulatedProgram(
        SimulationPlan(
            chances=Chances(calls=0.0, model_fails=0.0),
            limits=Limits(wait_minutes=wait_minutes),
            haste=0.0,
            longest_batch=1,
        ),
        Random(7),
        lambda names: 0,
    )
    made.environment.deliveries = table
    say(made, "work", client_id="c1")
    run(made, lambda: bool(made.ports.models))
    call = made.ports.models.pop("t1")
    at = call.effect
    failed = m.ModelFailed(turn="t1", epoch=at.epoch, step=1, reason="429", again=again)
    reply(call.reply_to, failed)
    return made


def test_the_turn_goes_on_when_the_time_has_come() -> None:
    """It asks again then, and not before; its answer ends it."""
    made = refused()
    run(made, has(made, e.ModelAwaited))
    began = made.timeline.now
    run(made, has(made, e.ModelAskedAgain))
    assert made.timeline.now - began == pytest.approx(HOUR, abs=1.0)
    finish(made)
    assert [entry.status for entry in entries(made, e.TurnEnded)] == ["completed"]


@pytest.mark.parametrize(("wait_minutes", "again"), [(0.0, HOUR), (90.0, 2 * HOUR), (90.0, 0.0)])
def test_no_turn_waits_longer_than_it_may(wait_minutes: float, again: float) -> None:
    """Without the setting, for longer than it says, or for an unknown time: the turn fails."""
    made = refused(wait_minutes, again)
    finish(made)
    assert not entries(made, e.ModelAwaited)
    assert [entry.status for entry in entries(made, e.TurnEnded)] == ["failed"]


@pytest.mark.parametrize("days", [-60.0, 60.0])
def test_a_clock_that_is_set_makes_no_wait_longer(days: float) -> None:
    """Back or forth: the model is asked again at the latest when the whole wait has passed."""
    made = refused()
    run(made, has(made, e.ModelAwaited))
    began = made.timeline.now
    made.timeline.leap(days * 24 * HOUR)
    run(made, has(made, e.ModelAskedAgain))
    assert made.timeline.now - began <= HOUR + 1.0
    finish(made)


def test_a_stop_ends_the_wait() -> None:
    """At once, and nothing is asked afterwards."""
    made = refused()
    run(made, has(made, e.ModelAwaited))
    say(made, "stop", Intent.INTERRUPT_BARE)
    began = made.timeline.now
    finish(made)
    assert made.timeline.now - began < 2 * HOUR
    assert len(entries(made, e.ModelCalled)) == 1
    assert made.record.turns["t1"].state == "interrupted"


def test_the_wait_outlives_the_program() -> None:
    """After a crash the session goes on by itself when the time has come; nobody says a word."""
    made = refused()
    run(made, lambda: bool(performed(made, m.SetTimer)))  # what was decided is durable
    until = made.record.turns["t1"].until
    made.crash()
    made.restart()
    finish(made)
    started = [entry for entry in entries(made, e.TurnStarted) if entry.turn == "t2"]
    assert [entry.resumes for entry in started] == ["t1"]
    assert made.record.turns["t2"].started >= until
    assert made.record.turns["t2"].state == "completed"


def test_a_row_may_end_the_turn_instead() -> None:
    """So that it can be resumed: a table decides what a provider's limit does."""
    row = DeliveryRow(
        name="stop-at-limit",
        when=when(cause=Cause.PROVIDER_LIMIT, relation=Relation.SELF),
        action=Delivery.CANCEL,
        why="A person looks first.",
    )
    made = refused(table=DEFAULT_DELIVERIES.override([row]))
    finish(made)
    assert [entry.cause for entry in entries(made, e.Interrupted)] == ["provider_limit"]
    assert len(entries(made, e.ModelCalled)) == 1
