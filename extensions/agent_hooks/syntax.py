"""The seam to the formats of hooks: the entries for an agent's configuration, and how to edit it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...machines.errors import ConfigError
from ...workflows.agent_definition import AgentDefinition


class NotUnderstood(ConfigError):
    """A file that cannot be edited without a guess; `line` and `column` count from 1."""

    def __init__(self, message: str, text: str = "", at: int = 0) -> None:
        hint = "nothing was changed; change it there, or add the hooks by hand (docs/hooks.md)"
        super().__init__(message, hint)
        if text:
            self.line = text.count("\n", 0, at) + 1
            self.column = at - (text.rfind("\n", 0, at) + 1) + 1


_EMIT = re.compile(r"(?:^|[\s/'\"])steersman['\"]? hooks emit ([a-z0-9_-]+) ([a-z-]+)$")
_HOME = "STEERSMAN_HOME"


class HookEntry(NamedTuple):
    """One hook: the agent's name of an event, and the command."""

    name: str
    command: str


class HookSyntax:
    """How one format of configuration stores hooks; works on texts.

    Each method raises `NotUnderstood` for a text that cannot be edited without a guess.
    """

    def check(self, text: str, agent: AgentDefinition) -> None:
        """Raise `NotUnderstood` for a text that the agent itself would not read."""

    def found(self, text: str, agent: str) -> list[HookEntry]:
        """List this program's hooks, in the order of the text."""
        raise NotImplementedError

    def added(self, text: str, agent: AgentDefinition, entries: Sequence[HookEntry]) -> str:
        """Return the text with the entries added, which it does not have yet."""
        raise NotImplementedError

    def removed(self, text: str, agent: str) -> str:
        """Return the text without this program's hooks."""
        raise NotImplementedError


def wanted_entries(
    agent: AgentDefinition, program: Sequence[str], environ: Mapping[str, str]
) -> list[HookEntry]:
    """Return the entries to install for an agent.

    A value of `STEERSMAN_HOME` is part of the command, since some agents clear the environment.
    """
    words = list(program)
    if home := environ.get(_HOME):
        words = ["env", f"{_HOME}={home}", *words]
    words += ["hooks", "emit", agent.name]
    return [HookEntry(name, shlex.join([*words, event])) for name, event in agent.events.items()]


def is_ours(command: object, agent: str) -> bool:
    """Whether an installation of this or an earlier version wrote a command."""
    found = _EMIT.search(command) if isinstance(command, str) else None
    return found is not None and found[1] == agent
