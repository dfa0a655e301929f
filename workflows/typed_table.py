"""Tables of TOML files. Each is declared once, as a class whose fields are the keys.

From that follows all else: `read_table` reads it and finds everything that is wrong, `known_keys` lists
its keys for suggestions, `authority.py` says who may set them, and `schema.py` describes them to editors
and in the docs, each in the words of the text below its field.

Types are narrowed by annotations: `msgspec.Meta` with bounds, and a `Narrowing`, such as a `Check`.
"""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import IntEnum
from functools import cache, partial
from math import isfinite
from types import UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    TypeGuard,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
)

from msgspec import Meta, Struct
from msgspec.structs import fields

from ..machines.value import KeywordOnly, Value
from .document import is_table
from .problem import (
    Problem,
    UnknownWord,
    Where,
    dotted,
    must_be,
    must_be_list,
    must_be_one_of,
    shown,
    wrong,
)

Found = list[Problem]
Reader = Callable[[Any, Where, Found], Any]
"""Reads the value at a place; what is wrong in it is added to what was found."""


class Narrowing(Struct, frozen=True, eq=False):
    """Annotates a type of which not every value may be given."""

    def check(self, value: Any) -> Any:
        """Return the value, or what it stands for. Raises a `ValueError` that ends "`key` …"."""
        return value

    def described(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return a JSON Schema of the value; the given one is that of the type."""
        return schema

    def narrowed(self, read: Reader) -> Reader:
        """Return what reads a value that is narrowed; `read` reads one of the type."""

        def checked(value: Any, where: Where, found: Found) -> Any:
            before = len(found)
            value = read(value, where, found)
            return checked_by(self.check, value, where, found) if len(found) == before else None

        return checked


class Check(Narrowing, frozen=True, eq=False):
    """Annotates a value with a function that returns it, or raises a `ValueError` that ends "`key` …".

    `schema` describes the value as JSON Schema; if left out, its type does.
    """

    function: Callable[[Any], Any]
    schema: Mapping[str, Any] | None = None

    def check(self, value: Any) -> Any:
        """Return the value. Raises `ValueError`."""
        return self.function(value)

    def described(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return the schema of the value."""
        return schema if self.schema is None else dict(self.schema)


def must(
    holds: Callable[[Any], object], said: str, schema: Mapping[str, Any] | None = None
) -> Check:
    """Return a check that something holds; else it is `said`, in which `{}` is the value."""

    def check(value: Any) -> Any:
        if holds(value):
            return value
        written = f"{value:g}" if isinstance(value, float) else shown(value)
        raise ValueError(said.replace("{}", written))

    return Check(check, schema)


class TypedTable(Value):
    """A table whose keys are the fields; a field may have another name than its key.

    Nothing is converted but an array, into a tuple; a whole number may stand for a float.
    """

    def check(self) -> None:
        """Raise a `ValueError` for values that do not belong together."""


class Setter(IntEnum):
    """Who may set a key; a higher one may also set what a lower one may.

    A workflow that a person runs counts as a trusted project.
    """

    ANY_PROJECT = 0
    TRUSTED_PROJECT = 1
    PERSON = 2


class SetBy(Struct, frozen=True):
    """Annotates a key, or a table by names, that is not set by whom its table says."""

    setter: Setter


class _WithSetter(KeywordOnly):
    """Creates tables of the settings; each says who sets its keys."""

    def __new__(mcls, *parts: Any, set_by: Setter, **options: Any) -> Any:
        made = super().__new__(mcls, *parts, **options)
        made.set_by = set_by
        return made


class SettingsTable(TypedTable, metaclass=_WithSetter, set_by=Setter.PERSON):
    """A table of the configuration. `set_by`: who may set its keys; each class has to say it."""

    set_by: ClassVar[Setter]


AnyTable = TypeVar("AnyTable", bound=TypedTable)


def read_table(kind: type[AnyTable], data: object) -> tuple[AnyTable | None, list[Problem]]:
    """Make a table of parsed TOML; none, with all that is wrong, if it is not as declared."""
    found = Found()
    made: AnyTable | None = _table(kind, data, (), found)
    return (None if found else made), found


def is_table_type(hint: Any) -> TypeGuard[type[TypedTable]]:
    """Whether a type is that of a table."""
    return isinstance(hint, type) and issubclass(hint, TypedTable)


@cache
def known_keys(kind: type[TypedTable]) -> tuple[Where, ...]:
    """Return the path of each key and table, parents first; `*` stands for a name or a number."""
    return tuple(_paths(kind, ()))


def _paths(hint: Any, where: Where) -> Iterator[Where]:
    if is_table_type(hint):
        for field in fields(hint):
            yield (*where, field.encode_name)
            yield from _paths(field.type, (*where, field.encode_name))
        return
    inside = (*where, "*") if get_origin(hint) in (dict, tuple) else where
    for inner in get_args(hint):
        yield from _paths(inner, inside)


# Readers of values --------------------------------------------------------------------------------


class _Key(NamedTuple):
    """A key of a table, with the name of its field."""

    key: str
    name: str
    read: Reader
    is_required: bool


@cache
def _keys(kind: type[TypedTable]) -> tuple[_Key, ...]:
    return tuple(
        _Key(field.encode_name, field.name, reader(field.type), field.required)
        for field in fields(kind)
    )


def _table(kind: type[AnyTable], data: Any, where: Where, found: Found) -> Any:
    if not is_table(data):
        return found.append(must_be("a table", data, where))
    before = len(found)
    keys = _keys(kind)
    values: dict[str, Any] = {}
    for key, name, read, is_required in keys:
        place = (*where, key)
        if key in data:
            values[name] = read(data[key], place, found)
        elif is_required:
            found.append(Problem(where, f"`{dotted(place)}` is missing", at_value=False))
    if len(values) < len(data):
        known = {key.key for key in keys}
        for key, value in data.items():
            if key not in known:
                found.append(_unknown_key((*where, key), value))
    if len(found) > before:
        return None
    made = kind(**values)
    return checked_by(lambda table: table.check() or table, made, where, found)


def _unknown_key(where: Where, value: object) -> Problem:
    message = f"unknown key `{dotted(where)}`"
    return Problem(where, message, value=value, at_value=False, is_unknown=True)


def checked_by(check: Callable[[Any], Any], value: Any, where: Where, found: Found) -> Any:
    """Return what a check returns; what it raises is added to what was found."""
    try:
        return check(value)
    except UnknownWord as error:
        found.append(must_be_one_of(error.known, value, where))
    except ValueError as error:
        found.append(wrong(where, str(error)))
    return None


def reader(hint: Any) -> Reader:
    """Return what reads values of a type."""
    origin, inner = get_origin(hint), get_args(hint)
    if is_table_type(hint):
        return partial(_table, hint)
    if origin is Annotated:
        read = reader(inner[0])
        for note in hint.__metadata__:
            if isinstance(note, Meta):
                read = _bounded(read, note)
            elif isinstance(note, Narrowing):
                read = note.narrowed(read)
        return read
    if origin in (Union, UnionType):
        (some,) = [kind for kind in inner if kind is not type(None)]
        return partial(_unless_none, reader(some))
    if origin is tuple:
        return partial(_each, reader(inner[0]))
    if origin is dict:
        return partial(_by_name, reader(inner[0]), reader(inner[1]))
    if origin is Literal:
        return partial(_one_of, inner)
    return _PLAIN[hint] if hint in _PLAIN else partial(checked_by, hint.read)


def _unless_none(read: Reader, value: Any, where: Where, found: Found) -> Any:
    return None if value is None else read(value, where, found)


def _each(read: Reader, value: Any, where: Where, found: Found) -> Any:
    if not isinstance(value, list | tuple):
        return found.append(must_be_list(value, where))
    items = cast("Sequence[Any]", value)
    return tuple(read(item, (*where, number), found) for number, item in enumerate(items))


def _by_name(read_name: Reader, read: Reader, value: Any, where: Where, found: Found) -> Any:
    if not is_table(value):
        return found.append(must_be("a table", value, where))
    made: dict[str, Any] = {}
    for name, item in value.items():
        place, of_name = (*where, name), Found()
        read_name(name, place, of_name)
        found += [Problem(place, fault.message, fault.hint, at_value=False) for fault in of_name]
        made[name] = read(item, place, found)
    return made


def _one_of(words: tuple[Any, ...], value: Any, where: Where, found: Found) -> Any:
    if not any(type(value) is type(word) and value == word for word in words):
        found.append(must_be_one_of(tuple(map(str, words)), value, where))
    return value


def _bounded(read: Reader, bounds: Meta) -> Reader:
    """Return what reads a value within bounds."""
    limits = (
        (bounds.gt, operator.gt, "greater than"),
        (bounds.lt, operator.lt, "less than"),
        (bounds.le, operator.le, "less than or equal to"),
    )

    def bounded(given: Any, where: Where, found: Found) -> Any:
        before = len(found)
        value = read(given, where, found)
        if len(found) > before:
            return None
        if bounds.ge is not None and value < bounds.ge:
            found.append(must_be(f"at least {bounds.ge:g}", given, where))
        for limit, holds, said in limits:
            if limit is not None and not holds(value, limit):
                found.append(wrong(where, f"is wrong: Input should be {said} {limit:g}"))
        if bounds.min_length and len(value) < bounds.min_length:
            least = "is wrong: String should have at least 1 character"
            found.append(wrong(where, least if isinstance(value, str) else "must not be empty"))
        return value

    return bounded


def _plain(expected: str, fits: Callable[[Any], bool]) -> Reader:
    def read(value: Any, where: Where, found: Found) -> Any:
        return value if fits(value) else found.append(must_be(expected, value, where))

    return read


def _number(value: Any, where: Where, found: Found) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            if isfinite(number := float(value)):
                return number
        except OverflowError:
            pass
    return found.append(must_be("a number", value, where))


_PLAIN: dict[Any, Reader] = {
    Any: lambda value, where, found: value,
    bool: _plain("true or false", lambda value: isinstance(value, bool)),
    float: _number,
    int: _plain("a whole number", lambda value: type(value) is int),
    str: _plain("a text in quotes", lambda value: isinstance(value, str)),
}
