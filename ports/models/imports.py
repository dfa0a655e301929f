"""Imports that a small model forgets: it uses `os`, `re` or `Path` without one, and the code fails."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from .fragments import behind_opening, parsed

_MODULES = frozenset(
    "argparse base64 bisect calendar collections copy csv datetime decimal functools glob hashlib heapq "
    "itertools json locale logging math operator os pathlib pprint random re shutil sqlite3 statistics "
    "string subprocess sys tempfile textwrap time unicodedata unittest urllib uuid zipfile".split()
)
_NAMES = {
    "collections": ("Counter", "OrderedDict", "defaultdict", "deque", "namedtuple"),
    "dataclasses": ("dataclass",),
    "datetime": ("date", "datetime", "timedelta"),
    "decimal": ("Decimal",),
    "fractions": ("Fraction",),
    "functools": ("cmp_to_key", "lru_cache", "partial", "reduce"),
    "itertools": ("accumulate", "chain", "combinations", "groupby", "islice", "permutations"),
    "pathlib": ("Path",),
    "typing": ("Any", "Callable", "Dict", "Iterable", "List", "Optional", "Tuple", "Union"),
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names}


def with_imports(source: str) -> str:
    """Return Python with the imports of the standard library that it lacks; else as it is."""
    tree = parsed(source)
    lacks = [] if tree is None else sorted(set(_lacking(tree)))
    if tree is None or not lacks:
        return source
    lines, at = source.splitlines(), behind_opening(tree)
    return "\n".join([*lines[:at], *([""] if at else []), *lacks, *lines[at:]]) + "\n"


def _lacking(tree: ast.Module) -> Iterator[str]:
    """Yield the imports of the names that nothing in a program gives a value to."""
    nodes = [*ast.walk(tree)]
    known = {*dir(builtins), *(name for node in nodes for name in _given(node))}
    if "*" in known:
        return
    inner = {id(node.value): node.attr for node in nodes if isinstance(node, ast.Attribute)}
    for node in nodes:
        if not isinstance(node, ast.Name) or node.id in known:
            continue
        attribute = inner.get(id(node), "")
        is_module = node.id in _MODULES and attribute and not _is_class(node.id, attribute)
        if is_module:
            yield f"import {node.id}"
        elif module := _MODULE_OF.get(node.id):
            yield f"from {module} import {node.id}"


def _is_class(name: str, attribute: str) -> bool:
    """Whether `datetime` is the class here, and not its module."""
    return name == "datetime" and attribute not in ("date", "datetime", "time", "timedelta")


def _given(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node gives a value to."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.arg(arg=name) | ast.ExceptHandler(name=str(name)):
            yield name
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from (of.asname or of.name.partition(".")[0] for of in names)
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
        case _:
            return
