"""The events of the machine interface as a JSON Schema, for `events.schema.json`.

It is made of the types of the event contract, as `openapi.json` is, with the comment of each field.
"""

import json
from typing import Any, get_args

import msgspec
from event_table import field_texts

from steersman.gateway.events.contract import Event

__all__ = ["event_schema"]


def event_schema() -> str:
    """Write the schema: any event is one of its definitions, which `type` tells apart."""
    kinds: tuple[Any, ...] = get_args(Event)
    _, found = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    texts = field_texts()
    for name, schema in found.items():
        for field, described in schema["properties"].items():
            if text := texts.get(f"{name}.{field}"):
                described["description"] = text
    whole = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Event",
        "description": "An event of steersman: docs/events.md explains each.",
        "anyOf": [{"$ref": f"#/$defs/{kind.__name__}"} for kind in kinds],
        "$defs": found,
    }
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"
