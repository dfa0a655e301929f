"""Whether JSON data fits a JSON Schema, as far as people use it to say what they expect.

Known are `type`, `enum`, `const`, `required`, `properties`, `additionalProperties`, `items`, `minItems`,
`maxItems`, `minimum`, `maximum`, `exclusiveMinimum`, `exclusiveMaximum`, `minLength`, `maxLength`,
`anyOf`, `oneOf`, `allOf`, and a `$ref` to `#/$defs/NAME`; any other word is passed over. `pattern` is
among these: a regular expression from outside can take for ever.
"""

import json
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeGuard

Schema = Mapping[str, Any]

TYPES: Final[Mapping[str, tuple[tuple[type, ...], str]]] = {
    "object": ((dict,), "an object"),
    "array": ((list,), "a list"),
    "string": ((str,), "a text"),
    "integer": ((int,), "a whole number"),
    "number": ((int, float), "a number"),
    "boolean": ((bool,), "true or false"),
    "null": ((type(None),), "null"),
}
"""The types of JSON Schema: the types of Python, and how people call them."""
NUMBERS: Final[Mapping[str, tuple[Callable[[Any, Any], bool], str]]] = {
    "minimum": (operator.ge, "at least"),
    "maximum": (operator.le, "at most"),
    "exclusiveMinimum": (operator.gt, "more than"),
    "exclusiveMaximum": (operator.lt, "less than"),
}
"""The bounds of a number: what has to hold of it and the bound, and how people say so."""
DEEPEST: Final = 64
"""Lists and objects inside each other that data from outside may have: each takes some stack."""
_NESTING: Final = (dict, list)
_DEPTH: Final = 64
"""Schemas within schemas that are followed; a `$ref` to itself has no end."""


def schema_mismatch(value: Any, schema: Schema, place: str = "the output") -> str:
    """Say in a sentence what does not fit; empty when all does."""
    return _Check(schema).mismatch(value, schema, place)


def allows_null(schema: Schema) -> bool:
    """Whether null is a value that a schema expects, and so means more than a missing one."""
    return any(word in schema for word in _WORDS) and not schema_mismatch(None, schema)


def parse_json(text: str | bytes, deepest: int = DEEPEST) -> Any:
    """Parse JSON from outside. Raises `ValueError`, also for what is nested too deeply."""
    return shallow(json.loads, text, deepest)


def shallow(parse: Callable[[Any], Any], text: str | bytes, deepest: int) -> Any:
    """Parse a text. Raises `ValueError`, also for what is nested more than `deepest` times."""
    try:
        data = parse(text)
    except RecursionError:
        pass
    except ValueError as error:
        if "digits" in str(error):  # of Python, which would say how to switch its own bound off
            raise ValueError("a number has too many digits") from None
        raise
    else:
        if not is_deeper(data, deepest):
            return data
    raise ValueError(f"values are nested more than {deepest} deep")


def is_deeper(value: Any, most: int) -> bool:
    """Whether more than `most` lists and objects lie inside each other; needs no stack."""
    level: list[Any] = [value] if isinstance(value, _NESTING) else []
    for _ in range(most):
        level = [
            item
            for found in level
            for item in (found.values() if is_object(found) else found)
            if isinstance(item, _NESTING)
        ]
    return bool(level)


class _Check:
    """One comparison; `root` has the `$defs` that a `$ref` names."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._depth = 0

    def mismatch(self, value: Any, schema: Schema, place: str) -> str:
        """Say what does not fit, or that the data is nested too deeply to be compared."""
        if self._depth >= _DEPTH:
            return f"{place} is nested too deeply"
        self._depth += 1
        found = next(filter(None, self._faults(value, schema, place)), "")
        self._depth -= 1
        return found

    def _faults(self, value: Any, schema: Schema, place: str) -> Iterator[str]:
        yield _wrong_kind(value, schema, place)
        yield self._of_others(value, schema, place)
        if is_object(value):
            yield from self._of_object(value, schema, place)
        elif is_array(value):
            yield from self._of_array(value, schema, place)
        elif isinstance(value, str):
            yield from _of_text(value, schema, place)
        elif is_number(value):
            yield from _of_number(value, schema, place)

    def _of_others(self, value: Any, schema: Schema, place: str) -> str:
        """Compare with the schemas that this one is composed of."""
        name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
        named = self._root.get("$defs", {}).get(name) if name else None
        parts = [*([named] if named is not None else []), *schema.get("allOf", ())]
        if fault := next(filter(None, (self.mismatch(value, part, place) for part in parts)), ""):
            return fault
        for word in ("anyOf", "oneOf"):
            faults = [self.mismatch(value, part, place) for part in schema.get(word, ())]
            if faults and all(faults):
                return " or ".join(dict.fromkeys([faults[0], *map(_without(place), faults[1:])]))
            if word == "oneOf" and faults.count("") > 1:
                return f"{place} fits several of the forms that exclude each other"
        return ""

    def _of_object(self, value: Schema, schema: Schema, place: str) -> Iterator[str]:
        properties, more = schema.get("properties", {}), schema.get("additionalProperties")
        for name in schema.get("required", ()):
            if name not in value:
                yield f"{place} has no `{name}`"
        for name, inner in value.items():
            if name in properties:
                yield self.mismatch(inner, properties[name], _inside(place, f".{name}"))
            elif more is False:
                yield f"{place} has `{name}`, which is not expected"
            elif is_object(more):
                yield self.mismatch(inner, more, _inside(place, f".{name}"))

    def _of_array(self, value: list[Any], schema: Schema, place: str) -> Iterator[str]:
        low, high = schema.get("minItems", 0), schema.get("maxItems")
        if len(value) < low or (high is not None and len(value) > high):
            yield f"{place} has {len(value)} items"
        items = schema.get("items")
        if is_object(items):
            for at, inner in enumerate(value):
                yield self.mismatch(inner, items, _inside(place, f"[{at}]"))


_WORDS: Final = ("type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref")
"""The words that say which kinds of values are expected."""


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether this is a JSON object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[Any]]:
    """Whether this is a JSON array."""
    return isinstance(value, list)


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether this is a JSON number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_of_type(value: Any, kind: str) -> bool:
    """Whether this is of a type of JSON Schema; anything is of an unknown one."""
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, TYPES[kind][0] if kind in TYPES else object)


def is_same(value: Any, other: Any) -> bool:
    """Compare as JSON does: true is not 1."""
    return isinstance(value, bool) == isinstance(other, bool) and bool(value == other)


def _inside(place: str, part: str) -> str:
    """Go on from a place, which may be in backticks; the empty one is that of the arguments."""
    if not place:
        return f"`{part.removeprefix('.')}`"
    return f"{place[:-1]}{part}`" if place.endswith("`") else f"{place}{part}"


def _without(place: str) -> Callable[[str], str]:
    """Return what takes the subject out of a sentence that goes on."""
    return lambda fault: fault.removeprefix(f"{place} must be ")


def _wrong_kind(value: Any, schema: Schema, place: str) -> str:
    wanted = schema.get("type")
    kinds = [wanted] if isinstance(wanted, str) else list(wanted or ())
    if kinds and not any(is_of_type(value, kind) for kind in kinds):
        names = (TYPES[kind][1] if kind in TYPES else kind for kind in kinds)
        return f"{place} must be {' or '.join(names)}"
    if "const" in schema and not is_same(value, schema["const"]):
        return f"{place} must be {_shown(schema['const'])}"
    if "enum" in schema and not any(is_same(value, option) for option in schema["enum"]):
        return f"{place} must be one of {', '.join(map(_shown, schema['enum']))}"
    return ""


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _of_text(value: str, schema: Schema, place: str) -> Iterator[str]:
    low, high = schema.get("minLength", 0), schema.get("maxLength")
    if len(value) < low:
        yield f"{place} is empty" if not value else f"{place} is shorter than {low} characters"
    if high is not None and len(value) > high:
        yield f"{place} is longer than {high} characters"


def _of_number(value: float, schema: Schema, place: str) -> Iterator[str]:
    for word, (holds, said) in NUMBERS.items():
        if word in schema and not holds(value, schema[word]):
            yield f"{place} must be {said} {schema[word]}"
