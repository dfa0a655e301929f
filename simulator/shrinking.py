"""Shrinks a run that broke a promise: fewer choices, the same promise broken in the same way.

After Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input" (2002): choices are left
out in ever smaller groups, first those of one place in the program, and what breaks the promise without
them is kept. A choice that is left out comes to the plainest that there is: no message is sent, nothing
fails, the one that waits longest is next.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec.structs import fields

from ..journal import entries as e
from ..machines import protocol as m
from ..machines.value import Value
from .choices import NEVER, SAID, Choices, Place, read_choices, write_choices
from .happening import Appended, Chronicle, Crashed, Happening, Poisoned, Uttered
from .play import Broken, Playable, play_one
from .program import ROOT

MOST_TRIES = 1_500
MOST_STEPS = 100_000
"""Steps of all tries together, half a minute of a slow machine: any machine shrinks as far as another."""
_PERSONS = ("Person.", "Operator.")
_NAMES = re.compile(r"\bs\d+(-\d+)*\b|\d+|'[^']*'|`[^`]*`")


class Shrunk(Value):
    """A shrunken run: `choices` play it again, `count` is how many there are, of `before`."""

    broken: Broken
    choices: str
    count: int
    before: int
    tries: int
    messages: tuple[str, ...]


Scenarios = tuple[Callable[[Any], Playable], ...]


def shrink(
    broken: Broken,
    scenarios: Scenarios,
    tries: int = MOST_TRIES,
) -> Shrunk | None:
    """Shrink the run of a seed, in so many tries at most.

    None if the run does not break again: it does not follow from its seed alone.
    """
    shrinking = _Shrinking(broken, scenarios[broken.scenario], tries)
    if not shrinking.attempt(None):
        return None
    before = len(shrinking.made)
    shrinking.run()
    made = shrinking.made
    return Shrunk(
        broken=shrinking.found,
        choices=write_choices(broken.scenario, broken.seed, made),
        count=len(made),
        before=before,
        tries=shrinking.tries,
        messages=shrinking.messages,
    )


def replay(text: str, scenarios: Scenarios) -> tuple[Broken | None, tuple[str, ...]]:
    """Play the run of these choices: what broke, if anything did, and its messages.

    Raises `UsageError` for a text that names no run.
    """
    scenario, number, made = read_choices(text)
    place = min(scenario, len(scenarios) - 1)
    broken, program = play_one(Choices(number, made), scenarios[place], number, place)
    return broken, tuple(messages_of(program.chronicle)) if program is not None else ()


class _Shrinking:
    """One failing run as it gets smaller; `made` are its choices, `found` is what breaks."""

    def __init__(self, broken: Broken, scenario: Callable[[Any], Playable], most: int) -> None:
        self.found, self.made, self.tries = broken, dict[Place, float](), 0
        self.messages: tuple[str, ...] = ()
        self._scenario, self._most, self._steps = scenario, most, 0
        self._kind = _kind(broken)

    @property
    def _is_over(self) -> bool:
        return self.tries >= self._most or self._steps >= MOST_STEPS

    def attempt(self, made: Mapping[Place, float] | None) -> bool:
        """Play with these choices only, or with all of the seed; take them if the same breaks."""
        self.tries += 1
        seed, scenario = self.found.seed, self.found.scenario
        choices = Choices(seed, made)
        broken, program = play_one(choices, self._scenario, seed, scenario)
        self._steps += program.steps if program is not None else 0
        if broken is None or _kind(broken) != self._kind or program is None:
            return False
        if made is not None and len(choices.used) > len(self.made):
            return False
        self.found, self.made = broken, dict(choices.used)
        self.messages = tuple(messages_of(program.chronicle))
        return True

    def run(self) -> None:
        """Leave out all choices of one place, then ever smaller groups; make what is left plainer."""
        self._drop_places()
        size = len(self.made) // 2
        while size > 1:
            self._drop_groups(size)
            size = min(size, len(self.made)) // 2
        while self._drop_groups(1) | self._move_up():
            pass
        self._simplify()

    def _drop_places(self) -> None:
        places = dict.fromkeys(who for who, _ in sorted(self.made))
        for place in places:
            if self._is_over:
                return
            left = {at: value for at, value in self.made.items() if at[0] != place}
            if len(left) < len(self.made):
                self.attempt(left)

    def _drop_groups(self, size: int) -> bool:
        """Try once to leave out each group of so many choices; whether any could be."""
        has_shrunk, start = False, 0
        while start < len(self.made) and not self._is_over:
            order = sorted(self.made)
            gone = set(order[start : start + size])
            if self.attempt({at: value for at, value in self.made.items() if at not in gone}):
                has_shrunk = True
            else:
                start += size
        return has_shrunk

    def _move_up(self) -> bool:
        """Try to leave out the gap before each choice, so that it and those behind it come sooner.

        What a person says moves together with the choices of how it is said.
        """
        has_shrunk = False
        for who, index in sorted(self.made):
            earlier = [at for place, at in self.made if place == who and at < index]
            gap = index - max(earlier, default=-1) - 1
            if not gap or self._is_over or (who, index) not in self.made:
                continue
            has_shrunk |= any(
                self.attempt(self._moved(places, index, gap))
                for places in (((SAID, *_PERSONS),) if who == SAID else ()) + ((who,),)
            )
        return has_shrunk

    def _moved(self, places: tuple[str, ...], index: int, gap: int) -> dict[Place, float]:
        """Return the choices with those of some places, from an index on, made so much sooner."""
        return {
            (who, at - gap if who.startswith(places) and at >= index else at): value
            for (who, at), value in self.made.items()
        }

    def _simplify(self) -> None:
        """Write the choices that are left as short as they can be."""
        for place in sorted(self.made):
            value = self.made.get(place)
            if value is None:
                continue
            for plainer in _plainer(value):
                if self._is_over or self.attempt({**self.made, place: plainer}):
                    break


def _plainer(value: float) -> Iterator[float]:
    if value == int(value):
        yield from (float(plain) for plain in (1, 2, int(value) // 2) if plain < value)
    else:
        plain = (0.5, round(value, 1), round(value, 2), round(value, 3))
        yield from (number for number in plain if 0 < number < NEVER and number != value)


def _kind(broken: Broken) -> tuple[str, str]:
    """Return how a promise was broken, apart from names and numbers."""
    return broken.promise, _NAMES.sub("", broken.found)[:60]


# What happens in it -------------------------------------------------------------------------------


def messages_of(chronicle: Chronicle) -> Iterator[str]:
    """Say, a line each, what is said, what fails, and what each session journals in between."""
    session, names = "", list[str]()
    for whose, happening in chronicle.all:
        said = _said(whose, happening)
        entry = happening.entry if isinstance(happening, Appended) else None
        if names and (said or (entry is not None and whose != session)):
            yield f"{session}: {', '.join(names)}"
            names = []
        if said:
            yield said
        if entry is not None:
            session = whose
            names.append(_entry(entry))
    if names:
        yield f"{session}: {', '.join(names)}"


def _said(session: str, happening: Happening) -> str:
    match happening:
        case Uttered(message=m.UserMessage() as message):
            return f"{message.said.user or 'a person'}: {message.type} {message.said.text!r}"
        case Uttered(message=message):
            return f"a person: {_brief(message)}"
        case Crashed() if session == ROOT:
            return "the program dies"
        case Poisoned():
            return "an actor is made to fail"
        case _:
            return ""


def _brief(message: m.Message) -> str:
    """Write a message with those of its fields that are not as usual."""
    said = (
        f"{field.name}={getattr(message, field.name)!r}"
        for field in fields(type(message))
        if getattr(message, field.name) != field.default
    )
    return f"{type(message).__name__}({', '.join(said)})"


def _entry(entry: e.Entry) -> str:
    """Name an entry, with what it is about."""
    about = [
        str(getattr(entry, name))
        for name in ("item", "turn", "child", "call", "goal", "status", "verdict")
        if getattr(entry, name, "")
    ]
    return " ".join((type(entry).__name__, *about[:2]))
