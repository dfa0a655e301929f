"""The outbox: what was decided, and may be told and done only once it is durable."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pykka import ActorRef

from ..machines.effects import Effect
from ..machines.facts import Fact

__all__ = ["Held", "Outbox"]


@dataclass(frozen=True, slots=True)
class Held:
    """What may be told and done once entry `seq` is durable; results go to `reply_to`."""

    seq: int
    told: tuple[Any, ...] = ()
    facts: tuple[Fact, ...] = ()
    effects: tuple[Effect, ...] = ()
    reply_to: ActorRef[Any] | None = None


class Outbox:
    """One session's; `durable` is the newest entry that is known to be on disk."""

    __slots__ = ("_held", "durable")

    def __init__(self, durable: int) -> None:
        self.durable = durable
        self._held: list[Held] = []

    def hold(self, held: Held) -> None:
        """Keep it until `release`."""
        self._held.append(held)

    def release(self, seq: int) -> Iterator[Held]:
        """Give out, in order, what waited for the entries up to `seq`."""
        self.durable = max(self.durable, seq)
        ready = 0
        while ready < len(self._held) and self._held[ready].seq <= self.durable:
            ready += 1
        given, self._held = self._held[:ready], self._held[ready:]
        yield from given

    def clear(self) -> None:
        """Forget everything: it will never be durable."""
        self._held.clear()
