"""Missing wakes: whenever no message waits, every actor is woken, and none may find anything to do.

A wake that is missing would otherwise often go unnoticed, as the next message makes up for it: late.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from simulation.planting import planted

from steersman.actors import wakes
from steersman.journal import entries as e
from steersman.machines import protocol as m
from steersman.simulator.goals import GoalScenario
from steersman.simulator.happening import Performed
from steersman.simulator.program import SimulatedProgram
from steersman.simulator.scenario import Scenario
from steersman.simulator.session import URGENT

__all__ = ["first_missed", "missed", "nobody_sleeps", "without"]

_STEP = SimulatedProgram.step


def _done(program: SimulatedProgram) -> dict[str, tuple[int, int]]:
    """Return how much each session has decided, and had performed; a stop may be said again."""
    return {
        session: (live.record.seq, sum(map(_is_begun, program.chronicle.of[session])))
        for session, live in program.world.open.items()
    }


def _is_begun(happening: Any) -> bool:
    return isinstance(happening, Performed) and not isinstance(happening.effect, URGENT)


def check_wakes(program: SimulatedProgram) -> None:
    """Nothing is due when no message waits: a wake changes nothing."""
    for actor in program.system.living():
        handle = getattr(actor, "ledger", None)
        if handle is None or handle.broken or not actor.actor_ref.is_alive():
            continue
        before = _done(program)
        actor.actor_ref.tell(m.Wake())
        while program.dispatcher.ready:
            program.dispatcher.run(0, 1)
        after = _done(program)
        for session, done in before.items():
            last = program.chronicle.of[session][-1]
            assert after.get(session) == done, f"{program.path(actor)} had not been woken: {last}"


def _step(program: SimulatedProgram) -> bool:
    is_on = _STEP(program)
    if is_on and program.is_running and not program.dispatcher.ready:
        check_wakes(program)
    return is_on


@contextmanager
def nobody_sleeps() -> Iterator[None]:
    """Check it after each step of every program."""
    with planted(SimulatedProgram, "step", _step):
        yield


@contextmanager
def without(kind: type[e.Entry]) -> Iterator[None]:
    """Let entries of a kind wake nobody."""
    with planted(wakes.CONCERNS, kind, ()):
        yield


def missed(kind: Callable[[int], Any], seed: int) -> str:
    """Play one run: what is wrong, if a wake is missing."""
    with nobody_sleeps():
        try:
            kind(seed).run()
        except AssertionError as error:
            return str(error).partition("\n")[0]
    return ""


def first_missed(seeds: range, longest: float = 60.0) -> str:
    """Play sessions and goals until a wake is missing: the seed, and what is wrong; or nothing.

    It takes `longest` seconds of the processor at most.
    """
    began = time.process_time()
    for seed in seeds:
        for kind in (Scenario, GoalScenario):
            if wrong := missed(kind, seed):
                return f"{kind.__name__} {seed}: {wrong}"
        if time.process_time() - began > longest:
            break
    return ""
