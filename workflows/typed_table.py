"""The base of the settings' tables, and what their fields are checked with.

A table is read by msgspec, which takes little time and stops at the first fault; what it refuses is
examined by pydantic, which finds all faults (`checking.py`). Both read the same annotations: of types,
of `msgspec.Meta` for bounds and descriptions, and of `Check`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum
from functools import cache
from math import isfinite
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Protocol,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

from msgspec import Struct, ValidationError, convert
from msgspec.structs import fields

from ..machines.value import Value

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler


class Check(Struct, frozen=True, eq=False):
    """Annotates a value with a function that returns it, or raises a `ValueError` that ends "`key` …".

    `schema` describes the value as JSON Schema; if left out, its type does.
    """

    function: Callable[[Any], Any]
    schema: Mapping[str, Any] | None = None

    def check(self, value: Any) -> Any:
        """Return the value. Raises `ValueError`."""
        return self.function(value)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_after_validator_function(self.function, handler(source))

    def __get_pydantic_json_schema__(self, schema: Any, handler: GetJsonSchemaHandler) -> Any:
        return handler(schema) if self.schema is None else dict(self.schema)


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


class SettingsTable(Value, forbid_unknown_fields=True):
    """A table whose keys are the fields. Nothing is converted but an array, into a tuple.

    A whole number becomes a float where one is wanted. `set_by`: who may set its keys.
    """

    set_by: ClassVar[Setter] = Setter.PERSON

    def __post_init__(self) -> None:
        """Check the values by themselves, then together."""
        for name, check in _checks(type(self)):
            check(getattr(self, name))
        self.check()

    def check(self) -> None:
        """Raise a `ValueError` for values that do not belong together."""


AnyTable = TypeVar("AnyTable", bound=SettingsTable)


def read_table(kind: type[AnyTable], data: Mapping[str, Any]) -> AnyTable:
    """Make a table of parsed TOML. Raises `ValidationError` for the first fault."""
    return convert(data, kind, dec_hook=_read)


def is_sound(kind: type[SettingsTable], data: Mapping[str, Any]) -> bool:
    """Whether a table can be made of parsed TOML."""
    try:
        read_table(kind, data)
    except ValidationError:
        return False
    return True


class ReadType(Protocol):
    """A type of values that are written differently: `read` makes one, or raises `ValueError`."""

    @classmethod
    def read(cls, value: object) -> Any:
        """Return the value. Raises `ValueError`."""


def _read(kind: type[ReadType], value: object) -> Any:
    return kind.read(value)


Checker = Callable[[Any], object]


@cache
def _checks(kind: type[SettingsTable]) -> tuple[tuple[str, Checker], ...]:
    """Return the fields that are to be checked, and how."""
    found = ((field.name, tuple(_checkers(field.type))) for field in fields(kind))
    return tuple((name, _all_of(checkers)) for name, checkers in found if checkers)


def _checkers(hint: Any) -> Iterator[Checker]:
    """List how a value of this type is checked, where msgspec does not."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is float:
        yield _finite
    elif origin is Annotated:
        yield from _checkers(inner[0])
        yield from (note.check for note in hint.__metadata__ if hasattr(note, "check"))
    elif origin in (Union, UnionType):
        for one in inner:
            yield from (_unless_none(checker) for checker in _checkers(one))
    elif origin is tuple:
        yield from (_of_each(checker) for checker in _checkers(inner[0]))
    elif origin is dict:
        yield from (_of_each(checker) for checker in _checkers(inner[0]))  # of the names
        yield from (_of_values(checker) for checker in _checkers(inner[1]))


def _all_of(checkers: tuple[Checker, ...]) -> Checker:
    def check(value: Any) -> None:
        for checker in checkers:
            checker(value)

    return check


def _finite(value: float) -> None:
    if not isfinite(value):
        raise ValueError("is no number")


def _unless_none(checker: Checker) -> Checker:
    return lambda value: None if value is None else checker(value)


def _of_each(checker: Checker) -> Checker:
    return lambda values: [checker(value) for value in values]


def _of_values(checker: Checker) -> Checker:
    return lambda values: [checker(value) for value in values.values()]
