"""The profile for small models: a short prompt, files with the request, whole files back.

It is chosen by `profile` of the agent, or by the model: those of the catalogue are small, and others if
their name says so, such as `qwen2.5-coder:1.5b`.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from ..actors.agent_profile import AgentProfile
from ..machines.pattern import lazy_pattern
from ..ports.models.blocks import PROMPT, TOOLS, BlocksDialect
from ..ports.models.choice import Choice
from ..workflows.config import shipped
from ..workflows.providers import is_small
from ..workflows.settings import AgentSettings

LARGEST = 4e9
"""Parameters of a model up to which it is small."""
_SIZE = lazy_pattern(r"(?<![\w.])(\d+(?:\.\d+)?)\s?([bBmM])(?![a-zA-Z0-9])")


def wants_small(agent: AgentSettings, choice: Choice | None) -> bool:
    """Whether an agent's sessions get the profile."""
    if agent.profile != "auto" or choice is None:
        return agent.profile == "small"
    if not {"read", "write"} <= {*agent.tools}:
        return False
    return is_small(choice.config.provider) or 0 < parameters_in(choice.config.model) <= LARGEST


def parameters_in(name: str) -> float:
    """Return how many parameters a model's name states, such as `1.5b`; 0 if it states none."""
    found = _SIZE.findall(re.sub(r"[:_/-]", " ", name))
    sizes = [float(number) * (1e9 if unit in "bB" else 1e6) for number, unit in found]
    return max(sizes, default=0.0)


def made_small(profile: AgentProfile, agent: AgentSettings) -> AgentProfile:
    """Return a profile for a small model; a prompt of the person's own is added to the short one."""
    usual = shipped().agents["assistant"].system
    own = "" if agent.system == usual else f"\n{agent.system.strip()}"
    tools = tuple(name for name in TOOLS if name in agent.tools or name not in usual_tools())
    return replace(
        profile,
        model=BlocksDialect(profile.model),
        system=PROMPT + own,
        tools=tools,
        server_tools=(),
    )


def usual_tools() -> tuple[str, ...]:
    """Name the tools of the shipped agent."""
    return shipped().agents["assistant"].tools
