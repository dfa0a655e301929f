"""The JSON Schema of a workflow's file, so that editors complete and check it."""

from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from ..schema import TomlSchema, schema
from .workflow_file import WorkflowFile

__all__ = ["workflow_schema"]


def workflow_schema() -> dict[str, Any]:
    """Describe `[workflow]` and `[[step]]`, and the tables of the configuration beside them."""
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
