"""What the pool keeps of a command on its way, and of a slot that is alive."""

from __future__ import annotations

import asyncio
import time
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


class Job:
    """A command on its way: `order` is what the owner asks for. `slot` is set when it was handed over."""

    def __init__(self, order: dict[str, Any]) -> None:
        self.number: int = order["id"]
        self.order = order
        self.needs = Needs(*order["needs"])
        self.slot: RunningSlot | None = None
        self.is_over = False
        self.stopping: asyncio.TimerHandle | None = None


class RunningSlot:
    """A slot that is alive; `known` are hashes of contents that it has."""

    def __init__(self, actor: Any, needs: Needs, host: str) -> None:
        self.actor = actor
        self.needs = needs
        self.host = host
        self.known = set[str]()
        self.idle_since = time.monotonic()


async def awaited(reference: Any) -> Any:
    """Wait for the value of a reference, of a driver as of a client. Raises what Ray raises."""
    return await asyncio.wrap_future(reference.future())
