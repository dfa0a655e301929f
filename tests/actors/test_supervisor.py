"""Strategies, restart types, intensity; refs and mailboxes that outlive their actors."""

from typing import Any

import pytest
from pykka import ActorDeadError, ActorRef, ActorRegistry
from support.cast_of_actors import Boom, Data, Hand, Parent, Recorder

from steersman.actors.kernel.actor import Actor
from steersman.actors.kernel.supervisor import ChildSpec
from steersman.machines import protocol as m

NAMES = ("a", "b", "c")


class Family:
    """A supervisor with three children; `started` notes each start."""

    def __init__(self, hand: Hand, strategy: Any, restart: Any = "permanent") -> None:
        kind = type("Kind", (Parent,), {"strategy": strategy})
        self.hand = hand
        self.started: list[str] = []
        self.ended: list[str] = []
        self.heard: dict[str, list[Any]] = {name: [] for name in NAMES}
        self.ref: ActorRef[Any] = kind.start(hand.system, self.ended)
        self.children = {name: self._start(name, restart) for name in NAMES}
        self.started.clear()

    def _start(self, name: str, restart: Any) -> ActorRef[Any]:
        def start() -> ActorRef[Any]:
            self.started.append(name)
            return Recorder.start(self.hand.system, self.heard[name])

        asked = self.ref.ask(ChildSpec(name=name, start=start, restart=restart), block=False)
        self.hand.run()
        child: ActorRef[Any] = asked.get(timeout=0)
        return child

    def states(self) -> dict[str, str]:
        """Ask the supervisor how its children do."""
        asked = self.ref.ask("children", block=False)
        self.hand.run()
        found: dict[str, str] = asked.get(timeout=0)
        return found


@pytest.mark.parametrize("is_failure", [True, False])
@pytest.mark.parametrize("restart", ["permanent", "transient", "temporary"])
@pytest.mark.parametrize(
    ("strategy", "with_b"),
    [("one_for_one", "b"), ("one_for_all", "abc"), ("rest_for_one", "bc")],
)
def test_who_is_started_again(
    hand: Hand, strategy: str, with_b: str, restart: str, is_failure: bool
) -> None:
    """The spec says whether a child comes back; the strategy says who goes and comes with it."""
    family = Family(hand, strategy, restart)
    family.children["b"].tell(Boom(ValueError("x"))) if is_failure else family.children["b"].stop(
        block=False
    )
    hand.run()
    comes_back = restart == "permanent" or (restart == "transient" and is_failure)
    assert family.started == (list(with_b) if comes_back else [])
    assert family.ended == ([] if comes_back else ["b"])
    assert set(family.states().values()) == {"running"}
    assert family.children["b"].is_alive() is comes_back


def test_ref_and_mailbox_survive(hand: Hand) -> None:
    """What waits when an actor dies is handled by its next incarnation, behind the same ref."""
    family = Family(hand, "one_for_one")
    ref = family.children["a"]
    ref.tell(Boom(ValueError("x")))
    ref.tell(Data(1))
    asked = ref.ask(Data(2), block=False)
    hand.run()
    assert family.heard["a"] == [1, 2]
    assert asked.get(timeout=0) == 2
    assert ActorRegistry.get_by_urn(ref.actor_urn) is ref
    assert [letter.message for letter in hand.system.dead_letters] == ["Boom"]


def test_siblings_are_awaited(hand: Hand) -> None:
    """No child is restarted before all children that have to stop are down."""
    family = Family(hand, "one_for_all")
    for _ in range(5):
        family.children["c"].tell(Data())
    family.children["a"].tell(Boom(ValueError("x")))
    while family.hand.dispatcher.ready and not family.started:
        hand.dispatcher.run(len(hand.dispatcher.ready) - 1, 1)
        if family.started:
            break
        alive = [ref.actor_inbox.is_suspended for ref in family.children.values()]  # type: ignore[attr-defined]
        assert not family.started or all(alive)
    hand.run()
    assert family.started == list(NAMES)
    assert len(family.heard["c"]) == 5


def test_kill_does_not_hit_the_next_incarnation(hand: Hand) -> None:
    """An order to end that was meant for a dead incarnation is thrown away."""
    family = Family(hand, "one_for_all")
    for name in ("a", "b"):
        family.children[name].tell(Boom(ValueError("x")))
    hand.run()
    assert family.started == list(NAMES)
    assert set(family.states().values()) == {"running"}


def test_intensity(hand: Hand) -> None:
    """A child that fails too often in a period takes its supervisor, and that its other children."""
    family = Family(hand, "one_for_one")
    for _ in range(Parent.intensity + 1):
        family.children["a"].tell(Boom(ValueError("x")))
    hand.run()
    assert len(family.started) == Parent.intensity
    assert not family.ref.is_alive()
    assert not any(ref.is_alive() for ref in family.children.values())
    assert hand.system.living() == []
    with pytest.raises(ActorDeadError):
        family.children["b"].ask(Data())


def test_period(hand: Hand) -> None:
    """Failures that lie further apart than the period are not counted together."""
    family = Family(hand, "one_for_one")
    for _ in range(10):
        family.children["a"].tell(Boom(ValueError("x")))
        hand.run()
        hand.clock[0] += Parent.period
    assert len(family.started) == 10
    assert family.ref.is_alive()


def test_a_stopped_supervisor_leaves_no_actor(hand: Hand) -> None:
    """Children and grandchildren end with their supervisor; none of them stays registered."""
    before = len(ActorRegistry.get_all())
    top = Parent.start(hand.system)
    inner = top.ask(ChildSpec(name="inner", start=lambda: Parent.start(hand.system)), block=False)
    hand.run()
    leaf = inner.get(timeout=0).ask(
        ChildSpec(name="leaf", start=lambda: Recorder.start(hand.system)), block=False
    )
    hand.run()
    top.stop(block=False)
    hand.run()
    assert not leaf.get(timeout=0).is_alive()
    assert hand.system.living() == []
    assert len(ActorRegistry.get_all()) == before


def test_a_start_that_fails_counts(hand: Hand) -> None:
    """A child whose `on_start` always fails is tried as often as the intensity says."""
    tried: list[int] = []

    class Stillborn(Actor):
        def on_start(self) -> None:
            tried.append(1)
            raise ValueError("no")

    ref = Parent.start(hand.system)
    ref.tell(ChildSpec(name="x", start=lambda: Stillborn.start(hand.system)))
    hand.run()
    assert len(tried) == 1 + Parent.intensity
    assert not ref.is_alive()


def test_news_of_a_former_child_is_ignored(hand: Hand) -> None:
    """A `Down` that names a child by an old address changes nothing."""
    family = Family(hand, "one_for_one")
    family.ref.tell(m.Down(name="a", urn="actor:0", reason="x"))
    family.ref.tell(m.Down(name="nobody", urn="actor:0", reason="x"))
    hand.run()
    assert family.started == []


def test_a_name_can_be_taken_over(hand: Hand) -> None:
    """A child of the same name as one that is ending takes its place."""
    family = Family(hand, "one_for_one", "temporary")
    old = family.children["a"]
    old.stop(block=False)
    asked = family.ref.ask(
        ChildSpec(name="a", start=lambda: Recorder.start(hand.system), restart="temporary"),
        block=False,
    )
    hand.run()
    assert not old.is_alive()
    assert asked.get(timeout=0).is_alive()
    assert family.states()["a"] == "running"
    old_kill = family.children["a"]
    with pytest.raises(ActorDeadError):
        old_kill.tell(m.Kill())
