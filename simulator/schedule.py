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
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pykka._envelope import Envelope

from ..actors.kernel.mailbox import Mailbox

if TYPE_CHECKING:
    from pykka import ActorRef

    from ..actors.kernel.actor import Actor


T = TypeVar("T")


class Dice(Protocol):
    """The part of `random.Random` that is used."""

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
    """Runs the actor with the highest of random priorities, and changes some as it goes (PCT).

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


class MailboxObserver(Protocol):
    """Is called with each message that an actor takes while others wait in its mailbox."""

    def __call__(self, owner: Actor, message: Any, waiting: Sequence[Any]) -> None:
        """Look at what was taken, and at what still waits."""
        ...


class SimulatedDispatcher:
    """Keeps the actors that are ready; the simulation chooses one. `ready` is in the order of arrival.

    A pass, after which the hooks run, lasts until the simulation says that it is over.
    """

    def __init__(self, watch: MailboxObserver | None = None) -> None:
        self.after_pass: list[Callable[[], None]] = []
        self.lock: AbstractContextManager[Any] = nullcontext()
        self.ready: list[Mailbox] = []
        self._watch = watch

    def schedule(self, mailbox: Mailbox) -> None:
        """Put the mailbox among the ready ones, once."""
        if not mailbox.is_scheduled:
            mailbox.is_scheduled = True
            self.ready.append(mailbox)

    def run(self, number: int, messages: int) -> None:
        """Let one of the ready handle so many messages."""
        mailbox = self.ready.pop(number)
        mailbox.is_scheduled = False
        if mailbox.is_suspended:
            return
        owner = mailbox.owner
        for _ in range(messages):
            waiting = waiting_in(mailbox) if self._watch is not None else []
            owner.run_batch(1)
            if self._watch is not None and waiting:
                self._report(owner, waiting, mailbox)
            if mailbox.empty():
                return
        self.schedule(mailbox)

    def hand(self, ref: ActorRef[Any] | None, message: object) -> bool:
        """Let an actor handle a message before all that wait for it; whether it was there."""
        mailbox = ref.actor_inbox if ref is not None and ref.is_alive() else None
        if not isinstance(mailbox, Mailbox) or mailbox.is_suspended:
            return False
        mailbox.owner._handle(Envelope(message))  # pyright: ignore[reportPrivateUsage]
        return True

    def end_pass(self) -> None:
        """Run the hooks: what was decided since the last pass is handed to the journal."""
        for hook in self.after_pass:
            hook()

    def _report(self, owner: Actor, before: list[Envelope[Any]], mailbox: Mailbox) -> None:
        """Tell the watch which message was taken; none was by an actor that ended."""
        after = {id(envelope) for envelope in waiting_in(mailbox)}
        taken = [envelope for envelope in before if id(envelope) not in after]
        if self._watch is not None and len(taken) == 1:
            left = [envelope.message for envelope in before if envelope is not taken[0]]
            self._watch(owner, taken[0].message, left)


def waiting_in(mailbox: Mailbox) -> list[Envelope[Any]]:
    """Return what waits in a mailbox, whatever its lane."""
    lanes = mailbox._lanes or ()  # pyright: ignore[reportPrivateUsage]
    return [envelope for lane in lanes if lane for envelope in lane]


class Timeline:
    """Virtual time: `now` is in seconds since the epoch and moves from `start` from event to event.

    `skew` is how many seconds the clock that people set is ahead of it.
    `idle` are the seconds of it that passed while no actor had anything else to do. `pids` numbers the
    processes that begin in it.
    """

    def __init__(self, start: float = 1_000_000_000.0) -> None:
        self.start = self.now = start
        self.skew = 0.0
        self.idle = 0.0
        self.pids = itertools.count(4711)
        self._events: list[tuple[float, int, str, Callable[[], None]]] = []
        self._numbers = itertools.count()

    def read(self) -> float:
        """Return the time by the clock that people set, as that of an actor system does."""
        return self.now + self.skew

    def leap(self, seconds: float) -> None:
        """Set that clock forth, or back."""
        self.skew += seconds

    def after(self, seconds: float, event: Callable[[], None], owner: str = "ports") -> None:
        """Let something happen so much later; at one instant in the order in which it was asked."""
        heapq.heappush(self._events, (self.now + seconds, next(self._numbers), owner, event))

    def advance(self, is_idle: bool = False) -> None:
        """Go to the next event, and let it happen; `is_idle`: nothing else could."""
        before = self.now
        self.now, _, _, event = heapq.heappop(self._events)
        self.idle += self.now - before if is_idle else 0.0
        event()

    def forget(self, owner: str) -> None:
        """Drop what one owner had planned; its world ended."""
        self._events = [planned for planned in self._events if planned[2] != owner]
        heapq.heapify(self._events)

    def __bool__(self) -> bool:
        return bool(self._events)
