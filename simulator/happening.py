"""The happenings of a simulated program, as values, and the chronicle that keeps them in order.

The checks of promises read it: of one session, or of all of them as they took turns.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from ..journal import entries as e
from ..machines import protocol as m
from ..machines.value import Value


class Uttered(Value):
    """A person said something to the session."""

    message: Any


class Appended(Value):
    """An entry was folded and handed to the journal.

    `idle` are the virtual seconds until then in which no actor had anything to do.
    """

    seq: int
    entry: e.Entry
    idle: float = 0.0


class Durable(Value):
    """Everything up to `seq` is in the store."""

    seq: int


class Told(Value):
    """A listener got entry `seq`."""

    seq: int


class Passed(Value):
    """A listener got a transient event."""

    fact: m.Fact


class Performed(Value):
    """An effect was handed to the ports.

    `decided` is the newest entry of the decision that asks for it; none if no decision does, 0 if it
    only stops something and need not wait.
    """

    effect: m.Effect
    decided: int | None = 0


class Sent(Value):
    """An effect that is a message to the child supervisor was sent, or dropped by the gate."""

    effect: m.Effect
    decided: int | None = 0


class Crashed(Value):
    """The program died."""


class Failed(Value):
    """The session's actor died alone; it begins again from the journal.

    `kept` are the messages that wait in its mailbox, which outlives it.
    """

    kept: tuple[Any, ...] = ()


class Started(Value):
    """The program took the session up, whose newest durable entry is `seq`."""

    seq: int


class Released(Value):
    """The program released the session: it has no owner."""


class Poisoned(Value):
    """An actor of the session was given a message that kills it."""


Happening = (
    Uttered
    | Appended
    | Durable
    | Told
    | Passed
    | Performed
    | Sent
    | Crashed
    | Failed
    | Started
    | Released
    | Poisoned
)


class Chronicle(Struct, kw_only=True):
    """Everything that happened, in order, across all incarnations: `all` names whose it was.

    `of` has each session's own, by its id.
    """

    all: list[tuple[str, Happening]] = field(default_factory=list[tuple[str, Happening]])
    of: dict[str, list[Happening]] = field(default_factory=dict[str, list[Happening]])

    def note(self, session: str, happening: Happening) -> None:
        """Add what has just happened to a session."""
        self.all.append((session, happening))
        self.of.setdefault(session, []).append(happening)

    def note_crash(self) -> None:
        """Add the end of the program, which is that of each of its sessions."""
        for session in list(self.of):
            self.note(session, Crashed())
