"""The JSON Schema of a configuration file, so that editors complete and check it."""

import dataclasses
import tomllib
import types
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

from .reference import entries
from .settings import Settings
from .shape import AtLeast, Only, Parsed, Where, hints

__all__ = ["schema"]

_SCALARS = {bool: "boolean", int: "integer", float: "number", str: "string"}
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema() -> dict[str, Any]:
    """Describe every key: its type, its meaning, and what it is when nobody sets it."""
    whole = _describe(Settings)
    for entry in entries():
        part = _find(whole, entry.where)
        part.setdefault("description", entry.comment)
        if entry.value and not entry.is_example and entry.where[0] != "agents":
            part["default"] = tomllib.loads(f"value = {entry.value}")["value"]
    return {"$schema": _DIALECT, "title": "steersman configuration", **whole}


def _find(whole: dict[str, Any], where: Where) -> dict[str, Any]:
    part = whole
    for name in where:
        part = part["properties"][name] if "properties" in part else part["additionalProperties"]
    return part


def _describe(hint: Any) -> dict[str, Any]:
    """Translate a type hint, as `shape.check` understands it."""
    origin = get_origin(hint)
    if origin is Annotated:
        return _narrow(get_args(hint))
    if origin is Literal:
        return {"enum": list(get_args(hint))}
    if origin in (Union, types.UnionType):
        return _describe(get_args(hint)[0])
    if origin is tuple:
        return {"type": "array", "items": _describe(get_args(hint)[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": _describe(get_args(hint)[1])}
    if dataclasses.is_dataclass(hint):
        parts = {name: _describe(inner) for name, inner in hints(cast(type, hint)).items()}
        return {"type": "object", "properties": parts, "additionalProperties": False}
    return {"type": _SCALARS[hint]}


def _narrow(parts: tuple[Any, ...]) -> dict[str, Any]:
    described: dict[str, Any] = _describe(parts[0])
    for extra in parts[1:]:
        match extra:
            case AtLeast(minimum=minimum):
                described["minimum"] = minimum
            case Only(value=value):
                described["const"] = value
            case Parsed():
                described = {"type": ["string", "integer"]}
            case _:
                continue
    return described
