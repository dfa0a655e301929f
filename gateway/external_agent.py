"""Which agents of a session are other programs, and how they are started."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..actors.agent_profile import AgentProfile
from ..machines.agent_call import AGENT_TOOL
from ..machines.errors import UsageError
from ..ports.agents.external import AgentSpec
from ..ports.tools.permission import Permissions, Rule
from ..workflows.agent_definition import find_agent, load_agents
from ..workflows.config import Config
from ..workflows.paths import Paths

__all__ = ["as_external", "external_agent"]

UNBOUNDED = 1_000_000
"""Steps: an external agent counts its own."""


def external_agent(
    name: str, config: Config, paths: Paths, environ: Mapping[str, str]
) -> AgentSpec | None:
    """Say how to start an agent that is another program; none if it is one of ours, or none at all.

    The configuration says it, or the definition of an agent of that name. Raises `UsageError` where
    neither says how.
    """
    known = config.agents.get(name)
    if known is not None and known.protocol != "acp":
        return None
    if known is not None and known.start:
        return AgentSpec(name, known.start, environ)
    agents = load_agents(paths)
    names = {one for agent in agents.values() for one in (agent.name, *agent.aliases)}
    if name in names and (start := find_agent(agents, name).acp):
        return AgentSpec(name, start, environ)
    if known is None:
        return None
    raise UsageError(
        f"nothing says how to start agent `{name}`",
        f'set `agents.{name}.start`, for example start = ["{name}", "acp"]',
    )


def as_external(profile: AgentProfile) -> AgentProfile:
    """Make the profile one of an agent that has instructions, tools and limits of its own."""
    ours = profile.permissions
    return replace(
        profile,
        system="",
        tools=(AGENT_TOOL,),
        max_steps=UNBOUNDED,
        permissions=Permissions((Rule(AGENT_TOOL, "*", "allow"), *ours.rules), ours.default_yes),
        policy=replace(profile.policy, steer_while_streaming="cut"),
        compaction=replace(profile.compaction, is_auto=False),
    )
