"""The JSON Schema of a configuration file, so that editors complete and check it."""

import re
import tomllib
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from ..machines.value import Value
from .config import shipped_text
from .declaration import model_of
from .positions import locate
from .problem import Where
from .routing import RouteFile
from .settings import Settings

# What the shipped `config.toml` says about each key: the one source of the docs and of the schema
# The file's own convention: the comment above a key or a table explains it, and a `#` without a space
# behind it is a key that is only shown.


class SettingEntry(Value):
    """A key or table with its comment; `value` is its text as written, empty for a table."""

    where: Where
    comment: str
    value: str
    is_example: bool


def entries(text: str | None = None) -> list[SettingEntry]:
    """List all keys and tables in the order of the file; `text` is the shipped one by default."""
    text = shipped_text() if text is None else text
    lines = text.split("\n")
    shown = [re.sub(r"^#(?=[^ #\n])", "", line) for line in lines]
    tomllib.loads("\n".join(shown))  # the examples must be right, too
    found: list[SettingEntry] = []
    spots = locate("\n".join(shown))
    for where, (line, column) in spots.keys.items():
        if column == 1 and not any(isinstance(part, int) for part in where):
            is_example = lines[line - 1].startswith("#")
            value = _value(shown, line) if where in spots.values else ""
            found.append(
                SettingEntry(
                    where=where,
                    comment=_comment_above(lines, line),
                    value=value,
                    is_example=is_example,
                )
            )
    return found


def _comment_above(lines: list[str], line: int) -> str:
    """Join the comment lines directly above a line (from 1)."""
    start = line - 1
    while start > 0 and lines[start - 1].startswith("# "):
        start -= 1
    return " ".join(text[2:].strip() for text in lines[start : line - 1])


def _value(lines: list[str], line: int) -> str:
    """Return the text of a value that starts on a line and may continue below it."""
    taken = lines[line - 1].partition("=")[2].strip()
    for following in lines[line:]:
        if _is_whole(taken):
            break
        taken += "\n" + following
    return taken


def _is_whole(value: str) -> bool:
    try:
        tomllib.loads(f"value = {value}")
    except tomllib.TOMLDecodeError:
        return False
    return True


def schema() -> dict[str, Any]:
    """Describe every key: its type, its meaning, and its default."""
    whole = model_of(Settings).model_json_schema(schema_generator=TomlSchema)
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
    """Leaves out null, which TOML does not have, and titles, which only repeat the keys."""

    def nullable_schema(self, schema: Any) -> JsonSchemaValue:
        """Describe the value alone."""
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: Any) -> JsonSchemaValue:
        """Leave out a default that TOML cannot express."""
        described = super().default_schema(schema)
        if "default" in described and described["default"] is None:
            del described["default"]
        return described

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Set no title."""
        return False


def workflow_schema() -> dict[str, Any]:
    """Describe a workflow file: `[workflow]`, `[[step]]`, and the tables of the configuration."""
    from .flow.workflow_file import WorkflowFile

    own = WorkflowFile.model_json_schema(schema_generator=TomlSchema)
    settings = schema()
    del settings["properties"]["route"]["default"]
    return {
        "$schema": GenerateJsonSchema.schema_dialect,
        "title": "steersman workflow",
        "type": "object",
        "additionalProperties": False,
        "properties": {**own["properties"], **settings["properties"]},
        "required": own["required"],
        "$defs": {**settings["$defs"], **own["$defs"]},
    }


def _find(whole: dict[str, Any], where: Where) -> dict[str, Any]:
    """Follow a path, and references on the way."""
    part = whole
    for name in where:
        part = part["properties"][name] if "properties" in part else part["additionalProperties"]
        if reference := part.get("$ref"):
            part = whole["$defs"][reference.rpartition("/")[2]]
    return part
