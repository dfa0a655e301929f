"""Declares the schemas of tools, and checks arguments against them; a fault is one sentence.

Only the part of JSON Schema that our tools use is known: an object of strings, numbers, whole
numbers and booleans with `required`, `minimum` and `minLength`.
"""

from difflib import get_close_matches
from typing import Any

from ...machines.conversation import ToolSchema

_KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "string": ((str,), "a text"),
    "integer": ((int,), "a whole number"),
    "number": ((int, float), "a number"),
    "boolean": ((bool,), "true or false"),
}


def declare(
    name: str,
    description: str,
    required: tuple[str, ...],
    /,
    **properties: dict[str, Any],
) -> ToolSchema:
    """Declare a tool; each property is the JSON Schema of one argument."""
    parameters = {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }
    return ToolSchema(name=name, description=description, parameters=parameters)


def fault_of(schema: ToolSchema, arguments: dict[str, Any]) -> str:
    """Return the fault of the arguments; empty if there is none. Null counts as not given."""
    properties: dict[str, dict[str, Any]] = schema.parameters["properties"]
    given = {name: value for name, value in arguments.items() if value is not None}
    for name in given:
        if name not in properties:
            return _unknown(name, list(properties))
    for name in schema.parameters["required"]:
        if name not in given:
            return f"`{name}` is missing"
    faults = (_value_fault(name, value, properties[name]) for name, value in given.items())
    return next(filter(None, faults), "")


def _unknown(name: str, known: list[str]) -> str:
    near = get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"did you mean `{near[0]}`?" if near else f"known are `{'`, `'.join(known)}`"
    return f"`{name}` is not an argument of this tool; {hint}"


def _value_fault(name: str, value: Any, schema: dict[str, Any]) -> str:
    types, wanted = _KINDS[schema["type"]]
    is_disguised = isinstance(value, bool) and bool not in types
    if is_disguised or not isinstance(value, types):
        return f"`{name}` must be {wanted}"
    if isinstance(value, str):
        return _text_fault(name, value, schema)
    if "minimum" in schema and not value >= schema["minimum"]:
        return f"`{name}` must be at least {schema['minimum']}"
    return ""


def _text_fault(name: str, value: str, schema: dict[str, Any]) -> str:
    if len(value) < schema.get("minLength", 0):
        return f"`{name}` is empty"
    if any("\ud800" <= character <= "\udfff" for character in value):
        return f"`{name}` holds half of a character (an unpaired surrogate)"
    return ""
