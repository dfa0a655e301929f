"""Who may set which key of the configuration: each table of `settings.py` declares it, here it is asked.

A folder that was downloaded may hold a `steersman.toml`. Whatever such a file or a workflow says passes
`split`, which leaves only what its layer may set: a key without a declaration is the person's alone.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, get_args

from msgspec.structs import fields

from .document import is_table
from .problem import Where, dotted
from .settings import Settings
from .typed_table import SetBy, Setter, SettingsTable, is_table_type

Authority = Setter | Mapping[str, "Authority"]
"""Who sets a value: one for all that is in it, or one for each key; `NAME` stands for any name."""


def split(data: dict[str, Any], layer: Setter) -> tuple[dict[str, Any], dict[str, Setter]]:
    """Take out of a document what its layer may not set.

    Returns the rest, and the names of what was taken, each with who may set it.
    """
    taken = dict[str, Setter]()
    return _split(data, _settings(), (), layer, taken), taken


def keys_of(data: dict[str, Any]) -> list[str]:
    """Name what a document sets: tables as a whole where one may set all of their keys."""
    taken = dict[str, Setter]()
    _split(data, _settings(), (), None, taken)
    return list(taken)


def settings_by_setter() -> Iterator[tuple[str, Setter]]:
    """List every key and table for which somebody else may decide than for the rest of its table."""
    yield from _listed(_settings(), ())


def _split(
    data: dict[str, Any],
    above: Mapping[str, Authority],
    where: Where,
    layer: Setter | None,
    taken: dict[str, Setter],
) -> dict[str, Any]:
    left: dict[str, Any] = {}
    for name, value in data.items():
        authority = above.get(name, above.get(_ANY, Setter.PERSON))
        if not isinstance(authority, Setter) and is_table(value):
            left[name] = _split(value, authority, (*where, name), layer, taken)
            continue
        needed = authority if isinstance(authority, Setter) else Setter.PERSON
        if layer is not None and needed <= layer:
            left[name] = value
        else:
            taken[dotted((*where, name))] = needed
    return left


def _listed(above: Mapping[str, Authority], where: Where) -> Iterator[tuple[str, Setter]]:
    for name, authority in above.items():
        if isinstance(authority, Setter):
            yield dotted((*where, name)), authority
        else:
            yield from _listed(authority, (*where, name))


_ANY = "NAME"


@cache
def _settings() -> Mapping[str, Authority]:
    authority = _authority(Settings, Setter.PERSON)
    assert not isinstance(authority, Setter)
    return authority


def _authority(hint: Any, above: Setter) -> Authority:
    """Return who sets a value of a type; `above`: whoever sets the other keys beside it."""
    while notes := getattr(hint, "__metadata__", ()):
        for note in notes:
            if isinstance(note, SetBy):
                return note.setter
        hint = get_args(hint)[0]
    if isinstance(hint, type) and issubclass(hint, SettingsTable):
        keys = {field.name: _authority(field.type, hint.set_by) for field in fields(hint)}
        setters = [*keys.values()] or [hint.set_by]
        is_one = isinstance(setters[0], Setter) and all(setter is setters[0] for setter in setters)
        return setters[0] if is_one else keys
    inner = [part for part in get_args(hint) if is_table_type(part)]
    if not inner:
        return above
    (table,) = inner  # of an array, by name, or one that may be missing
    authority = _authority(table, above)
    return authority if isinstance(authority, Setter) else {_ANY: authority}
