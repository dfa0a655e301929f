"""Whether a step's `schema` can be looked at: the words of JSON Schema that are known, and no others.

A word that nobody looks at would promise what is not kept, so it is a fault.
"""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final

from ..document import is_list, is_table
from ..fault import Fault, Where, dotted, shown
from .spec import StepSpec

__all__ = ["schema_faults"]

_TYPES: Final = ("array", "boolean", "integer", "null", "number", "object", "string")
_WORDS: Final[Mapping[str, str]] = {
    "$schema": "text",
    "additionalProperties": "bool",
    "const": "",
    "default": "",
    "description": "text",
    "enum": "list",
    "examples": "list",
    "items": "schema",
    "maxItems": "number",
    "maximum": "number",
    "minItems": "number",
    "minimum": "number",
    "properties": "schemas",
    "required": "texts",
    "title": "text",
    "type": "types",
}
_WANTED: Final = {
    "bool": "true or false",
    "list": "a list",
    "number": "a number",
    "schema": "a table",
    "schemas": "a table",
    "text": "a text in quotes",
    "texts": "a list of texts",
    "types": f"one of {', '.join(f'`{one}`' for one in _TYPES)}, or a list of them",
}


def schema_faults(step: StepSpec) -> Iterator[Fault]:
    """Find what is wrong in a step's schema."""
    if step.output.schema is not None:
        yield from _faults_in(step.output.schema, ("step", step.number, "schema"))


def _faults_in(schema: Mapping[str, Any], where: Where) -> Iterator[Fault]:
    for word, value in schema.items():
        place = (*where, word)
        if word not in _WORDS:
            near = get_close_matches(word, _WORDS, 1)
            hint = f"did you mean `{near[0]}`? " if near else ""
            hint += f"known: {', '.join(f'`{one}`' for one in _WORDS if one != '$schema')}"
            message = f"`{dotted(place)}` is not a word that a schema can have here"
            yield Fault(place, message, hint, None, False)
        elif not _fits(_WORDS[word], value):
            message = f"`{dotted(place)}` must be {_WANTED[_WORDS[word]]}, not {shown(value)}"
            yield Fault(place, message)
        elif word == "items":
            yield from _faults_in(value, place)
        elif word == "properties":
            for name, inner in value.items():
                if is_table(inner):
                    yield from _faults_in(inner, (*place, name))
                else:
                    inside = (*place, name)
                    yield Fault(inside, f"`{dotted(inside)}` must be a table, not {shown(inner)}")


def _fits(kind: str, value: Any) -> bool:
    match kind:
        case "bool":
            return isinstance(value, bool)
        case "list":
            return is_list(value)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "schema" | "schemas":
            return is_table(value)
        case "text":
            return isinstance(value, str)
        case "texts":
            return is_list(value) and all(isinstance(one, str) for one in value)
        case "types":
            kinds = value if is_list(value) else [value]
            return bool(kinds) and all(isinstance(one, str) and one in _TYPES for one in kinds)
        case _:
            return True
