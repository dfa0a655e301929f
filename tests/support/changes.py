"""Which commands a change touches: their tests test themselves when they are changed, and every night."""

import functools
import subprocess
from collections.abc import Iterable
from pathlib import Path

__all__ = ["changed_files", "is_touched"]

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
