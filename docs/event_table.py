"""The tables of events.md, made from the event contract: its types, and the comment of each."""

import ast
import inspect
import re
from collections import ChainMap
from collections.abc import Iterator, Mapping
from itertools import pairwise, takewhile
from types import NoneType, UnionType
from typing import Any, Literal, NotRequired, get_args, get_origin, get_type_hints, is_typeddict

from steersman.gateway.events import contract

__all__ = ["event_tables", "field_texts"]

SECTIONS = {
    "Session": "SessionEvent",
    "Messages": "MessageEvent",
    "Turns and tool calls": "TurnEvent",
    "Goals and subagents": "GoalAndChildEvent",
    "Workflows": "RunEvent",
}
"""Title and union of each section."""
ABOVE = "    # "
"""How the lines of a comment above a field begin."""
COMMON = {*contract.Stamp.__annotations__, "type"}
NAMES = {str: "text", int: "whole number", float: "number", bool: "true or false", Any: "any value"}


def event_tables() -> str:
    """Write the common fields, a table for each event, and one for each object within events."""
    texts = field_texts()
    blocks = ["## Fields of every event\n", _table(contract.Stamp, texts)]
    for title, union in SECTIONS.items():
        blocks += [f"## {title}\n", f"{texts[union]}\n"]
        for event in get_args(getattr(contract, union)):
            blocks.append(_block(f"`{_type_of(event)}`", event, texts))
    blocks.append("## Objects\n")
    blocks += [_block(_title(name), kind, texts) for name, kind in _objects()]
    return "\n".join(blocks)


def field_texts() -> dict[str, str]:
    """Return the text about each field, as `Class.field`."""
    return dict(_texts())


def _block(title: str, kind: type[Any], texts: Mapping[str, str]) -> str:
    said = " ".join((inspect.getdoc(kind) or "").split())
    return f"### {title}\n\n{said}\n\n{_table(kind, texts)}".rstrip("\n") + "\n"


def _table(kind: type[Any], texts: Mapping[str, str]) -> str:
    rows = [
        f"| `{name}` | {_words(hint)} | {texts[f'{kind.__name__}.{name}']} |\n"
        for name, hint in get_type_hints(kind, include_extras=True).items()
        if kind is contract.Stamp or name not in COMMON
    ]
    return "".join(["| field | is | |\n", "| --- | --- | --- |\n", *rows]) if rows else ""


def _objects() -> Iterator[tuple[str, type[Any]]]:
    """Yield what stands within events, by name."""
    for name, kind in vars(contract).items():
        is_object = is_typeddict(kind) and "type" not in kind.__annotations__
        if is_object and not name.startswith("_") and kind is not contract.Stamp:
            yield name, kind


def _title(name: str) -> str:
    """Write a class's name as words: `queue item`."""
    return re.sub(r"(?<!^)(?=[A-Z])", " ", name.removesuffix("View")).lower()


def _type_of(event: type[Any]) -> str:
    (name,) = get_args(get_type_hints(event)["type"])
    return str(name)


def _words(hint: Any) -> str:
    """Say what a field holds."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is NotRequired:
        return f"{_words(inner[0])}; may be absent"
    if origin is Literal:
        return " or ".join(f"`{value}`" for value in inner)
    if origin is list:
        return f"list of {_words(inner[0])}"
    if isinstance(hint, UnionType):
        parts = [_words(part) for part in inner if part is not NoneType]
        return " or ".join([*parts, "null"] if NoneType in inner else parts)
    if is_typeddict(hint):
        title = _title(hint.__name__)
        return f"[{title}](#{title.replace(' ', '-')})"
    return NAMES.get(hint, "object")


def _texts() -> Iterator[tuple[str, str]]:
    """Yield the text about each field, as `Class.field`, and below each union."""
    source = inspect.getsource(contract)
    body, lines = ast.parse(source).body, source.splitlines()
    fields: dict[str, dict[str, str]] = {}
    for statement, below in pairwise(body):
        match statement, below:
            case (
                ast.Assign(targets=[ast.Name(id=name)]),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                text = " ".join(text.split())
                fields[name] = {"as": text}  # of the TypedDict that is no class, its one field
                yield name, text
            case ast.ClassDef(name=name), _:
                bases = [base.id for base in statement.bases if isinstance(base, ast.Name)]
                inherited = [fields.get(base, {}) for base in bases]
                fields[name] = dict(ChainMap(_commented(statement, lines), *inherited))
                for field, text in fields[name].items():
                    yield f"{name}.{field}", text
            case _:
                pass


def _commented(kind: ast.ClassDef, lines: list[str]) -> dict[str, str]:
    """Return the comment of each field: behind it, or above it if that is too long."""
    comments: dict[str, str] = {}
    for statement in kind.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name)):
                text = lines[statement.lineno - 1].partition("  # ")[2]
                above = lines[kind.lineno : statement.lineno - 1]
                block = [*takewhile(lambda line: line.startswith(ABOVE), reversed(above))]
                whole = " ".join(line.removeprefix(ABOVE) for line in reversed(block))
                comments[name] = text or whole
            case _:
                pass
    return comments
