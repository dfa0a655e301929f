"""What is held and what is not, once a turn was stopped and people go on talking."""

import pytest
from simulation.single import TALK, entries, program, run, say

from steersman.journal import entries as e
from steersman.machines import protocol as m
from steersman.machines.disposition import Intent
from steersman.simulator.program import SimulatedProgram


def texts(made: SimulatedProgram, *, is_held: bool) -> list[str]:
    """Return what waits, in order: what is held of it, or what is not."""
    queue = made.record.queue
    return [item.text for item in queue.waiting() if queue.holds(item) == is_held]


def ran(made: SimulatedProgram) -> list[str]:
    """Return the messages whose turns have ended, in order."""
    turns = [made.record.turns[entry.turn] for entry in entries(made, e.TurnEnded, e.Interrupted)]
    return [made.record.queue.items[turn.item].text for turn in turns]


def held(after: str = "fresh") -> SimulatedProgram:
    """A program in which `long` was stopped while `old` waited, and `after` runs past that."""
    made = program(TALK, is_auto_queue=True)
    say(made, "long")
    run(made, lambda: bool(made.ports.models))
    say(made, "old")
    run(made, lambda: bool(made.record.queue.waiting()))
    made.say(m.Interrupt(order=m.StopOrder(cause="stop")))
    run(made)
    say(made, after)
    run(made, lambda: made.record.turn == "t2" and bool(made.ports.models))
    return made


def test_what_is_said_after_a_stop_is_not_held() -> None:
    """It runs behind the turn that it was said to; what waited before stays, and runs when resumed."""
    made = held()
    say(made, "then")
    say(made, "and then", Intent.EXPLICIT_QUEUE)
    run(made, lambda: len(made.record.queue.waiting()) == 3)
    assert (texts(made, is_held=True), texts(made, is_held=False)) == (
        ["old"],
        ["then", "and then"],
    )
    run(made)
    assert ran(made) == ["long", "fresh", "then", "and then"]
    assert (made.record.queue.state, texts(made, is_held=True)) == ("held", ["old"])
    made.say(m.ResumeQueue())
    run(made)
    assert ran(made)[-2:] == ["long", "old"]


def test_a_steer_that_comes_too_late_is_not_held() -> None:
    """It was said to a turn that ran past the hold, so it is the next turn."""
    made = held()
    say(made, "steer", Intent.EXPLICIT_STEER)
    run(made)
    assert "steer" in [entry.said.text for entry in entries(made, e.Queued)]
    assert (texts(made, is_held=True), texts(made, is_held=False)) == (["old"], [])


@pytest.mark.parametrize(
    "order", [m.Interrupt(order=m.StopOrder(cause="stop")), m.QueueChange(op="hold")]
)
def test_another_stop_holds_that_too(order: m.Interrupt | m.QueueChange) -> None:
    """What waits when it comes is held, whenever it was said."""
    made = held()
    say(made, "then")
    run(made, lambda: len(made.record.queue.waiting()) == 2)
    made.say(order)
    run(made)
    assert texts(made, is_held=True) == ["old", "then"]


def test_a_hold_is_for_the_turn_that_runs() -> None:
    """Who holds the queue while a turn runs holds what is said to that turn later, too."""
    made = program(TALK, is_auto_queue=True)
    say(made, "long")
    run(made, lambda: bool(made.ports.models))
    made.say(m.QueueChange(op="hold"))
    run(made, lambda: made.record.queue.state == "held")
    say(made, "then")
    run(made)
    assert texts(made, is_held=True) == ["then"]


def test_nothing_passes_the_hold_of_a_restart() -> None:
    """After a crash everything waits for a person's word."""
    made = held()
    say(made, "then")
    run(made, lambda: len(made.record.queue.waiting()) == 2)
    seq = made.record.seq
    run(made, lambda: made.durable >= seq)
    made.crash()
    made.restart()
    run(made)
    assert texts(made, is_held=True) == ["old", "then"]


def test_what_a_stop_overtook_is_held() -> None:
    """It was said before what runs now, and only came behind it."""
    made = held()
    made.say(m.Interrupt(order=m.StopOrder(cause="stop", utterance=2)))
    run(made)
    say(made, "fresh")
    run(made, lambda: made.record.turn == "t3" and bool(made.ports.models))
    say(made, "late", Intent.EXPLICIT_QUEUE, utterance=1)
    run(made, lambda: len(made.record.queue.waiting()) == 2)
    assert (texts(made, is_held=True), texts(made, is_held=False)) == (["old", "late"], [])


@pytest.mark.parametrize("runs", [True, False])
def test_what_a_stop_overtook_alone_is_held(runs: bool) -> None:
    """Nothing waited when the stop came, so nothing else is held, then or later."""
    made = program(TALK, is_auto_queue=True)
    made.say(m.Interrupt(order=m.StopOrder(cause="stop", utterance=2)))
    run(made)
    if runs:
        say(made, "fresh")
        run(made, lambda: made.record.turn == "t1" and bool(made.ports.models))
    say(made, "late", utterance=1)
    say(made, "later")
    run(made, lambda: len(made.record.queue.items) == 2 + runs)
    assert texts(made, is_held=True) == ["late"]
    run(made)
    assert texts(made, is_held=True) == ["late"]
    assert [turn.item for turn in made.record.turns.values()] == ["m1", "m3"] if runs else ["m2"]
