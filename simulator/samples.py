"""Made-up values: texts, and JSON data that fits a schema."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..machines.json_shape import is_array, is_object
from .schedule import Dice

TEXTS = (
    "done",
    "two words",
    "one\ntwo\nthree\n",
    "0",
    "-rf",
    'it\'s "quoted"; $(touch owned) `true` && {{ 7 * 7 }}',
    "naïve 漢字 \x1b[31mred\u202e",
)
"""What programs and models may well say, some of it awkward."""
_DEEPEST = 6
"""Schemas within schemas; what lies deeper is left out where it may be."""


class Samples:
    """Makes values up; `words` are texts that matter to their reader, and come more often."""

    def __init__(self, dice: Dice, words: Sequence[str] = ()) -> None:
        self._dice = dice
        self._words = tuple(words)

    def text(self) -> str:
        """Make a text up; now and then it is empty."""
        dice = self._dice.random()
        if dice < 0.05:
            return ""
        if self._words and dice < 0.6:
            return self._dice.choice(self._words)
        return self._dice.choice(TEXTS)

    def lines(self) -> str:
        """Make up to three lines up."""
        return "\n".join(self.text() for _ in range(self._dice.randrange(0, 4)))

    def data(self, depth: int = 0) -> Any:
        """Make JSON data up, of any kind."""
        kind = self._dice.randrange(0, 6 if depth < 2 else 4)
        if kind == 4:
            return [self.data(depth + 1) for _ in range(self._dice.randrange(0, 3))]
        if kind == 5:
            return {f"key{number}": self.data(depth + 1) for number in range(2)}
        return (self.text(), self._dice.randrange(-2, 9), self._dice.random() < 0.5, None)[kind]

    def json(self, schema: Mapping[str, Any] | None) -> str:
        """Write data that fits a schema, or any data without one."""
        return json.dumps(self.data() if schema is None else self.fitting(schema))

    def fitting(self, schema: Mapping[str, Any]) -> Any:
        """Make data up that fits a schema of `json_shape`, as far as one example can."""
        return self._fitting(schema, schema, 0)

    def _fitting(self, schema: Any, root: Mapping[str, Any], depth: int) -> Any:
        if not is_object(schema):
            return self.data(depth)
        name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
        if name and depth < _DEEPEST:
            return self._fitting(root.get("$defs", {}).get(name), root, depth + 1)
        if "const" in schema:
            return schema["const"]
        for word in ("enum", "anyOf", "oneOf"):
            if options := schema.get(word):
                option = self._dice.choice(options)
                return option if word == "enum" else self._fitting(option, root, depth + 1)
        if parts := schema.get("allOf"):
            merged = {key: value for part in (*parts, schema) for key, value in part.items()}
            del merged["allOf"]
            return self._fitting(merged, root, depth + 1)
        kinds = schema.get("type", "object" if "properties" in schema else None)
        return self._of_kind(
            self._dice.choice(kinds) if is_array(kinds) else kinds, schema, root, depth
        )

    def _of_kind(self, kind: Any, schema: Mapping[str, Any], root: Any, depth: int) -> Any:
        dice = self._dice
        match kind:
            case "object":
                needed = schema.get("required", ())
                return {
                    name: self._fitting(part, root, depth + 1)
                    for name, part in schema.get("properties", {}).items()
                    if name in needed or (depth < _DEEPEST and dice.random() < 0.7)
                }
            case "array":
                low = schema.get("minItems", 0)
                high = min(schema.get("maxItems", low + 3), low + 3)
                number = dice.randrange(low, high + 1) if depth < _DEEPEST else low
                return [self._fitting(schema.get("items"), root, depth + 1) for _ in range(number)]
            case "string":
                low = schema.get("minLength", 0)
                return self.text().ljust(low, "x")[: schema.get("maxLength")]
            case "integer" | "number":
                low = schema.get("minimum", schema.get("exclusiveMinimum", -2) + 1)
                high = schema.get("maximum", schema.get("exclusiveMaximum", low + 10) - 1)
                number = dice.randrange(int(low), max(int(low), int(high)) + 1)
                return number if kind == "integer" else float(number)
            case "boolean":
                return dice.random() < 0.5
            case "null":
                return None
            case _:
                return self.data(depth)
