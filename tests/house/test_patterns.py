"""No regular expression of the product takes a time that grows faster than the text.

Those that a module keeps are found by importing it, those of a call by its source. One that is put
together when the program runs cannot be found so, and is listed.
"""

import ast
import importlib
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from support.cost import grows_linearly, texts_against

from steersman.machines.pattern import lazy_pattern

from .conftest import MODULES

METHODS = {"search", "sub", "findall", "finditer", "split", "match", "fullmatch"}
MADE_LATER = {
    "cli/commands/docs.py": "a word that is escaped",
    "gateway/chat/room_inbox.py": "a name that is escaped",
    "extensions/telegram/reader.py": "a name that is escaped",
    "machines/classification.py": "words that are escaped",
    "machines/pattern.py": "every lazy pattern",
    "extensions/agent_hooks/json_file.py": "two that are tested here",
    "ports/models/renames.py": "a name that is escaped, and parts of those that are tested here",
    "ports/models/scripted.py": "of a person's script",
    "ports/models/failing_tests.py": "words that are escaped",
    "ports/models/left_over.py": "words that are escaped",
    "ports/models/turn_view.py": "words that are escaped",
    "ports/tools/known_words.py": "the operands of the table of programs",
    "ports/tools/shell_rule.py": "a word that is escaped",
    "ports/tools/search_program.py": "in a process of its own, which is ended",
    "ports/tools/searching.py": "only looked whether it can be compiled",
    "ports/tools/survey.py": "words that are escaped",
    "workflows/flow/scope.py": "a part of one that is tested here",
}
BOUNDED = {"machines/progress.py:_VARIES": "500 characters"}
"""Those that get only the begin of a text."""


class Pattern(NamedTuple):
    """A pattern, where it stands, and how it is used."""

    place: str
    text: str
    flags: int
    method: str


def methods_of(name: str, module: Any) -> set[str]:
    """Return how a constant is used; one that is passed on may be used in any way."""
    readers = [module] if name.startswith("_") else MODULES
    found = {use for other in readers for use in re.findall(rf"\b{name}\.(\w+)", other.text)}
    return {
        use if use in ("search", "match", "fullmatch") else "finditer" for use in found & METHODS
    } or {"finditer"}


def constants(module: Any) -> Iterator[Pattern]:
    """Yield the patterns that a module keeps."""
    if "lazy_pattern(" not in module.text and "re.compile(" not in module.text:
        return
    loaded = importlib.import_module(
        f"steersman.{module.name.removesuffix('.py').replace('/', '.')}"
    )
    for name, kept in vars(loaded).items():
        if not re.search(rf"^{re.escape(name)}\b.*=", module.text, re.MULTILINE):
            continue
        for value in inside(kept):
            text = value.pattern if isinstance(value.pattern, str) else value.pattern.decode()
            for method in sorted(methods_of(name, module)):
                yield Pattern(f"{module.name}:{name}", text, value.flags & ~re.UNICODE, method)


def inside(value: Any) -> Iterator[Any]:
    """Yield the patterns that a value is, or has in its tuples."""
    if isinstance(value, re.Pattern | type(lazy_pattern(""))):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from inside(part)


def calls(module: Any) -> Iterator[Pattern | str]:
    """Yield the patterns that stand in a call, and the place of those that are put together there."""
    for node in ast.walk(module.tree):
        if not (isinstance(node, ast.Call) and ast.unparse(node.func).startswith("re.")):
            continue
        called = ast.unparse(node.func)[3:]
        if called == "compile" and node.col_offset and not is_constant(node, module.tree):
            yield module.name
        elif called in METHODS and isinstance(node.args[0], ast.Constant):
            given = [*node.args[1:], *(keyword.value for keyword in node.keywords)]
            names = [ast.unparse(part) for part in given if "re." in ast.unparse(part)]
            flags = sum(
                int(getattr(re, flag)) for name in names for flag in re.findall(r"re\.(\w+)", name)
            )
            method = called if called in ("search", "match", "fullmatch") else "finditer"
            text = str(node.args[0].value)
            yield Pattern(f"{module.name}:{node.lineno}", text, flags, method)
        elif called in METHODS:
            yield module.name


def is_constant(node: ast.Call, tree: ast.Module) -> bool:
    """Whether a call is the value of a name of the module, which `constants` finds."""
    given = (ast.Assign, ast.AnnAssign)
    return any(isinstance(part, given) and part.value is node for part in tree.body)


WITH_PATTERNS = [
    module
    for module in MODULES
    if "lazy_pattern(" in module.text or re.search(r"(?m)^import re$", module.text)
]


@pytest.mark.nightly
@pytest.mark.parametrize("module", WITH_PATTERNS, ids=lambda module: module.name)
def test_the_patterns_of_a_module_are_linear(module: Any) -> None:
    """Texts that one nearly matches, of its own parts again and again, cost it no more a character."""
    found = [each for each in calls(module) if isinstance(each, Pattern)]
    for pattern in (*constants(module), *found):
        if pattern.place not in BOUNDED:
            assert not slow_text(pattern), pattern


def slow_text(pattern: Pattern) -> str:
    """Return a text whose cost grows faster than the text does; empty if none is found."""
    find = getattr(re.compile(pattern.text, pattern.flags), pattern.method)

    def read(text: str) -> None:
        found = find(text)
        if pattern.method == "finditer":
            for _ in found:
                pass

    texts = texts_against(pattern.text, pattern.flags)
    return next((text.__name__ for text in texts if not grows_linearly(read, text)), "")


def test_the_patterns_that_are_made_later_are_known() -> None:
    """No other module puts a pattern together when it runs."""
    found = {each for module in WITH_PATTERNS for each in calls(module) if isinstance(each, str)}
    assert found == set(MADE_LATER)
