"""Plays scenarios, one seed after the other, and says which broke a promise."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, TypeVar

from ..machines.errors import UsageError
from ..machines.value import Value
from .choices import Seed
from .program import SimulatedProgram

T = TypeVar("T")

_CHECKS = ("promises", "family", "goals", "workflows", "agents", "loops", "elsewhere")
"""The modules whose functions are promises, each in the first sentence of its docstring."""


class Playable(Protocol):
    """A scenario that was made of a seed; `program` is what it plays."""

    program: SimulatedProgram

    def run(self) -> SimulatedProgram:
        """Play it to its end. Raises what is wrong, an `AssertionError` for a broken promise."""
        ...


class Broken(Value):
    """A seed that broke a promise: which one, in a sentence, and what happened instead.

    `scenario` is the place of the one that did among those that were played.
    """

    seed: int
    promise: str
    found: str
    scenario: int = 0


class Played(Value):
    """One seed: how many steps were taken, how many seconds of virtual time passed, what broke."""

    seed: int
    steps: int = 0
    seconds: float = 0.0
    broken: Broken | None = None


def play(seed: int, *scenarios: Callable[[Any], Playable]) -> Played:
    """Play the scenarios of a seed, until one breaks a promise. Raises `UsageError` without checks."""
    steps, seconds = 0, 0.0
    for number, scenario in enumerate(scenarios):
        broken, program = play_one(seed, scenario, seed, number)
        if program is not None:
            steps += program.steps
            seconds += program.timeline.now - program.timeline.start
        if broken is not None:
            return Played(seed=seed, steps=steps, seconds=seconds, broken=broken)
    return Played(seed=seed, steps=steps, seconds=seconds)


def play_one(
    dice: Seed, scenario: Callable[[Any], Playable], seed: int = 0, number: int = 0
) -> tuple[Broken | None, SimulatedProgram | None]:
    """Play one scenario: what broke, if anything did, and the program, if it came to one.

    `seed` and `number`, the place of the scenario, are noted with what broke.
    """
    if not __debug__:
        raise UsageError(
            "the simulator checks by `assert`, which `python -O` leaves out",
            "run it without -O and without PYTHONOPTIMIZE",
        )
    with _quiet():
        made, error = attempt(lambda: scenario(dice))
        if made is not None:
            _, error = attempt(made.run)
    broken = _broken(seed, error, number) if error is not None else None
    return broken, made.program if made is not None else None


def attempt(call: Callable[[], T]) -> tuple[T | None, Exception | None]:
    """Return what a call returns, or what it raises: here any error is a finding."""
    try:
        return call(), None
    except Exception as error:
        return None, error


@contextmanager
def _quiet() -> Generator[None]:
    """Log nothing: that an actor fails is what is played."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def _broken(seed: int, error: Exception, scenario: int) -> Broken:
    found = str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
    promise = _promise(error.__traceback__)
    said = found.partition("\nassert ")[0] or promise
    return Broken(seed=seed, promise=promise, found=said, scenario=scenario)


def _promise(trace: TracebackType | None) -> str:
    """Return what the innermost check that raised an error promises."""
    sentence = "Nothing fails that was not made to fail."
    while trace is not None:
        code = trace.tb_frame.f_code
        check: Any = trace.tb_frame.f_globals.get(code.co_name)
        is_check = Path(code.co_filename).stem in _CHECKS and code.co_qualname == code.co_name
        if is_check and not code.co_name.startswith("_") and check.__doc__:
            sentence = str(check.__doc__).partition("\n")[0]
        trace = trace.tb_next
    return sentence
