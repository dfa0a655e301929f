"""Declares the schemas of tools, and checks arguments against them; a fault is one sentence.

What is known of JSON Schema, and passed over, is said in `machines/json_shape.py`.
"""

import json
from typing import Any

from ...machines.conversation import ToolSchema
from ...machines.json_shape import allows_null, is_array, is_object, schema_mismatch

_BOUNDS = ("minLength", "maxLength", "minimum", "maximum", "pattern")


def declare(
    name: str, description: str, required: tuple[str, ...], /, **properties: dict[str, Any]
) -> ToolSchema:
    """Declare a tool; each property is the JSON Schema of one argument.

    Bounds of its values are checked, and a model is told of one that it does not keep to.
    """
    parameters = {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }
    told: dict[str, Any] = {"type": "object", "properties": {}}
    for argument, schema in properties.items():
        told["properties"][argument] = {
            word: value for word, value in schema.items() if word not in _BOUNDS
        }
    if required:
        told["required"] = list(required)
    return ToolSchema(name=name, description=description, parameters=parameters, told=told)


def given_of(schema: ToolSchema, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments that count as given: null does only where the schema expects it."""
    properties = schema.parameters.get("properties", {})
    return {
        name: value
        for name, value in arguments.items()
        if value is not None or (name in properties and allows_null(properties[name]))
    }


def fault_of(schema: ToolSchema, arguments: dict[str, Any]) -> str:
    """Return the fault of the arguments; empty if there is none. Null counts as not given."""
    parameters = schema.parameters
    properties: dict[str, dict[str, Any]] = parameters.get("properties", {})
    given = given_of(schema, arguments)
    for name in given:
        if name not in properties and parameters.get("additionalProperties") is False:
            return _unknown(name, list(properties))
    for name in parameters.get("required", ()):
        if name not in given:
            return f"`{name}` is missing; for example {schema.name} {example_of(schema)}"
    if fault := schema_mismatch(given, parameters, ""):
        return f"the arguments{fault}" if fault.startswith(" ") else fault
    return next((_HALF.format(name) for name, value in given.items() if _has_half(value)), "")


_EXAMPLES: dict[str, Any] = {
    "string": "…",
    "integer": 1,
    "number": 1,
    "boolean": True,
    "array": [],
    "object": {},
}


def example_of(schema: ToolSchema) -> str:
    """Return arguments of a right call as JSON: the required ones, with values of their types."""
    properties: dict[str, dict[str, Any]] = schema.parameters.get("properties", {})
    values: dict[str, Any] = {}
    for name in schema.parameters.get("required", ()):
        given = properties.get(name, {})
        known: list[Any] = given.get("enum", []) or given.get("examples", [])
        values[name] = known[0] if known else _EXAMPLES.get(str(given.get("type")), "…")
    return json.dumps(values, ensure_ascii=False)


_HALF = "`{}` holds half of a character (an unpaired surrogate)"


def _unknown(name: str, known: list[str]) -> str:
    from difflib import get_close_matches  # for a mistake only

    near = get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"known are `{'`, `'.join(known)}`" if known else "it has none"
    hint = f"did you mean `{near[0]}`?" if near else hint
    return f"`{name}` is not an argument of this tool; {hint}"


def _has_half(value: Any) -> bool:
    """Whether there is half a character anywhere in a value: no file, process or journal takes it."""
    parts = [value]
    while parts:
        part = parts.pop()
        if isinstance(part, str):
            try:
                part.encode()  # a search character by character held the loop for 100 ms of a megabyte
            except UnicodeEncodeError:
                return True
        if is_object(part):
            parts += [*part.keys(), *part.values()]
        elif is_array(part):
            parts += part
    return False
