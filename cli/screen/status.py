"""The values of the bar, followed from events; used from one thread."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct, field

from ...gateway.events.contract import (
    Event,
    ProgressEvent,
    QueueItem,
    is_aside,
    items_after,
)
from ...gateway.wording.formats import sender


class GoalStatus(Struct, kw_only=True):
    """The standing goal, as its last event reported it."""

    state: str = ""
    used: int = 0
    most: int = 0


class Status(Struct, kw_only=True):
    """One session as the bar shows it; `since` is the start of the turn, in seconds of `now`.

    `fill` is what the conversation takes of the model's window, and its size, in tokens.
    """

    agent: str = ""
    model: str = ""
    mode: str = "ask"
    folder: Path = Path()
    is_busy: bool = False
    is_stopping: bool = False
    since: float = 0.0
    progress: ProgressEvent | None = None
    items: list[QueueItem] = field(default_factory=list[QueueItem])
    children: set[str] = field(default_factory=set[str])
    goal: GoalStatus = field(default_factory=GoalStatus)
    fill: tuple[int, int] = (0, 0)
    names: dict[str, str] = field(default_factory=dict[str, str])
    own_commands: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def can_stop(self) -> bool:
        """Whether anything works that Esc and Ctrl-C stop, between two turns, too."""
        return self.is_busy or self.is_judging or bool(self.own_commands or self.children)

    @property
    def is_judging(self) -> bool:
        """Whether the goal is judged, or its next turn is about to begin."""
        return not self.is_busy and self.goal.state == "active" and not self.held

    @property
    def running(self) -> int | None:
        """Number of the message whose turn runs."""
        return next((item["number"] for item in self.items if item["state"] == "running"), None)

    @property
    def running_for(self) -> str:
        """Who sent the message whose turn runs; empty for the owner of the session."""
        return next((sender(item["user"]) for item in self.items if item["state"] == "running"), "")

    @property
    def waiting(self) -> list[QueueItem]:
        """Messages that wait and will run."""
        pending = [item for item in self.items if item["state"] == "pending"]
        return [item for item in pending if not self._is_held(item)]

    @property
    def held(self) -> list[QueueItem]:
        """Messages that do not run until a person resumes them."""
        return [item for item in self.items if self._is_held(item)]

    def _is_held(self, item: QueueItem) -> bool:
        """Whether a message waits for a person; so does a steer of a turn that was stopped."""
        is_left = not self.is_busy and item["state"] == "pending" and "turn" in item
        return is_left or bool(item.get("held"))

    @property
    def interrupted(self) -> int:
        """Number of interrupted messages, which can be resumed."""
        return sum(item["state"] == "interrupted" or "stopped" in item for item in self.items)

    @property
    def offered(self) -> int:
        """Number of offered answers, which run only when a person takes them."""
        return sum(item["state"] == "offered" and "stopped" not in item for item in self.items)

    def hear(self, event: Event, now: float) -> None:
        """Take in an event of the session itself."""
        if is_aside(event):
            return
        match event["type"]:
            case "session_started":
                self.folder = Path(event["folder"])
                self.model = (
                    event.get("model", "").partition(" (")[0] or self.model
                )  # not where it is
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
            case "window":
                self.fill = event["tokens"], event["size"]
            case "queue":
                self.items = items_after(self.items, event)
            case "goal":
                used, most = event["turns_used"], event["max_turns"]
                self.goal = GoalStatus(state=event["state"], used=used, most=most)
            case "own_command" if event["state"] == "running":
                self.own_commands[event["id"]] = event["command"]
            case "own_command":
                self.own_commands.pop(event["id"], None)
            case "mode":
                self.mode = event["mode"]
            case "result" if event["name"] == "model" and event["ok"]:
                self.model = event["data"]["model"]
            case _:  # the status line shows nothing of other events
                return

    def _begin(self) -> None:
        self.is_busy = self.is_stopping = False
        self.items, self.progress = [], None
        self.children.clear()
        self.goal, self.fill = GoalStatus(), (0, 0)
