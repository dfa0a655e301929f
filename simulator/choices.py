"""Choices as data: a run in which each choice that chance made can be taken out, and the rest stays.

A choice is known by who makes it, a line of a function, and by how many were made there before. So a
choice that is left out does not move those that others make, as it would in one stream of numbers.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from typing import TypeVar

from ..machines.errors import UsageError
from .schedule import Chooser, Dice, PriorityChooser, UniformChooser

T = TypeVar("T")

Place = tuple[str, int]
"""Who chooses, `FUNCTION@LINE`, and how many choices were made there before."""

NEVER = 0.999999
"""What a random number is where it was left out: what has a chance does not happen."""
SAID = "said"


class Choices:
    """The dice of one run: those of a seed, whose choices are noted, or `made` ones and no other.

    `number` says by its parity which scheduler is used. `used` are the choices that were asked for, with
    what they came to; those that are as they would be without any choice are not in it.
    """

    def __init__(self, number: int, made: Mapping[Place, float] | None = None) -> None:
        self.number = number
        self.used: dict[Place, float] = {}
        self._made = made
        self._random = Random(number)
        self._counts = Counter[str]()

    def random(self) -> float:
        """Return a number in [0, 1)."""
        return self._choose(_caller(), self._random.random() if self._made is None else 0.0, NEVER)

    def randrange(self, start: int, stop: int, /) -> int:
        """Return a whole number in [start, stop)."""
        drawn = self._random.randrange(start, stop) - start if self._made is None else 0
        return start + min(int(self._choose(_caller(), drawn, 0)), stop - start - 1)

    def choice(self, seq: Sequence[T], /) -> T:
        """Pick one."""
        drawn = self._random.choice(range(len(seq))) if self._made is None else 0
        return seq[min(int(self._choose(_caller(), drawn, 0)), len(seq) - 1)]

    def is_said(self) -> bool:
        """Whether a person says what comes next."""
        return bool(self._choose(SAID, 1, 0))

    def _choose(self, who: str, drawn: float, default: float) -> float:
        place = who, self._counts[who]
        self._counts[who] += 1
        value = drawn if self._made is None else self._made.get(place, default)
        if value != default:
            self.used[place] = value
        return value


def _caller() -> str:
    frame = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
    return f"{frame.f_code.co_qualname}@{frame.f_lineno}"


Seed = int | Choices
"""What a run follows from."""


def dice_of(seed: Seed) -> Dice:
    """Return the dice of a run."""
    return seed if isinstance(seed, Choices) else Random(seed)


def chooser_of(seed: Seed, dice: Dice) -> Chooser:
    """Return the scheduler of a run: every other seed uses priorities."""
    number = seed.number if isinstance(seed, Choices) else seed
    return PriorityChooser(dice) if number % 2 else UniformChooser(dice)


# As text ------------------------------------------------------------------------------------------


def write_choices(scenario: int, number: int, made: Mapping[Place, float]) -> str:
    """Write the choices of a run as one line; `scenario` is its place among those of a seed."""
    parts = (f"{who}#{index}={_plain(value)}" for (who, index), value in sorted(made.items()))
    return " ".join((f"{scenario}/{number % 2}", *parts))


def _plain(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def read_choices(text: str) -> tuple[int, int, dict[Place, float]]:
    """Read what `write_choices` wrote. Raises `UsageError`."""
    head, *parts = text.split() or [""]
    try:
        scenario, number = map(int, head.split("/"))
        made: dict[Place, float] = {}
        for part in parts:
            place, value = part.rsplit("=", 1)
            who, index = place.rsplit("#", 1)
            made[who, int(index)] = float(value)
    except ValueError:
        raise UsageError(
            f"`{text[:80]}` are no choices of a run",
            "copy them from the line that `steersman simulate` printed, in quotes",
        ) from None
    return scenario, number, made
