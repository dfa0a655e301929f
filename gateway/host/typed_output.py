"""Answers with a type: the agent is told a JSON schema, and its last answer is read as a value."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from pydantic import PydanticUserError, TypeAdapter, ValidationError

from ...machines.errors import UsageError

ASKED = """
Your last answer of each turn is one JSON value and nothing else. It fits this schema:
{schema}"""
AGAIN = "Your answer does not fit the schema: {fault}. Answer again, with the JSON value alone."
_LONGEST = 500  # characters of a fault


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


class TypedOutput:
    """The type of an agent's answers: a pydantic model, a dataclass, a msgspec struct, or a plain type.

    Raises `UsageError` for a type that no JSON schema expresses.
    """

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self._adapter: TypeAdapter[Any] | None = None
        try:
            if _is_struct(kind):
                schema = msgspec.json.schema(kind)
            else:
                self._adapter = TypeAdapter(kind)
                schema = self._adapter.json_schema()
        except (PydanticUserError, TypeError) as error:
            why = str(error).splitlines()[0]
            raise UsageError(f"output: no JSON schema expresses {kind!r}: {why}") from error
        self.instructions = ASKED.format(schema=json.dumps(schema, ensure_ascii=False))

    def read(self, text: str) -> tuple[Any, str]:
        """Return the value of an answer, and what is wrong with it; empty if nothing is."""
        head, _, rest = text.strip().partition("\n")
        is_fenced = head.rstrip() in ("```", "```json") and rest.endswith("\n```")
        data = rest.removesuffix("\n```") if is_fenced else text
        try:
            if self._adapter is not None:
                return self._adapter.validate_json(data), ""
            return msgspec.json.decode(data, type=self._kind), ""
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            return None, f"{place}: {first['msg']}" if place else first["msg"]
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            return None, str(error)[:_LONGEST]
