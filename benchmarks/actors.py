"""What actors cost: memory of an idle one, its start, an interrupt behind waiting work, a step.

Run it as `python benchmarks/actors.py`, with the package installed.
"""

import asyncio
import gc
import logging
import threading
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

from table import head, row

from steersman.actors.environment import Environment
from steersman.actors.kernel.actor import Actor
from steersman.actors.kernel.dispatcher import LoopDispatcher
from steersman.actors.kernel.system import ActorSystem
from steersman.actors.ledger import Ledger
from steersman.actors.session import Session
from steersman.journal.record import SessionRecord
from steersman.journal.store import StoredEntry
from steersman.machines import protocol as m
from steersman.machines.lifecycles import TURN
from steersman.machines.machine import step
from steersman.machines.policy import Policy
from steersman.simulator.session import SimulatedToolPolicy

ACTORS = 20_000
SESSIONS = 10_000
WAITING = 1_000
STEPS = 10_000
FACTS = frozenset({"has_calls"})


class Idle(Actor):
    """Does nothing."""

    def on_receive(self, message: Any) -> Any:
        """Ignore it."""
        return None


class Busy(Actor):
    """Notes when the interrupt comes; each other message takes a moment of work."""

    def __init__(self, system: ActorSystem, seen: threading.Event) -> None:
        super().__init__(system)
        self.seen = seen
        self.at = 0.0

    def on_receive(self, message: Any) -> Any:
        """Work, or note the time."""
        if isinstance(message, m.Interrupt):
            self.at = time.perf_counter()
            self.seen.set()
        else:
            step(TURN, "calling", "answer", FACTS)


class Nowhere:
    """A journal, ports and an observer that take everything and do nothing."""

    def append(self, entry: StoredEntry, record: SessionRecord) -> None:
        """Take an entry."""

    def __call__(self, effect: Any, reply_to: Any) -> None:
        """Take an effect."""

    def observe_entry(self, *_entry: Any) -> None:
        """Have nothing to publish."""

    def observe_fact(self, fact: Any) -> None:
        """Publish nothing."""


def weigh(make: Callable[[], list[Any]]) -> tuple[list[Any], int]:
    """Return what was made, and the bytes that it holds."""
    gc.collect()
    tracemalloc.start()
    made = make()
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return made, held


def actors(system: ActorSystem) -> None:
    """Start many, and weigh them."""
    begin = time.process_time()
    for _ in range(ACTORS):
        Idle.start(system)
    cost = (time.process_time() - begin) / ACTORS * 1e6
    retire(system)
    _, held = weigh(lambda: [Idle.start(system) for _ in range(ACTORS)])
    row("bytes of an idle actor", held / ACTORS, "<= 1536", ok=held / ACTORS <= 1536)
    row("microseconds to start one", cost)
    retire(system)


def retire(system: ActorSystem) -> None:
    """End all, newest first; without a loop that turns nobody else does it."""
    for actor in reversed(system.living()):
        system.retire(actor)


def begin_session(system: ActorSystem, name: str) -> Any:
    """Start a session with its queue and child supervisor, and nothing around them."""
    nowhere, record = Nowhere(), SessionRecord(id=name)
    environment = Environment(
        journal=nowhere,
        perform=nowhere,
        observers=(nowhere,),
        tool_policy=SimulatedToolPolicy(record=lambda: record),
        policy=Policy(),
    )
    return Session.start(system, Ledger(record, environment, time.time))


def sessions(system: ActorSystem) -> None:
    """Start many sessions with their queues, and weigh them."""
    _, held = weigh(lambda: [begin_session(system, f"s{number}") for number in range(SESSIONS)])
    row(f"megabytes of {SESSIONS:,} idle sessions", held / 1e6, "< 200", ok=held < 200e6)
    retire(system)


def interrupts(system: ActorSystem) -> None:
    """Let an interrupt come behind waiting work, many times."""
    delays: list[float] = []
    for _ in range(50):
        seen = threading.Event()
        ref = Busy.start(system, seen)
        for number in range(WAITING):
            ref.tell(number)
        begin = time.perf_counter()
        ref.tell(m.Interrupt(order=m.StopOrder(cause="stop")))
        seen.wait(10)
        actor: Any = ref._actor_weakref()
        delays.append((actor.at - begin) * 1e3)
        ref.stop()
    delays.sort()
    median, worst = delays[len(delays) // 2], delays[-1]
    row(f"milliseconds until it is seen behind {WAITING:,}", median, "<= 1", ok=median <= 1)
    row("the same, at worst", worst)


def steps() -> None:
    """Take a guarded step of a machine, many times; the best of several rounds."""
    rounds: list[float] = []
    for _ in range(10):
        begin = time.process_time()
        for _ in range(STEPS):
            step(TURN, "calling", "answer", FACTS)
        rounds.append((time.process_time() - begin) / STEPS * 1e6)
    row("microseconds of a machine's step", min(rounds), "<= 12", ok=min(rounds) <= 12)


def main() -> None:
    """Print a table."""
    logging.getLogger("pykka").setLevel(logging.WARNING)
    head("actors")
    loop = asyncio.new_event_loop()
    system = ActorSystem(LoopDispatcher(loop), time.time)
    sessions(system)
    actors(system)
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    interrupts(system)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    steps()


if __name__ == "__main__":
    main()
