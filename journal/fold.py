"""Functions that the folds of all parts of a session share: a step of a machine, a short memory.

A part of a record is an immutable value. A fold returns the part as it is after an entry: the same
object where nothing changed, a new one that shares what did not change with the old one otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeGuard, TypeVar, get_args

from ..machines.errors import StoreDamaged
from ..machines.machine import Machine, Refusal, step

T = TypeVar("T")
REMEMBERED_CLIENTS = 500


class EntryKinds(Generic[T]):
    """The types of entries in a union, looked up at once: most parts pass over most entries."""

    def __init__(self, union: Any) -> None:
        self._kinds = frozenset(get_args(union))

    def include(self, entry: object) -> TypeGuard[T]:
        """Whether an entry is of one of them."""
        return type(entry) in self._kinds


def moved(
    machine: Machine,
    state: str,
    event: str,
    facts: frozenset[str] = frozenset(),
    *,
    strict: bool = False,
) -> str:
    """Return the state after an event; raises `StoreDamaged` when the machine refuses it.

    `strict`: an event that is ignored is refused, too.
    """
    answer = step(machine, state, event, facts)
    if isinstance(answer, Refusal) or (strict and answer.ignored):
        why = answer.reason if isinstance(answer, Refusal) else answer.ignored
        raise StoreDamaged(
            f"the journal contradicts the {machine.name} machine: {why}",
            "keep a copy of the database and report this; `steersman inspect` shows what is there",
        )
    return answer.state


def remembered(known: Mapping[str, str], key: str, value: str) -> Mapping[str, str]:
    """Return what clients' keys got with one more of them: so many of the newest."""
    found = {**known, key: value}
    while len(found) > REMEMBERED_CLIENTS:
        del found[next(iter(found))]
    return found
