"""Which project files may attach tools, permissions and models.

A folder that was downloaded from somewhere may hold a `steersman.toml`. Until its owner says
`steersman trust`, keys that could run something or send something out are not applied. Trust is
given to the content: a file that changes afterwards has to be trusted again. One small record per
folder lies in the state folder, so that two terminals can't undo each other.
"""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from ..machines.errors import ConfigError
from ..machines.pattern import lazy_pattern
from ..machines.value import Value
from .document import is_table
from .foreign_file import parse_toml, read_foreign, read_text
from .paths import Paths, write_private
from .problem import Problem, Where, dotted

PROJECT_FILE = "steersman.toml"

_KEY_VARIABLE = lazy_pattern(r"""\bapi_key_env\b["']?\s*=\s*(?:"([^"\n]+)"|'([^'\n]+)')""")

GUARDED: tuple[Where, ...] = (
    ("hooks",),
    ("permissions",),
    ("tools",),
    ("tool",),
    ("mcp",),
    ("serve",),
    ("gateways",),
    ("models",),
    ("route",),
    ("routing",),
    ("goals", "gates"),
    ("limits",),
    ("progress",),
    ("restore",),
    ("agents", "*", "model"),
    ("agents", "*", "tools"),
    ("agents", "*", "protocol"),
    ("agents", "*", "start"),
    ("agents", "*", "limits"),
    ("auto_queue", "persistence"),
)
"""Keys that take effect only when trusted: they start things, write elsewhere, send text out, spend
more, throw away what other folders saved, or decide whom a stop reaches."""

OWN = ("telemetry", "people", "home", "permission_mode")
"""Keys that no file of a project sets, trusted or not: where data is sent and kept, and who may do
what."""

PERSONAL: tuple[str, ...] = ("schedule",)
"""Keys that only a person's own files may have: they act while no person has opened the folder."""


def is_trusted(paths: Paths, folder: Path, content: bytes | None = None) -> bool:
    """Whether the folder's project file is trusted as it is now (or with the given content)."""
    try:
        if content is None:
            content = read_foreign(folder / PROJECT_FILE)
        record = parse_toml(read_text(_record(paths, folder)))
    except (OSError, ValueError):
        return False
    return record == _entry(folder, content)


def key_variables(paths: Paths, folder: Path, environ: Mapping[str, str]) -> frozenset[str]:
    """Name the environment variables with the keys of models: the `api_key_env` that apply in a folder.

    A file counts also if something else in it is wrong; a project's only if it is trusted.
    """
    files = [paths.config_file, *([folder / PROJECT_FILE] if is_trusted(paths, folder) else [])]
    if named := environ.get("STEERSMAN_CONFIG"):
        files.append(Path(named).expanduser())
    names: set[str] = set()
    for file in files:
        try:
            text = read_foreign(file).decode(errors="replace")
        except OSError:
            continue
        names |= {found for pair in _KEY_VARIABLE.findall(text) for found in pair if found}
    return frozenset(names)


def personal_problems(data: dict[str, Any]) -> list[Problem]:
    """Find keys that a project's file or a workflow's may not have, trusted or not."""
    message = "`{}` can only stand in your own config.toml"
    hint = "move it there; `steersman config path` prints where that is"
    return [
        Problem(where=(key,), message=message.format(key), hint=hint, at_value=False)
        for key in PERSONAL
        if key in data
    ]


class Trusted(Value):
    """A folder that was trusted; `state` is trusted, changed (in force no more) or gone."""

    folder: str
    state: Literal["trusted", "changed", "gone"]


def trusted(paths: Paths) -> list[Trusted]:
    """List the folders that were trusted, by name."""
    found: list[Trusted] = []
    for record in sorted((paths.state / "trusted").glob("*.toml")):
        try:
            folder = Path(str(parse_toml(read_text(record))["folder"]))
        except (OSError, ValueError, LookupError):
            continue
        is_there = (folder / PROJECT_FILE).exists()
        state: Literal["trusted", "changed", "gone"] = "changed" if is_there else "gone"
        found.append(
            Trusted(folder=str(folder), state="trusted" if is_trusted(paths, folder) else state)
        )
    return sorted(found, key=lambda one: one.folder)


def forget(paths: Paths, folder: Path) -> bool:
    """Withdraw the trust in a folder; False if it was not trusted."""
    record = _record(paths, folder)
    is_there = record.exists()
    record.unlink(missing_ok=True)
    return is_there


def guarded(data: dict[str, Any]) -> list[tuple[str, Any]]:
    """List what a document sets that needs trust: dotted keys with their values."""
    found: list[tuple[str, Any]] = []

    def look(table: dict[str, Any], where: Where, is_inside: bool) -> None:
        for name, value in table.items():
            place = (*where, name)
            is_meant = is_inside or any(_is_guarded(place, pattern) for pattern in GUARDED)
            if is_table(value):
                look(value, place, is_meant)
            elif is_meant:
                found.append((dotted(place), value))

    look(data, (), is_inside=False)
    return found


def trust(paths: Paths, folder: Path, content: bytes | None = None) -> Path:
    """Trust the folder's project file with this content, or its present one; return the file.

    Raises `ConfigError` when there is none.
    """
    file = folder.resolve() / PROJECT_FILE
    try:
        content = read_foreign(file) if content is None else content
    except OSError as error:
        hint = f"`steersman trust DIR` trusts the {PROJECT_FILE} of a folder."
        raise ConfigError(
            f"can't be trusted: {error.strerror or error}", hint, file=str(file)
        ) from error
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
    name = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()
    return paths.state / "trusted" / f"{name}.toml"


def _entry(folder: Path, content: bytes) -> dict[str, str]:
    name = os.fsencode(folder.resolve()).decode(errors="backslashreplace")
    return {"folder": name, "sha256": hashlib.sha256(content).hexdigest()}
