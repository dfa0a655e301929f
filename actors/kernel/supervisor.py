"""Supervisors: what happens when an actor fails is declared, not coded.

After OTP: a child spec says how to start a child and when to restart it; a strategy says which siblings
go with it; an intensity bounds how often. These siblings are stopped, and awaited, before anything
is restarted. Ref and mailbox of a child survive its restart; the message that killed it does not
come again (it is in the dead letters). A supervisor that ends, however it ends, takes its children
with it. https://www.erlang.org/doc/apps/stdlib/supervisor.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from pykka import ActorRef

from ...machines import protocol as m
from ...machines.lifecycles import CHILD
from ...machines.machine import Refusal, step
from ...machines.value import Value
from .actor import Actor
from .mailbox import Mailbox

if TYPE_CHECKING:
    from .system import ActorSystem, Restart


class GaveUp(RuntimeError):
    """A child failed more often than its supervisor's intensity allows."""


class ChildSpec(Value):
    """How to start a child, and when again: always, after a failure, or never."""

    name: str
    start: Callable[[], ActorRef[Any]]
    restart: Restart = "permanent"


class Child(Struct, kw_only=True):
    """A child as its supervisor knows it; `state` is a state of the machine `child`.

    `failures` are the times, in seconds since the epoch, at which it failed lately.
    """

    spec: ChildSpec
    ref: ActorRef[Any]
    state: str = "running"
    restarts: int = 0
    failures: tuple[float, ...] = ()

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

    def start_child(self, spec: ChildSpec) -> ActorRef[Any]:
        """Start a child and watch over it."""
        if spec.name in self.children:
            self._retire(self.children.pop(spec.name))
        ref = self.system.spawn(spec.start, spec.name, self.actor_ref, restart=spec.restart)
        self.children[spec.name] = Child(spec=spec, ref=ref)
        return ref

    def handle_down(self, down: m.Down) -> None:
        """Decide about a child that ended. Raises `GaveUp` when it failed too often."""
        child = self.children.get(down.name)
        if child is None or child.ref.actor_urn != down.urn:
            return
        was_told = child.state == "stopping"
        must_restart = child.ref.is_alive()  # the spec decided when it ended
        if not _move(child, "down", {"must_restart"} if must_restart else set()):
            return
        if child.state == "ended":
            self._retire(self.children.pop(down.name))
            if not was_told:
                self.child_ended(child, down)
        elif not was_told and not down.wants_restart:
            _count(self, child, down)
            _stop_siblings(self, child)
        _restart_when_all_are_down(self)

    def child_ended(self, child: Child, down: m.Down) -> None:
        """React to a child that ended without being asked to; nothing by default."""

    def stop_children(self) -> None:
        """End all children, last started first, and forget them."""
        for child in reversed(self.children.values()):
            self._retire(child)
        self.children.clear()

    def _end(
        self,
        reason: str = "",
        letter: str = "",
        *,
        is_failure: bool = False,
        wants_restart: bool = False,
    ) -> None:
        self.stop_children()
        super()._end(reason, letter, is_failure=is_failure, wants_restart=wants_restart)

    def _retire(self, child: Child) -> None:
        actor = child.mailbox.owner
        if isinstance(actor, Supervisor):
            actor.stop_children()
        self.system.retire(actor)


def mark_stopping(child: Child) -> None:
    """Note that a child was asked to end. Until it has, it ends with its supervisor."""
    _move(child, "stop", set())


def _move(child: Child, event: str, facts: set[str]) -> bool:
    """Make a step of the machine `child`; whether it was accepted."""
    moved = step(CHILD, child.state, event, facts)
    if isinstance(moved, Refusal):
        return False
    child.state = moved.state
    return True


def _count(supervisor: Supervisor, failed: Child, down: m.Down) -> None:
    """Note a failure. Raises `GaveUp` when there were too many."""
    now = supervisor.system.now()
    failed.failures = (*failed.failures, now)
    count = 0
    for child in supervisor.children.values():
        recent = (time for time in child.failures if time >= now - supervisor.period)
        child.failures = tuple(recent)
        count += len(child.failures)
    if count > supervisor.intensity:
        raise GaveUp(f"{down.name} failed {count} times: {down.reason}")


def _stop_siblings(supervisor: Supervisor, failed: Child) -> None:
    """End those that go with a child that failed, by the strategy."""
    if supervisor.strategy == "one_for_one":
        return
    names = list(supervisor.children)
    is_all = supervisor.strategy == "one_for_all"
    first = 0 if is_all else names.index(failed.spec.name) + 1
    for name in reversed(names[first:]):
        child = supervisor.children[name]
        if child.state == "running":
            _move(child, "stop", set())
            if child.ref.is_alive():
                child.ref.tell(m.Kill(incarnation=child.restarts))


def _restart_when_all_are_down(supervisor: Supervisor) -> None:
    """Start those that are down again, once no child is being stopped any more."""
    if any(child.state == "stopping" for child in supervisor.children.values()):
        return
    for child in list(supervisor.children.values()):
        if child.state == "suspended":
            _move(child, "restart", set())
            child.restarts += 1
            supervisor.system.spawn(
                child.spec.start,
                child.spec.name,
                supervisor.actor_ref,
                child.ref,
                child.spec.restart,
                child.restarts,
            )


# The root of the actor tree: supervisor of all sessions of a program ------------------------------


class Root(Supervisor):
    """The root of the tree: one session's failure never reaches another."""

    strategy = "one_for_one"

    def on_receive(self, message: Any) -> Any:
        """Start sessions, and restart those that fail, from the journal."""
        match message:
            case ChildSpec():
                return self.start_child(message)
            case m.Retire(name=name, urn=urn):
                child = self.children.get(name)
                if child is not None and child.ref.actor_urn == urn:
                    self._retire(self.children.pop(name))
                return None
            case _:
                self.handle_down(message)
                return None
