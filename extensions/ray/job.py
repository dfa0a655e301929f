"""What the pool keeps: of a command on its way, of a live slot, and of commands with the same needs."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import Any, NamedTuple


class Needs(NamedTuple):
    """The resources of a slot; `memory` in bytes."""

    cpus: float
    gpus: float
    memory: int

    @property
    def resources(self) -> dict[str, float]:
        """As Ray names them, without what is not needed."""
        found = {"CPU": self.cpus, "GPU": self.gpus, "memory": float(self.memory)}
        return {name: value for name, value in found.items() if value}


class Demand:
    """The commands of the same needs that wait, and their slots: those that start, and those `free`.

    `took` is how many seconds a command takes, by those that ended last; 0 while that is not known.
    """

    def __init__(self, needs: Needs) -> None:
        self.needs = needs
        self.waiting = deque[Job]()
        self.free: list[RunningSlot] = []
        self.starting = 0
        self.took = 0.0


class Job:
    """A command on its way: `order` is what the owner asks for. `slot` is set when it was handed over."""

    def __init__(self, order: dict[str, Any], demand: Demand) -> None:
        self.number: int = order["id"]
        self.order = order
        self.demand = demand
        self.slot: RunningSlot | None = None
        self.is_over = False
        self.stopping: asyncio.TimerHandle | None = None


class RunningSlot:
    """A slot that is alive; `known` are hashes of contents that it has."""

    def __init__(self, actor: Any, demand: Demand, host: str) -> None:
        self.actor = actor
        self.demand = demand
        self.host = host
        self.known = set[str]()
        self.idle_since = time.monotonic()


async def awaited(reference: Any) -> Any:
    """Wait for the value of a reference, of a driver as of a client. Raises what Ray raises."""
    return await asyncio.wrap_future(reference.future())
