"""The checkout as the house tests see it: its files, and each module of each room."""

import ast
import importlib
import sys
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType

import pytest
from support.driver import Place

ROOT = Path(__file__).resolve().parents[2]
ROOMS = (
    *("machines", "proofs", "workflows", "journal", "workspace", "restore"),
    *("ports", "actors", "simulator", "gateway", "cli", "extensions"),
)
KNOWN = {".ci", ".editorconfig", ".github", ".pre-commit-config.yaml", ".vscode"}
IGNORED = {"__pycache__", "build", "dist", "node_modules"}
Load = Callable[[str], ModuleType]
"""Imports a module by its name."""


@dataclass(frozen=True)
class Module:
    """One Python file of a room; `name` is its path from the root."""

    path: Path

    @property
    def name(self) -> str:
        """The path as people write it."""
        return self.path.relative_to(ROOT).as_posix()

    @property
    def room(self) -> str:
        """The folder at the root that it lies in."""
        return self.name.partition("/")[0]

    @property
    def text(self) -> str:
        """The source."""
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        """The source, parsed."""
        return ast.parse(self.text)


def files_below(folder: Path) -> list[Path]:
    """List what belongs to the project: nothing hidden but what is known, nothing that tools left."""
    found: list[Path] = []
    for path in sorted(folder.iterdir()):
        is_hidden = path.name.startswith(".") and path.name not in KNOWN
        if is_hidden or path.name in IGNORED or path.suffix == ".egg-info":
            continue
        found += files_below(path) if path.is_dir() else [path]
    return found


PYTHON = [path for room in ROOMS for path in files_below(ROOT / room) if path.suffix == ".py"]
MODULES = [Module(path) for path in PYTHON]


@pytest.fixture
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture
def project_files() -> list[Path]:
    """All files of the project."""
    return files_below(ROOT)


@pytest.fixture
def modules() -> list[Module]:
    """Every module of every room."""
    return MODULES


@pytest.fixture
def rooms() -> tuple[str, ...]:
    """The rooms, from the ground up: each may import itself and those before it."""
    return ROOMS


@pytest.fixture
def place(tmp_path: Path) -> Generator[Place]:
    """A home and a project folder, without a model."""
    here = Place(tmp_path)
    yield here
    here.close()


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Generator[Load]:
    """Import a module of the benchmarks, programs and no packages; what they keep is temporary."""
    before, benchmarks = set(sys.modules), ROOT / "benchmarks"
    for folder in ("", "work", "peers", "survival"):
        monkeypatch.syspath_prepend(str(benchmarks / folder))
    monkeypatch.setenv("STEERSMAN_PEERS", str(tmp_path / "peers"))
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if benchmarks in Path(str(getattr(sys.modules[name], "__file__", ""))).parents:
            del sys.modules[name]
