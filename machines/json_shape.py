"""Whether JSON data fits a JSON Schema, as far as people use it to say what they expect.

Known are `type`, `enum`, `const`, `required`, `properties`, `additionalProperties: false`, `items`,
`minItems`, `maxItems`, `minimum` and `maximum`; any other word is passed over.
"""

from collections.abc import Mapping
from typing import Any, Final, cast

_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def schema_mismatch(value: Any, schema: Mapping[str, Any], place: str = "the output") -> str:
    """Say in a sentence what does not fit; empty when all does."""
    wanted = schema.get("type")
    kinds = [wanted] if isinstance(wanted, str) else list(wanted or ())
    if kinds and not any(_is(value, kind) for kind in kinds):
        return f"{place} must be {' or '.join(kinds)}"
    if "const" in schema and value != schema["const"]:
        return f"{place} must be {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{place} must be one of {', '.join(map(repr, schema['enum']))}"
    if isinstance(value, dict):
        return _mismatch_of_object(cast("dict[str, Any]", value), schema, place)
    if issubclass(type(value), list):
        return _mismatch_of_array(value, schema, place)
    if isinstance(value, int | float):
        return _mismatch_of_number(value, schema, place)
    return ""


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _TYPES.get(kind, (object,)))


def _mismatch_of_object(value: dict[str, Any], schema: Mapping[str, Any], place: str) -> str:
    properties = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            return f"{place} has no `{name}`"
    for name, inner in value.items():
        if name in properties and (
            fault := schema_mismatch(inner, properties[name], f"{place}.{name}")
        ):
            return fault
        if name not in properties and schema.get("additionalProperties") is False:
            return f"{place} has `{name}`, which is not expected"
    return ""


def _mismatch_of_array(value: list[Any], schema: Mapping[str, Any], place: str) -> str:
    low, high = schema.get("minItems", 0), schema.get("maxItems")
    if len(value) < low or (high is not None and len(value) > high):
        return f"{place} has {len(value)} items"
    items = schema.get("items")
    if not isinstance(items, Mapping):
        return ""
    faults = (
        schema_mismatch(one, cast("Mapping[str, Any]", items), f"{place}[{at}]")
        for at, one in enumerate(value)
    )
    return next(filter(None, faults), "")


def _mismatch_of_number(value: float, schema: Mapping[str, Any], place: str) -> str:
    if "minimum" in schema and value < schema["minimum"]:
        return f"{place} must be at least {schema['minimum']}"
    if "maximum" in schema and value > schema["maximum"]:
        return f"{place} must be at most {schema['maximum']}"
    return ""
