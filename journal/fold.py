"""What the folds of all parts of a session share: a step of a machine, and a memory that forgets."""

from typing import Any

from ..machines.errors import StoreDamaged
from ..machines.machine import Machine
from ..machines.step import Refusal, step

__all__ = ["move", "remember"]

REMEMBERED_CLIENTS = 500


def move(machine: Machine, owner: Any, event: str, facts: frozenset[str] = frozenset()) -> None:
    """Fire an event on a record; raises `StoreDamaged` when its machine refuses."""
    moved = step(machine, owner.state, event, facts)
    if isinstance(moved, Refusal):
        raise StoreDamaged(
            f"the journal contradicts the {machine.name} machine: {moved.reason}",
            "keep a copy of the database and report this; `steersman inspect` shows what is there",
        )
    owner.state = moved.state


def remember(known: dict[str, str], key: str, value: str) -> None:
    """Keep what a client's key got, for so many of the newest."""
    known[key] = value
    while len(known) > REMEMBERED_CLIENTS:
        del known[next(iter(known))]
