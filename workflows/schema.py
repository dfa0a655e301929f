"""The JSON Schema of a configuration file, so that editors complete and check it."""

import ast
import inspect
import re
import tomllib
from itertools import pairwise
from types import UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from msgspec import NODEFAULT, Meta, to_builtins
from msgspec.structs import fields

from ..machines.value import Value
from .config import shipped_text
from .positions import locate
from .problem import Where
from .routing import RouteFile
from .settings import Settings
from .typed_table import Narrowing, TypedTable, is_table_type

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

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
    parts: dict[str, Any] = {}
    whole = _table(Settings, parts)
    whole["properties"]["route"] = _table(RouteFile, parts)["properties"]["route"]
    whole["$defs"] = parts
    for entry in entries():
        part = _find(whole, entry.where)
        part.setdefault("description", entry.comment)
        if entry.value and not entry.is_example and entry.where[0] != "agents":
            part["default"] = tomllib.loads(f"value = {entry.value}")["value"]
            _find(whole, entry.where[:-1]).pop("required", None)  # the shipped file has them all
    return {**whole, "$schema": DIALECT, "title": "steersman configuration"}


def workflow_schema() -> dict[str, Any]:
    """Describe a workflow file: `[workflow]`, `[[step]]`, and the tables of the configuration."""
    from .flow.workflow_file import WorkflowFile

    settings = schema()
    del settings["properties"]["route"]["default"]
    own = _table(WorkflowFile, settings["$defs"])
    return {
        "$schema": DIALECT,
        "title": "steersman workflow",
        "type": "object",
        "additionalProperties": False,
        "properties": {**own["properties"], **settings["properties"]},
        "required": own["required"],
        "$defs": settings["$defs"],
    }


def table_schema(kind: type[TypedTable]) -> dict[str, Any]:
    """Describe one kind of table that has no others in it."""
    return _table(kind, {})


def _table(kind: type[TypedTable], parts: dict[str, Any]) -> dict[str, Any]:
    """Describe a table; those in it are added to the parts, by name."""
    texts = field_texts(kind)
    properties: dict[str, Any] = {}
    for field in fields(kind):
        about = _described(field.type, parts)
        if text := texts.get(field.name):
            about["description"] = text
        if field.default is not NODEFAULT and field.default is not None:
            about["default"] = to_builtins(field.default)
        properties[field.encode_name] = about
    required = [field.encode_name for field in fields(kind) if field.required]
    return {
        "title": kind.__name__,
        "description": inspect.cleandoc(kind.__doc__ or ""),
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
        **({"required": required} if required else {}),
    }


def field_texts(kind: type[TypedTable]) -> dict[str, str]:
    """Return the text below each field of a table, in one line."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__[: kind.__mro__.index(TypedTable)]):
        try:
            source = inspect.getsource(base)
        except (OSError, TypeError):  # the program was installed without its sources
            continue
        (declared,) = ast.parse(source).body
        assert isinstance(declared, ast.ClassDef)
        for statement, below in pairwise(declared.body):
            match statement, below:
                case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(text))):
                    found[name] = " ".join(text.split())
                case _:
                    continue
    return found


_PLAIN = {bool: "boolean", int: "integer", float: "number", str: "string"}
_SIZES = {"array": "minItems", "object": "minProperties", "string": "minLength"}


def _described(hint: Any, parts: dict[str, Any]) -> dict[str, Any]:
    """Describe a value of a type. Null, which TOML does not have, is left out."""
    origin, inner = get_origin(hint), get_args(hint)
    if is_table_type(hint):
        if hint.__name__ not in parts:
            parts[hint.__name__] = _table(hint, parts)
        return {"$ref": f"#/$defs/{hint.__name__}"}
    if origin is Annotated:
        about = _described(inner[0], parts)
        for note in hint.__metadata__:
            if isinstance(note, Meta):
                about |= _bounds(note, about["type"])
            elif isinstance(note, Narrowing):
                about = note.described(about)
        return about
    if origin in (Union, UnionType):
        (some,) = [kind for kind in inner if kind is not type(None)]
        return _described(some, parts)
    if origin is tuple:
        return {"type": "array", "items": _described(inner[0], parts)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _described(inner[1], parts) or True}
    if origin is Literal:
        return {"type": "string", "enum": list(inner)}
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    return {} if hint is Any else dict(hint.SCHEMA)


def _bounds(bounds: Meta, kind: str) -> dict[str, Any]:
    named = {
        "exclusiveMinimum": bounds.gt,
        "minimum": bounds.ge,
        "exclusiveMaximum": bounds.lt,
        "maximum": bounds.le,
        _SIZES.get(kind, ""): bounds.min_length,
    }
    return {name: value for name, value in named.items() if value is not None}


def _find(whole: dict[str, Any], where: Where) -> dict[str, Any]:
    """Follow a path, and references on the way."""
    part = whole
    for name in where:
        part = part["properties"][name] if "properties" in part else part["additionalProperties"]
        if reference := part.get("$ref"):
            part = whole["$defs"][reference.rpartition("/")[2]]
    return part
