"""An external agent as sessions know it: how it is started, and the seam to what speaks with it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

from .models.model import Model
from .tools.tool import Tool

DRIVEN = "STEERSMAN_DRIVES"
"""The variable that tells an agent's hooks (`cli/emit.py`) that a session here has its work already."""


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """How to start an agent, with the user's own environment; `name` is for people."""

    agent: str
    start: tuple[str, ...]
    environ: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    @property
    def name(self) -> str:
        """The agent and its command, in place of a model's name."""
        return f"{self.agent} ({' '.join(self.start)})"

    async def aclose(self) -> None:
        """Do nothing: each session has a process of its own."""


class ExternalAgent(Model, Tool):
    """One session's agent: its model, and that model's only tool.

    Made of an `AgentSpec`, what starts processes, the session's folder, and the agent's own id of the
    session, if that is known.
    """

    @abstractmethod
    def decide(self, inner: str, is_allowed: bool) -> None:
        """Answer a question of the agent; ignored when it is no longer open."""
