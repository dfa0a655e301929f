"""A program without automatic answers: the test says what models and tools return, and when."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any

from pykka import ActorRef

from steersman.machines import protocol as m
from steersman.machines.conversation import ToolRequest
from steersman.machines.policy import DelegationPolicy, Policy
from steersman.simulator.ports import ModelCall, SimulatedPorts, ToolCall
from steersman.simulator.program import SimulatedProgram
from steersman.simulator.session import AGENTS, SimulationPlan

__all__ = [
    "SESSION_FIRST",
    "QuietPorts",
    "answer",
    "by_rank",
    "delegation",
    "end_tool",
    "has_asked",
    "scene",
    "start_child",
]

Chooser = Callable[[Sequence[str]], int]


class QuietPorts(SimulatedPorts):
    """Ports that start model calls and tools, and end tools only on a stop."""

    def _call(self, effect: m.CallModel, reply_to: ActorRef[Any] | None) -> None:
        self.models[effect.turn] = ModelCall(effect=effect, reply_to=reply_to)

    def _run(self, effect: m.RunTool, reply_to: ActorRef[Any] | None) -> None:
        self.tools[effect.call] = ToolCall(effect=effect, reply_to=reply_to)


def by_rank(*first: str) -> Chooser:
    """Run the named actors first, then the other ready ones, then writers, then the clock."""

    def rank(name: str) -> int:
        if name in first:
            return first.index(name)
        return len(first) + (2 if name == "time" else name.startswith("writer"))

    return lambda names: min(range(len(names)), key=lambda at: rank(names[at]))


ANY_ORDER = by_rank()
SESSION_FIRST = by_rank("")


def delegation(**settings: Any) -> DelegationPolicy:
    """Return a policy of delegation with the simulator's agents, and no deadline for steers."""
    return DelegationPolicy(agents=AGENTS, **{"steer_deadline": 0.0, **settings})


@contextmanager
def scene(
    chooser: Chooser = ANY_ORDER, plan: dict[str, Any] | None = None, **policy: Any
) -> Iterator[SimulatedProgram]:
    """Make a program with quiet ports; `plan` are fields of its plan, `policy` those of its policy."""
    settings = {"delegation": delegation(), "ports_type": QuietPorts, **(plan or {})}
    made_plan = SimulationPlan(policy=Policy(**policy), haste=0.0, longest_batch=1, **settings)
    made = SimulatedProgram(made_plan, Random(7), chooser)
    try:
        yield made
    finally:
        made.close()


def answer(made: SimulatedProgram, *calls: tuple[str, dict[str, Any]], path: str = "") -> None:
    """Let the model of a session answer with tool calls, each a name and arguments, or with a text."""
    turn: Any = made.actor(f"{path}/turn".strip("/"))
    record = turn.ledger.record.running
    requests = tuple(
        ToolRequest(call=f"{record.id}.s{record.step}.c{number}", tool=tool, arguments=arguments)
        for number, (tool, arguments) in enumerate(calls, 1)
    )
    text = "" if requests else f"answer {record.id}.{record.step}"
    turn.actor_ref.tell(
        m.ModelAnswered(
            turn=record.id, epoch=record.epoch, step=record.step, text=text, tool_calls=requests
        )
    )


def end_tool(made: SimulatedProgram, call: str) -> None:
    """Let a tool of the first session end well."""
    running = made.ports.tools.pop(call)
    at = running.effect
    assert running.reply_to is not None
    running.reply_to.tell(
        m.ToolFinished(
            turn=at.turn,
            epoch=at.epoch,
            call=at.call,
            result=m.ToolResult(status="ok", text="output", exit_code=0, bytes=6),
        )
    )


def start_child(name: str, *, background: bool = False, **more: Any) -> tuple[str, dict[str, Any]]:
    """Return a call that delegates a task to a child of this name."""
    return "delegate", {"task": f"task {name}", "name": name, "background": background, **more}


def has_asked(made: SimulatedProgram, *sessions: str) -> Callable[[], bool]:
    """Ask whether the models of these sessions are being asked; of the first one, if none is named."""

    def is_asked() -> bool:
        there = made.world.open
        return all(name in there and there[name].ports.models for name in sessions or ("s1",))

    return is_asked
