"""The JSON Schema of a configuration file, so that editors complete and check it."""

import tomllib
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from .fault import Where
from .reference import entries
from .routing import RouteFile
from .settings import Settings

__all__ = ["TomlSchema", "schema"]


def schema() -> dict[str, Any]:
    """Describe every key: its type, its meaning, and what it is when nobody sets it."""
    whole = Settings.model_json_schema(schema_generator=TomlSchema)
    routes = RouteFile.model_json_schema(schema_generator=TomlSchema)
    whole["properties"]["route"] = routes["properties"]["route"]
    whole["$defs"] |= routes["$defs"]
    for entry in entries():
        part = _find(whole, entry.where)
        part.setdefault("description", entry.comment)
        if entry.value and not entry.is_example and entry.where[0] != "agents":
            part["default"] = tomllib.loads(f"value = {entry.value}")["value"]
            _find(whole, entry.where[:-1]).pop("required", None)  # the shipped file has them all
    return {
        **whole,
        "$schema": GenerateJsonSchema.schema_dialect,
        "title": "steersman configuration",
    }


class TomlSchema(GenerateJsonSchema):
    """Says nothing of null, which TOML has not, and no titles, which only repeat the keys."""

    def nullable_schema(self, schema: Any) -> JsonSchemaValue:
        """Describe the value alone."""
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: Any) -> JsonSchemaValue:
        """Leave a default out that no file could write."""
        described = super().default_schema(schema)
        if "default" in described and described["default"] is None:
            del described["default"]
        return described

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Set none."""
        return False


def _find(whole: dict[str, Any], where: Where) -> dict[str, Any]:
    """Follow a path, and references on the way."""
    part = whole
    for name in where:
        part = part["properties"][name] if "properties" in part else part["additionalProperties"]
        if reference := part.get("$ref"):
            part = whole["$defs"][reference.rpartition("/")[2]]
    return part
