"""The ground of all that people declare in TOML: models that take only what they know.

Nothing is converted on the way in, except a TOML array into a tuple and a whole number into a float,
and an unknown key is a fault. What is wrong is said by `fault.faults_of`. Building is put off until
the first use, so that only the outermost model of a file is ever built.
"""

from collections.abc import Iterator
from typing import Annotated, Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, Field

from .fault import Where

__all__ = ["Declaration", "Several", "known_keys"]

Item = TypeVar("Item")
# Strictly, a TOML array would be no tuple.
Several = Annotated[tuple[Item, ...], Field(strict=False)]


class Declaration(
    BaseModel, frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True
):
    """A table whose keys are the fields; a validator's ValueError ends the sentence "`key` …"."""


def known_keys(kind: Any, where: Where = ()) -> Iterator[Where]:
    """List the path of each key and table, parents first; `*` stands for a name or a number."""
    if isinstance(kind, type) and issubclass(kind, Declaration):
        for name, field in kind.model_fields.items():
            key = (*where, field.alias or name)
            yield key
            yield from known_keys(field.annotation, key)
        return
    inside = (*where, "*") if get_origin(kind) in (dict, tuple) else where
    for inner in get_args(kind):
        yield from known_keys(inner, inside)
