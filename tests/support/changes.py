"""Which commands a change touches, whose tests then test themselves, and which extensions."""

import ast
import functools
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

__all__ = ["changed_files", "is_extension_touched", "is_left_out", "is_touched"]

ROOT = Path(__file__).resolve().parents[2]


def _git(*arguments: str) -> list[str] | None:
    """Return the lines that git prints in the checkout; nothing if it fails or is missing."""
    try:
        ran = subprocess.run(("git", *arguments), cwd=ROOT, capture_output=True, text=True)
    except OSError:
        return None
    return ran.stdout.splitlines() if ran.returncode == 0 else None


@functools.cache
def changed_files() -> frozenset[str]:
    """Return the files, from the root of the checkout, that differ from what was pulled last."""
    tracked = _git("diff", "--name-only", "--merge-base", "@{upstream}")
    if tracked is None:
        tracked = _git("diff", "--name-only", "HEAD")
    untracked = _git("ls-files", "--others", "--exclude-standard")
    return frozenset([*(tracked or ()), *(untracked or ())])


def is_touched(test: Path, command: str) -> bool:
    """Say whether this test's module, or the one that has the command, is changed."""
    changed = changed_files()
    if not any(name.endswith(".py") for name in changed):
        return False
    return bool(changed & {_from_root(test), *_places(command)})


def is_extension_touched(name: str, changed: frozenset[str]) -> bool:
    """Say whether files of an extension, of its tests, or that one of these imports, are among those."""
    if not changed:
        return False
    own = (f"extensions/{name}", f"tests/extensions/{name}")
    modules = [file for folder in own for file in (ROOT / folder).rglob("*.py")]
    known = {*map(_from_root, modules), *(place for file in modules for place in _imported(file))}
    return bool(changed & known) or any(file.startswith(f"{own[0]}/") for file in changed)


def is_left_out(name: str, config: pytest.Config) -> bool:
    """Say whether this run leaves an extension out: `make test`, if nothing of it has changed.

    `make test-all` and continuous integration run all, as does whoever names what is to be run.
    """
    is_named = config.args_source is pytest.Config.ArgsSource.ARGS
    if config.option.markexpr != "not nightly" or is_named or os.environ.get("CI"):
        return False
    return not is_extension_touched(name, changed_files())


@functools.cache
def _imported(file: Path) -> frozenset[str]:
    """Return the files of the checkout that a module may import."""
    found: set[Path] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom):
            continue
        parts = (node.module or "").split(".") if node.module else []
        if node.level:
            base = file.parents[node.level - 1]
        elif parts[0] == "steersman":
            base, parts = ROOT, parts[1:]
        else:
            base = ROOT / "tests"
        found.add(base.joinpath(*parts))
        found |= {base.joinpath(*parts, alias.name) for alias in node.names}
    files = (path.with_name(f"{path.name}.py") for path in found)
    return frozenset(_from_root(path) for path in files if path.exists())


def _from_root(file: Path) -> str:
    return file.resolve().relative_to(ROOT).as_posix()


@functools.cache
def _programs() -> dict[str, str]:
    from support.echo import walk

    return {name: str(info.callback.__module__) for name, info in walk() if info.callback}


def _places(command: str) -> Iterable[str]:
    """Give the file of a slash command (`/queue add`), or of one of the command line."""
    from steersman.gateway.commands.registry import DECLARED

    if command.startswith("/"):
        module = DECLARED[command.removeprefix("/")].function.__module__
    else:
        module = _programs()[command]
    yield f"{module.removeprefix('steersman.').replace('.', '/')}.py"
