"""Entries and records to JSON data and back, driven by their type annotations.

Only what value classes here use is understood: primitives, tuples, lists and logs of one type, mappings
with string keys, optional values and nested values. Unknown fields are ignored, missing ones take
their defaults: a journal outlives the version that wrote it.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from threading import RLock
from types import GenericAlias
from typing import Any, TypeVar, cast, get_args, get_origin

from msgspec import NODEFAULT, Struct, ValidationError, convert

from ..machines.errors import StoreDamaged
from .entries import Entry
from .log import IndexMap, Log

T = TypeVar("T")
PLAIN = frozenset((str, int, float, bool, type(None)))


def kind_of(entry_type: type[Entry]) -> str:
    """Return the name of an entry type in the journal: `TurnStarted` is `turn_started`."""
    return _snake_case(entry_type.__name__)


@cache
def _snake_case(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


@cache
def _types() -> dict[str, type[Entry]]:
    """Return every entry type by its name."""
    return {kind_of(kind): kind for kind in get_args(Entry)}


def encode(value: Any) -> Any:
    """Turn a value into JSON data; fields that hold their default are left out."""
    kind: Any = value.__class__
    if kind in PLAIN:
        return value
    if kind is tuple or kind is list or kind is Log:
        if PLAIN.issuperset(map(type, value)):
            return list(value)  # the items of a run may be ten thousand texts
        return [encode(item) for item in value]
    if kind is dict or kind is IndexMap:
        return {key: encode(item) for key, item in value.items()}
    if not issubclass(kind, Struct):
        return value  # a string of an enumeration
    data: dict[str, Any] = {}
    for name, default in _defaults(kind):
        item = getattr(value, name)
        if default is NODEFAULT or item != default:
            data[name] = encode(item)
    return data


def encode_whole(value: Any) -> Any:
    """Turn a value into JSON data with all its fields, also those that hold their default."""
    if isinstance(value, list | tuple | Log):
        return [encode_whole(item) for item in cast(Sequence[Any], value)]
    if isinstance(value, Mapping):
        found = cast(Mapping[str, Any], value)
        return {key: encode_whole(item) for key, item in found.items()}
    if not isinstance(value, Struct):
        return value
    return {name: encode_whole(getattr(value, name)) for name in value.__struct_fields__}


_DEFAULTS: dict[type, tuple[tuple[str, Any], ...]] = {}


def _defaults(cls: type[Struct]) -> tuple[tuple[str, Any], ...]:
    """List a class's fields with their defaults, once; those that a factory makes count as none."""
    known = _DEFAULTS.get(cls)
    if known is None:
        names, defaults = cls.__struct_fields__, cls.__struct_defaults__
        missing = (NODEFAULT,) * (len(names) - len(defaults))
        known = _DEFAULTS[cls] = tuple(zip(names, (*missing, *defaults), strict=True))
    return known


def decode(cls: type[T], data: dict[str, Any]) -> T:
    """Build a value from JSON data. Raises `StoreDamaged` when a field is missing or of another type."""
    try:
        return cast("T", _converted(data, cls))
    except ValidationError as error:
        raise StoreDamaged(f"a journal entry does not fit `{cls.__name__}`: {error}") from error


_known_hints = set[Any]()
_first_time = RLock()


def _converted(data: Any, hint: Any) -> Any:
    """Convert data, for the first time by one thread alone.

    msgspec then works out the fields of the classes, and a second thread that comes upon a class whose
    fields are not worked out yet ends the process (msgspec 0.22: `StructInfo_Convert`).
    """
    if hint in _known_hints:
        return convert(data, hint, dec_hook=_decode_ours)
    with _first_time:
        value = convert(data, hint, dec_hook=_decode_ours)
    _known_hints.add(hint)
    return value


def _decode_ours(hint: Any, data: Any) -> Any:
    """Build a log or an index map, which msgspec does not know."""
    kind, inner = get_origin(hint), get_args(hint)[0]
    if kind is Log:
        return Log(_converted(data, GenericAlias(list, (inner,))))
    if kind is IndexMap:
        return IndexMap(_converted(data, GenericAlias(dict, (str, inner))))
    raise NotImplementedError(f"no way to decode {hint}")


def encode_entry(entry: Entry) -> dict[str, Any]:
    """Turn an entry into the JSON object that is stored."""
    return {"kind": kind_of(type(entry)), **encode(entry)}


def decode_entry(data: dict[str, Any]) -> Entry:
    """Build an entry from its JSON object. Raises `StoreDamaged` for an unknown kind."""
    kind = data.get("kind", "")
    found = _types().get(kind)
    if found is None:
        raise StoreDamaged(
            f"the journal has an entry of unknown kind `{kind}`",
            "a later version of steersman wrote it: update this one",
        )
    return decode(found, {key: item for key, item in data.items() if key != "kind"})
