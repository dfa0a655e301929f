"""What a turn has in hand between two boundaries."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from ...machines.conversation import ToolRequest
from ...machines.orders import InterruptTurn
from .effect import DELEGATE

__all__ = ["Acting"]


class Acting:
    """What a turn has in hand: calls to start, calls that run, questions, the streamed text.

    `cancel` is an interrupt that waits: for the answer to `TakeSteers`, or for the tools that run.
    `cut_for` is a steer for which the streaming answer is to be cut off, `taken` those that are in;
    `was_cut` says that the last answer was. `companions` are children that are being stopped with the
    turn, apart from those of its calls; `awaited` those that were resumed with it: the turn does not
    end without them, and `is_waiting` for them at a boundary once there is nothing else to do.
    `outside` are the questions whose calls lead out of the folder.
    `is_asking`: steers are entering just now; `asks_again`: a child returned in that moment.
    `owes_word`: the conversation still needs an end, after the results of the calls.
    """

    __slots__ = (
        "asks_again",
        "awaited",
        "cancel",
        "checkpoint",
        "companions",
        "cut_for",
        "is_asking",
        "is_waiting",
        "killed",
        "open",
        "outside",
        "owes_word",
        "partial",
        "questions",
        "survivors",
        "taken",
        "todo",
        "was_cut",
    )

    def __init__(self, awaited: Iterable[str] = ()) -> None:
        self.todo: deque[ToolRequest] = deque()
        self.open: dict[str, ToolRequest] = {}
        self.questions: dict[str, ToolRequest] = {}
        self.outside: set[str] = set()
        self.partial: list[str] = []
        self.checkpoint: dict[str, Any] | None = None
        self.killed: tuple[int, ...] = ()
        self.survivors: tuple[int, ...] = ()
        self.cancel: InterruptTurn | None = None
        self.cut_for = ""
        self.taken: set[str] = set()
        self.was_cut = False
        self.companions: set[str] = set()
        self.awaited = set(awaited)
        self.is_waiting = self.is_asking = self.asks_again = False
        self.owes_word = False

    @property
    def is_dead(self) -> bool:
        """Whether nothing that was started is left."""
        return not self.open and not self.companions

    def spare(self, calls: Iterable[str]) -> list[ToolRequest]:
        """Let go of these calls: their children go on without the turn."""
        return [self.open.pop(one) for one in calls if one in self.open]

    def delegates(self, spared: Iterable[str]) -> bool:
        """Whether a call waits for a child, apart from those that are spared."""
        return any(one.tool == DELEGATE for one in self.open.values() if one.call not in spared)

    def take(self, items: Iterable[str]) -> bool:
        """Note the steers that are in now; say whether the last answer had been cut off for one."""
        self.taken.update(items)
        if self.cut_for in self.taken:
            self.cut_for = ""
        was_cut, self.was_cut = self.was_cut, False
        return was_cut

    def running(self) -> list[str]:
        """Return the tools of the calls that run, in order; one that is asked about does not."""
        asked = {one.call for one in self.questions.values()}
        return [one.tool for one in self.open.values() if one.call not in asked]

    def calls(self) -> list[tuple[str, str]]:
        """Return the calls that run or are asked about, each with its tool."""
        return [(one.call, one.tool) for one in self.open.values()]
