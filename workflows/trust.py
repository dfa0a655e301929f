"""Which project files may attach tools, permissions and models.

A folder that was downloaded from somewhere may hold a `steersman.toml`. Until its owner says
`steersman trust`, keys that could run something or send something out are not applied. Trust is
given to the content: a file that changes afterwards has to be trusted again. One small record per
folder lies in the state folder, so that two terminals can't undo each other.
"""

import hashlib
import tomllib
from pathlib import Path
from typing import Any

from ..machines.errors import ConfigError
from .document import is_table
from .fault import Where, dotted
from .paths import Paths, write_private

__all__ = ["GUARDED", "PROJECT_FILE", "is_trusted", "trust", "withhold"]

PROJECT_FILE = "steersman.toml"

GUARDED: tuple[Where, ...] = (
    ("hooks",),
    ("permissions",),
    ("tools",),
    ("models",),
    ("route",),
    ("routing",),
    ("agents", "*", "model"),
    ("agents", "*", "tools"),
    ("auto_queue", "persistence", "path"),
)
"""Keys that take effect only when trusted: they start things, write elsewhere, send text out,
or decide whom a stop reaches."""


def is_trusted(paths: Paths, folder: Path, content: bytes | None = None) -> bool:
    """Whether the folder's project file is trusted as it is now (or with the given content)."""
    try:
        if content is None:
            content = (folder / PROJECT_FILE).read_bytes()
        record = tomllib.loads(_record(paths, folder).read_text())
    except (OSError, ValueError):
        return False
    return record == _entry(folder, content)


def trust(paths: Paths, folder: Path) -> Path:
    """Trust the folder's project file with its present content; return the file.

    Raises `ConfigError` when there is none.
    """
    file = folder.resolve() / PROJECT_FILE
    try:
        content = file.read_bytes()
    except OSError as error:
        hint = f"`steersman trust DIR` trusts the {PROJECT_FILE} of a folder."
        raise ConfigError(f"can't be trusted: {error.strerror}", hint, file=str(file)) from error
    import tomli_w

    write_private(_record(paths, folder), tomli_w.dumps(_entry(folder, content)).encode())
    return file


def withhold(data: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Take the guarded keys out of a document; return the rest and the names of what was taken."""
    taken: list[str] = []

    def keep(table: dict[str, Any], where: Where) -> dict[str, Any]:
        left: dict[str, Any] = {}
        for name, value in table.items():
            place = (*where, name)
            if any(_is_guarded(place, pattern) for pattern in GUARDED):
                taken.append(dotted(place))
            else:
                left[name] = keep(value, place) if is_table(value) else value
        return left

    return keep(data, ()), taken


def _is_guarded(where: Where, pattern: Where) -> bool:
    same_depth = len(where) == len(pattern)
    return same_depth and all(
        want in ("*", part) for part, want in zip(where, pattern, strict=True)
    )


def _record(paths: Paths, folder: Path) -> Path:
    name = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()
    return paths.state / "trusted" / f"{name}.toml"


def _entry(folder: Path, content: bytes) -> dict[str, str]:
    return {"folder": str(folder.resolve()), "sha256": hashlib.sha256(content).hexdigest()}
