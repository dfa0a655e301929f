"""A waiting message that a person edits: it neither starts nor enters a turn until that is over."""

from collections.abc import Callable
from typing import Any

import pytest
from simulation.single import TALK, entries, program, run, say

from steersman.actors.decisions import queueing, resuming
from steersman.actors.decisions.decision import refusal
from steersman.journal import entries as e
from steersman.machines import protocol as m
from steersman.machines.disposition import Intent
from steersman.simulator.program import SimulatedProgram


def edited(*waiting: str, intent: Intent = Intent.CONVERSE) -> SimulatedProgram:
    """A program in which `first` runs, others wait, and #2 is edited in the client `here`."""
    made = program(TALK, is_auto_queue=True)
    say(made, "first")
    run(made, lambda: bool(made.ports.models))
    for text in waiting:
        say(made, text, intent)
    run(made, lambda: len(made.record.queue.pending()) == len(waiting))
    made.say(m.QueueChange(op="begin_edit", number=2, editor="here"))
    run(made, lambda: bool(entries(made, e.EditBegun)))
    return made


def ran(made: SimulatedProgram) -> list[str]:
    """Return the texts of the messages whose turns began, in order."""
    return [made.record.queue.items[entry.item].text for entry in entries(made, e.TurnStarted)]


def test_the_message_behind_it_runs_first() -> None:
    """When the edit is sent, the message runs with its new text."""
    made = edited("second", "third")
    run(made)
    assert ran(made) == ["first", "third"]
    made.say(m.QueueChange(op="edit", number=2, said=m.Said(text="second, better"), editor="here"))
    run(made)
    assert ran(made) == ["first", "third", "second, better"]


def test_an_edit_that_is_left_lets_it_start() -> None:
    """Only the client that began the edit ends it."""
    made = edited("second")
    run(made)
    made.say(m.QueueChange(op="end_edit", editor="there"))
    run(made)
    assert ran(made) == ["first"]
    made.say(m.QueueChange(op="end_edit", editor="here"))
    run(made)
    assert ran(made) == ["first", "second"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (m.QueueChange(op="begin_edit", number=1, editor="here"), "#1 is running"),
        (m.QueueChange(op="begin_edit", number=2, editor="there"), "#2 is being edited"),
        (m.QueueChange(op="edit", number=2, said=m.Said(text="mine")), "#2 is being edited"),
        (
            m.QueueChange(op="edit", number=2, said=m.Said(text="mine"), editor="there"),
            "#2 is being edited",
        ),
        (m.QueueChange(op="begin_edit", number=9, editor="here"), "No queued item #9"),
        (m.QueueChange(op="steer", number=2), "#2 is being edited"),
        (m.ResumeQueue(number=2), "#2 is being edited"),
    ],
)
def test_what_is_refused(change: m.QueueChange | m.ResumeQueue, reason: str) -> None:
    """What has started is not edited, and what is edited is nobody else's."""
    record = edited("second").record
    decide: Any = resuming.resume if isinstance(change, m.ResumeQueue) else queueing.change
    assert decide(record, change) == refusal(reason)


def test_a_steer_that_is_edited_waits_for_a_later_boundary() -> None:
    """It enters no turn meanwhile; when its turn has ended, it is a message of its own."""
    made = edited("steer", intent=Intent.EXPLICIT_STEER)
    run(made)
    assert (ran(made), entries(made, e.Steered)) == (["first"], [])
    made.say(m.QueueChange(op="edit", number=2, said=m.Said(text="reworded"), editor="here"))
    run(made)
    assert ran(made) == ["first", "reworded"]


def suspend(made: SimulatedProgram) -> None:
    """Leave the session in good order."""
    made.say(m.Suspend())
    run(made)
    made.crash()


@pytest.mark.parametrize("end", [SimulatedProgram.crash, suspend])
def test_a_restart_ends_every_edit(end: Callable[[SimulatedProgram], None]) -> None:
    """The client is gone then: the message waits like any other."""
    made = edited("second")
    run(made)
    end(made)
    made.restart()
    run(made)
    assert [item.editor for item in made.record.queue.pending()] == [""]
    made.say(m.ResumeQueue())
    run(made)
    assert ran(made)[-1] == "second"
