"""An agent that a program or a plug-in describes, as sessions have it: its model, its typed answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec.structs import replace
from pydantic import PydanticUserError, TypeAdapter, ValidationError

from ..machines.errors import ModelError, UsageError
from ..ports.models.model import AnswerListener, Model, ModelAnswer, ModelRequest
from ..ports.models.wire import without_pictures
from ..ports.tools.function import bound
from ..ports.tools.permission import Rule
from ..workflows.settings import AgentSettings
from ..workflows.tools import REMOTE, TOOLS
from ..workflows.typed_table import read_table
from .host.fitted_profile import PROGRAM, OwnAgent
from .outcome import later

if TYPE_CHECKING:
    from .host.host import Host
    from .library import Agent

T = TypeVar("T")
ASKED = """
Your last answer of each turn is one JSON value and nothing else. It fits this schema:
{schema}"""
AGAIN = "Your answer does not fit the schema: {fault}. Answer again, with the JSON value alone."
_LONGEST = 500  # characters of a fault


def own_agent(agent: Agent, host: Host, loop: asyncio.AbstractEventLoop | None) -> OwnAgent:
    """Return the agent as profiles of a host are made of it. Raises `UsageError`.

    `loop` is that of the program that brought it; an agent of a plug-in has none.
    """
    toolbox = host.runtime.shared.toolbox
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
    settings = agent_settings(agent, host.config.agents.get(agent.name) or AgentSettings())
    model = None if isinstance(agent.model, str) else agent.model
    return OwnAgent(
        settings=settings,
        model=model if model is None or loop is None else OwnModel(model, loop),
        tools=tuple(bound(tool, loop, toolbox.resources) for tool in agent.own_tools),
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
    settings, problems = read_table(AgentSettings, {**msgspec.to_builtins(usual), **changes})
    if settings is None:
        said = problems[0].message.replace("`system`", "`instructions`", 1)
        raise UsageError(f"agent `{agent.name}`: {said}")
    return settings


class OwnModel:
    """A model that a program brings along, asked on the program's own asyncio loop; see `Model`.

    There its connections belong, and one that blocks holds up that program and no session.
    """

    def __init__(self, inner: Model, loop: asyncio.AbstractEventLoop) -> None:
        self.name = str(getattr(inner, "name", "") or type(inner).__name__)
        self.takes_pictures = bool(getattr(inner, "takes_pictures", False))
        self._inner = inner
        self._loop = loop

    async def answer(self, request: ModelRequest, listener: AnswerListener) -> ModelAnswer:
        """Ask the inner model, and pass its pieces on in their order. Raises `ModelError`."""
        here = asyncio.get_running_loop()

        def passed(on: Callable[[str], None]) -> Callable[[str], None]:
            return lambda text: later(here, partial(on, text))

        relay = AnswerListener(
            on_text=passed(listener.on_text),
            on_notice=passed(listener.on_notice),
            on_thought=passed(listener.on_thought),
        )
        messages = request.messages if self.takes_pictures else without_pictures(request.messages)
        request = replace(request, messages=tuple(messages), memory=None)
        answer = await self._there(self._inner.answer(request, relay))
        if not isinstance(answer, ModelAnswer):  # pyright: ignore[reportUnnecessaryIsInstance]
            message = f"the model `{self.name}` returned a {type(answer).__name__}"
            raise ModelError(message, "`answer` returns a `ModelAnswer`")
        return answer

    async def window(self) -> int:
        """Return the inner model's context window in tokens; 0 where it has none to tell."""
        if not hasattr(self._inner, "window"):
            return 0
        return await self._there(self._inner.window())

    async def aclose(self) -> None:
        """Do nothing: the program that brought the model closes it."""

    async def _there(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the program's loop; a cancel of the caller cancels it there."""
        try:
            task = asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError as error:
            work.close()
            raise ModelError(
                f"the model `{self.name}` cannot be asked: the event loop of its program is closed"
            ) from error
        return await asyncio.wrap_future(task)


class TypedOutput:
    """The type of an agent's answers: a pydantic model, a dataclass, a msgspec struct, or a plain type.

    Raises `UsageError` for a type that no JSON schema expresses.
    """

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self._adapter: TypeAdapter[Any] | None = None
        try:
            if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
                schema = msgspec.json.schema(kind)
            else:
                self._adapter = TypeAdapter(self._kind)
                schema = self._adapter.json_schema()
        except (PydanticUserError, TypeError) as error:
            why = str(error).splitlines()[0]
            raise UsageError(f"output: no JSON schema expresses {kind!r}: {why}") from error
        self.instructions = ASKED.format(schema=json.dumps(schema, ensure_ascii=False))

    def read(self, text: str) -> tuple[Any, str]:
        """Return the value of an answer, and what is wrong with it; empty if nothing is."""
        head, _, rest = text.strip().partition("\n")
        is_fenced = head.rstrip() in ("```", "```json") and rest.endswith("\n```")
        data = rest.removesuffix("\n```") if is_fenced else text
        try:
            if self._adapter is not None:
                return self._adapter.validate_json(data), ""
            return msgspec.json.decode(data, type=self._kind), ""
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            return None, f"{place}: {first['msg']}" if place else first["msg"]
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            return None, str(error)[:_LONGEST]
