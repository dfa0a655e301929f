"""Changes the person's own `config.toml`: a model and its agent, MCP servers; all else stays as it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..machines.errors import ConfigError
from .durability import replace_file
from .foreign_file import editable, encoded_like, parse_toml, read_foreign
from .paths import Paths, make_private
from .problem import dotted

_HEAD = re.compile(r"\s*\[{1,2}[^\[\],=]+\]{1,2}\s*(?:#.*)?$")
_MODEL = re.compile(r"(?m)^[ \t]*model[ \t]*=.*$\n?")


def prepare_model(
    paths: Paths, name: str, model: Mapping[str, Any], agent: str
) -> Callable[[], Path]:
    """Return what writes `[models.NAME]`, makes it the model of an agent, and returns the file's path."""
    return _prepare(paths, lambda text: with_model(text, name, model, agent))


def prepare_servers(paths: Paths, servers: Mapping[str, Mapping[str, Any]]) -> Callable[[], Path]:
    """Return what writes `[mcp.NAME]` for each of these servers, and returns the file's path."""
    return _prepare(paths, lambda text: with_servers(text, servers))


def _prepare(paths: Paths, change: Callable[[str], str]) -> Callable[[], Path]:
    """Return what writes the person's file as a change makes it.

    The file keeps its mode, its line ends, and its comments outside of that table. Both raise
    `ConfigError`, this one for a file that cannot be edited.
    """
    file = paths.config_file.resolve()
    try:
        before = read_foreign(file) if file.exists() else b""
        after = encoded_like(before, change(editable(before)))
    except ConfigError as error:
        error.file = str(file)
        raise
    except (OSError, ValueError) as error:
        raise _unusable(file, error) from error

    def write() -> Path:
        make_private(paths.config)
        try:
            replace_file(file, after, file.stat().st_mode & 0o777 if file.exists() else 0o600)
        except OSError as error:
            raise _unusable(file, error) from error
        return file

    return write


def _unusable(file: Path, error: Exception) -> ConfigError:
    reason = getattr(error, "strerror", None) or error
    return ConfigError(f"it cannot be changed: {reason}", "nothing was changed", file=str(file))


def with_model(text: str, name: str, model: Mapping[str, Any], agent: str) -> str:
    """Return a configuration with a model, which is the agent's.

    Raises `ConfigError` rather than guess.
    """
    import tomli_w

    wanted = parse_toml(text)
    wanted.setdefault("models", {})[name] = dict(model)
    wanted.setdefault("agents", {}).setdefault(agent, {})["model"] = name
    table = tomli_w.dumps({"models": {name: dict(model)}}).partition("\n")[2]
    line = tomli_w.dumps({"model": name})
    after = _filled(text, ("models", name), lambda body: table)
    after = _filled(after, ("agents", agent), lambda body: _with_line(body, line))
    by_hand = f"[{dotted(('models', name))}]\n{table}[{dotted(('agents', agent))}]\n{line}"
    return _checked(after, wanted, by_hand)


def with_servers(text: str, servers: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a configuration with servers that it does not have. Raises `ConfigError`."""
    import tomli_w

    wanted, after = parse_toml(text), text
    for name, table in servers.items():
        lines = tomli_w.dumps({"mcp": {name: dict(table)}}).partition("\n")[2]
        after = _filled(after, ("mcp", name), str(lines).__add__)
    wanted["mcp"] = {**wanted.get("mcp", {}), **servers}
    return _checked(after, wanted, tomli_w.dumps({"mcp": servers}))


def _checked(after: str, wanted: Mapping[str, Any], by_hand: str) -> str:
    """Return a changed text if it says what is wanted. Raises `ConfigError`."""
    try:
        is_right = parse_toml(after) == wanted
    except ValueError:  # what was added is there already, in another form
        is_right = False
    if not is_right:
        raise ConfigError("it has this in a form that is not edited", f"write into it:\n{by_hand}")
    return after


def _filled(text: str, where: tuple[str, str], change: Callable[[str], str]) -> str:
    """Change what is between the head of a table and the next one; a missing table is added."""
    lines = text.splitlines(keepends=True)
    start = next((number for number, line in enumerate(lines) if _table(line) == where), None)
    if start is None:
        gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
        return f"{text}{gap}[{dotted(where)}]\n{change('')}"
    rest = range(start + 1, len(lines))
    end = next((number for number in rest if _HEAD.match(lines[number])), len(lines))
    while end > start + 1 and lines[end - 1].lstrip()[:1] in ("", "#"):
        end -= 1  # these belong to what follows
    ended = lines[start].rstrip("\r\n") + "\n"
    return "".join((*lines[:start], ended, change("".join(lines[start + 1 : end])), *lines[end:]))


def _table(line: str) -> tuple[str, ...]:
    """Return the names in the head of a table; none for any other line."""
    if not _HEAD.match(line) or line.lstrip().startswith("[["):
        return ()
    try:
        inner, names = parse_toml(line), list[str]()
    except ValueError:
        return ()
    while inner:
        ((name, inner),) = inner.items()
        names.append(name)
    return tuple(names)


def _with_line(body: str, line: str) -> str:
    """Replace or add the line of the key `model`."""
    after, count = _MODEL.subn(lambda found: line, body, count=1)
    return after if count else line + body
