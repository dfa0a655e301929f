"""What the folds of all parts of a session share: a step of a machine, a changed copy, a short memory.

A part of a record is a frozen dataclass. A fold returns the part as it is after an entry: the same
object where nothing changed, a new one that shares what did not change with the old one otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

from ..machines.errors import StoreDamaged
from ..machines.machine import Machine
from ..machines.step import Refusal, step

Part = TypeVar("Part")
REMEMBERED_CLIENTS = 500

_Setter = Callable[[Any, Any], None]
_Copier = tuple[Callable[[Any], Any], dict[str, _Setter]]
_COPIERS: dict[type, _Copier] = {}


def moved(machine: Machine, state: str, event: str, facts: frozenset[str] = frozenset()) -> str:
    """Return the state after an event; raises `StoreDamaged` when the machine refuses it."""
    answer = step(machine, state, event, facts)
    if isinstance(answer, Refusal):
        raise StoreDamaged(
            f"the journal contradicts the {machine.name} machine: {answer.reason}",
            "keep a copy of the database and report this; `steersman inspect` shows what is there",
        )
    return answer.state


def changed(part: Part, **changes: Any) -> Part:
    """Return a copy of a frozen, slotted dataclass with other values in some fields.

    `dataclasses.replace` does the same in three times the time, which a fold of a long journal would
    spend on little else: it runs `__init__`, which sets each field of a frozen class by its name.
    """
    cls = part.__class__
    copy, setters = _COPIERS.get(cls) or _copier(cls)
    after: Part = copy(part)
    for name, value in changes.items():
        setters[name](after, value)
    return after


def _copier(cls: Any) -> _Copier:
    """Write the function that copies a class's fields, as `dataclasses` writes `__init__`, once."""
    names = [field.name for field in fields(cls)]
    setters = {name: getattr(cls, name).__set__ for name in names}
    known = {"new": object.__new__, "cls": cls, **{f"set_{name}": setters[name] for name in names}}
    lines = (f" set_{name}(after, part.{name})" for name in names)
    exec("\n".join(("def copy(part):", " after = new(cls)", *lines, " return after")), known)
    _COPIERS[cls] = known["copy"], setters
    return _COPIERS[cls]


def remembered(known: Mapping[str, str], key: str, value: str) -> Mapping[str, str]:
    """Return what clients' keys got with one more of them: so many of the newest."""
    found = {**known, key: value}
    while len(found) > REMEMBERED_CLIENTS:
        del found[next(iter(found))]
    return found
