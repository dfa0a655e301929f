"""What connections to chat platforms are made of, whichever platform it is."""

from __future__ import annotations

import asyncio
import logging
import os
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Generic, TypeVar

from ...machines.errors import ConfigError

V = TypeVar("V")

log = logging.getLogger("steersman.chat")


def secret(variable: str, what: str) -> str:
    """Return what an environment variable holds, empty for no variable. Raises `ConfigError` if not set.

    `what` is what it has to be set to, such as `the password`.
    """
    found = os.environ.get(variable, "").strip() if variable else ""
    if variable and not found:
        raise ConfigError(
            f"the environment variable `{variable}` is not set", f"Set `{variable}` to {what}."
        )
    return found


def pauses(first: float = 1.0, longest: float = 60.0) -> Iterator[float]:
    """Yield growing pauses between attempts, in seconds, without end."""
    pause = first
    while True:
        yield pause
        pause = min(pause * 2, longest)


class Contact:
    """Logs when a server, named as people know it, can be reached, and when it cannot; each once."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._is_made: bool | None = None

    def made(self) -> None:
        """Note that the server answers."""
        if self._is_made is not True:
            log.info("connected to %s", self._server)
        self._is_made = True

    def lost(self, why: object) -> None:
        """Note that it does not, and why."""
        if self._is_made is not False:
            log.warning("no connection to %s (%s); trying again", self._server, why)
        self._is_made = False


class Recent(Generic[V]):
    """Some values by their keys; the oldest of too many are forgotten."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[str, V] = OrderedDict()

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def get(self, key: str) -> V | None:
        """Return a value, none if it is not known, or not any more."""
        return self._values.get(key)

    def put(self, key: str, value: V) -> None:
        """Keep a value as the newest one."""
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > self._most:
            self._values.popitem(last=False)

    def forget(self, key: str) -> None:
        """Forget a value, if it is known."""
        self._values.pop(key, None)

    def change(self, new: Callable[[V], V]) -> None:
        """Replace each value by a new one; their order stays."""
        for key, value in self._values.items():
            self._values[key] = new(value)


class BackgroundTasks:
    """Work that goes on beside what waits for it, and ends with the connection."""

    def __init__(self) -> None:
        self._tasks = set[asyncio.Future[Any]]()

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Begin something."""
        task = asyncio.create_task(work)
        self.add(task)
        return task

    def add(self, task: asyncio.Future[Any]) -> None:
        """End a task with the others."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def aclose(self) -> None:
        """Cancel all, and wait for their ends."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
