"""The shipped file, the schema and the reference say the same."""

import tomllib
from typing import Any

import msgspec

from steersman.ports.models.provider import ModelConfig
from steersman.workflows.config import shipped, shipped_text
from steersman.workflows.problem import Where
from steersman.workflows.routing import RouteFile
from steersman.workflows.schema import entries, schema
from steersman.workflows.settings import AgentSettings, ModelSettings, Settings
from steersman.workflows.typed_table import known_keys, read_table

NAMED = {"models": "main", "agents": "assistant", "mcp": "files"}
WEB = {"url", "headers", "client_id", "client_secret"}  # keys of a server that is no command


def wanted_keys() -> set[Where]:
    """List every key that can be set, with the names that the shipped file uses.

    Lists of tables are explained as wholes: permission rules, hooks and tools by their comment,
    routes, people and the tables of gateways, whose keys are their own, by an example.
    """
    lists = {("permissions", "rules"), ("hold",), ("hooks",), ("tool",), ("schedule",), ("route",)}
    lists |= {("gateways",), ("people",)}
    keys = {key for key in known_keys(Settings) if not {key[:1], key[:2]} & lists}
    keys |= lists - {("route",), ("gateways",), ("people",)}
    named = {tuple(_name_in(key) if part == "*" else part for part in key) for key in keys}
    tables = {key[:length] for key in named for length in range(len(key))}
    return named - tables - {("commands",)}  # a table, which has no key as long as no command has


def _name_in(key: Where) -> str:
    """Return the name of the shipped table in which a key is explained."""
    return "tickets" if key[0] == "mcp" and key[-1] in WEB else NAMED[str(key[0])]


def test_every_key_is_in_the_shipped_file_with_a_comment() -> None:
    """Each key that can be set stands in `config.toml`, explained, and no other does."""
    explained = {entry.where: entry.comment for entry in entries() if entry.value}
    assert wanted_keys() <= set(explained)
    assert [where for where, comment in explained.items() if not comment] == []


def test_examples_can_be_used() -> None:
    """The examples in the shipped file are right when their `#` is taken away."""
    lines = shipped_text().split("\n")
    shown = [
        line[1:] if line.startswith("#") and line[1:2] not in (" ", "") else line for line in lines
    ]
    data = tomllib.loads("\n".join(shown))
    assert set(data["models"]["main"]) == set(ModelSettings.__struct_fields__)
    assert set(data["agents"]["assistant"]) == set(AgentSettings.__struct_fields__)
    assert len(data["route"]) == 1
    assert read_table(Settings, data)[1] == []


def test_the_assistant_shows_the_defaults_of_any_agent() -> None:
    """What the shipped file gives the assistant is what an agent without settings has."""
    plain, assistant = AgentSettings(), shipped().agents["assistant"]
    assert (plain.model, plain.tools, plain.max_steps) == (
        assistant.model,
        assistant.tools,
        assistant.max_steps,
    )


def test_models_are_built_from_what_can_be_set() -> None:
    """The model ports know each key of `[models.NAME]` by the same name and default."""
    known, wanted = (
        {field.name: field.default for field in msgspec.structs.fields(kind)}
        for kind in (ModelConfig, ModelSettings)
    )
    del known["name"], known["provider"], wanted["provider"]
    assert known == wanted


def test_schema_describes_every_key() -> None:
    """The JSON Schema knows the type, the meaning and the shipped value of each key."""
    whole = schema()
    for key in (*known_keys(Settings), *known_keys(RouteFile)):
        assert follow(whole, key).keys() & {"type", "enum"}, key
    for key in wanted_keys():
        assert follow(whole, key)["description"], key
    assert follow(whole, ("auto_queue", "max_queue_size")) == {
        "type": "integer",
        "minimum": 1,
        "description": "How many messages may wait, including steers. A further one is refused and its"
        " text returned.",
        "default": 10,
    }
    assert follow(whole, ("auto_queue", "persistence", "auto_resume"))["const"] is False
    assert follow(whole, ("models", "main", "context_window"))["type"] == "integer"


def test_schema_asks_only_for_what_has_no_default() -> None:
    """An editor does not ask for keys that the shipped file has."""
    whole = schema()
    parts = {"": whole, **whole["$defs"]}
    required = {name: part["required"] for name, part in parts.items() if "required" in part}
    assert required == {
        "HoldSettings": ["tool"],
        "HookSettings": ["on", "run"],
        "ModelPrice": ["input", "output"],
        "ModelSettings": ["provider"],
        "PermissionRule": ["tool", "do"],
        "Route": ["name"],
        "RouteOutcomeTable": ["to", "as"],
        "ToolDeclaration": ["name", "description", "run"],
    }


def follow(whole: dict[str, Any], key: Where) -> dict[str, Any]:
    """Follow a path into a schema, and references on the way."""
    part = whole
    for name in key:
        if "items" in part:
            part = part["items"]
        elif "properties" in part:
            part = part["properties"][name]
        else:
            part = part["additionalProperties"]
        if reference := part.get("$ref"):
            part = whole["$defs"][reference.removeprefix("#/$defs/")]
    return part
