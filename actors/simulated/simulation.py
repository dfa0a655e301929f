"""A deterministic simulator of the real actors: one thread, a chooser, virtual time, crashes.

The session, queue and turn actors that run here are the program's own; only what they are handed
differs. Everything that the program does at the same time (actors with mail, the journal's writer,
what the ports and people do next) is a choice of the scheduler, made by dice that are handed in: the
same seed gives the same run. After FoundationDB's simulation testing, and after Burckhardt et al., "A
Randomized Scheduler with Probabilistic Guarantees of Finding Bugs" (2010) for the priorities.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol, TypeVar

from ..mailbox import Mailbox

__all__ = [
    "Chooser",
    "Dice",
    "PriorityChooser",
    "SimulatedDispatcher",
    "Timeline",
    "UniformChooser",
]

T = TypeVar("T")


class Dice(Protocol):
    """What is used of `random.Random`."""

    def random(self) -> float:
        """Return a number in [0, 1)."""
        ...

    def randrange(self, start: int, stop: int, /) -> int:
        """Return a whole number in [start, stop)."""
        ...

    def choice(self, seq: Sequence[T], /) -> T:
        """Pick one."""
        ...


class Chooser(Protocol):
    """Picks what runs next; `names` are stable for the length of a run."""

    def __call__(self, names: Sequence[str]) -> int:
        """Return the index of one of them."""
        ...


class UniformChooser:
    """Every choice is as likely as the others."""

    def __init__(self, dice: Dice) -> None:
        self._dice = dice

    def __call__(self, names: Sequence[str]) -> int:
        """Pick any."""
        return self._dice.randrange(0, len(names))


class PriorityChooser:
    """Runs whoever has the highest of random priorities, and changes some as it goes (PCT).

    It finds what needs a few rare orders in a row: one task starves while another runs far ahead.
    `changes` is the probability, for each choice, that the chosen one falls behind all others.
    """

    def __init__(self, dice: Dice, changes: float = 0.03) -> None:
        self._dice = dice
        self._changes = changes
        self._priorities: dict[str, float] = {}
        self._lowest = 0.0

    def __call__(self, names: Sequence[str]) -> int:
        """Pick the one with the highest priority."""
        known = self._priorities
        for name in names:
            if name not in known:
                known[name] = 1.0 + self._dice.random()
        best = max(range(len(names)), key=lambda number: known[names[number]])
        if self._dice.random() < self._changes:
            self._lowest -= 1.0
            known[names[best]] = self._lowest
        return best


class SimulatedDispatcher:
    """Keeps who is ready; the simulation says who runs. `ready` is in the order of arrival."""

    def __init__(self) -> None:
        self.after_pass: list[Callable[[], None]] = []
        self.lock: AbstractContextManager[Any] = nullcontext()
        self.ready: list[Mailbox] = []

    def schedule(self, mailbox: Mailbox) -> None:
        """Put the mailbox among the ready ones, once."""
        if not mailbox.is_scheduled:
            mailbox.is_scheduled = True
            self.ready.append(mailbox)

    def run(self, number: int, messages: int) -> None:
        """Let one of the ready handle so many messages."""
        mailbox = self.ready.pop(number)
        mailbox.is_scheduled = False
        if not mailbox.is_suspended:
            mailbox.owner.run_batch(messages)
            if not mailbox.empty():
                self.schedule(mailbox)


class Timeline:
    """Virtual time: `now` is in seconds since the epoch and moves only from event to event."""

    def __init__(self, start: float = 1_000_000_000.0) -> None:
        self.now = start
        self._events: list[tuple[float, int, str, Callable[[], None]]] = []
        self._numbers = itertools.count()

    def read(self) -> float:
        """Return the time, as the clock of an actor system does."""
        return self.now

    def after(self, seconds: float, event: Callable[[], None], owner: str = "ports") -> None:
        """Let something happen so much later; at one instant in the order in which it was asked."""
        heapq.heappush(self._events, (self.now + seconds, next(self._numbers), owner, event))

    def advance(self) -> None:
        """Go to the next event, and let it happen."""
        self.now, _, _, event = heapq.heappop(self._events)
        event()

    def forget(self, owner: str) -> None:
        """Drop what one owner had planned; its world ended."""
        self._events = [one for one in self._events if one[2] != owner]
        heapq.heapify(self._events)

    def __bool__(self) -> bool:
        return bool(self._events)
