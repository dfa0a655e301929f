"""A session that this process owns, and what of it may change while it is open."""

from __future__ import annotations

from msgspec.structs import replace

from ..ports.tools.tool import Tool
from ..ports.tools.toolbox import Toolbox
from .agent_profile import AgentProfile
from .open_sessions import OwnedSession
from .termination import Termination
from .tool_policy import SessionToolPolicy
from .work.executor import EffectExecutor


class LiveSession(OwnedSession, kw_only=True):
    """A session that this process owns, with ports of the world."""

    executor: EffectExecutor
    termination: Termination
    profile: AgentProfile
    tool_policy: SessionToolPolicy

    async def aclose(self) -> None:
        """Stop everything that still runs, and wait for it."""
        await self.executor.aclose()

    async def change_model(self, profile: AgentProfile) -> None:
        """Take the model over from `profile`, with all that depends on it; on the actors' own loop.

        A call that is on its way ends with the model that it was begun with.
        """
        system = profile.system if profile.is_refit else ""
        self.executor.change_model(profile.model, profile.judge, system)
        if profile.is_refit:
            self.change_tools(self.executor.resources.toolbox, profile.tools, profile.own_tools)
        environment = self.environment
        environment.price, environment.goals = profile.price, profile.goals
        overhead = self.executor.resources.overhead
        environment.compaction = replace(profile.compaction, overhead=overhead)
        self.profile = replace(
            self.profile,
            model=profile.model,
            judge=profile.judge,
            price=profile.price,
            goals=profile.goals,
            compaction=profile.compaction,
        )

    def change_tools(
        self, toolbox: Toolbox, names: tuple[str, ...], own_tools: tuple[Tool, ...]
    ) -> None:
        """Let the agent have these tools, from its next step on; on the actors' own loop.

        A call that is on its way ends with the tool that it was begun with.
        """
        self.executor.change_tools(toolbox, names)
        self.tool_policy.change_tools(toolbox, names)
        overhead = self.executor.resources.overhead
        compaction = replace(self.environment.compaction, overhead=overhead)
        self.environment.compaction = compaction
        self.profile = replace(self.profile, tools=names, own_tools=own_tools)
