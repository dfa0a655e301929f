"""The public interface as text, for `api.txt`: what programs may import, and what HTTP takes and answers.

Signatures and fields stand as in the source, so that a change of either is a change of the file.
"""

import ast
import inspect
import textwrap
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any, cast

import steersman
import steersman.chat
import steersman.models
import steersman.testing
from steersman.gateway.web.access import Access
from steersman.gateway.web.application import PREFIX, Api
from steersman.gateway.web.desk import Desk
from steersman.gateway.web.openapi import openapi

__all__ = ["MODULES", "public_api"]

MODULES = (steersman, steersman.chat, steersman.models, steersman.testing)
"""What programs may import; what each exports is in its `__all__`."""
HEAD = """\
# What programs may use, as of this version: docs/stability.md says how it changes.
# Written by docs/generate.py from the code: run `make docs`.
"""
CALLED = {"__init__", "__call__", "__enter__", "__aenter__", "__aiter__"}
"""Methods that programs use by other means than their name."""
INSIDE = {"Dump"}
"""Answers that show how the program works inside; their fields are not promised."""


def public_api() -> str:
    """Write everything: a section for each module, then one for HTTP."""
    blocks = [f"== {module.__name__}\n{_module(module)}" for module in MODULES]
    return "\n".join([HEAD, *blocks, f"== HTTP\n{_http()}"])


def _module(module: ModuleType) -> str:
    exports: list[str] = getattr(module, "__all__", [])
    return "".join(f"{line}\n" for name in exports for line in _export(module, name))


def _export(module: ModuleType, name: str) -> Iterator[str]:
    value = getattr(module, name)
    if inspect.isclass(value) and value.__module__.startswith("steersman."):
        bases = ", ".join(base.__name__ for base in value.__bases__ if base is not object)
        yield f"class {name}({bases})" if bases else f"class {name}"
        yield from (f"    {line}" for line in _members(value))
    elif inspect.isfunction(value):
        yield _signature(cast("ast.FunctionDef", _parsed(value)), name)
    else:
        shown = type(value).__name__ if isinstance(value, str) else str(value)
        yield f"{name}: {shown}"


def _parsed(value: Any) -> ast.stmt:
    return ast.parse(textwrap.dedent(inspect.getsource(value))).body[0]


def _members(kind: type) -> Iterator[str]:
    """Yield the fields, properties and methods of a class, then those of our own bases."""
    seen: set[str] = set()
    for base in kind.__mro__:
        if not base.__module__.startswith("steersman.") or base.__name__ == "Value":
            continue
        for name, line in _declared(cast("ast.ClassDef", _parsed(base))):
            if name not in seen:
                seen.add(name)
                yield line


def _declared(kind: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for part in kind.body:
        match part:
            case ast.AnnAssign(target=ast.Name(id=name)) if not name.startswith("_"):
                yield name, ast.unparse(part)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                if not name.startswith("_") or name in CALLED:
                    yield name, _signature(part)
                if name == "__init__":
                    yield from _assigned(part)
            case _:
                pass


def _assigned(init: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[str, str]]:
    """Yield the public attributes that a class gives its objects when they are made."""
    for node in ast.walk(init):
        match node:
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()) if (
                not name.startswith("_")
            ):
                yield name, name
            case _:
                pass


def _signature(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str = "") -> str:
    marks = [ast.unparse(mark) for mark in function.decorator_list]
    returned = f" -> {ast.unparse(function.returns)}" if function.returns else ""
    if "property" in marks:
        return f"{function.name}{returned.replace(' ->', ':')}"
    shown = "".join(f"@{mark} " for mark in marks if mark in ("classmethod", "staticmethod"))
    word = "async def" if isinstance(function, ast.AsyncFunctionDef) else "def"
    return f"{shown}{word} {name or function.name}({ast.unparse(function.args)}){returned}"


# HTTP ---------------------------------------------------------------------------------------------


def _http() -> str:
    """Write each operation with what it needs and answers, then the fields of all of that."""
    table = Api(Desk.__new__(Desk), cast("Access", None), cast(Any, None)).table()
    described = openapi(PREFIX, table)
    lines: list[str] = []
    named: dict[str, None] = {}
    for path, methods in described["paths"].items():
        for method, what in methods.items():
            needs = [_body(what)] if "requestBody" in what else []
            needs += [f"{one['in']} {one['name']}" for one in what["parameters"]]
            answers = [
                f"{code} {' | '.join(_answers(response))}"
                for code, response in what["responses"].items()
                if code != "default"
            ]
            (scope,) = (entry.scope for entry in table if _is_at(entry, path, method))
            lines.append(f"{method.upper()} {path}  [{scope}]")
            lines += [f"    takes {', '.join(needs)}"] if needs else []
            lines.append(f"    answers {'; '.join(answers)}")
            named |= dict.fromkeys(_named(what))
    lines += ["default: ProblemAnswer", ""]
    known, waiting = described["components"]["schemas"], [*named]
    for name in waiting:  # grows by what is found in each
        if name not in INSIDE and name != "Event":  # events.schema.json has the events
            lines += _fields(name, known[name])
            waiting += [inner for inner in _named(known[name]) if inner not in waiting]
    return "".join(f"{line}\n" for line in lines)


def _is_at(entry: Any, path: str, method: str) -> bool:
    return (PREFIX + entry.path.replace(":int", ""), entry.method.lower()) == (path, method)


def _body(what: Mapping[str, Any]) -> str:
    return _type(what["requestBody"]["content"]["application/json"]["schema"])


def _answers(response: Mapping[str, Any]) -> Iterator[str]:
    for kind, content in response["content"].items():
        yield _type(content["schema"]) if "json" in kind else kind


def _named(schema: Any) -> Iterator[str]:
    """Yield the names of the schemas that are referred to."""
    match schema:
        case {"$ref": where}:
            yield str(where).rpartition("/")[2]
        case {**inner}:
            for value in inner.values():
                yield from _named(value)
        case [*items]:
            for value in items:
                yield from _named(value)
        case _:
            pass


def _fields(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    yield name
    for field, kind in schema.get("properties", {}).items():
        mark = "" if field in schema.get("required", ()) else "?"
        yield f"    {field}{mark}: {_type(kind)}"


def _type(schema: Mapping[str, Any]) -> str:
    """Write a schema in a word or two."""
    match schema:
        case {"$ref": where}:
            return str(where).rpartition("/")[2]
        case {"anyOf": kinds}:
            return " | ".join(map(_type, kinds))
        case {"enum": words}:
            return " | ".join(map(repr, words))
        case {"type": "array", "items": item}:
            return f"[{_type(item)}]"
        case {"type": "object", "additionalProperties": inner} if inner not in (True, False):
            return f"{{*: {_type(inner)}}}"
        case _:
            return str(schema.get("const", schema.get("type", "any")))
