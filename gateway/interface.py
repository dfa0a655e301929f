"""What an interface talks to: a session and its program, in this process or in another one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

from ..ports.models.choice import Choice
from ..workflows.config import Config
from ..workflows.paths import Paths
from .host.router import EventBus
from .launch_options import LaunchOptions

if TYPE_CHECKING:
    from .attached import AttachedRun, AttachedSession
    from .conversation import Conversation

ChatSession: TypeAlias = "Conversation | AttachedSession"
"""A session as an interface has it: one of this process, or one elsewhere."""
RunSession: TypeAlias = "Conversation | AttachedRun"
"""A run of a workflow as an interface has it."""


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
