"""Code gives a command as data: it builds no text that is parsed as a slash command again.

A text in it may have quotes, or begin like an option, and would be refused or mean something else.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

from steersman.gateway.commands.registry import NAMES

ROOMS = ("cli", "gateway", "extensions")
SPEAKING = {"say", "enter", "send", "speak"}
"""Functions that read a text as a person's, without the underscores before their names."""
SHOWN = {
    ("cli/question.py", "answer"): "a line for people, to be edited",
    ("gateway/wording/first_run.py", "help"): "a line for people",
}
"""Texts that look like it, by module and command, and why that is right."""


def begin_of(node: ast.expr) -> str:
    """Return what a text begins with; `{` stands for what is filled in."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(
                str(value.value) if isinstance(value, ast.Constant) else "{" for value in values
            )
        case _:
            return ""


def built(tree: ast.AST) -> Iterator[str]:
    """Give the commands whose texts are built; empty for one whose name is filled in."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            name = begin_of(node)[1:].partition(" ")[0]
            if begin_of(node).startswith("/") and name in NAMES:
                yield name
        elif isinstance(node, ast.Call):
            function = node.func
            called = getattr(function, "attr", getattr(function, "id", "")).lstrip("_")
            for argument in node.args if called in SPEAKING else ():
                if begin_of(argument).removesuffix("{").startswith("/"):
                    name = begin_of(argument)[1:].partition(" ")[0]
                    yield name if name in NAMES else ""


def test_no_command_is_built(root: Path) -> None:
    """`CommandCall` has the arguments as they are."""
    found = {
        (path.relative_to(root).as_posix(), name)
        for room in ROOMS
        for path in (root / room).rglob("*.py")
        for name in built(ast.parse(path.read_text("utf-8")))
    }
    assert found - SHOWN.keys() == set()
