"""What `steersman chat` was asked for, and what a face is: a way to talk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..gateway.conversation import Conversation
from ..gateway.host import Host


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """What the command line asked for."""

    message: str = ""
    agent: str = ""
    model: str = ""
    is_newest: bool = False
    resume: str = ""
    folder: Path = Path()
    is_json: bool = False
    is_plain: bool = False
    is_yes: bool = False
    is_debug: bool = False


Face = Callable[[Host, Callable[[], Conversation], ChatOptions], int]
"""Opens the conversation, talks, and returns the exit code; `Leaving` may be raised in it."""
