"""The profile for small models: a short prompt, files with the request, whole files back.

It is chosen by `profile` of the agent, or by the model: those of the catalogue are small, and others if
their server on this machine, or their name, says so.
"""

from __future__ import annotations

from msgspec.structs import replace

from ...actors.agent_profile import AgentProfile
from ...ports.models.blocks import PROMPT, TOOLS, BlocksDialect
from ...ports.models.capacity import parameters_of
from ...ports.models.choice import Choice
from ...workflows.config import shipped
from ...workflows.providers import is_small
from ...workflows.settings import AgentSettings

LARGEST = 4e9
"""Parameters of a model up to which it is small."""


def wants_small(agent: AgentSettings, choice: Choice | None) -> bool:
    """Whether an agent's sessions get the profile; may ask a server on this machine."""
    if agent.profile != "auto" or choice is None:
        return agent.profile == "small"
    if not {"read", "write"} <= {*agent.tools}:
        return False
    config = choice.config
    return is_small(config.provider) or 0 < parameters_of(config.base_url, config.model) <= LARGEST


def made_small(profile: AgentProfile, agent: AgentSettings) -> AgentProfile:
    """Return a profile for a small model; a prompt of the person's own is added to the short one."""
    usual = shipped().agents["assistant"]
    own = "" if agent.system == usual.system else f"\n{agent.system.strip()}"
    tools = tuple(name for name in TOOLS if name in agent.tools or name not in usual.tools)
    return replace(
        profile,
        model=BlocksDialect(profile.model),
        system=PROMPT + own,
        tools=tools,
        server_tools=(),
    )
