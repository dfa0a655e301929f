"""How the parts of a performer start what runs on the asyncio loop, and what is said when it breaks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

__all__ = ["StartTask", "fault_of"]


class StartTask(Protocol):
    """Starts work as a task; what it raises is told to `fault`."""

    def __call__(
        self, work: Coroutine[Any, Any, None], fault: Callable[[BaseException], None]
    ) -> asyncio.Task[None]:
        """Start it."""
        ...


def fault_of(error: BaseException) -> str:
    """Say that it is the program's own fault."""
    return f"a fault in the program: {type(error).__name__}: {error}"
