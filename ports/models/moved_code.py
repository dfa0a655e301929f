"""A request to move a part of a file into another one: what the old file still has of it goes.

A small model writes the new file well, and then prints the old one with the part still in it. The move
of one function or class of Python is carried out on the syntax tree.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from posixpath import basename, dirname

from ...machines.pattern import lazy_pattern
from .fragments import parsed, text_of
from .renames import asks_no_more

_MOVED = lazy_pattern(
    r"(?i)\b(?:move|extract|pull|put|split)(?: out)?(?: the| class| function| helper){0,3} "
    r"[`'\"]?(?P<name>\w+)(?:\(\))?[`'\"]?(?: out)?"
    r"(?: (?:from|of|in) [`'\"]?[\w./-]{1,60}\.py[`'\"]?)? (?:to|into|in)"
    r"(?: (?:the|a|its|an|own|new|separate|file|module|called|named)){0,5} "
    r"[`'\"]?(?P<new>[\w./-]{1,60}\.py)\b[`'\"]?(?:,? and import it)?"
)
_GONE = lazy_pattern(
    r"(?i)\b(?:delete|remove|drop)(?: the| unused| old| dead| class| function| helper){0,4} "
    r"[`'\"]?(?P<name>\w+)(?:\(\))?[`'\"]?(?: function| class)?"
    r"(?: (?:from|of|in) [`'\"]?[\w./-]{1,60}\.py[`'\"]?)?"
)
_MOVES = lazy_pattern(r"(?i)\b(move|extract|pull|split)\b")
_EMPTY = re.compile(r"(?<![ \t])[ \t]*<(style|script)>\s*</\1>\n?")
_LEAST = 2  # lines of a part
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_Import = ast.Import | ast.ImportFrom


def with_moved_code(request: str, files: Mapping[str, str | None]) -> dict[str, str]:
    """Return the two files as they are after the move; none if the request is about something else.

    What is moved may use nothing else of its old file, which imports it if anything there needs it.
    """
    found = _MOVED.search(request)
    if found is None or not asks_no_more(request, found, files):
        return {}
    name, homes = found["name"], [*_homes(found["name"], files)]
    if len(homes) != 1:
        return {}
    old, tree, node = homes[0]
    new = found["new"] if "/" in found["new"] else f"{dirname(old)}/{found['new']}".lstrip("/")
    there, text = files.get(new, ""), files[old] or ""
    if new == old or dirname(new) != dirname(old) or there is None:
        return {}
    own = {of.id for of in ast.walk(node) if isinstance(of, ast.Name)}
    imports = [of for of in tree.body if isinstance(of, _Import) and own & {*_bound(of)}]
    others = {of for each in tree.body if not isinstance(each, _Import) for of in _bound(each)}
    if (own - {name}) & others:
        return {}
    lines = text.splitlines()
    moved = text_of(node, lines)
    first = node.end_lineno or 0
    rest = [*lines[: first - len(moved)], *lines[first:]]
    dot = "." if f"{dirname(new)}/__init__.py".lstrip("/") in files else ""
    brought = f"from {dot}{basename(new).removesuffix('.py')} import {name}"
    other = "\n".join(t or "" for path, t in files.items() if path not in (old, new))
    is_used = name in re.findall(r"\w+", "\n".join([*rest, other]))
    rest = _with_import(rest, brought) if is_used else rest
    head = ["\n".join(text_of(of, lines)) for of in imports]
    head = [line for line in head if line not in there]
    parts = ["\n".join(head), there.strip(), "\n".join(moved)]
    return {
        old: re.sub(r"\n{4,}", "\n\n\n", "\n".join(rest)).strip() + "\n",
        new: "\n\n\n".join(filter(None, parts)) + "\n",
    }


def without_unused_code(request: str, files: Mapping[str, str | None]) -> dict[str, str]:
    """Return the file without the function or class that a request wants gone, if nothing uses it."""
    found = _GONE.search(request)
    if found is None or not asks_no_more(request, found, files):
        return {}
    name, homes = found["name"], [*_homes(found["name"], files)]
    texts = "\n".join(text or "" for text in files.values())
    if len(homes) != 1 or re.findall(r"\w+", texts).count(name) > 1 or None in files.values():
        return {}
    path, _, node = homes[0]
    lines = (files[path] or "").splitlines()
    end = node.end_lineno or 0
    rest = [*lines[: end - len(text_of(node, lines))], *lines[end:]]
    return {path: re.sub(r"\n{4,}", "\n\n\n", "\n".join(rest)).strip() + "\n"}


def without_moved_text(
    request: str, files: Mapping[str, str], before: Mapping[str, str | None]
) -> dict[str, str]:
    """Return the files of an answer; what is in a new one, line by line, is in no old one any more."""
    parts = [text.strip().splitlines() for path, text in files.items() if path not in before]
    after = dict(files)
    for path in files.keys() & before.keys() if _MOVES.search(request) else ():
        lines = files[path].splitlines()
        stripped = [line.strip() for line in lines]
        for part in (part for part in parts if len(part) >= _LEAST):
            wanted, size = [line.strip() for line in part], len(part)
            at = next((n for n in range(len(lines)) if stripped[n : n + size] == wanted), None)
            if at is not None:
                del lines[at : at + size], stripped[at : at + size]
        if len(lines) < len(files[path].splitlines()):
            after[path] = _EMPTY.sub("", "\n".join([*lines, ""]))
    return after


def _homes(
    name: str, files: Mapping[str, str | None]
) -> Iterator[tuple[str, ast.Module, _Definition]]:
    """Yield each file that defines a name, its tree, and the definition."""
    for path, text in files.items():
        tree = parsed(text or "") if path.endswith(".py") else None
        for node in tree.body if tree is not None else ():
            if tree is not None and isinstance(node, _Definition) and node.name == name:
                yield path, tree, node


def _bound(node: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement of a file gives a meaning."""
    if isinstance(node, _Definition):
        yield node.name
        return
    for of in ast.walk(node):
        if isinstance(of, ast.alias):
            yield (of.asname or of.name).partition(".")[0]
        elif isinstance(of, ast.Name) and isinstance(of.ctx, ast.Store):
            yield of.id


def _with_import(lines: list[str], brought: str) -> list[str]:
    """Return a file with one more import, behind those that it has, else behind its docstring."""
    tree = parsed("\n".join(lines))
    at = 0
    for number, node in enumerate(tree.body if tree is not None else ()):
        is_docstring = not number and isinstance(getattr(node, "value", None), ast.Constant)
        if isinstance(node, _Import) or is_docstring:
            at = node.end_lineno or at
    gap = [""] if at and not lines[at - 1].startswith(("import ", "from ")) else []
    return [*lines[:at], *gap, brought, *([] if at else [""]), *lines[at:]]
