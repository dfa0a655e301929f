"""The session, its queue and its turn together, on simulated ports; each test one sharp corner."""

from random import Random

import pytest
from pykka.messages import ProxyCall
from simulation.single import TALK, TOOLS, entries, facts, has, performed, program, run, say

from steersman.journal import entries as e
from steersman.machines import protocol as m
from steersman.machines.disposition import Intent
from steersman.machines.policy import Policy
from steersman.simulator.program import SimulatedProgram
from steersman.simulator.session import SimulationPlan

POISON = ProxyCall(attr_path=("missing",), args=(), kwargs={})


@pytest.mark.parametrize("state", ["calling", "acting", "interrupted"])
def test_a_turn_that_crashes_is_survived(state: str) -> None:
    """A turn whose actor dies, in whatever state, ends in the journal; the next message runs."""
    made = program(TOOLS if state != "calling" else TALK)
    say(made, "hello")
    run(made, lambda: bool(made.ports.tools if state != "calling" else made.ports.models))
    if state == "interrupted":
        made.say(m.Interrupt(order=m.StopOrder(cause="stop")))
        run(made, has(made, e.Interrupted))
    turn = made.actor("turn")
    assert turn is not None
    turn.actor_ref.tell(POISON)
    run(made, has(made, e.TurnEnded))
    (ended,) = entries(made, e.TurnEnded)
    assert isinstance(ended, e.TurnEnded)
    assert ended.status == "failed"
    assert "fault in the program" in ended.reason
    assert performed(made, m.StopTool if state != "calling" else m.CancelModel)
    assert made.record.conversation[-1].role == "assistant"
    run(made)
    say(made, "again")
    run(made, lambda: len(entries(made, e.TurnStarted)) == 2)
    assert made.record.turn == "t2"


@pytest.mark.parametrize("is_busy", [False, True])
def test_a_queue_that_crashes_is_survived(is_busy: bool) -> None:
    """A queue whose actor dies comes back, and the turn that needs it goes on: no message is lost."""
    made = program(busy_mode="queue")
    if is_busy:
        say(made, "first")
        run(made, lambda: bool(made.ports.models))
        say(made, "second")
        say(made, "steer", Intent.EXPLICIT_STEER)
        run(made, lambda: len(entries(made, e.Queued)) == 3)
    queue = made.actor("queue")
    assert queue is not None
    queue.actor_ref.tell(POISON)
    say(made, "last")
    run(made)
    assert made.actor("queue") is not queue
    fates = {item.text: item.state for item in made.record.queue.items.values()}
    busy = {"first": "done", "second": "done", "steer": "steered"}
    assert fates == {**(busy if is_busy else {}), "last": "done"}
    assert made.record.state == "idle"


def test_a_steer_that_waits_when_everything_dies_is_requeued() -> None:
    """Steers of a turn that died in a crash wait as messages, held, until a person says resume."""
    made = program()
    say(made, "first")
    run(made, lambda: bool(made.ports.models))
    say(made, "steer", Intent.EXPLICIT_STEER)
    run(made, lambda: made.durable == made.record.seq and bool(made.record.queue.steers("t1")))
    made.crash()
    made.restart()
    run(made)
    assert [item.state for item in made.record.queue.live()] == ["interrupted", "pending"]
    assert made.record.queue.state == "held"
    made.say(m.ResumeQueue())
    run(made)
    assert made.record.queue.order == ()


def test_what_was_about_to_run_does_not_run_after_a_crash() -> None:
    """A message that was next when the program died waits like the others, before them."""
    made = program()
    say(made, "first")
    run(made, lambda: bool(made.ports.models))
    say(made, "instead")  # busy mode interrupt: it is next
    run(made, lambda: any(item.text == "instead" for item in made.record.queue.live()))
    run(made, lambda: made.durable == made.record.seq)
    made.crash()
    made.restart()
    run(made)
    asked = len(performed(made, m.CallModel))
    made.say(m.QueueChange(op="hold"))
    say(made, "and this", Intent.EXPLICIT_QUEUE)
    run(made)
    assert len(performed(made, m.CallModel)) == asked


def test_a_steer_enters_before_the_cut() -> None:
    """An interrupt while steers enter waits for them: they end in the turn that took them in."""
    made = program()
    say(made, "hello")
    run(made, has(made, e.TurnStarted))
    say(made, "steer", Intent.EXPLICIT_STEER)
    made.say(m.Interrupt(order=m.StopOrder(cause="stop")))
    run(made)
    kinds = [type(entry) for entry in entries(made)]
    if e.Steered in kinds:
        assert kinds.index(e.Steered) < kinds.index(e.InterruptRequested)
    assert made.record.state == "idle"
    assert not made.record.queue.stranded()


def test_an_interrupt_that_comes_too_late_still_holds() -> None:
    """A stop that misses a turn by a moment keeps what waits from starting."""
    plan = SimulationPlan(
        policy=Policy(busy_mode="queue"), chances=TALK, haste=0.0, longest_batch=1
    )
    first = {"": 0, "queue": 1, "children": 2, "turn": 3, "writer": 4, "time": 5}
    made = SimulatedProgram(
        plan, Random(7), lambda names: min(range(len(names)), key=lambda at: first[names[at]])
    )
    run(made)
    say(made, "first")
    run(made, lambda: bool(made.ports.models))
    say(made, "second")
    run(made, has(made, e.TurnEnded))  # the queue has not looked yet
    made.say(m.Interrupt(order=m.StopOrder(cause="stop")))
    run(made)
    assert entries(made, e.StopNoted)
    assert made.record.queue.state == "held"
    assert [item.state for item in made.record.queue.live()] == ["pending"]


def test_a_repeated_message_is_known_only_when_it_is_durable() -> None:
    """The second of two equal keys gets the same item, and hears so after the first is stored."""
    made = program()
    say(made, "hello", client_id="k")
    say(made, "hello", client_id="k")
    run(made)
    assert len(entries(made, e.Queued)) == 1
    assert [fact.id for fact in facts(made, m.MessageKnown)] == ["m1"]


def test_a_repeated_interrupt_stops_one_turn() -> None:
    """The same interrupt delivered again later does not hit the next turn."""
    made = program()
    say(made, "first")
    run(made, lambda: bool(made.ports.models))
    say(made, "stop", Intent.INTERRUPT_BARE, "k")
    run(made)
    say(made, "second")
    run(made, lambda: bool(made.ports.models))
    say(made, "stop", Intent.INTERRUPT_BARE, "k")
    run(made)
    assert len(entries(made, e.InterruptRequested)) == 1


def test_after_leaving_nothing_is_taken() -> None:
    """A suspended session gives what is said back to the sender."""
    made = program()
    made.say(m.Suspend())
    run(made)
    say(made, "hello")
    run(made)
    assert [fact.reason for fact in facts(made, m.MessageRejected)] == ["session_suspended"]
    assert made.record.state == "suspended"


def test_the_last_entry_is_the_last() -> None:
    """A message that crosses the end of a session is given back, and nothing follows the end."""
    made = program(busy_mode="queue")
    say(made, "first")
    run(made, lambda: bool(made.ports.models))
    for number in range(3):
        say(made, f"more {number}")
    made.say(m.Finalize())
    made.say(m.Finalize())
    made.say(m.ResumeQueue())
    run(made)
    assert made.record.state == "finalized"
    assert isinstance(entries(made)[-1], e.SessionFinalized)
    assert len(entries(made, e.SessionFinalized)) == 1


def test_what_is_said_before_the_session_is_open_waits() -> None:
    """CONTROL may overtake the opening; it is obeyed after it."""
    plan = SimulationPlan(chances=TALK, haste=0.0, longest_batch=1)
    made = SimulatedProgram(plan, Random(7), lambda names: 0)
    say(made, "stop", Intent.INTERRUPT_BARE)
    run(made)
    assert isinstance(entries(made)[0], e.SessionOpened)


def test_a_broken_store_stops_everything() -> None:
    """When the journal cannot be written the turn is stopped and nothing more is accepted."""
    made = program(TOOLS)
    say(made, "hello")
    run(made, lambda: bool(made.ports.tools))
    made.writer.failures[made.root.id] = "lost"
    say(made, "more", Intent.EXPLICIT_QUEUE)
    run(made)
    told = len(made.history)
    say(made, "still there?")
    run(made)
    assert [type(happening).__name__ for happening in made.history[told:]] == ["Uttered", "Passed"]
    assert not made.ports.tools
    assert performed(made, m.StopTool)


def test_a_session_that_dies_stops_what_runs() -> None:
    """When the session's actor itself fails, its model call and tools are stopped."""
    made = program(TOOLS)
    say(made, "hello")
    run(made, lambda: bool(made.ports.tools))
    made.session.tell(POISON)
    run(made)
    assert performed(made, m.CancelModel)
    assert performed(made, m.StopTool)
    assert made.actor("turn") is None
    assert made.record.state == "idle"
