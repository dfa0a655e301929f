"""Runs of a program's own agent: its tools and permissions, called by a model that rolls dice.

A tool's function is called only where the program says so; all other results are made up. Such a
function has its effect at once and its result later; a crash in between loses the result. The model is
told that the outcome is unknown, and often calls it again with the same arguments, as models do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, cast

from pykka import ActorRef

from ..actors.tool_policy import SessionChoices, SessionToolPolicy
from ..journal.record import SessionRecord
from ..machines import protocol as m
from ..machines.conversation import ToolRequest, ToolSchema
from ..machines.errors import ToolError
from ..machines.value import Value
from ..ports.tools.function import FunctionTool
from ..ports.tools.permission import Permissions, Rule
from ..ports.tools.text import readable
from ..ports.tools.tool import Tool
from ..ports.tools.toolbox import Toolbox
from ..workflows.tools import kind_of
from .choices import Seed
from .ports import SimulatedPorts
from .program import SimulatedProgram
from .samples import Samples
from .scenario import Scenario
from .session import FOLDER

AGAIN = 0.7
"""How often a model repeats a call whose outcome is unknown."""


class PlayedAgent(Value):
    """An agent to be played: its own tools, the names of its others, its permissions.

    `messages` are what people say to it, `calls` tools with arguments that its model may call, none for
    calls that are made up of the schemas. `run` names the tools whose functions are called.
    """

    tools: tuple[Tool, ...]
    named: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    messages: tuple[str, ...] = ()
    calls: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    run: frozenset[str] = frozenset()
    max_steps: int = 8


class _NamedTool:
    """A built-in or configured tool, of which nothing matters here but its name."""

    def __init__(self, name: str) -> None:
        self.schema = ToolSchema(name=name, description="", parameters={"type": "object"})
        self.is_mutating = kind_of(name) not in ("read", "search")
        self.is_idempotent = False

    def fault(self, arguments: dict[str, Any]) -> str:
        """Find nothing wrong with a call."""
        return ""


class _Tools:
    """The tools of an agent, as a tool policy looks them up."""

    def __init__(self, agent: PlayedAgent) -> None:
        self._tools: dict[str, Any] = {name: _NamedTool(name) for name in agent.named}
        self._tools |= {tool.schema.name: tool for tool in agent.tools}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    def get(self, name: str) -> Any:
        return self._tools.get(name)

    def schemas(self, names: tuple[str, ...]) -> tuple[ToolSchema, ...]:
        return tuple(self._tools[name].schema for name in names)


class Calls:
    """The calls of one run, across its crashes: those that run, and those whose outcome is unknown."""

    def __init__(self) -> None:
        self.begun: dict[str, tuple[str, dict[str, Any]]] = {}
        self.lost: list[tuple[str, dict[str, Any]]] = []

    def lose(self) -> None:
        """Note that what was begun has died with the program."""
        self.lost += self.begun.values()
        self.begun.clear()


class AgentPorts(SimulatedPorts):
    """Ports whose model calls the agent's tools, and whose tools may be real functions."""

    def __init__(self, agent: PlayedAgent, tools: _Tools, calls: Calls, **given: Any) -> None:
        super().__init__(**given)
        self._agent, self._own, self._calls = agent, tools, calls
        self._samples = Samples(self.dice, agent.messages)
        self._results: dict[str, m.ToolResult] = {}
        calls.lose()

    def request(self, at: m.CallModel, number: int) -> ToolRequest:
        """Call a tool of the agent: once more what was cut off, one of its calls, or any."""
        name = f"{at.turn}.s{at.step}.c{number + 1}"
        tool, arguments = self._call_of()
        return ToolRequest(call=name, tool=tool, arguments=dict(arguments))

    def _call_of(self) -> tuple[str, Mapping[str, Any]]:
        if self._calls.lost and self.dice.random() < AGAIN:
            return self._calls.lost.pop(0)
        if self._agent.calls:
            return self.dice.choice(self._agent.calls)
        if not self._own.names:
            return "none", {}
        tool = self._own.get(self.dice.choice(self._own.names))
        if isinstance(tool, _NamedTool):
            return tool.schema.name, {"path": f"file {self.dice.randrange(1, 9)}"}
        arguments = self._samples.fitting(tool.schema.parameters)
        return tool.schema.name, arguments

    def _run(self, effect: m.RunTool, reply_to: ActorRef[Any] | None) -> None:
        """Let a function have its effect now; its result comes later, unless the program dies."""
        self._calls.begun[effect.call] = effect.tool, effect.arguments
        if effect.tool in self._agent.run:
            tool = cast("FunctionTool[..., Any]", self._own.get(effect.tool))
            self._results[effect.call] = called(tool, effect)
        super()._run(effect, reply_to)

    def result(self, at: m.RunTool, status: m.ToolStatus) -> m.ToolResult:
        """Return what a function returned, or make a result up."""
        self._calls.begun.pop(at.call, None)
        made = super().result(at, status)
        own = self._results.pop(at.call, None)
        return made if own is None or status == "killed" else own


def called(tool: FunctionTool[..., Any], effect: m.RunTool) -> m.ToolResult:
    """Call a tool's function here and now; what it raises is its result."""
    from .play import attempt

    def fail(why: str) -> None:
        raise ToolError(why)

    about = {"call": effect.call, "session": "simulated", "folder": FOLDER}
    text, error = attempt(lambda: tool.called_apart(effect.arguments, about, lambda _: None, fail))
    if error is not None:
        kind = "" if isinstance(error, ToolError) else f"{type(error).__name__}: "
        return m.ToolResult(status="failed", text=f"{kind}{error}")
    data = str(text).encode()
    return m.ToolResult(status="ok", text=readable(data), bytes=len(data))


class AgentScenario(Scenario):
    """A session of an agent with people, stops and crashes; `check` is asked when all is over."""

    def __init__(
        self, seed: Seed, agent: PlayedAgent, check: Callable[[], object] | None = None
    ) -> None:
        tools, calls = _Tools(agent), Calls()
        permissions = Permissions(
            [*agent.rules, *(Rule(tool.schema.name, "*", "allow") for tool in agent.tools)]
        )

        def policy(record: Callable[[], SessionRecord]) -> SessionToolPolicy:
            return SessionToolPolicy(
                cast("Toolbox", tools),
                tools.names,
                permissions,
                Path(FOLDER),
                Path(FOLDER),
                lambda path: "",
                SessionChoices(record),
            )

        super().__init__(
            seed,
            ports_type=partial(AgentPorts, agent, tools, calls),
            tool_policy=policy,
            max_steps=agent.max_steps,
        )
        self.user.texts = agent.messages
        self._check = check

    def run(self) -> SimulatedProgram:
        """Play it to its end, and check every promise, the program's own last."""
        program = super().run()
        if self._check is not None:
            what_the_program_promises_holds(self._check)
        return program


def what_the_program_promises_holds(check: Callable[[], object]) -> None:
    """What the program itself checks holds."""
    assert check() is not False, "its check returned False"
