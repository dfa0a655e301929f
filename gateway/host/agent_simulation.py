"""Plays an agent of a program in the simulator: `steersman.testing.simulate`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from ...machines.errors import SteersmanError, UsageError
from ...machines.value import Value
from ...ports.models.scripted import ScriptedAnswer
from ...ports.tools.function import FunctionTool
from ...ports.tools.permission import Rule
from ..library import Agent

if TYPE_CHECKING:
    from ...simulator.agents import PlayedAgent


class BrokenPromise(SteersmanError, AssertionError):
    """A simulated run broke a promise: `seed` plays it again, `promise` says what should have been.

    `found` is what happened instead. `choices` play a shrunken run that breaks it in the same way, of
    which `messages` are what is said and done; both are empty if that was not asked for.
    """

    def __init__(
        self, seed: int, promise: str, found: str, choices: str = "", messages: tuple[str, ...] = ()
    ) -> None:
        shrunk = f", or shrunk with choices={choices!r}" if choices else ""
        super().__init__(
            f"seed {seed}: {promise} But {found}", f"play it with seed={seed}, seeds=1{shrunk}"
        )
        if choices:
            self.add_note("\n".join((f"shrunk: choices={choices!r}", *messages)))
        self.seed = seed
        self.promise = promise
        self.found = found
        self.choices = choices
        self.messages = messages


class Simulation(Value, kw_only=False):
    """What was played: how many `seeds` and `steps`, and `seconds` of simulated time."""

    seeds: int
    steps: int
    seconds: float


def simulate(
    agent: Agent | Callable[[], Agent],
    messages: Sequence[str] = (),
    *,
    seeds: int = 100,
    seed: int = 0,
    choices: str = "",
    calls: Sequence[ScriptedAnswer] = (),
    run: Collection[str] = (),
    check: Callable[[], object] | None = None,
) -> Simulation:
    """Play random sessions of an agent with stops, refusals and crashes, and check every promise.

    `messages` are what people say to it; its model is never asked. `calls` are the tool calls that the
    model makes, `calls("book", seat="1A")`; without any they are made up of the schemas of the tools.
    Nothing is run, the results of tools are made up; but the functions of the agent's own tools that
    `run` names are called, for what they really do. A crash may come between what such a function did
    and its result, and then the model often calls it again with the same arguments.

    `check` is asked after each seed: it says that what the tools did is as it should be, and fails by
    `assert`, or by returning False. Where tools keep something give a function as `agent`, which makes
    both again for each seed; it is called before each.

    The same seed is the same run, from `seed` on. Raises `BrokenPromise` for the first seed that breaks a
    promise, which is shrunk to few choices first, and `UsageError` for what cannot be
    played. `choices`: play only that shrunken run. Call it outside of a running asyncio loop.
    """
    from ...simulator.agents import AgentScenario
    from ...simulator.choices import Seed
    from ...simulator.play import Playable, play
    from ...simulator.shrinking import replay, shrink

    if seeds < 1:
        raise UsageError(f"`seeds` must be at least 1, not {seeds}")
    _refuse_loop()

    def scenario(number: Seed) -> Playable:
        made = agent if isinstance(agent, Agent) else agent()
        return AgentScenario(number, _played(made, messages, calls, run), check)

    _played(agent if isinstance(agent, Agent) else agent(), messages, calls, run)
    if choices:
        broken, said = replay(choices, (scenario,))
        if broken is not None:
            raise BrokenPromise(seed, broken.promise, broken.found, choices, said)
        return Simulation(1, 0, 0.0)
    steps, seconds = 0, 0.0
    for number in range(seed, seed + seeds):
        result = play(number, scenario)
        if result.broken is not None:
            promise, found = result.broken.promise, result.broken.found
            shrunk = shrink(result.broken, (scenario,))
            if shrunk is None:
                raise BrokenPromise(number, promise, found)
            raise BrokenPromise(number, promise, found, shrunk.choices, shrunk.messages)
        steps, seconds = steps + result.steps, seconds + result.seconds
    return Simulation(seeds, steps, seconds)


def _refuse_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise UsageError(
        "`simulate` was called in a running asyncio loop, which it would hold up",
        "call it in a plain function, or by `asyncio.to_thread`",
    )


def _played(
    agent: Agent, messages: Sequence[str], answers: Sequence[ScriptedAnswer], run: Collection[str]
) -> PlayedAgent:
    """Return the agent as the simulator plays it. Raises `UsageError`."""
    from ...simulator.agents import PlayedAgent

    own = {tool.schema.name: tool for tool in agent.own_tools}
    named = tuple(tool for tool in agent.tools or () if isinstance(tool, str))
    for name in run:
        if not isinstance(own.get(name), FunctionTool):
            raise UsageError(
                f"`run` names `{name}`, which is no function of agent `{agent.name}`",
                f"its own tools are {', '.join(own) or 'none'}",
            )
    made = tuple(call for answer in answers for call in answer.tool_calls)
    for name, _ in made:
        if name not in own and name not in named:
            known = ", ".join((*named, *own)) or "none"
            raise UsageError(f"agent `{agent.name}` has no tool `{name}`", f"it has {known}")
    return PlayedAgent(
        tools=tuple(own.values()),
        named=named,
        rules=tuple(Rule(tool, "*", verb) for tool, verb in agent.permissions.items()),
        messages=tuple(messages),
        calls=made,
        run=frozenset(run),
        max_steps=agent.max_steps or 8,
    )
