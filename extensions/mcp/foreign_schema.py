"""Checks arguments against a JSON Schema that another program wrote; a fault is one sentence.

The schema comes from a stranger and the check runs on the loop's thread, so it is bounded: by the
number of steps, and by depth, whatever the schema and the arguments are. Patterns and formats are not
checked, because a regular expression can take for ever; nor is what is not known here, or what makes no
sense. All of that is left to the program itself, which checks its arguments anyway.

Source: JSON Schema 2020-12, https://json-schema.org/draft/2020-12/json-schema-validation.
"""

import json
from difflib import get_close_matches
from typing import Any, cast

from ...machines.json_shape import NUMBERS, TYPES, is_deeper, is_number, is_of_type, is_same
from ...ports.models.loose_json import table
from ...ports.tools.text import visible

_STEPS = 10_000
_DEPTH = 40
_SHOWN = 80  # characters of a value of the schema in a fault

Json = dict[str, Any]

_LENGTHS = {
    "minLength": (str, NUMBERS["minimum"], "characters"),
    "maxLength": (str, NUMBERS["maximum"], "characters"),
    "minItems": (list, NUMBERS["minimum"], "entries"),
    "maxItems": (list, NUMBERS["maximum"], "entries"),
}


def foreign_fault(schema: Json, arguments: Json) -> str:
    """Return the fault of the arguments; empty if there is none that is known here."""
    return _Check(schema).fault(schema, arguments, "", _DEPTH)


def given_of(schema: Json, arguments: Json) -> Json:
    """Leave out what is null and must not be: some models write so what they do not give."""
    given = schema.get("properties")
    properties = cast("Json", given) if isinstance(given, dict) else {}
    return {
        name: value
        for name, value in arguments.items()
        if value is not None or not _Check(schema).fault(properties.get(name), None, name, _DEPTH)
    }


def is_within(data: Any, *, size: int, depth: int) -> bool:
    """Whether JSON data has at most `size` bytes when written, and is at most `depth` levels deep."""
    try:
        return len(json.dumps(data)) <= size and not is_deeper(data, depth)
    except (ValueError, RecursionError):
        return False


def entries(data: Any) -> list[object]:
    """Return a list as it is; an empty one for anything else."""
    return cast("list[object]", data) if isinstance(data, list) else []


def _written(value: Any) -> str:
    return visible(json.dumps(value, ensure_ascii=False), _SHOWN)


class _Check:
    """One check: the whole schema, for references into it, and the steps that are left."""

    def __init__(self, root: Json) -> None:
        self._root = root
        self._steps = _STEPS

    def fault(self, schema: Any, value: Any, name: str, depth: int) -> str:
        """Return the fault of a value; `name` is its path, empty for the arguments themselves."""
        self._steps -= 1
        if schema is False:
            return f"{_called(name)} must not be given"
        if not isinstance(schema, dict) or self._steps < 0 or depth < 0:
            return ""
        known = cast("Json", schema)
        rules = (
            self._kind,
            self._choice,
            self._bounds,
            self._members,
            self._entries,
            self._parts_of,
        )
        return next(filter(None, (rule(known, value, name, depth) for rule in rules)), "")

    def _kind(self, schema: Json, value: Any, name: str, depth: int) -> str:
        given = schema.get("type")
        kinds = entries(given) if isinstance(given, list) else [given]
        known = [kind for kind in kinds if isinstance(kind, str) and kind in TYPES]
        whole = int(value) if isinstance(value, float) and value.is_integer() else value
        if len(known) < len(kinds) or any(is_of_type(whole, kind) for kind in known):
            return ""
        return f"{_called(name)} must be {' or '.join(TYPES[kind][1] for kind in known)}"

    def _choice(self, schema: Json, value: Any, name: str, depth: int) -> str:
        if "const" in schema and not is_same(schema["const"], value):
            return f"{_called(name)} must be {_written(schema['const'])}"
        allowed = schema.get("enum")
        if not isinstance(allowed, list):
            return ""
        values = entries(allowed)
        self._steps -= len(values)
        if any(is_same(each, value) for each in values):
            return ""
        return f"{_called(name)} must be one of {_written(values)}"

    def _bounds(self, schema: Json, value: Any, name: str, depth: int) -> str:
        if is_number(value):
            for key, (fits, words) in NUMBERS.items():
                bound = schema.get(key)
                if is_number(bound) and not fits(value, bound):
                    return f"{_called(name)} must be {words} {bound}"
        length = len(value) if isinstance(value, str) else len(entries(value))
        for key, (kind, (fits, words), unit) in _LENGTHS.items():
            bound = schema.get(key)
            if isinstance(value, kind) and is_number(bound) and not fits(length, bound):
                return f"{_called(name)} must have {words} {bound} {unit}"
        return ""

    def _members(self, schema: Json, value: Any, name: str, depth: int) -> str:
        if not isinstance(value, dict):
            return ""
        given, inner = cast("Json", value), table(schema.get("properties"))
        for key, member in given.items():
            path = f"{name}.{key}" if name else key
            if key in inner:
                fault = self.fault(inner[key], member, path, depth - 1)
            elif "patternProperties" in schema:
                fault = ""
            elif schema.get("additionalProperties") is False:
                fault = _unknown(path, key, list(inner))
            else:
                fault = self.fault(schema.get("additionalProperties"), member, path, depth - 1)
            if fault:
                return fault
        for wanted in entries(schema.get("required")):
            if isinstance(wanted, str) and wanted not in given:
                return f"{_called(f'{name}.{wanted}' if name else wanted)} is missing"
        return ""

    def _entries(self, schema: Json, value: Any, name: str, depth: int) -> str:
        if "prefixItems" in schema:
            return ""
        for index, entry in enumerate(entries(value)):
            if self._steps < 0:
                break
            if fault := self.fault(schema.get("items"), entry, f"{name}[{index}]", depth - 1):
                return fault
        return ""

    def _parts_of(self, schema: Json, value: Any, name: str, depth: int) -> str:
        """Check references and combinations; of alternatives the first one is explained."""
        target = self._target(schema.get("$ref"))
        if target is not None and (fault := self.fault(target, value, name, depth - 1)):
            return fault
        for key in ("allOf", "anyOf", "oneOf"):
            faults: list[str] = []
            for part in entries(schema.get(key)):
                faults.append(self.fault(part, value, name, depth - 1))
                if bool(faults[-1]) == (key == "allOf"):
                    break
            if faults and faults[-1]:
                return faults[-1] if key == "allOf" else faults[0]
        return ""

    def _target(self, reference: Any) -> Any:
        """Look up a reference within the schema; none for any other."""
        if not isinstance(reference, str) or not reference.startswith("#"):
            return None
        place: Any = self._root
        for key in reference.removeprefix("#").removeprefix("/").split("/"):
            if key:
                place = table(place).get(key.replace("~1", "/").replace("~0", "~"))
        return place


def _called(name: str) -> str:
    return f"`{visible(name, _SHOWN)}`" if name else "what is given"


def _unknown(path: str, key: str, known: list[str]) -> str:
    short = [name for name in known if len(name) <= _SHOWN] if len(key) <= _SHOWN else []
    near = get_close_matches(key, short[:100], n=1, cutoff=0.5)
    listed = "`, `".join(visible(name, _SHOWN) for name in known[:20])
    hint = f"did you mean `{visible(near[0], _SHOWN)}`?" if near else f"known are `{listed}`"
    said = f"{_called(path)} is not an argument of this tool"
    return f"{said}; {hint}" if known else f"{said}, which has none"
