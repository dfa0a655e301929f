"""The shipped file, the schema and the reference say the same."""

import tomllib
from typing import Any

from steersman.workflows.config import shipped, shipped_text
from steersman.workflows.reference import entries
from steersman.workflows.schema import schema
from steersman.workflows.settings import AgentSettings, ModelSettings, Settings
from steersman.workflows.shape import Where, hints, known_keys

NAMED = {"models": "main", "agents": "assistant"}


def wanted_keys() -> set[Where]:
    """List every key that can be set, with the names that the shipped file uses."""
    keys = {key for key in known_keys(Settings) if key[:2] != ("permissions", "rules")}
    keys |= {("permissions", "rules")}
    named = {tuple(NAMED[str(key[0])] if part == "*" else part for part in key) for key in keys}
    return {key for key in named if not any(key == other[:-1] for other in named)}


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
    assert set(data["models"]["main"]) == set(hints(ModelSettings))
    assert set(data["agents"]["assistant"]) == set(hints(AgentSettings))


def test_the_assistant_shows_the_defaults_of_any_agent() -> None:
    """What the shipped file gives the assistant is what an agent without settings has."""
    plain, assistant = AgentSettings(), shipped().agents["assistant"]
    assert (plain.model, plain.tools, plain.max_steps) == (
        assistant.model,
        assistant.tools,
        assistant.max_steps,
    )


def test_schema_describes_every_key() -> None:
    """The JSON Schema knows the type, the meaning and the shipped value of each key."""
    whole = schema()
    for key in known_keys(Settings):
        assert describe(whole, key), key
    queue = whole["properties"]["auto_queue"]["properties"]
    assert queue["max_queue_size"] == {
        "type": "integer",
        "minimum": 1,
        "description": "How many messages may wait. One more is refused, and its text given back.",
        "default": 10,
    }
    assert queue["persistence"]["properties"]["auto_resume"]["const"] is False


def describe(part: dict[str, Any], key: Where) -> dict[str, Any]:
    """Follow a path into a schema."""
    for name in key:
        if "items" in part:
            part = part["items"]
            continue
        part = part["properties"][name] if "properties" in part else part["additionalProperties"]
    return part
