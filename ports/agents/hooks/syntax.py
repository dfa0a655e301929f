"""The seam to the formats of hooks: what an agent's configuration should hold, and how to edit it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

from ....machines.errors import ConfigError
from ....machines.value import Value
from ....workflows.agent_definition import AgentDefinition


class NotUnderstood(ConfigError):
    """A file holds what an edit would have to guess about; `line` and `column` count from 1."""

    def __init__(self, message: str, text: str = "", at: int = 0) -> None:
        hint = "nothing was changed; change it there, or add the hooks by hand (docs/hooks.md)"
        super().__init__(message, hint)
        if text:
            self.line = text.count("\n", 0, at) + 1
            self.column = at - (text.rfind("\n", 0, at) + 1) + 1


_EMIT = re.compile(r"(?:^|[\s/'\"])steersman['\"]? hooks emit ([a-z0-9_-]+) ([a-z-]+)$")
_HOME = "STEERSMAN_HOME"


class HookEntry(Value):
    """One line of ours: the agent's event, and the command; `event` is what we call it."""

    name: str
    command: str
    event: str


class HookSyntax:
    """How one kind of configuration holds hooks; texts in, texts out.

    Each method raises `NotUnderstood` for a text that it would have to guess about.
    """

    def found(self, text: str, agent: str) -> list[tuple[str, str]]:
        """List what of ours is there: event of the agent, command; in the order of the text."""
        raise NotImplementedError

    def added(self, text: str, agent: AgentDefinition, entries: Sequence[HookEntry]) -> str:
        """Return the text with the entries, which are not there yet."""
        raise NotImplementedError

    def removed(self, text: str, agent: str) -> str:
        """Return the text without anything of ours."""
        raise NotImplementedError


def wanted_entries(
    agent: AgentDefinition, program: Sequence[str], environ: Mapping[str, str]
) -> list[HookEntry]:
    """Say what should be installed for an agent.

    A home of one's own is part of the command, since some agents clear the environment.
    """
    words = list(program)
    if home := environ.get(_HOME):
        words = ["env", f"{_HOME}={home}", *words]
    return [
        HookEntry(
            name=name, command=shlex.join([*words, "hooks", "emit", agent.name, event]), event=event
        )
        for name, event in agent.events.items()
    ]


def is_ours(command: object, agent: str) -> bool:
    """Whether a command is one that an installation wrote, of today or of earlier."""
    found = _EMIT.search(command) if isinstance(command, str) else None
    return found is not None and found[1] == agent
