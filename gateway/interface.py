"""What an interface talks to: a session and its program, in this process or in another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from ..machines import protocol as m
from ..machines.classification import Classification
from ..ports.models.choice import Choice
from ..ports.templates import Template
from ..ports.tools.mcp_offer import McpOffer
from ..workflows.config import Config
from ..workflows.paths import Paths
from .commands.command import CommandCall, Reply
from .events.translation import EventPublisher
from .host.router import EventBus
from .launch_options import LaunchOptions
from .session_choice import SessionChoice


class ChatSession(Protocol):
    """A session as an interface has it: `Conversation` here, `AttachedSession` for one elsewhere."""

    session: str
    user: str

    @property
    def publisher(self) -> EventPublisher:
        """What publishes events of this session that no actor knows of."""
        ...

    def say(
        self, text: str, explicit: str = "auto", client_id: str = "", user: str = ""
    ) -> Reply | None:
        """Say something; returns a reply for a slash command, else nothing: events tell the rest."""
        ...

    def run(self, call: CommandCall, client_id: str = "", user: str = "") -> Reply | None:
        """Carry out a command; none where events tell what became of it."""
        ...

    def classify(self, text: str) -> Classification:
        """Classify a text without sending it."""
        ...

    def would_stop(self, text: str) -> bool:
        """Whether a text is a command, or says to stop, rather than something to talk about."""
        ...

    def answer(self, question: str, choice: str, reason: str = "") -> bool:
        """Answer a question: `choice` is allow, always or deny. False when it is not open."""
        ...

    def ask(self, message: m.Answer) -> dict[str, Any]:
        """Send an answer and return what the session replies."""
        ...

    def edit(self, number: int | None) -> None:
        """Keep only this waiting message from starting while it is edited here; none: let go.

        Returns at once: `queue` events tell whether it still waited.
        """
        ...

    @property
    def offers(self) -> Mapping[str, McpOffer]:
        """What the session's MCP servers offer, by their names, as far as that is known here."""
        ...

    def templates(self) -> Mapping[str, Template]:
        """Return the prompt templates by name, as far as they are known here; reads files."""
        ...

    def resumable(self) -> Sequence[SessionChoice]:
        """Return the sessions that `/resume` can take up in this one's place; may block."""
        ...

    def is_quiet(self) -> bool:
        """Whether nothing runs and no queued item will start automatically."""
        ...

    def can_ask(self) -> bool:
        """Whether a person can answer questions."""
        ...

    def stop_asking(self) -> None:
        """Stop asking: from now on, every call that needs a question is denied."""
        ...

    def leave(self, cause: str = "exit") -> None:
        """End the interface's part: a session of this process is left, one elsewhere goes on."""
        ...


class RunSession(ChatSession, Protocol):
    """A run of a workflow as an interface has it: a `Conversation` here, `AttachedRun` elsewhere."""

    def begin_interrupt(self) -> None:
        """Stop the run without waiting for the reply; safe in a signal's handler."""
        ...

    def publish_all(self) -> None:
        """Block until the events that led to the present state have been published."""
        ...

    def changes(self) -> list[str]:
        """Name the files that the run has changed; of use when it is quiet."""
        ...


class ChatHost(Protocol):
    """The program around an interface: `Host`, or `AttachedHost` for a session elsewhere."""

    paths: Paths
    config: Config
    launch: LaunchOptions
    notices: list[str]
    event_bus: EventBus

    @property
    def choice(self) -> Choice | None:
        """The model that was chosen last, and why; none where that is not known."""
        ...

    @property
    def is_kept(self) -> bool:
        """Whether what happens here is on disk, and there at the next start."""
        ...

    @property
    def remains(self) -> str:
        """What remains after leaving, as half a sentence."""
        ...

    def close(self) -> None:
        """Leave all sessions, or hang up. Idempotent."""
        ...
