"""What fits the profile of an agent: to a small model, and to the program that brings the agent along.

The profile for small models has a short prompt, files with the request, whole files back. It is chosen
by `profile` of the agent, or by the model: those of the catalogue are small, and others if their server
on this machine, or their name, says so.
"""

from __future__ import annotations

from msgspec.structs import replace

from ...actors.agent_profile import AgentProfile
from ...machines import protocol as m
from ...machines.value import Value
from ...ports.models.blocks import TOOLS, BlocksDialect
from ...ports.models.capacity import parameters_of
from ...ports.models.choice import Choice
from ...ports.models.model import Model
from ...ports.models.repetition import UnrepeatedModel
from ...ports.models.said_files import PROMPT
from ...ports.tools.permission import Rule
from ...ports.tools.tool import Tool
from ...workflows.config import SHIPPED, shipped
from ...workflows.providers import is_small
from ...workflows.settings import AgentSettings

LARGEST = 4e9
"""Parameters of a model up to which it is small."""
PROGRAM = "the program"
"""The source of rules that a program brings."""


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
        model=BlocksDialect(UnrepeatedModel(profile.model)),
        system=PROMPT + own,
        tools=tools,
        server_tools=(),
    )


REFIT = (
    "Instructions and tools are those for {} now: the session had those for another kind of model."
)


def refit(profile: AgentProfile, model: str = "", label: str = "") -> m.PolicyChange:
    """Return what puts a profile of another kind into a session's record."""
    system, tools = profile.system, profile.tools
    return m.PolicyChange(model=model, label=label, system=system, tools=tools)


def is_small_prompt(system: str) -> bool:
    """Whether instructions are those for small models."""
    return system.startswith(PROMPT)


class OwnAgent(Value):
    """An agent that a program brings along, in place of what is configured under its name.

    `model` is the model itself, none for one by name. `tools` are tools of its own; `rules` go before
    the configured ones, and what no configured rule is about is allowed for its own tools: the program
    that brought them has consented. An agent that `is_installed` is one of a plug-in, whose author may
    not: its tools are asked about.
    """

    settings: AgentSettings
    model: Model | None = None
    tools: tuple[Tool, ...] = ()
    rules: tuple[Rule, ...] = ()
    is_installed: bool = False

    def fitted(self, profile: AgentProfile) -> AgentProfile:
        """Give an agent's profile its own tools and rules."""
        names = tuple(tool.schema.name for tool in self.tools)
        rules = profile.permissions.rules
        shipped = next((at for at, rule in enumerate(rules) if rule.source == SHIPPED), len(rules))
        consented = () if self.is_installed else names
        granted = [Rule(name, "*", "allow", PROGRAM) for name in consented]
        rules = (*self.rules, *rules[:shipped], *granted, *rules[shipped:])
        return replace(
            profile,
            tools=(*profile.tools, *names),
            own_tools=self.tools,
            permissions=profile.permissions.with_rules(rules),
        )
