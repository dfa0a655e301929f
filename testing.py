"""What programs test their agents with: scripted models, recorded sessions, the simulator.

from steersman.testing import ScriptedModel, calls, memory_home

model = ScriptedModel([calls("weather", city="Rome"), "It is sunny in Rome."])
async with memory_home() as runtime:
    session = await runtime.start(steersman.Agent(model=model, tools=[weather]))
    assert (await session.ask("Rome?")).text == "It is sunny in Rome."
"""

from .gateway.host.agent_simulation import BrokenPromise, Simulation, simulate
from .gateway.library import MEMORY, Home
from .gateway.replay.recorded_test import Parted, replay
from .gateway.replay.replay import Replay
from .ports.models.scripted import ScriptedAnswer, ScriptedModel

__all__ = [
    "BrokenPromise",
    "Parted",
    "Replay",
    "ScriptedAnswer",
    "ScriptedModel",
    "Simulation",
    "calls",
    "memory_home",
    "replay",
    "simulate",
]


def calls(tool: str, /, **arguments: object) -> ScriptedAnswer:
    """Return an answer of a scripted model that calls a tool."""
    return ScriptedAnswer(tool_calls=((tool, arguments),))


def memory_home(*, yes: bool = False) -> Home:
    """Return a home that keeps nothing, and reads no configuration but the shipped one.

    `yes`: what would be asked about is allowed, else denied.
    """
    return Home(MEMORY, unattended=not yes, yes=yes, is_hermetic=True)
