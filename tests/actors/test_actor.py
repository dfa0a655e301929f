"""Failures stay inside, stashed messages come back in order, the dead are mourned."""

import asyncio
from typing import Any

import pytest
from cast_of_actors import Boom, Control, Data, Echo, Hand, Recorder
from pykka import ActorDeadError

from steersman.actors.actor import Actor, Forward
from steersman.actors.system import ActorSystem
from steersman.machines.orders import Down, Kill


@pytest.mark.parametrize(
    "error", [ValueError("x"), SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()]
)
def test_whatever_is_raised_ends_one_actor(system: ActorSystem, error: BaseException) -> None:
    """No exception of one actor, however base, ends another or the dispatcher."""
    other, victim = Echo.start(system), Recorder.start(system)
    victim.tell(Boom(error))
    assert other.ask("still there?", timeout=5) == "still there?"
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
    """An actor that fails in `on_stop` is dead all the same, and says so once."""

    class Sore(Echo):
        def on_stop(self) -> None:
            raise ValueError("no")

    heard: list[Any] = []
    watcher, ref = Recorder.start(hand.system, heard), Sore.start(hand.system)
    ref.tell(Down("", "", ""))
    watcher._actor_weakref().watch(ref)  # type: ignore[union-attr]
    stop = ref.stop(block=False)
    hand.run()
    assert stop.get(timeout=0) is True
    assert not ref.is_alive()
    assert [type(one) for one in heard] == [Down]


class Stasher(Recorder):
    """Puts work aside until it is told to open."""

    is_open = False

    def on_receive(self, message: Any) -> Any:
        """Open, put aside, or remember."""
        if message == Control("open"):
            self.is_open = True
            self.unstash()
            return None
        if message == Control("close"):
            self.is_open = False
            return None
        if not self.is_open and isinstance(message, Data):
            return self.stash()
        return super().on_receive(message)


def test_stashed_messages_come_back_in_order(hand: Hand) -> None:
    """What was put aside is handled before what came later, in its order, asks included."""
    heard: list[Any] = []
    ref = Stasher.start(hand.system, heard)
    ref.tell(Data(1))
    asked = ref.ask(Data(2), block=False)
    hand.run()
    assert heard == []
    ref.tell(Control("open"))
    ref.tell(Data(3))
    hand.run()
    assert heard == [1, 2, 3]
    assert asked.get(timeout=0) == 2


def test_put_aside_twice(hand: Hand) -> None:
    """A message that is put aside again keeps its place."""
    heard: list[Any] = []
    ref = Stasher.start(hand.system, heard)
    for number in range(3):
        ref.tell(Data(number))
    hand.run()
    ref.tell(Control("open"))
    ref.tell(Control("close"))
    ref.tell(Data(3))
    hand.run()
    assert heard == []
    ref.tell(Control("open"))
    hand.run()
    assert heard == [0, 1, 2, 3]


def test_stashed_asks_hear_of_the_end(hand: Hand) -> None:
    """Who asked something that was put aside is answered when the actor dies."""
    ref = Stasher.start(hand.system)
    asked = ref.ask(Data(), block=False)
    hand.run()
    ref.tell(Boom(ValueError("x")))
    hand.run()
    with pytest.raises(ActorDeadError):
        asked.get(timeout=0)


def test_forward(hand: Hand) -> None:
    """Whoever is asked to ask another is answered by that one."""
    echo, ref = Echo.start(hand.system), Recorder.start(hand.system)
    message = Control(Forward(echo))
    asked = ref.ask(message, block=False)
    hand.run()
    assert asked.get(timeout=0) is message


def test_death_watch(hand: Hand) -> None:
    """A watcher is told once that an actor is down, and why."""
    heard: list[Any] = []
    watcher = Recorder.start(hand.system, heard)
    ref = Recorder.start(hand.system)
    living: Any = watcher._actor_weakref()
    living.watch(ref)
    ref.tell(Boom(ValueError("x")))
    hand.run()
    assert heard == [Down("", ref.actor_urn, "ValueError: x", "Boom")]


@pytest.mark.parametrize("is_dying", [False, True])
def test_death_watch_on_the_dead(hand: Hand, is_dying: bool) -> None:
    """Watching an actor that is dead, or about to be, gives the news at once."""
    heard: list[Any] = []
    watcher, ref = Recorder.start(hand.system, heard), Echo.start(hand.system)
    ref.stop(block=False)
    if not is_dying:
        hand.run()
    living: Any = watcher._actor_weakref()
    living.watch(ref)
    hand.run()
    assert [(type(one), one.urn) for one in heard] == [(Down, ref.actor_urn)]


def test_kill_without_a_supervisor(hand: Hand) -> None:
    """An actor that nobody restarts is dead when it is killed, and its mail is answered."""
    ref = Echo.start(hand.system)
    ref.tell(Kill())
    asked = ref.ask("hello", block=False)
    hand.run()
    assert not ref.is_alive()
    with pytest.raises(ActorDeadError):
        asked.get(timeout=0)
