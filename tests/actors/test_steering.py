"""Cutting in while an answer streams, and stopping after a tool: the session on simulated ports."""

from typing import Any

import pytest
from msgspec.structs import replace
from simulation.single import TALK, TOOLS, entries, performed, program, run, say

from steersman.actors.decisions import routing
from steersman.journal import entries as e
from steersman.machines import protocol as m
from steersman.machines.disposition import Intent
from steersman.simulator.happening import Passed
from steersman.simulator.ports import Chances
from steersman.simulator.program import SimulatedProgram

SEED = 1
"""With it the first answer comes in pieces."""
WORD = m.UserMessage(
    type="interrupt",
    said=m.Said(text="stop", client_id="c3"),
    intent=Intent.INTERRUPT_BARE,
    matched="stop",
)
AGAIN = replace(WORD, said=m.Said(text="stop!", client_id="c5"))
STOP = m.Interrupt(order=m.StopOrder(cause="stop", said=m.Said(text="", client_id="c4")))


def working(chances: Chances, **settings: Any) -> SimulatedProgram:
    """Begin a program that has been told to work."""
    made = program(chances, seed=SEED, **settings)
    say(made, "work", client_id="c1")
    return made


def partial(made: SimulatedProgram) -> str:
    """Return what has come of the answer that streams."""
    turn: Any = made.actor("turn")
    return "".join(turn.partial) if turn is not None else ""


def test_a_steer_cuts_the_stream() -> None:
    """What came is kept as the answer, the steer follows, and the same turn asks again."""
    made = working(TALK, steer_while_streaming="cut")
    run(made, lambda: bool(partial(made)))
    came = partial(made)
    say(made, "use tabs", Intent.EXPLICIT_STEER, "c2")
    run(made, lambda: len(performed(made, m.CallModel)) == 2)
    (cut,) = entries(made, e.AnswerCut)
    assert [message.text for message in cut.messages] == [came]
    assert performed(made, m.CancelModel) == [m.CancelModel(turn="t1")]
    said = [(message.role, message.text) for message in performed(made, m.CallModel)[1].messages]
    assert said == [
        ("user", "work"),
        ("assistant", came),
        ("user", "[New message from user] use tabs"),
    ]
    run(made)
    assert len(entries(made, e.TurnStarted)) == 1
    assert made.record.turns["t1"].state == "completed"


def test_by_default_a_steer_waits_for_the_answer() -> None:
    """With `wait` the stream is left alone."""
    made = working(TALK)
    run(made, lambda: bool(partial(made)))
    say(made, "use tabs", Intent.EXPLICIT_STEER, "c2")
    run(made)
    assert not entries(made, e.AnswerCut)
    assert entries(made, e.Steered)


def test_a_waiting_message_that_is_handed_over_cuts_too() -> None:
    """`/queue steer N` cuts the stream like a steer does."""
    made = working(TALK, steer_while_streaming="cut")
    say(made, "tabs", Intent.EXPLICIT_QUEUE, "c2")
    run(made, lambda: bool(partial(made)))
    made.say(m.QueueChange(op="steer", number=2))
    run(made)
    assert entries(made, e.AnswerCut)
    assert entries(made, e.Steered)[0].items == ("m2",)


def test_steers_are_bounded_like_the_queue() -> None:
    """A steer that waits takes a place; one too many is refused, and its text given back."""
    made = working(TALK, max_queue_size=2)
    run(made, lambda: bool(made.ports.models))
    for number in range(4):
        say(made, f"remark {number}", Intent.EXPLICIT_STEER, f"s{number}")
    say(made, "later", Intent.EXPLICIT_QUEUE, "q")
    run(made)
    facts = [happening.fact for happening in made.history if isinstance(happening, Passed)]
    full = m.FULL_QUEUE.format(2)
    assert facts == [
        m.MessageRejected(
            reason="queue_full", said=m.Said(text="remark 2", client_id="s2"), hint=full
        ),
        m.MessageRejected(
            reason="queue_full", said=m.Said(text="remark 3", client_id="s3"), hint=full
        ),
        m.MessageRejected(reason="queue_full", said=m.Said(text="later", client_id="q"), hint=full),
        *[fact for fact in facts if not isinstance(fact, m.MessageRejected)],
    ]
    (steered,) = entries(made, e.Steered)
    assert steered.items == ("m2", "m3")


def at_a_tool(**settings: Any) -> SimulatedProgram:
    """Begin a program whose turn runs a tool."""
    made = working(TOOLS, interrupt_at="boundary", **settings)
    run(made, lambda: bool(made.ports.tools))
    return made


def test_at_a_boundary_the_running_tool_ends_first() -> None:
    """The order is answered at once, the tool is not stopped, and nothing follows it."""
    made = at_a_tool()
    asked = len(entries(made, e.ModelCalled))
    made.say(WORD)
    run(made)
    (planned,) = entries(made, e.InterruptPlanned)
    (requested,) = entries(made, e.InterruptRequested)
    assert planned.tools
    assert (planned.receipt, planned.order.said.client_id) == (requested.receipt, "c3")
    assert not performed(made, m.StopTool)
    assert len(entries(made, e.ModelCalled)) == asked
    assert made.record.turns["t1"].state == "interrupted"
    assert made.record.stops[planned.receipt].state == "stopped"


@pytest.mark.parametrize("second", [AGAIN, STOP])
def test_a_second_interrupt_is_now(second: m.Message) -> None:
    """Another interrupt, or `/stop`, does not wait for the tool."""
    made = at_a_tool()
    made.say(WORD)
    run(made, lambda: bool(entries(made, e.InterruptPlanned)))
    made.say(second)
    run(made)
    assert performed(made, m.StopTool)
    first, last = made.record.stops.values()
    assert (first.state, last.state) == ("overtaken", "stopped")


def offered(made: SimulatedProgram) -> int | None:
    """Return the number of the message that would be offered again if the last stop were taken back."""
    reply = routing.take_back(made.record, made.timeline.now, made.environment).reply
    assert reply["ok"] is True
    number: int | None = reply["offered"]
    return number


@pytest.mark.parametrize("says_more", [False, True])
def test_what_is_taken_back_in_time_stops_nothing(says_more: bool) -> None:
    """Undo calls a planned stop off while its tool still runs: the turn goes on, the message waits."""
    made = at_a_tool()
    more = m.UserMessage(
        type="interrupt",
        said=m.Said(text="tabs", client_id="c3"),
        intent=Intent.CONVERSE,
        then="tabs",
    )
    made.say(more if says_more else WORD)
    run(made, lambda: bool(entries(made, e.InterruptPlanned)))
    if not says_more:
        assert offered(made) is None
    made.say(m.TakeBack())
    run(
        made,
        lambda: bool(entries(made, e.InterruptCalledOff) and made.record.queue.waiting()),
    )
    assert made.record.stops["i1"].state == "called_off"
    assert [item.text for item in made.record.queue.waiting()] == ["tabs" if says_more else "stop"]
    run(made, lambda: made.record.turn == "t2")
    assert {stop.cause for stop in entries(made, e.InterruptRequested)} <= {"budget"}
    assert not performed(made, m.StopTool)
    assert made.record.turns["t1"].state in ("completed", "interrupted")


def test_undo_after_the_tool_has_ended_offers_the_turn() -> None:
    """Too late to call it off: the message waits, and the stopped turn can be resumed."""
    made = at_a_tool()
    made.say(WORD)
    run(made)
    assert offered(made) == 1
    made.say(m.TakeBack())
    run(made)
    assert not entries(made, e.InterruptCalledOff)
    assert [item.state for item in made.record.queue.live()] == ["interrupted", "pending"]


def test_undo_of_a_later_message_leaves_the_stop_alone() -> None:
    """Only the last thing said is taken back."""
    made = at_a_tool(busy_mode="queue")
    made.say(WORD)
    run(made, lambda: bool(entries(made, e.InterruptPlanned)))
    say(made, "use tabs", Intent.EXPLICIT_STEER, "c4")
    made.say(m.TakeBack())
    run(made)
    assert not entries(made, e.InterruptCalledOff)
    assert made.record.stops["i1"].state == "stopped"
    assert entries(made, e.Requeued)


def test_stop_never_waits() -> None:
    """`/stop` ends the tool at once, also as the first."""
    made = at_a_tool()
    made.say(STOP)
    run(made)
    assert not entries(made, e.InterruptPlanned)
    assert performed(made, m.StopTool)
