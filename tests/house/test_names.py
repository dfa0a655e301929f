"""The modules and classes that the docs for contributors name exist."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PAGES = ("docs/architecture.md", "docs/glossary.md", "docs/testing.md", "CONTRIBUTING.md")
BLOCK = re.compile(r"^```[\s\S]*?^```$|^ {4}.*$", re.MULTILINE)
QUOTED = re.compile(r"`([^`\n]+)`")
MODULE = re.compile(r"[\w/]+\.py")
CLASS = re.compile(r"[A-Z][a-z]+(?:[A-Z][a-z]*)*")


def quoted(text: str) -> list[str]:
    """List what a page has in backticks, without its blocks of code."""
    return QUOTED.findall(BLOCK.sub("", text))


def missing(names: list[str], paths: set[str], classes: set[str]) -> Iterator[str]:
    """Yield the modules and classes that do not exist; a module may be named without its folder."""
    files = {path.rpartition("/")[2] for path in paths}
    for name in names:
        is_there = name in (paths if "/" in name else files)
        if (MODULE.fullmatch(name) and not is_there) or (
            CLASS.fullmatch(name) and name not in classes
        ):
            yield name


@pytest.fixture
def classes(modules: list[Any]) -> set[str]:
    """The names of all classes of the package."""
    nodes = (node for module in modules for node in ast.walk(module.tree))
    return {node.name for node in nodes if isinstance(node, ast.ClassDef)}


def test_modules_and_classes_in_the_docs_exist(
    project_files: list[Path], root: Path, classes: set[str]
) -> None:
    """Each `path/module.py` and each `ClassName` in backticks is one of the code."""
    paths = {path.relative_to(root).as_posix() for path in project_files if path.suffix == ".py"}
    found: list[str] = []
    seen = 0
    for page in PAGES:
        names = quoted((root / page).read_text(encoding="utf-8"))
        seen += sum(bool(MODULE.fullmatch(name) or CLASS.fullmatch(name)) for name in names)
        found += [f"{page}: {name}" for name in missing(names, paths, classes)]
    assert found == []
    assert seen > 20
