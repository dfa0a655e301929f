"""Lanes, order, bounds."""

import threading
from typing import Any

import pytest
from pykka import ActorDeadError
from support.cast_of_actors import Control, Data, Echo, External, Hand, Recorder
from support.patience import seconds

from steersman.actors.kernel.mailbox import BOUND, Mailbox, lane_of
from steersman.actors.kernel.system import ActorSystem
from steersman.machines import protocol as m
from steersman.machines.errors import AdmissionRefused


def said(kind: Any) -> m.UserMessage:
    """Make a person's message."""
    return m.UserMessage(type=kind, said=m.Said(text="text"), intent="converse")


@pytest.mark.parametrize(
    ("message", "lane"),
    [
        (m.Kill(), m.Lane.SYSTEM),
        (m.Committed(seq=1), m.Lane.SYSTEM),
        (m.Interrupt(order=m.StopOrder(cause="stop")), m.Lane.CONTROL),
        (said("interrupt"), m.Lane.CONTROL),
        (said("steer"), m.Lane.CONTROL),
        (said("normal"), m.Lane.DATA),
        (
            m.ToolFinished(turn="t1", epoch=1, call="c", result=m.ToolResult(status="ok", text="")),
            m.Lane.DATA,
        ),
        ("anything", m.Lane.DATA),
    ],
)
def test_lanes(message: object, lane: m.Lane) -> None:
    """Each message has its lane before it is posted."""
    assert lane_of(message) is lane


def test_control_overtakes_data(hand: Hand) -> None:
    """An interrupt behind a thousand waiting messages is next."""
    heard: list[Any] = []
    ref = Recorder.start(hand.system, heard)
    for number in range(1_000):
        ref.tell(Data(number))
    ref.tell(Control("now"))
    hand.dispatcher.run(0, 1)
    assert heard == ["now"]
    hand.run()
    assert heard == ["now", *range(1_000)]


def test_order_of_each_sender(system: ActorSystem) -> None:
    """From several threads at once each sender's messages arrive in its order, and all of them."""
    heard: list[Any] = []
    ref = Recorder.start(system, heard)
    threads = [
        threading.Thread(target=lambda name=name: [ref.tell(Data((name, n))) for n in range(2_000)])
        for name in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ref.ask(Data("end"), timeout=seconds(10))
    for name in range(4):
        assert [row[1] for row in heard if row != "end" and row[0] == name] == list(range(2_000))


def test_the_outside_is_bounded(hand: Hand) -> None:
    """Past the bound a message from outside is refused, with a type; results are always taken."""
    ref = Recorder.start(hand.system)
    for number in range(BOUND):
        ref.tell(External(number))
    with pytest.raises(AdmissionRefused, match=str(BOUND)):
        ref.tell(External("one more"))
    with pytest.raises(AdmissionRefused):
        ref.tell(said("normal"))
    ref.tell(
        m.ToolFinished(turn="t1", epoch=1, call="c", result=m.ToolResult(status="ok", text=""))
    )
    hand.run()
    ref.tell(External("now there is room"))


def test_an_interrupt_is_never_refused(hand: Hand) -> None:
    """Steers are bounded, interrupts are not."""
    ref = Recorder.start(hand.system)
    for _ in range(BOUND):
        ref.tell(said("steer"))
    with pytest.raises(AdmissionRefused):
        ref.tell(said("steer"))
    ref.tell(said("interrupt"))
    ref.tell(m.Interrupt(order=m.StopOrder(cause="stop")))


def test_a_closed_mailbox_answers(hand: Hand) -> None:
    """What waits when an actor ends, and what comes later, is answered as dead."""
    ref = Echo.start(hand.system)
    stop = ref.stop(block=False)
    waiting, again = ref.ask("late", block=False), ref.stop(block=False)
    hand.run()
    assert stop.get(timeout=0) is True
    assert again.get(timeout=0) is True
    with pytest.raises(ActorDeadError):
        waiting.get(timeout=0)


def test_an_idle_mailbox_keeps_nothing(hand: Hand) -> None:
    """Lanes are dropped when they are empty."""
    ref = Recorder.start(hand.system)
    mailbox = ref.actor_inbox
    assert isinstance(mailbox, Mailbox)
    ref.tell(Data())
    ref.tell(Control())
    assert mailbox.depth() == (0, 1, 1)
    hand.run()
    assert mailbox.depth() == (0, 0, 0)
    assert mailbox.empty()
