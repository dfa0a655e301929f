"""Runs that are led to one sharp corner, for what random runs come to too rarely."""

from collections.abc import Callable, Sequence
from random import Random

from steersman.journal import entries as e
from steersman.machines import protocol as m
from steersman.machines.disposition import Intent
from steersman.machines.policy import Policy
from steersman.simulator.happening import Appended
from steersman.simulator.ports import Chances
from steersman.simulator.program import SimulatedProgram
from steersman.simulator.promises import check_history, check_liveness, check_replay
from steersman.simulator.session import SimulationPlan

__all__ = ["interrupt_while_steers_enter"]

TALK = Chances(calls=0.0, model_fails=0.0)
RANKS = {"": 0, "children": 1, "queue": 1, "turn": 2, "writer": 3, "time": 4}


def session_first(names: Sequence[str]) -> int:
    """Let the session run before its queue, and that before the turn."""
    return min(range(len(names)), key=lambda number: RANKS[names[number]])


def interrupt_while_steers_enter() -> SimulatedProgram:
    """Stop a turn just when a steer has entered at the end of its answer, and nothing was asked yet."""
    plan = SimulationPlan(policy=Policy(), chances=TALK, haste=0.0, longest_batch=1)
    program = SimulatedProgram(plan, Random(7), session_first)
    try:
        program.say(
            m.UserMessage(
                type="normal", said=m.Said(text="work", client_id="c1"), intent=Intent.CONVERSE
            )
        )
        _step_until(program, lambda: bool(program.ports.models))
        program.say(
            m.UserMessage(
                type="steer",
                said=m.Said(text="use tabs", client_id="c2"),
                intent=Intent.EXPLICIT_STEER,
            )
        )
        _step_until(program, lambda: _has(program, e.Queued, 2))
        _step_until(program, lambda: _has(program, e.Steered, 1))
        program.say(m.Interrupt(order=m.StopOrder(cause="stop")))
        _step_until(program, lambda: False)
        program.say(
            m.UserMessage(
                type="normal", said=m.Said(text="go on", client_id="c3"), intent=Intent.CONVERSE
            )
        )
        _step_until(program, lambda: False)
        check_history(program.history)
        check_liveness(program)
        check_replay(program)
    finally:
        program.close()
    return program


def _step_until(program: SimulatedProgram, holds: Callable[[], bool]) -> None:
    while not holds() and program.step():
        pass


def _has(program: SimulatedProgram, kind: type[e.Entry], count: int) -> bool:
    found = [happening for happening in program.history if isinstance(happening, Appended)]
    return sum(isinstance(one.entry, kind) for one in found) >= count
