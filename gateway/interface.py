"""What an interface talks to: a session and its program, in this process or in another one."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from .attached import AttachedHost, AttachedRun, AttachedSession
    from .client import SessionClient
    from .host.host import Host

ChatHost: TypeAlias = "Host | AttachedHost"
"""The program around an interface: this one, or one in which a session is elsewhere."""
ChatSession: TypeAlias = "SessionClient | AttachedSession"
"""A session as an interface has it: one of this process, or one elsewhere."""
RunSession: TypeAlias = "SessionClient | AttachedRun"
"""A run of a workflow as an interface has it."""
