"""What is declared in TOML and read by pydantic, which reports everything that is wrong in a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from types import GenericAlias, UnionType
from typing import Annotated, Any, TypeGuard, TypeVar, Union, get_args, get_origin

from msgspec import NODEFAULT, Meta
from msgspec.structs import fields
from pydantic import BaseModel, Field, ValidationError, create_model, model_validator

from .problem import Problem, Where, problems_of
from .typed_table import SettingsTable

# Nothing is converted on the way in, except a TOML array into a tuple and a whole number into a float,
# and an unknown key is a problem. `problem.problems_of` reports what is wrong. Building is deferred to
# the first use, so that only the outermost model of a file is built.


Item = TypeVar("Item")
# Strictly, a TOML array would be no tuple.
Several = Annotated[tuple[Item, ...], Field(strict=False)]


class Declaration(
    BaseModel, frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True
):
    """A table whose keys are the fields; a validator's ValueError ends the sentence "`key` …"."""


def known_keys(kind: Any, where: Where = ()) -> Iterator[Where]:
    """List the path of each key and table, parents first; `*` stands for a name or a number."""
    if _is_table(kind):
        kind = model_of(kind)
    if isinstance(kind, type) and issubclass(kind, Declaration):
        for name, field in kind.model_fields.items():
            key = (*where, field.alias or name)
            yield key
            yield from known_keys(field.annotation, key)
        return
    inside = (*where, "*") if get_origin(kind) in (dict, tuple) else where
    for inner in get_args(kind):
        yield from known_keys(inner, inside)


# Tables of the settings ---------------------------------------------------------------------------


@cache
def model_of(kind: type[SettingsTable]) -> type[Declaration]:
    """Return the declaration that accepts what a table accepts; it reports all faults."""

    def check(self: Any) -> Any:
        kind.check(self)
        return self

    validator: Any = model_validator(mode="after")(check)
    declared: dict[str, Any] = {}
    for field in fields(kind):
        has_factory = field.default_factory is not NODEFAULT
        usual = Field(default_factory=field.default_factory) if has_factory else field.default
        declared[field.name] = (_declared(field.type), ... if usual is NODEFAULT else usual)
    return create_model(
        kind.__name__,
        __base__=Declaration,
        __doc__=kind.__doc__,
        __module__=kind.__module__,
        __validators__={"check": validator},
        **declared,
    )


def table_problems(kind: type[SettingsTable], data: Mapping[str, Any]) -> list[Problem]:
    """Find everything that is wrong in what a table is to be made of."""
    try:
        model_of(kind).model_validate(data)
    except ValidationError as error:
        return problems_of(error)
    return []


def _declared(hint: Any) -> Any:
    """Return a type as pydantic reads it."""
    origin, inner = get_origin(hint), get_args(hint)
    if _is_table(hint):
        return model_of(hint)
    if origin is Annotated:
        return Annotated[(_declared(inner[0]), *map(_note, hint.__metadata__))]  # pyright: ignore
    if origin in (Union, UnionType):
        return Union[tuple(map(_declared, inner))]  # noqa: UP007 - of any number
    if origin is tuple:
        several: Any = Several
        return several[_declared(inner[0])]
    if origin is dict:
        return GenericAlias(dict, tuple(map(_declared, inner)))
    return hint


def _is_table(hint: Any) -> TypeGuard[type[SettingsTable]]:
    return isinstance(hint, type) and issubclass(hint, SettingsTable)


def _note(note: Any) -> Any:
    """Return a note of an annotation as pydantic reads it."""
    if not isinstance(note, Meta):
        return note
    return Field(
        gt=note.gt,
        ge=note.ge,
        lt=note.lt,
        le=note.le,
        min_length=note.min_length,
        description=note.description,
    )
