"""Parts of Python files: puts what a model wrote where it belongs, and asks for one function again.

Asked for a whole file, a small model often prints only the function that it changed. Written as it is,
that would throw the rest of the file away. For Python the definitions tell where it belongs.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterable, Mapping

_WHOLE = 0.75
"""A text with this share of a file's words is the whole file, also if a definition is missing."""
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign


def merged(path: str, before: str, written: str) -> str:
    """Return the whole file: what was written, or the file before with the definitions that were.

    Those that it had not come behind the others. A text that has all definitions of the file, or cannot
    be read, is the whole file already.
    """
    old, new = parsed(before), parsed(written)
    if not path.endswith((".py", ".pyi")) or old is None or new is None:
        return written
    known, given = _definitions(old), _definitions(new)
    if not given or known.keys() <= given.keys():
        return written
    is_shorter = len(written.split()) < _WHOLE * len(before.split())
    is_apart = not known.keys() & given.keys() and not _is_renamed(known, given)
    is_apart &= not any(isinstance(of, ast.Assign | ast.AnnAssign) for of in given.values())
    if not (is_shorter or is_apart):
        return written
    fits = _Definition | ast.Import | ast.ImportFrom
    if not all(isinstance(node, fits) for node in new.body[1:]):
        return written  # it has statements of its own: it may be a whole file that drops something
    lines, source = before.splitlines(), written.splitlines()
    for name, node in sorted(known.items(), key=lambda pair: -pair[1].lineno):
        if name in given:
            lines[_first(node) - 1 : node.end_lineno] = text_of(given[name], source)
    for name, node in given.items():
        if name not in known:
            lines += ["", "", *text_of(node, source)]
    kept = set(lines)
    imports = [
        line
        for node in new.body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for line in source[node.lineno - 1 : node.end_lineno]
        if line not in kept
    ]
    at = behind_opening(old)
    lines[at:at] = imports
    return "\n".join(lines) + "\n"


def _is_renamed(known: Mapping[str, _Definition], given: Mapping[str, _Definition]) -> bool:
    """Whether something has another name now, and is the same inside."""
    inner = [{ast.dump(part) for part in _inside(of)} for of in known.values()]
    return any({ast.dump(part) for part in _inside(of)} in inner for of in given.values())


def _inside(node: _Definition) -> list[ast.stmt] | list[ast.expr]:
    if isinstance(node, ast.Assign | ast.AnnAssign):
        return [node.value] if node.value is not None else []
    return node.body


def behind_opening(tree: ast.Module) -> int:
    """Return the line behind a docstring and imports of `__future__`, before which no import belongs."""
    at = 0
    for first in tree.body:
        is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
        is_future = isinstance(first, ast.ImportFrom) and first.module == "__future__"
        if not (is_docstring or is_future):
            break
        at = first.end_lineno or at
    return at


def repaired(path: str, written: str) -> str:
    """Return Python without a stray first line, such as a quote that opens nothing, if that mends it."""
    if not path.endswith(".py") or parsed(written) is not None:
        return written
    rest = written.partition("\n")[2]
    return rest if rest.strip() and parsed(rest) is not None else written


def functions_of(source: str) -> list[str]:
    """Return the names of functions and methods in the order of a file; none if it cannot be read."""
    return list(dict.fromkeys(node.name for node in _functions(source)))


def used_by(source: str, names: Iterable[str]) -> set[str]:
    """Return functions of a file with those that they use, directly or not."""
    bodies = {node.name: node for node in _functions(source)}
    found, left = set[str](), [*names]
    while left:
        if (name := left.pop()) in found or name not in bodies:
            continue
        found.add(name)
        inner = ast.walk(bodies[name])
        left += [getattr(node, "id", getattr(node, "attr", "")) for node in inner]
    return found


def words_about(tests: str, name: str) -> list[str]:
    """Return the lines of the docstrings of classes and functions that call a function."""
    found = list[str]()
    tree = parsed(tests)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and (said := ast.get_docstring(node)):
            calls = (of.func for of in ast.walk(node) if isinstance(of, ast.Call))
            if any(getattr(of, "id", getattr(of, "attr", "")) == name for of in calls):
                found += said.splitlines()
    return found


def statements_of(source: str) -> list[str]:
    """Return the lines of a text, stripped; of Python each check of several lines is one."""
    lines = [line.strip() for line in source.splitlines()]
    tree = parsed(source)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Expr | ast.Assert) and node.lineno < (end := node.end_lineno or 0):
            text = " ".join(lines[node.lineno - 1 : end])
            if '"""' not in text and "'''" not in text:
                text = text.replace("( ", "(").replace(", )", ")").replace(" )", ")")
                lines[node.lineno - 1 : end] = [text, *[""] * (end - node.lineno)]
    return lines


def without_body(source: str, name: str) -> str:
    """Return a file with one function reduced to its head and docstring."""
    node = next(node for node in _functions(source) if node.name == name)
    lines = source.splitlines()
    head, inner = _head(node, lines)
    lines[node.lineno - 1 : node.end_lineno] = [*head, f"{inner}# TODO"]
    return "\n".join(lines) + "\n"


def head_of(source: str, name: str) -> str:
    """Return the head and the docstring of a function, behind the constants of the file that it uses."""
    node = next(node for node in _functions(source) if node.name == name)
    lines, used = source.splitlines(), {of.id for of in ast.walk(node) if isinstance(of, ast.Name)}
    tree = parsed(source)
    known = _definitions(tree) if tree is not None else {}
    fits = [of for name, of in known.items() if name in used and isinstance(of, ast.Assign)]
    constants = [*(line for of in fits for line in text_of(of, lines)), "", ""] if fits else []
    head, _ = _head(node, lines)
    return "\n".join([*constants, textwrap.dedent("\n".join(head))])


def is_hollow(source: str, name: str) -> bool:
    """Whether a text has a function that does nothing: what was left for the model to write."""
    found = next((node for node in _functions(source) if node.name == name), None)
    empty = ast.Pass | ast.Expr
    return found is not None and all(
        isinstance(part, empty) and isinstance(getattr(part, "value", None), ast.Constant | None)
        for part in found.body
    )


def _head(node: ast.FunctionDef | ast.AsyncFunctionDef, lines: list[str]) -> tuple[list[str], str]:
    """Return the lines of a function's head, with its docstring, and the indentation of the rest."""
    first = node.body[0]
    before = lines[first.lineno - 1].encode()[: first.col_offset].decode()
    if before.strip():  # the body begins behind the colon
        head = [*lines[node.lineno - 1 : first.lineno - 1], before.rstrip()]
        return head, " " * (node.col_offset + 4)
    is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    end = (first.end_lineno or 0) if is_docstring else first.lineno - 1
    return lines[node.lineno - 1 : end], before


def with_function(source: str, written: str, name: str) -> str:
    """Return a file with the function that a model wrote in the place of that name, else as it is."""
    old = next(node for node in _functions(source) if node.name == name)
    new = next((node for node in _functions(written) if node.name == name), None)
    if new is None:
        return source
    lines = source.splitlines()
    text = textwrap.dedent("\n".join(text_of(new, written.splitlines())))
    lines[_first(old) - 1 : old.end_lineno] = textwrap.indent(
        text, " " * old.col_offset
    ).splitlines()
    return "\n".join(lines) + "\n"


def _functions(source: str) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    tree = parsed(textwrap.dedent(source))
    nodes = ast.walk(tree) if tree is not None else ()
    found = [n for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    return sorted(found, key=lambda node: node.lineno)


def parsed(source: str) -> ast.Module | None:
    """Return Python as its tree; none if it cannot be read."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _definitions(tree: ast.Module) -> dict[str, _Definition]:
    """Return the definitions by what they give a value to, if that is one name."""
    found: dict[str, _Definition] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            if isinstance(target, ast.Name):
                found[target.id] = node
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found[node.name] = node
    return found


def _first(node: ast.stmt) -> int:
    """Return the line in which a definition begins, with its decorators."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def text_of(node: ast.stmt, source: list[str]) -> list[str]:
    """Return the lines of a statement, with its decorators."""
    return source[_first(node) - 1 : node.end_lineno]
