"""What a turn has in hand between two boundaries."""

from __future__ import annotations

from collections import deque
from typing import Any

from ..machines.conversation import ToolRequest
from ..machines.messages import InterruptTurn

__all__ = ["Acting"]


class Acting:
    """What a turn has in hand: calls to start, calls that run, questions, the streamed text.

    `cancel` is an interrupt that waits for the answer to `TakeSteers`.
    """

    __slots__ = (
        "cancel",
        "checkpoint",
        "killed",
        "open",
        "partial",
        "questions",
        "survivors",
        "todo",
    )

    def __init__(self) -> None:
        self.todo: deque[ToolRequest] = deque()
        self.open: dict[str, ToolRequest] = {}
        self.questions: dict[str, ToolRequest] = {}
        self.partial: list[str] = []
        self.checkpoint: dict[str, Any] | None = None
        self.killed: tuple[int, ...] = ()
        self.survivors: tuple[int, ...] = ()
        self.cancel: InterruptTurn | None = None
