"""Actors to play with, and a hand that moves them."""

from dataclasses import dataclass
from typing import Any, ClassVar

from pykka import ActorRef

from steersman.actors.kernel.actor import Actor, Forward
from steersman.actors.kernel.supervisor import Child, ChildSpec, Supervisor
from steersman.actors.kernel.system import ActorSystem
from steersman.machines import protocol as m
from steersman.simulator.schedule import SimulatedDispatcher

__all__ = [
    "Boom",
    "Control",
    "Data",
    "Echo",
    "External",
    "Hand",
    "Parent",
    "Recorder",
    "Tell",
]


@dataclass(frozen=True)
class Data:
    """Work."""

    value: Any = None


@dataclass(frozen=True)
class Control:
    """What must not wait behind work."""

    value: Any = None
    lane: ClassVar[m.Lane] = m.Lane.CONTROL


@dataclass(frozen=True)
class External:
    """What comes from outside."""

    value: Any = None
    is_external: ClassVar[bool] = True


@dataclass(frozen=True)
class Boom:
    """An order to raise."""

    error: BaseException


@dataclass(frozen=True)
class Tell:
    """An order to send a message to another actor."""

    ref: ActorRef[Any]
    message: Any


class Recorder(Actor):
    """Remembers its messages; an optional list is shared with its next incarnations."""

    def __init__(self, system: ActorSystem, heard: list[Any] | None = None) -> None:
        super().__init__(system)
        self.heard: list[Any] = [] if heard is None else heard
        self.greeting = "hello"

    def on_receive(self, message: Any) -> Any:
        """Raise, pass on, or remember."""
        match message:
            case Boom(error):
                raise error
            case Tell(ref, what):
                ref.tell(what)
            case Control(Forward() as forward):
                return forward
            case _:
                self.heard.append(getattr(message, "value", message))
        return len(self.heard)

    def greet(self, name: str) -> str:
        """Answer a proxy."""
        return f"{self.greeting} {name}"


class Echo(Actor):
    """Answers with what it was asked."""

    def on_receive(self, message: Any) -> Any:
        """Return it."""
        return message


class Parent(Supervisor):
    """Starts the requested children, and records their ends."""

    def __init__(self, system: ActorSystem, ended: list[str] | None = None) -> None:
        super().__init__(system)
        self.ended: list[str] = [] if ended is None else ended

    def on_receive(self, message: Any) -> Any:
        """Start, supervise, or raise."""
        match message:
            case ChildSpec():
                return self.start_child(message)
            case m.Down():
                self.handle_down(message)
            case Boom(error):
                raise error
            case "children":
                return {name: child.state for name, child in self.children.items()}
        return None

    def child_ended(self, child: Child, down: m.Down) -> None:
        """Note it."""
        self.ended.append(down.name)


@dataclass
class Hand:
    """A dispatcher that the test steps, and its system; `clock` is in seconds."""

    dispatcher: SimulatedDispatcher
    system: ActorSystem
    clock: list[float]

    def run(self) -> None:
        """Let everybody handle everything, one message at a time, in turn."""
        while self.dispatcher.ready:
            self.dispatcher.run(0, 1)
