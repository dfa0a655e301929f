"""What templates and expressions refer to: `vars.glob`, `steps.find.output`, `item`."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jinja2 import nodes
from pydantic.json_schema import GenerateJsonSchema

from ..schema import TomlSchema, schema
from .workflow_file import WorkflowFile

# The file that `steersman workflow new` writes: explained line by line, and it runs as it is


_FILE = Path(__file__).parent.parent / "starter.toml"


def starter(name: str) -> str:
    """Return it for a workflow of this name, in a file that is called after it."""
    return _FILE.read_text(encoding="utf-8").replace("starter", name)


# The JSON Schema of a workflow's file, so that editors complete and check it ----------------------


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


_NAME: Final = r"(?!true\b|false\b|none\b|not\b)[a-z][A-Za-z0-9_]*(?:\.[A-Za-z][A-Za-z0-9_]*)*"
_PLAIN: Final = re.compile(rf"\{{\{{ ?({_NAME}) ?\}}\}}")
_DEPTH: Final = 3  # names of a path that anybody asks for


@dataclass(frozen=True, slots=True)
class Reference:
    """A path of names, as far as it stands there: `("steps", "find", "output")`.

    `line` is that of the template, from 1. `said` is the word that it is compared with, if it is.
    """

    path: tuple[str, ...]
    line: int
    said: str | None = None


def references(tree: nodes.Template) -> list[Reference]:
    """List what a tree refers to from outside, in the order of the text."""
    found: list[Reference] = []
    _collect(tree, frozenset({"range"}), found)
    return found


def plain_references(text: str, *, is_expression: bool) -> list[Reference] | None:
    """List what a text refers to if it holds nothing but plain paths; None for any other.

    Most texts are so, and parsing takes much longer.
    """
    if is_expression:
        whole = re.fullmatch(_NAME, text)
        return [Reference(tuple(text.split(".")[:_DEPTH]), 1)] if whole else None
    pieces = _PLAIN.split(text)
    if any("{" in piece for piece in pieces[::2]):
        return None
    lines = [text.count("\n", 0, match.start()) + 1 for match in _PLAIN.finditer(text)]
    paths = [tuple(path.split(".")[:_DEPTH]) for path in pieces[1::2]]
    return [Reference(path, line) for path, line in zip(paths, lines, strict=True)]


def only_path(tree: nodes.Template) -> tuple[str, ...]:
    """Return the path that an expression is, if it is nothing else."""
    match tree.body:
        case [nodes.Output(nodes=[expression])]:
            return _path(expression)
        case _:
            return ()


def _collect(node: nodes.Node, bound: frozenset[str], found: list[Reference]) -> None:
    if path := _path(node):
        if path[0] not in bound:
            found.append(Reference(path[:_DEPTH], node.lineno))
        return
    if isinstance(node, nodes.For):
        _collect(node.iter, bound, found)
        bound = bound | {name.name for name in node.target.find_all(nodes.Name)} | {"loop"}
        if isinstance(node.target, nodes.Name):
            bound = bound | {node.target.name}
        parts = [*([node.test] if node.test else []), *node.body, *node.else_]
    elif said := _comparison(node):
        found += [said] if said.path[0] not in bound else []
        return
    else:
        parts = list(node.iter_child_nodes())
    for part in parts:
        _collect(part, bound, found)


def _comparison(node: nodes.Node) -> Reference | None:
    """Recognise `PATH == "word"` and `!=`, either way round."""
    match node:
        case nodes.Compare(ops=[nodes.Operand(op="eq" | "ne")]):
            sides = (node.expr, node.ops[0].expr)
            for one, other in (sides, sides[::-1]):
                path = _path(one)
                if path and isinstance(other, nodes.Const) and isinstance(other.value, str):
                    return Reference(path[:_DEPTH], node.lineno, other.value)
        case _:
            pass
    return None


def _path(node: nodes.Node) -> tuple[str, ...]:
    """Read a chain of names and constant indexes; empty for anything else."""
    names: list[str] = []
    while True:
        match node:
            case nodes.Name():
                return (node.name, *reversed(names))
            case nodes.Getattr():
                names.append(node.attr)
                node = node.node
            case nodes.Getitem(arg=nodes.Const(value=str(name))):
                names.append(name)
                node = node.node
            case nodes.Getitem(arg=nodes.Const()):
                names = []  # what stands behind a number is not looked at
                node = node.node
            case _:
                return ()
