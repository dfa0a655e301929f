"""A failure affects no other actor, and a pending ask to an actor that ends gets an answer."""

import asyncio

import pytest
from pykka import ActorDeadError
from support.cast_of_actors import Boom, Control, Data, Echo, Hand, Parent, Recorder
from support.patience import seconds

from steersman.actors.kernel.actor import Actor, Forward
from steersman.actors.kernel.supervisor import ChildSpec
from steersman.actors.kernel.system import ActorSystem
from steersman.machines import protocol as m


@pytest.mark.parametrize(
    "error", [ValueError("x"), SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()]
)
def test_whatever_is_raised_ends_one_actor(system: ActorSystem, error: BaseException) -> None:
    """No exception of one actor, however base, ends another or the dispatcher."""
    other, victim = Echo.start(system), Recorder.start(system)
    victim.tell(Boom(error))
    assert other.ask("still there?", timeout=seconds(5)) == "still there?"
    assert not victim.is_alive()
    assert other.is_alive()


def test_dead_letters(hand: Hand) -> None:
    """The message that killed an actor is remembered, with the reason."""
    ref = Recorder.start(hand.system)
    ref.tell(Boom(ValueError("wrong")))
    hand.run()
    (letter,) = hand.system.dead_letters
    assert (letter.time, letter.actor, letter.message) == (1_000.0, "Recorder", "Boom")
    assert letter.reason == "ValueError: wrong"


def test_a_failing_start_is_contained(hand: Hand) -> None:
    """An actor that fails in `on_start` is dead, and asking it says so."""

    class Stillborn(Actor):
        def on_start(self) -> None:
            raise ValueError("no")

    ref = Stillborn.start(hand.system)
    assert not ref.is_alive()
    with pytest.raises(ActorDeadError):
        ref.ask("hello")


def test_a_failing_stop_is_contained(hand: Hand) -> None:
    """An actor that fails in `on_stop` is dead all the same, and its supervisor learns of it once."""

    class Sore(Echo):
        def on_stop(self) -> None:
            raise ValueError("no")

    ended: list[str] = []
    supervisor = Parent.start(hand.system, ended)
    spec = ChildSpec(name="sore", start=lambda: Sore.start(hand.system), restart="temporary")
    asked = supervisor.ask(spec, block=False)
    hand.run()
    ref = asked.get(timeout=0)
    stop = ref.stop(block=False)
    hand.run()
    assert stop.get(timeout=0) is True
    assert not ref.is_alive()
    assert ended == ["sore"]


def test_a_waiting_ask_is_answered_at_the_end(hand: Hand) -> None:
    """A pending ask gets an error when the actor dies."""
    ref = Recorder.start(hand.system)
    ref.tell(Boom(ValueError("x")))
    asked = ref.ask(Data(), block=False)
    hand.run()
    with pytest.raises(ActorDeadError):
        asked.get(timeout=0)


def test_forward(hand: Hand) -> None:
    """An ask that an actor forwards is answered by the other actor."""
    echo, ref = Echo.start(hand.system), Recorder.start(hand.system)
    message = Control(Forward(ref=echo))
    asked = ref.ask(message, block=False)
    hand.run()
    assert asked.get(timeout=0) is message


def test_kill_without_a_supervisor(hand: Hand) -> None:
    """An actor without a restart is dead after a kill, and its mailbox is answered."""
    ref = Echo.start(hand.system)
    ref.tell(m.Kill())
    asked = ref.ask("hello", block=False)
    hand.run()
    assert not ref.is_alive()
    with pytest.raises(ActorDeadError):
        asked.get(timeout=0)
