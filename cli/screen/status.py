"""What the bar tells: followed from events, by whoever holds it in one thread."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...gateway.events.child import is_aside
from ...gateway.events.contract import Event


@dataclass(slots=True)
class Spent:
    """Tokens, and what they cost; `cached` is a part of `input`."""

    input: int = 0
    output: int = 0
    cached: int = 0
    cost: float = 0.0

    def add(self, usage: dict[str, Any]) -> None:
        """Add one turn's."""
        self.input += usage.get("input") or 0
        self.output += usage.get("output") or 0
        self.cached += usage.get("cache_read") or 0
        self.cost += usage.get("cost") or 0.0


@dataclass(slots=True)
class GoalStatus:
    """The standing goal, as its last event told it."""

    state: str = ""
    used: int = 0
    most: int = 0


@dataclass(slots=True)
class Status:
    """One session as the bar shows it; `since` is when the turn began, in seconds of `now`."""

    agent: str = ""
    model: str = ""
    folder: Path = Path()
    is_busy: bool = False
    is_stopping: bool = False
    since: float = 0.0
    progress: Event | None = None
    items: list[Event] = field(default_factory=list[Event])
    children: set[str] = field(default_factory=set[str])
    goal: GoalStatus = field(default_factory=GoalStatus)
    spent: Spent = field(default_factory=Spent)
    names: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def waiting(self) -> int:
        """How many messages wait, and will run."""
        return sum(one["state"] == "pending" and not one.get("held") for one in self.items)

    @property
    def held(self) -> int:
        """How many messages wait for a person's word."""
        return sum(bool(one.get("held")) for one in self.items)

    @property
    def interrupted(self) -> int:
        """How many were interrupted, and can go on."""
        return sum(one["state"] == "interrupted" for one in self.items)

    @property
    def offered(self) -> int:
        """How many answers are offered, and run only when they are wanted."""
        return sum(one["state"] == "offered" for one in self.items)

    def hear(self, event: Event, now: float) -> None:
        """Take in an event; what children do counts only as tokens."""
        if event["type"] == "turn_ended":
            self.spent.add(event.get("usage") or {})
        if is_aside(event):
            return
        match event["type"]:
            case "session_started":
                self.folder = Path(event.get("folder") or self.folder)
                self._begin()
            case "child_started":
                self.names[event.get("id", "")] = event["name"]
                self.children.add(event["name"])
            case "child_ended" | "side_talk_ended":
                self.children.discard(event["name"])
            case "turn_started":
                self.is_busy, self.progress = True, None
                self.since = now - event.get("elapsed", 0.0)
            case "interrupting":
                self.is_stopping = self.is_busy
            case "turn_ended":
                self.is_busy = self.is_stopping = False
            case "progress":
                self.progress = event
            case "queue":
                self.items = event["items"]
            case "goal":
                used, most = event.get("turns_used") or 0, event.get("max_turns") or 0
                self.goal = GoalStatus(event.get("state") or "", used, most)
            case "result" if event["name"] == "model" and event["ok"]:
                self.model = event["data"]["model"]
            case _:
                pass

    def _begin(self) -> None:
        self.is_busy = self.is_stopping = False
        self.items, self.progress = [], None
        self.children.clear()
        self.goal, self.spent = GoalStatus(), Spent()
