"""A program that a test leads by hand: what can be done first is done first, nothing is random."""

from collections.abc import Callable
from random import Random
from typing import Any

from steersman.actors.decisions.decision import Decision
from steersman.actors.session import Session
from steersman.journal import entries as e
from steersman.machines import protocol as m
from steersman.machines.disposition import Intent
from steersman.machines.policy import Policy
from steersman.simulator.happening import Appended, Passed, Performed
from steersman.simulator.ports import Chances
from steersman.simulator.program import POISON, ROOT, SimulatedProgram
from steersman.simulator.promises import check_history, check_liveness, check_replay, check_state
from steersman.simulator.session import SimulationPlan

__all__ = [
    "TALK",
    "TOOLS",
    "asking",
    "entries",
    "facts",
    "finish",
    "has",
    "kinds",
    "performed",
    "poison",
    "program",
    "run",
    "say",
]

TALK = Chances(calls=0.0, model_fails=0.0)
TOOLS = Chances(calls=1.0, model_fails=0.0, bad_arguments=0.0)


def program(
    chances: Chances = TALK, session_type: type[Session] = Session, seed: int = 7, **settings: Any
) -> SimulatedProgram:
    """Begin a program that takes its time last; `settings` are its policy's."""
    plan = SimulationPlan(
        policy=Policy(**settings),
        chances=chances,
        haste=0.0,
        longest_batch=1,
        session_type=session_type,
    )
    return SimulatedProgram(plan, Random(seed), lambda names: 0)


def run(made: SimulatedProgram, until: Callable[[], bool] = lambda: False) -> None:
    """Step until something holds, or nothing is left to do."""
    while not until() and made.step():
        pass


def finish(made: SimulatedProgram) -> None:
    """Play to the end, started again after each crash; every promise has to hold at every step."""
    try:
        for _ in range(6000):
            if not made.is_running:
                made.restart()
            if not made.step():
                break
            if made.is_running:
                check_state(made)
        check_history(made.history)
        check_liveness(made)
        check_replay(made)
    finally:
        made.close()


def say(
    made: SimulatedProgram,
    text: str,
    intent: Intent = Intent.CONVERSE,
    client_id: str = "",
    matched: str = "",
    user: str = "",
    **more: Any,
) -> None:
    """Say something, as the surfaces post it; `more` are other fields of the message."""
    is_stop = intent in (Intent.INTERRUPT_BARE, Intent.INTERRUPT_MORE, Intent.EXPLICIT_INTERRUPT)
    kind: Any = "interrupt" if is_stop else "normal"
    if intent is Intent.EXPLICIT_STEER:
        kind = "steer"
    then = "" if intent is Intent.INTERRUPT_BARE else text
    more |= {"type": kind, "intent": intent, "matched": matched, "then": then}
    made.say(m.UserMessage(said=m.Said(text=text, user=user, client_id=client_id), **more))


def entries(made: SimulatedProgram, *kinds: type[e.Entry], session: str = ROOT) -> list[Any]:
    """Return what a session journalled, of these kinds if any are named."""
    history = made.chronicle.of[session]
    found = [happening.entry for happening in history if isinstance(happening, Appended)]
    return [one for one in found if isinstance(one, kinds)] if kinds else found


def facts(made: SimulatedProgram, kind: type[Any]) -> list[Any]:
    """Return the passing facts of a kind."""
    found = [happening.fact for happening in made.history if isinstance(happening, Passed)]
    return [one for one in found if isinstance(one, kind)]


def has(made: SimulatedProgram, kind: type[e.Entry]) -> Callable[[], bool]:
    """Ask whether such an entry was journalled."""
    return lambda: bool(entries(made, kind))


def performed(made: SimulatedProgram, kind: type[Any]) -> list[Any]:
    """Return the effects of a kind that reached the ports."""
    found = [happening.effect for happening in made.history if isinstance(happening, Performed)]
    return [one for one in found if isinstance(one, kind)]


def poison(made: SimulatedProgram, path: str) -> None:
    """Let the actor at a path fail."""
    actor: Any = made.actor(path)
    actor.actor_ref.tell(POISON)


def asking(**settings: Any) -> SimulatedProgram:
    """Begin a program whose first turn asks its model."""
    made = program(**settings)
    say(made, "work", client_id="c1")
    run(made, lambda: bool(made.ports.models))
    return made


def kinds(decision: Decision) -> list[type[e.Entry]]:
    """Return the types of what a decision writes."""
    return [type(entry) for entry in decision.entries]
