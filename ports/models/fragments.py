"""Puts a part of a file that a model wrote in place of a whole one into the file where it belongs.

Asked for a whole file, a small model often prints only the function that it changed. Written as it is,
that would throw the rest of the file away. For Python the definitions tell where it belongs.
"""

from __future__ import annotations

import ast

_WHOLE = 0.75
"""A text with this share of a file's words is the whole file, also if a definition is missing."""
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign


def merged(path: str, before: str, written: str) -> str:
    """Return the whole file: what was written, or the file before with the definitions that were.

    A text that has all definitions of the file, or cannot be read, is the whole file already.
    """
    is_shorter = len(written.split()) < _WHOLE * len(before.split())
    if not path.endswith((".py", ".pyi")) or not is_shorter:
        return written
    try:
        old, new = ast.parse(before), ast.parse(written)
    except (SyntaxError, ValueError, RecursionError):
        return written
    known, given = _definitions(old), _definitions(new)
    if not given or known.keys() <= given.keys() or not known.keys() & given.keys():
        return written
    if any(
        not isinstance(node, _Definition | ast.Import | ast.ImportFrom) for node in new.body[1:]
    ):
        return written  # it has statements of its own: it may be a whole file that drops something
    lines, source = before.splitlines(), written.splitlines()
    for name, node in sorted(known.items(), key=lambda pair: -pair[1].lineno):
        if name in given:
            lines[_first(node) - 1 : node.end_lineno] = _text(given[name], source)
    for name, node in given.items():
        if name not in known:
            lines += ["", "", *_text(node, source)]
    kept = set(lines)
    imports = [
        line
        for node in new.body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for line in source[node.lineno - 1 : node.end_lineno]
        if line not in kept
    ]
    at = _after_docstring(old)
    lines[at:at] = imports
    return "\n".join(lines) + "\n"


def repaired(path: str, written: str) -> str:
    """Return Python without a stray first line, such as a quote that opens nothing, if that mends it."""
    if not path.endswith(".py") or _can_read(written):
        return written
    rest = written.partition("\n")[2]
    return rest if rest.strip() and _can_read(rest) else written


def _can_read(source: str) -> bool:
    try:
        ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return False
    return True


def _definitions(tree: ast.Module) -> dict[str, _Definition]:
    return {
        name: node for node in tree.body if isinstance(node, _Definition) for name in _name(node)
    }


def _name(node: _Definition) -> list[str]:
    """Return what a definition gives a value to, if that is one name."""
    if not isinstance(node, ast.Assign | ast.AnnAssign):
        return [node.name]
    target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
    return [target.id] if isinstance(target, ast.Name) else []


def _first(node: _Definition) -> int:
    """Return the line in which a definition begins, with its decorators."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(one.lineno for one in decorators)])


def _text(node: _Definition, source: list[str]) -> list[str]:
    return source[_first(node) - 1 : node.end_lineno]


def _after_docstring(tree: ast.Module) -> int:
    """Return the line behind which imports belong: the docstring's last, or that of `__future__`."""
    line = 0
    for node in tree.body:
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        is_future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if not (is_docstring or is_future):
            break
        line = node.end_lineno or line
    return line
