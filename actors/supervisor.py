"""Supervisors: what happens when an actor fails is declared, not coded.

After OTP: a child spec says how to start a child and when to restart it; a strategy says who goes
with it; an intensity bounds how often. Siblings that must go are told, and awaited, before anything
is restarted. Ref and mailbox of a child survive its restart; the message that killed it does not
come again (it is in the dead letters). A supervisor that ends, however it ends, takes its children
with it. https://www.erlang.org/doc/apps/stdlib/supervisor.html
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pykka import ActorRef

from ..machines.child import CHILD
from ..machines.orders import Down, Kill
from ..machines.step import Refusal, step
from .actor import Actor
from .mailbox import Mailbox

if TYPE_CHECKING:
    from .system import ActorSystem, Restart

__all__ = ["Child", "ChildSpec", "GaveUp", "Supervisor"]


class GaveUp(RuntimeError):
    """A child failed more often than its supervisor's intensity allows."""


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """How to start a child, and when again: always, after a failure, or never."""

    name: str
    start: Callable[[], ActorRef[Any]]
    restart: Restart = "permanent"


@dataclass(slots=True)
class Child:
    """A child as its supervisor knows it; `state` is a state of the machine `child`."""

    spec: ChildSpec
    ref: ActorRef[Any]
    state: str = "running"
    restarts: int = 0

    @property
    def mailbox(self) -> Mailbox:
        """Its inbox, by its real type."""
        mailbox = self.ref.actor_inbox
        assert isinstance(mailbox, Mailbox)
        return mailbox


class Supervisor(Actor):
    """Base of actors that have children; `intensity` restarts within `period` seconds, then it fails.

    Children are kept in the order in which they were started. A child of the same name as one that
    has ended takes its place.
    """

    strategy: Literal["one_for_one", "one_for_all", "rest_for_one"] = "one_for_one"
    intensity = 3
    period = 60.0

    def __init__(self, system: ActorSystem) -> None:
        super().__init__(system)
        self.children: dict[str, Child] = {}
        self._failures: tuple[float, ...] = ()

    def start_child(self, spec: ChildSpec) -> ActorRef[Any]:
        """Start a child and watch over it."""
        if spec.name in self.children:
            self._retire(self.children.pop(spec.name))
        ref = self.system.spawn(spec.start, spec.name, self.actor_ref, restart=spec.restart)
        self.children[spec.name] = Child(spec, ref)
        return ref

    def handle_down(self, down: Down) -> None:
        """Decide about a child that ended. Raises `GaveUp` when it failed too often."""
        child = self.children.get(down.name)
        if child is None or child.ref.actor_urn != down.urn:
            return
        was_told = child.state == "stopping"
        must_restart = child.ref.is_alive()  # the spec decided when it ended
        if not self._move(child, "down", {"must_restart"} if must_restart else set()):
            return
        if child.state == "ended":
            self._retire(self.children.pop(down.name))
            self.child_ended(down)
        elif not was_told:
            self._count(down)
            self._stop_siblings(child)
        self._restart_when_all_are_down()

    def child_ended(self, down: Down) -> None:
        """React to a child that ended for good; nothing by default."""

    def stop_children(self) -> None:
        """End all children, last started first, and forget them."""
        for child in reversed(self.children.values()):
            self._retire(child)
        self.children.clear()

    def _end(self, reason: str = "", letter: str = "", is_failure: bool = False) -> None:
        self.stop_children()
        super()._end(reason, letter, is_failure)

    def _retire(self, child: Child) -> None:
        actor = child.mailbox.owner
        if isinstance(actor, Supervisor):
            actor.stop_children()
        self.system.retire(actor)

    def _move(self, child: Child, event: str, facts: set[str]) -> bool:
        moved = step(CHILD, child.state, event, facts)
        if isinstance(moved, Refusal):
            return False
        child.state = moved.state
        return True

    def _count(self, down: Down) -> None:
        now = self.system.now()
        recent = (one for one in self._failures if one >= now - self.period)
        self._failures = (*recent, now)
        if len(self._failures) > self.intensity:
            raise GaveUp(f"{down.name} failed {len(self._failures)} times: {down.reason}")

    def _stop_siblings(self, failed: Child) -> None:
        if self.strategy == "one_for_one":
            return
        names = list(self.children)
        first = 0 if self.strategy == "one_for_all" else names.index(failed.spec.name) + 1
        for name in reversed(names[first:]):
            child = self.children[name]
            if child.state == "running":
                self._move(child, "stop", set())
                if child.ref.is_alive():
                    child.ref.tell(Kill())

    def _restart_when_all_are_down(self) -> None:
        if any(child.state == "stopping" for child in self.children.values()):
            return
        for child in list(self.children.values()):
            if child.state == "suspended":
                child.mailbox.purge(Kill)
                self._move(child, "restart", set())
                child.restarts += 1
                self.system.spawn(
                    child.spec.start,
                    child.spec.name,
                    self.actor_ref,
                    child.ref,
                    child.spec.restart,
                )
