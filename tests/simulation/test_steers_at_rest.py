"""Steers for a child that has stopped: they go with what is taken back, and enter when it goes on."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from simulation.scene import answer, delegation, has_asked, scene, start_child
from simulation.single import entries, has, run, say

from steersman.actors.decisions import resuming
from steersman.journal import entries as e
from steersman.machines import protocol as m
from steersman.machines.disposition import Intent
from steersman.simulator.program import SimulatedProgram

RESUME = m.ResumeQueue()


@contextmanager
def stopped_with_a_steer(steers: int = 1, **policy: Any) -> Iterator[SimulatedProgram]:
    """A turn and its child bob were stopped; bob has steers that he has not taken in."""
    with scene(plan={"delegation": delegation(**policy)}) as made:
        say(made, "work")
        run(made, has_asked(made))
        answer(made, start_child("bob"))
        run(made, has_asked(made, "s1-1"))
        for number in range(1, steers + 1):
            say(made, f"use tabs {number}", Intent.EXPLICIT_STEER, client_id=f"c{number}")
        run(made, lambda: len(entries(made, e.Queued, session="s1-1")) == 1 + steers)
        say(made, "stop", Intent.INTERRUPT_BARE)
        run(made, has(made, e.Stopped))
        assert made.record.children["bob"].state == "interrupted"
        yield made


def states(made: SimulatedProgram) -> dict[int, str]:
    """Return the state of each message, by number."""
    return {item.number: item.state for item in made.record.queue.items.values()}


def said_to_bob(made: SimulatedProgram) -> str:
    """Return all that bob's model has been told."""
    told = entries(made, e.TurnStarted, e.Steered, session="s1-1")
    return "\n".join(message.text for entry in told for message in entry.messages)


def test_a_steer_for_a_stopped_child_enters_when_it_goes_on() -> None:
    """A resume brings back the turn, the child and what was said to it."""
    with stopped_with_a_steer() as made:
        made.say(RESUME)
        run(made, has(made, e.SteerArrived))
        assert "use tabs 1" in said_to_bob(made)
        assert states(made) == {1: "running", 2: "steered"}


@pytest.mark.parametrize("restarts", [False, True], ids=["", "after a crash"])
def test_a_steer_for_a_stopped_child_can_be_taken_back(restarts: bool) -> None:
    """The child has it in its own queue already, and does not see it when it goes on."""
    with stopped_with_a_steer(2) as made:
        made.say(m.QueueChange(op="withdraw", number=2))
        run(made)
        assert states(made) == {1: "interrupted", 2: "withdrawn", 3: "pending"}
        if restarts:
            made.crash()
            made.restart()
            run(made)
        made.say(RESUME)
        run(made, has(made, e.SteerArrived))
        assert "use tabs 1" not in said_to_bob(made)
        assert "use tabs 2" in said_to_bob(made)


def test_what_a_child_at_work_has_is_not_taken_back() -> None:
    """It may take it in at any moment: what is told to a person must be so."""
    with stopped_with_a_steer() as made:
        made.say(RESUME)
        run(made, lambda: made.record.children["bob"].state == "working")
        made.say(m.QueueChange(op="withdraw", number=2))
        run(made, has(made, e.SteerArrived))
        assert states(made)[2] == "steered"


def test_all_that_waits_goes_with_the_turn() -> None:
    """Nothing is left that could begin a turn later: no message, and no child that waits for one."""
    with stopped_with_a_steer(2, steer_deadline=60.0) as made:
        made.say(m.QueueChange(op="clear"))
        run(made)
        assert set(states(made).values()) == {"withdrawn"}
        assert made.record.children["bob"].state == "cancelled"
        assert not made.record.queue.order
        made.say(RESUME)
        run(made)
        assert len(entries(made, e.TurnStarted)) == 1
        assert not entries(made, e.Offered)


def test_steers_outlive_the_turn_that_was_taken_back_alone() -> None:
    """They are messages of their own then, held as everything that waits, like the steers of a turn."""
    with stopped_with_a_steer() as made:
        made.say(m.QueueChange(op="withdraw", number=1))
        run(made)
        assert states(made) == {1: "withdrawn", 2: "pending"}
        item = made.record.queue.items["m2"]
        assert not item.is_steer
        assert made.record.queue.holds(item)


def test_a_stopped_child_has_all_the_time() -> None:
    """The deadline of a steer is for children at work: a stop makes no message of it."""
    with stopped_with_a_steer(steer_deadline=5.0) as made:
        run(made)  # until the clock has nothing left either
        assert made.record.queue.items["m2"].for_children == {"bob": "~"}


@pytest.mark.parametrize(("number", "restored"), [(1, [1, 2, 3]), (None, [1, 2, 3])])
def test_what_is_restored_is_what_goes_on(number: int | None, restored: list[int]) -> None:
    """A steer for a child that goes on counts, and begins nothing itself."""
    with stopped_with_a_steer(2) as made:
        reply = resuming.resume(made.record, m.ResumeQueue(number=number)).reply
        assert reply | {"restored": len(restored), "number": 1} == reply


def test_other_turns_that_were_cut_off_are_not_counted() -> None:
    """A number resumes one of them; those that stay, stay out of what is said."""
    with stopped_with_a_steer() as made:
        other = m.ImportedItem(said=m.Said(text="other"), is_interrupted=True)
        made.say(m.QueueImport(items=(other,)))
        run(made)
        reply = resuming.resume(made.record, m.ResumeQueue(number=3)).reply
        assert reply | {"restored": 1, "number": 3} == reply


def test_a_steer_of_a_replaced_turn_can_be_taken_back() -> None:
    """It waits apart from the others, with the message of that turn; this one can still be resumed."""
    with scene() as made:
        say(made, "work")
        run(made, has_asked(made))
        say(made, "use tabs", Intent.EXPLICIT_STEER)
        say(made, "something else", Intent.INTERRUPT_MORE)
        run(made, lambda: len(entries(made, e.TurnStarted)) == 2)
        made.say(m.QueueChange(op="withdraw", number=2))
        run(made, has(made, e.Withdrawn))
        assert states(made) == {1: "superseded", 2: "withdrawn", 3: "running"}
        made.say(m.ResumeQueue(number=1))
        run(made)
        assert states(made)[1] == "interrupted"
