"""An agent that a program or a plug-in describes, as sessions have it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from ..machines.errors import UsageError
from ..ports.models.own import OwnModel
from ..ports.tools.function import bound
from ..ports.tools.permission import Rule
from ..ports.tools.toolbox import Toolbox
from ..workflows.config import Config
from ..workflows.settings import AgentSettings
from ..workflows.tools import REMOTE, TOOLS
from ..workflows.typed_table import read_table
from .host.profile_factory import PROGRAM, OwnAgent

if TYPE_CHECKING:
    from .library import Agent


def own_agent(
    agent: Agent, toolbox: Toolbox, config: Config, loop: asyncio.AbstractEventLoop | None
) -> OwnAgent:
    """Return the agent as profiles are made of it. Raises `UsageError`.

    `loop` is that of the program that brought it; an agent of a plug-in has none.
    """
    known = toolbox.names
    named = tuple(tool for tool in agent.tools or () if isinstance(tool, str))
    for name in named:
        if name not in known and not name.startswith(REMOTE) and name not in TOOLS:
            raise UsageError(
                f"agent `{agent.name}`: there is no tool `{name}`",
                f"known are {', '.join(known)}; a function needs @steersman.tool",
            )
    for tool in agent.own_tools:
        if tool.schema.name in known:
            raise UsageError(
                f"agent `{agent.name}`: `{tool.schema.name}` is the name of a built-in tool",
                "give yours another one: @steersman.tool(name=...)",
            )
    settings = agent_settings(agent, config.agents.get(agent.name) or AgentSettings())
    resources = toolbox.resources
    model = None if isinstance(agent.model, str) else agent.model
    return OwnAgent(
        settings=settings,
        model=model if model is None or loop is None else OwnModel(model, loop),
        tools=tuple(bound(tool, loop, resources) for tool in agent.own_tools),
        rules=tuple(Rule(tool, "*", verb, PROGRAM) for tool, verb in agent.permissions.items()),
        is_installed=loop is None,
    )


def _system(agent: Agent, usual: AgentSettings) -> str | None:
    """Return the instructions, with how an answer has to look if it has a type."""
    if agent.output is None or not isinstance(agent.instructions, str | None):  # pyright: ignore[reportUnnecessaryIsInstance]
        return agent.instructions
    own = usual.system if agent.instructions is None else agent.instructions
    return f"{own}\n{agent.output.instructions}".lstrip()


def agent_settings(agent: Agent, usual: AgentSettings) -> AgentSettings:
    """Return settings with what the agent says in their place. Raises `UsageError`."""
    named = [tool for tool in agent.tools or () if isinstance(tool, str)]
    given: dict[str, Any] = {
        "model": agent.model if isinstance(agent.model, str) else None,
        "system": _system(agent, usual),
        "tools": None if agent.tools is None else tuple(dict.fromkeys(named)),
        "max_steps": agent.max_steps,
        "limits": agent.limits,
    }
    changes = {key: value for key, value in given.items() if value is not None}
    settings, problems = read_table(AgentSettings, {**to_builtins(usual), **changes})
    if settings is None:
        said = problems[0].message.replace("`system`", "`instructions`", 1)
        raise UsageError(f"agent `{agent.name}`: {said}")
    return settings
