"""Whether a JSON Schema that people write in TOML can be used; a mistake in one is a problem.

The words are those that `machines/json_shape.py` compares data with, and those that only describe.
"""

from collections.abc import Iterator, Mapping
from datetime import date, datetime, time
from typing import Any, Final

from ..machines.json_shape import TYPES
from .document import is_list, is_table
from .problem import Problem, Where, did_you_mean, shown, wrong

_WORDS: Final[Mapping[str, str]] = {
    "$schema": "text",
    "additionalProperties": "schema or bool",
    "allOf": "schema list",
    "anyOf": "schema list",
    "const": "",
    "default": "",
    "description": "text",
    "enum": "list",
    "examples": "list",
    "exclusiveMaximum": "number",
    "exclusiveMinimum": "number",
    "items": "schema",
    "maxItems": "count",
    "maxLength": "count",
    "maximum": "number",
    "minItems": "count",
    "minLength": "count",
    "minimum": "number",
    "oneOf": "schema list",
    "properties": "schemas",
    "required": "texts",
    "title": "text",
    "type": "types",
}
_WANTED: Final = {
    "count": "a whole number from 0 on",
    "list": "a list that is not empty",
    "number": "a number",
    "schema": "a table",
    "schema list": "a list of tables",
    "schema or bool": "true, false or a table",
    "schemas": "a table",
    "text": "a text in quotes",
    "texts": "a list of texts",
    "types": f"one of {', '.join(f'`{name}`' for name in sorted(TYPES))}, or a list of them",
}


def schema_problems(
    schema: Mapping[str, Any], where: Where, *, is_strict: bool
) -> Iterator[Problem]:
    """Find mistakes in a schema at `where`.

    `is_strict`: a word that nothing is compared with is a problem, too; it would promise what is not
    kept. Otherwise it is for another program, such as a model.
    """
    for word, value in schema.items():
        place = (*where, word)
        if found := _unusable(value):
            yield wrong(place, f"holds {found}, which JSON does not have")
        elif word not in _WORDS:
            if is_strict:
                known = ", ".join(f"`{known}`" for known in _WORDS if known != "$schema")
                said = "is not a word that a schema can have here"
                yield wrong(
                    place, said, did_you_mean(word, _WORDS, f"known: {known}"), at_value=False
                )
        elif not _fits(_WORDS[word], value):
            yield wrong(place, f"must be {_WANTED[_WORDS[word]]}, not {shown(value)}")
        elif word == "properties":
            for name, property_schema in value.items():
                if is_table(property_schema):
                    yield from schema_problems(property_schema, (*place, name), is_strict=is_strict)
                else:
                    yield wrong((*place, name), f"must be a table, not {shown(property_schema)}")
        elif word in ("items", "additionalProperties") and is_table(value):
            yield from schema_problems(value, place, is_strict=is_strict)
        elif _WORDS[word] == "schema list":
            inner: list[dict[str, Any]] = value
            for number, schema_of_one in enumerate(inner):
                yield from schema_problems(schema_of_one, (*place, number), is_strict=is_strict)


def _unusable(value: Any) -> str:
    """Name what TOML has and JSON does not; empty if there is nothing of it."""
    if isinstance(value, datetime | date | time):
        return "a date or a time"
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return f"{value}"
    inner = (_unusable(item) for item in value) if is_list(value) else ()
    return next(filter(None, inner), "")


def _fits(kind: str, value: Any) -> bool:
    match kind:
        case "count":
            return isinstance(value, int) and not isinstance(value, bool) and value >= 0
        case "list":
            return is_list(value) and bool(value)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "schema" | "schemas":
            return is_table(value)
        case "schema list":
            return is_list(value) and bool(value) and all(is_table(inner) for inner in value)
        case "schema or bool":
            return is_table(value) or isinstance(value, bool)
        case "text":
            return isinstance(value, str)
        case "texts":
            return is_list(value) and all(isinstance(text, str) for text in value)
        case "types":
            kinds = value if is_list(value) else [value]
            return bool(kinds) and all(isinstance(name, str) and name in TYPES for name in kinds)
        case _:
            return True
