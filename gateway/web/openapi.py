"""The interface as OpenAPI 3.1 describes it, made from its table: what is sent, and what is answered."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from types import UnionType
from typing import TYPE_CHECKING, Any, TypeAlias, Union, get_args, get_origin, get_type_hints

import msgspec
from sse_starlette import EventSourceResponse
from starlette.responses import PlainTextResponse

from ...journal.log import IndexMap, Log
from ...workflows.schema import field_texts
from ...workflows.settings import ScheduleSettings
from ...workflows.typed_table import is_table_type
from ..events.contract import AcceptedEvent, Event, ResultEvent
from ..views.dump import session_state

if TYPE_CHECKING:
    from .application import Entry

_Json: TypeAlias = "dict[str, _Json] | list[_Json] | str | int | float | bool | None"
TAKEN_IN = 202
"""The status of the receipt of a message that has not run yet."""
REFERENCE = "#/components/schemas/{name}"
EXTENDED: dict[str, Any] = {"Dump": session_state(), "ScheduleNow": ScheduleSettings}
"""Answers that have the fields of a value beside their own."""
STREAM = "Server-sent events: the `data` of each is an `Event`, its `id` the number of its entry."
TEXTS: dict[type, tuple[str, str]] = {
    EventSourceResponse: ("text/event-stream", STREAM),
    PlainTextResponse: ("text/plain", "Mermaid text."),
}


class ProblemAnswer(msgspec.Struct):
    """Why a request was refused, as RFC 9457 describes it; `hint` says what to do next."""

    type: str
    status: int
    detail: str
    title: str = ""
    hint: str = ""
    receipt: dict[str, Any] = {}  # of a message: the event of docs/events.md


def openapi(prefix: str, table: Sequence[Entry]) -> dict[str, Any]:
    """Describe the routes below a prefix."""
    paths: dict[str, dict[str, Any]] = {}
    kinds: list[Any] = [ProblemAnswer, *get_args(Event), *EXTENDED.values()]
    bodies: dict[str, Any] = {}
    content = {"application/problem+json": {"schema": _reference(ProblemAnswer.__name__)}}
    problem = {"description": "Why not, and what to do.", "content": content}
    for entry in table:
        answers = _members(get_type_hints(entry.handler)["return"])
        kinds += [kind for kind in answers if kind not in TEXTS]
        described: dict[str, Any] = {
            "operationId": entry.handler.__name__,
            "summary": (entry.handler.__doc__ or "").strip().partition("\n")[0],
            "description": f"Needs the scope `{entry.scope}`.",
            "parameters": list(_parameters(entry, answers)),
            "responses": {**_responses(entry, answers), "default": problem},
        }
        if entry.body is not None:
            name = entry.body.__name__
            bodies[name] = entry.body.model_json_schema()
            content = {"application/json": {"schema": _reference(name)}}
            described["requestBody"] = {"required": True, "content": content}
        path = prefix + entry.path.replace(":int", "")
        paths.setdefault(path, {})[entry.method.lower()] = described
    return {
        "openapi": "3.1.0",
        "info": {"title": "steersman", "version": "1"},
        "paths": paths,
        "security": [{"device": []}],
        "components": {
            "schemas": {**_schemas(kinds), **bodies},
            "securitySchemes": {"device": {"type": "http", "scheme": "bearer"}},
        },
    }


def _members(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _reference(name: str) -> dict[str, Any]:
    return {"$ref": REFERENCE.format(name=name)}


def _schemas(kinds: Sequence[Any]) -> dict[str, Any]:
    """Return the schemas of all types, and of what is in them, by name."""
    _, found = msgspec.json.schema_components(
        list(dict.fromkeys(kinds)), schema_hook=_of_log, ref_template=REFERENCE
    )
    for name, more in EXTENDED.items():
        properties = found.pop(more.__name__)["properties"]
        for key, text in field_texts(more).items() if is_table_type(more) else ():
            properties[key]["description"] = text
        found[name]["properties"] |= properties | found[name]["properties"]
    events = {kind: _reference(kind.__name__) for kind in get_args(Event)}
    found["Event"] = {"anyOf": list(events.values())}  # two kinds of `goal` fit one event
    return {name: _with_items(schema) for name, schema in found.items()}


def _with_items(schema: _Json) -> _Json:
    """Let the items of arrays be described by schemas: generators do not read false, and miss none.

    Where it was false, `maxItems` says so, too.
    """
    if isinstance(schema, dict):
        found = {key: _with_items(value) for key, value in schema.items()}
        is_bare = found.get("items") in (None, False) and "prefixItems" not in found
        if found.get("type") == "array" and is_bare:
            found["items"] = {}
        elif found.get("items") is False:
            del found["items"]
        return found
    if isinstance(schema, list):
        return [_with_items(part) for part in schema]
    return schema


def _of_log(kind: Any) -> dict[str, Any]:
    """Describe a collection of the journal's."""
    origin = get_origin(kind) or kind
    if origin is IndexMap:
        return {"type": "object"}
    if origin is Log:
        return {"type": "array"}
    raise NotImplementedError(f"no schema for {kind}")


def _responses(entry: Entry, answers: Sequence[Any]) -> dict[str, Any]:
    """Describe what is answered, by status; a message that was taken in has a status of its own."""
    found: dict[str, Any] = {}
    for kind in answers:
        status = TAKEN_IN if kind is AcceptedEvent else entry.status
        content, about = TEXTS.get(kind, ("application/json", ""))
        schema = {"type": "string", "description": about} if about else _reference(kind.__name__)
        what = found.setdefault(str(status), {"description": "Done.", "content": {}})
        what["content"][content] = {"schema": schema}
    return found


def _parameters(entry: Entry, answers: Sequence[Any]) -> Iterator[dict[str, Any]]:
    for name, kind in re.findall(r"{(\w+)(:int)?}", entry.path):
        schema = {"type": "integer" if kind else "string"}
        yield {"name": name, "in": "path", "required": True, "schema": schema}
    if entry.query is not None:
        for name, schema in entry.query.model_json_schema()["properties"].items():
            yield {"name": name, "in": "query", "schema": schema}
    if EventSourceResponse in answers:
        yield _header("Last-Event-ID", "The entry after which the stream begins.", "integer")
    if ResultEvent in answers:
        yield _header("Idempotency-Key", "The same key again is the same message.", "string")


def _header(name: str, about: str, kind: str) -> dict[str, Any]:
    return {"name": name, "in": "header", "description": about, "schema": {"type": kind}}
