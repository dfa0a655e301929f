"""A command that the program tells people to type is one that it has, with all that it needs.

The commands in backticks are read from all texts of the program, and from the recordings; what a text
fills in, such as a session's id, is a word. They are parsed as the command line parses them, so that a
command, an option or an argument that is not there fails.
"""

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from steersman.cli.app import whole_program
from steersman.cli.chat_options import named_sessions

ROOT = Path(__file__).parents[2]
PARTS = ("actors", "cli", "gateway", "journal", "machines", "ports", "workflows")
HINT = re.compile(r"`(steersman(?: [^`\n]*)?)`|(?:Continue with|resume with): (steersman .*)")
PLACE = "1"
PROGRAM: Any = whole_program()


def texts(tree: ast.AST) -> Iterator[str]:
    """Yield the strings of a module, except docstrings; what is filled in is `PLACE`."""
    documented = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    inner = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in ast.walk(node)
        if part is not node
    }
    for node in ast.walk(tree):
        if id(node) in documented | inner:
            continue
        if isinstance(node, ast.JoinedStr):
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else PLACE for part in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def hints() -> list[str]:
    """Return all commands that are printed as a hint."""
    found = set[str]()
    for part in PARTS:
        for path in (ROOT / part).rglob("*.py"):
            for text in texts(ast.parse(path.read_text())):
                if text.startswith("#"):  # a mark in a file
                    continue
                found |= {one or other for one, other in HINT.findall(text)}
    for path in (ROOT / "docs" / "recordings").glob("*.cast"):
        found |= {one or other for one, other in HINT.findall(path.read_text())}
    return sorted(found)


def fault(line: str) -> str:
    """Say what is wrong with a command; empty if it can be typed."""
    line = re.sub(r"\\[rn].*", "", line)
    if line.endswith(("…", "...")) or PLACE in line.split(" ", 2)[1:2]:
        return ""
    try:
        words = shlex.split(line.replace("[", "").replace("]", ""))[1:]
    except ValueError as error:
        return str(error)
    if words[:1] == ["chat"]:
        words = named_sessions(words)
    words = [{"N": "1"}.get(word, word) for word in words]
    command, context = PROGRAM, click.Context(PROGRAM, info_name="steersman")
    try:
        while isinstance(command, click.Group) or hasattr(command, "commands"):
            if not words:
                return (
                    "" if command.invoke_without_command or context.parent is None else "no command"
                )
            name = words.pop(0)
            if name.startswith("-"):
                return ""
            inner = command.get_command(context, name)
            if inner is None:
                return f"there is no command `{name}`"
            command, context = inner, click.Context(inner, parent=context, info_name=name)
        command.make_context(str(command.name), words, parent=context.parent)
    except Exception as error:
        return f"{type(error).__name__}: {getattr(error, 'message', error)}"
    return ""


@pytest.mark.nightly
def test_every_hint_can_be_typed() -> None:
    """It has a command, and what that needs."""
    found = hints()
    assert len(found) > 70
    assert {hint: why for hint in found if (why := fault(hint))} == {}
