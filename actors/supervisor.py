"""Supervisors: what happens when an actor fails is declared, not coded.

After OTP: a child spec says how to start a child and when to restart it; a strategy says who goes
with it; an intensity bounds how often. Siblings that must go are told, and awaited, before anything
is restarted. Ref and mailbox of a child survive its restart; the message that killed it does not
come again (it is in the dead letters). https://www.erlang.org/doc/apps/stdlib/supervisor.html
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pykka import ActorRef

from ..machines.child import CHILD
from ..machines.messages import Down, Kill
from ..machines.step import Refusal, step
from .actor import Actor
from .mailbox import Mailbox

if TYPE_CHECKING:
    from .system import ActorSystem

__all__ = ["Child", "ChildSpec", "GaveUp", "Supervisor"]


class GaveUp(RuntimeError):
    """A child failed more often than its supervisor's intensity allows."""


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """How to start a child, and when again: always, after a failure, or never."""

    name: str
    start: Callable[[], ActorRef[Any]]
    restart: Literal["permanent", "transient", "temporary"] = "permanent"


@dataclass(slots=True)
class Child:
    """A child as its supervisor knows it; `state` is a state of the machine `child`."""

    spec: ChildSpec
    ref: ActorRef[Any]
    state: str = "running"
    restarts: int = 0


class Supervisor(Actor):
    """Base of actors that have children; `intensity` restarts within `period` seconds, then it fails.

    Children are kept in the order in which they were started.
    """

    strategy: Literal["one_for_one", "one_for_all", "rest_for_one"] = "one_for_one"
    intensity = 3
    period = 60.0

    def __init__(self, system: ActorSystem) -> None:
        super().__init__(system)
        self.children: dict[str, Child] = {}
        self._failures: deque[float] = deque()

    def start_child(self, spec: ChildSpec) -> ActorRef[Any]:
        """Start a child and watch over it."""
        ref = self.system.spawn(spec.start, spec.name, self.actor_ref)
        self.children[spec.name] = Child(spec, ref)
        return ref

    def handle_down(self, down: Down) -> None:
        """Decide about a child that ended. Raises `GaveUp` when it failed too often."""
        child = self.children.get(down.name)
        if child is None or child.ref.actor_urn != down.urn:
            return
        was_told = child.state == "stopping"
        must_restart = child.spec.restart != "temporary" and (
            was_told or child.spec.restart == "permanent" or bool(down.reason)
        )
        self._move(child, "down", {"must_restart"} if must_restart else set())
        if child.state == "ended":
            self._bury(child)
            self.child_ended(down)
        if not was_told and must_restart:
            self._count(down)
            self._stop_siblings(child)
        self._restart_when_all_are_down()

    def child_ended(self, down: Down) -> None:
        """React to a child that ended for good; nothing by default."""

    def stop_children(self) -> None:
        """Tell all children to end, last started first, and forget them."""
        for child in reversed(self.children.values()):
            child.ref.actor_stopped.set()
            _mailbox(child).close()
            self.system.drop(child.ref)
        self.children.clear()

    def _move(self, child: Child, event: str, facts: set[str]) -> None:
        moved = step(CHILD, child.state, event, facts)
        if not isinstance(moved, Refusal):
            child.state = moved.state

    def _bury(self, child: Child) -> None:
        child.ref.actor_stopped.set()
        _mailbox(child).close()
        self.system.drop(child.ref)
        del self.children[child.spec.name]

    def _count(self, down: Down) -> None:
        now = self.system.now()
        self._failures.append(now)
        while self._failures and self._failures[0] < now - self.period:
            self._failures.popleft()
        if len(self._failures) > self.intensity:
            self.stop_children()
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
                child.ref.tell(Kill())

    def _restart_when_all_are_down(self) -> None:
        if any(child.state == "stopping" for child in self.children.values()):
            return
        for child in list(self.children.values()):
            if child.state == "suspended":
                _mailbox(child).purge(Kill)
                self._move(child, "restart", set())
                child.restarts += 1
                self.system.spawn(child.spec.start, child.spec.name, self.actor_ref, child.ref)


def _mailbox(child: Child) -> Mailbox:
    mailbox = child.ref.actor_inbox
    assert isinstance(mailbox, Mailbox)
    return mailbox
