"""Who may set which key of the configuration: each table of `settings.py` declares it, here it is asked.

A folder that was downloaded may hold a `steersman.toml`. Whatever such a file or a workflow says passes
`split`, which leaves only what its layer may set: a key without a declaration is the person's alone.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any, get_args, get_origin

from msgspec.structs import fields

from .document import is_table
from .problem import Where, dotted
from .settings import Settings
from .typed_table import SetBy, Setter, SettingsTable


def split(data: dict[str, Any], layer: Setter) -> tuple[dict[str, Any], dict[str, Setter]]:
    """Take out of a document what its layer may not set.

    Returns the rest, and the names of what was taken, each with who may set it.
    """
    taken = dict[str, Setter]()
    return _split(data, Settings, (), layer, taken), taken


def keys_of(data: dict[str, Any]) -> list[str]:
    """Name what a document sets: tables as a whole where one may set all of their keys."""
    taken = dict[str, Setter]()
    _split(data, Settings, (), None, taken)
    return list(taken)


def settings_by_setter() -> Iterator[tuple[str, Setter]]:
    """List every key and table for which somebody else may decide than for the rest of its table."""
    yield from _listed(Settings, ())


def _split(
    data: dict[str, Any], kind: Any, where: Where, layer: Setter | None, taken: dict[str, Setter]
) -> dict[str, Any]:
    left: dict[str, Any] = {}
    for name, value in data.items():
        setter, inner = _below(kind, name)
        if setter is None and is_table(value):
            left[name] = _split(value, inner, (*where, name), layer, taken)
            continue
        needed = Setter.PERSON if setter is None else setter
        if layer is not None and needed <= layer:
            left[name] = value
        else:
            taken[dotted((*where, name))] = needed
    return left


def _listed(kind: Any, where: Where) -> Iterator[tuple[str, Setter]]:
    names = _keys(kind) if _is_settings(kind) else {"NAME": _below(kind, "NAME")}
    for name, (setter, inner) in names.items():
        if setter is None:
            yield from _listed(inner, (*where, name))
        else:
            yield dotted((*where, name)), setter


def _below(kind: Any, name: str) -> tuple[Setter | None, Any]:
    """Return who sets a key of a table, and its type; `None` where it depends on the keys in it."""
    if _is_settings(kind):
        return _keys(kind).get(name, (Setter.PERSON, None))
    return _meant(get_args(kind)[1], Setter.PERSON)


@cache
def _keys(kind: type[SettingsTable]) -> dict[str, tuple[Setter | None, Any]]:
    return {field.name: _meant(field.type, kind.set_by) for field in fields(kind)}


def _meant(hint: Any, above: Setter) -> tuple[Setter | None, Any]:
    """Return who sets a value of a type, and the type without annotations."""
    while notes := getattr(hint, "__metadata__", ()):
        for note in notes:
            if isinstance(note, SetBy):
                return note.setter, None
        hint = get_args(hint)[0]
    tables = list(_tables(hint))
    if not tables:
        return above, None
    setters = {setter for table in tables for setter in _setters(table)}
    return (setters.pop(), None) if len(setters) == 1 else (None, hint)


def _tables(hint: Any) -> Iterator[type[SettingsTable]]:
    """Find the tables in a type: itself, those of an array, those by name, one that may be missing."""
    if _is_settings(hint):
        yield hint
    elif get_origin(hint) is not None:
        for part in get_args(hint):
            yield from _tables(part)


def _setters(kind: type[SettingsTable]) -> Iterator[Setter | None]:
    for setter, inner in _keys(kind).values():
        yield setter if inner is None else None
    if not _keys(kind):
        yield kind.set_by


def _is_settings(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, SettingsTable)
