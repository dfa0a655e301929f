"""The order of steps: their needs, and cycles in them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter
from itertools import islice

from ..problem import Problem, did_you_mean
from .spec import StepSpec


def waits_for(steps: Sequence[StepSpec]) -> dict[str, tuple[str, ...]]:
    """Return for each step those that must end before it; `finally` steps wait for all others."""
    usual = tuple(step.id for step in steps if not step.is_final)
    return {
        step.id: (*usual, *(need for need in step.needs if need not in usual))
        if step.is_final
        else step.needs
        for step in steps
    }


def find_cycle(needs: Mapping[str, Sequence[str]]) -> list[str]:
    """Return one cycle of needs, its first name repeated at the end; empty if there is none.

    A name that `needs` has no entry for needs nothing.
    """
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        cycle: list[str] = error.args[1]
        return cycle[::-1]
    return []


def ancestors(needs: Mapping[str, Sequence[str]]) -> dict[str, frozenset[str]]:
    """Return all steps that each step needs, directly or not; in a cycle each needs all others."""
    found: dict[str, frozenset[str]] = {}
    for names in levels(needs):
        for name in names:
            above = needs[name]
            found[name] = frozenset(above).union(*(found.get(parent, ()) for parent in above))
    for name in needs.keys() - found:
        found[name] = _reachable(name, needs)
    return found


def _reachable(start: str, needs: Mapping[str, Sequence[str]]) -> frozenset[str]:
    found: set[str] = set()
    waiting = list(needs[start])
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += needs.get(name, ())
    return frozenset(found)


def levels(needs: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Sort names into levels: each is in the first level after all that it needs.

    A name that `needs` has no entry for needs nothing; those in or behind a circle are in no level.
    """
    sorter = TopologicalSorter(dict.fromkeys(needs, ()))
    for name, above in needs.items():
        sorter.add(name, *(parent for parent in above if parent in needs))
    with suppress(CycleError):
        sorter.prepare()
    found: list[list[str]] = []
    while level := sorter.get_ready():
        found.append(list(level))
        sorter.done(*level)
    return found


def shared_ids(steps: Sequence[StepSpec]) -> Iterator[Problem]:
    """Find ids that two steps share."""
    seen = set[str]()
    for step in steps:
        if step.id in seen:
            hint = "each step needs a unique id"
            yield Problem(("step", step.number, "id"), f"there are two steps `{step.id}`", hint)
        seen.add(step.id)


def order_problems(
    steps: Sequence[StepSpec], broken: frozenset[str] = frozenset()
) -> Iterator[Problem]:
    """Find unknown steps in `needs` and `redo`, and cycles of steps with unique ids.

    `broken` are ids of steps that are there, and wrong.
    """
    first = {step.id: step for step in steps}
    for step in steps:
        yield from _needs_problems(step, first, broken)
    known = {name: [need for need in step.needs if need in first] for name, step in first.items()}
    while cycle := find_cycle(known):
        yield _cycle_problem(cycle, first)
        known = {name: [n for n in needs if n not in cycle] for name, needs in known.items()}


def _needs_problems(
    step: StepSpec, steps: Mapping[str, StepSpec], broken: frozenset[str]
) -> Iterator[Problem]:
    for number, need in enumerate(step.needs):
        where = ("step", step.number, "needs", number)
        if need in step.needs[:number]:
            yield Problem(where, f"step `{step.id}` names `{need}` twice in `needs`")
        elif need in broken:
            continue
        elif need not in steps:
            message = f"step `{step.id}` needs `{need}`, which is not there"
            yield Problem(where, message, _known_steps(need, steps, broken))
        elif steps[need].is_final and not step.is_final:
            message = f"step `{step.id}` needs `{need}`, which runs at the very end (`finally`)"
            yield Problem(where, message, "add `finally = true` here, or remove it there")
    for number, name in enumerate(step.redo):
        if name not in steps and name not in broken:
            message = f"step `{step.id}` does `{name}` anew, which is not there"
            where = ("step", step.number, "redo", number)
            yield Problem(where, message, _known_steps(name, steps, broken))


def _known_steps(name: str, steps: Mapping[str, StepSpec], broken: frozenset[str]) -> str:
    """Return a hint for a name that no step has."""
    return did_you_mean(name, [*steps, *broken]) or f"steps: {listed(steps, 8)}"


def listed(names: Collection[str], most: int = 10) -> str:
    """Write names as part of a sentence, of very many the first."""
    first = ", ".join(f"`{name}`" for name in islice(names, most))
    return first + (", …" if len(names) > most else "")


def _cycle_problem(cycle: list[str], steps: Mapping[str, StepSpec]) -> Problem:
    begin = min(range(len(cycle) - 1), key=lambda at: steps[cycle[at]].number)
    names = [*cycle[begin:-1], *cycle[: begin + 1]]
    step = steps[names[0]]
    path = " needs ".join(f"`{name}`" for name in names[:12]) + (" …" if len(names) > 12 else "")
    message = f"steps wait for each other: {path}"
    if len(names) == 2:
        message = f"step `{step.id}` needs itself"
    where = ("step", step.number, "needs", step.needs.index(names[1]))
    return Problem(where, message, "remove one of these needs")
