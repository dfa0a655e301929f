"""What `steersman doctor` looks at: each function examines one thing and changes nothing."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import socket
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from ..machines.errors import SteersmanError
from ..workflows.paths import Paths
from .stored import state_word, stored
from .table import size_text

if TYPE_CHECKING:
    from ..ports.models.settings import ModelConfig

__all__ = ["Finding", "check_up"]

_OLDEST_PYTHON = (3, 11)
_OLDEST_SQLITE = (3, 51, 3)  # earlier ones may corrupt a log that two processes write
_NEEDED = (
    *("apsw", "httpx2", "jinja2", "platformdirs", "prompt_toolkit", "pykka"),
    *("tomli_w", "transitions", "typer"),
)
_PROGRAMS = (
    ("git", "install git: checkpoints of a folder need it"),
    ("strace", ""),
)
_FULL, _TIGHT = 100 * 10**6, 10**9  # bytes free
_PATIENCE = 2.0  # seconds until a model server has accepted a connection

Verdict = Literal["ok", "warn", "bad"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report; `hint` is what to do, empty if nothing."""

    name: str
    verdict: Verdict
    text: str
    hint: str = ""


def check_up(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Look at everything, one thing after the other."""
    paths = Paths.of(environ)
    yield _python()
    yield _packages()
    yield _sqlite()
    yield from _programs()
    yield _sandbox(environ, paths)
    yield _terminal(environ)
    yield from _folders(paths)
    yield _disk(paths.state)
    yield _store(environ)
    yield from _model(environ, paths)


def _python() -> Finding:
    text = f"{platform.python_version()} at {sys.executable}, {platform.platform()}"
    is_new = sys.version_info >= _OLDEST_PYTHON
    return Finding("python", "ok" if is_new else "bad", text, "" if is_new else "install 3.11")


def _packages() -> Finding:
    found: list[str] = []
    missing: list[str] = []
    for name in ("steersman", *_NEEDED):
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            missing.append(name)
    if missing == ["steersman"]:
        return Finding("packages", "warn", f"{', '.join(found)}; steersman runs from its checkout")
    if missing:
        text = f"not installed: {', '.join(missing)}"
        return Finding("packages", "bad", text, "install steersman again, with pip")
    return Finding("packages", "ok", ", ".join(found))


def _sqlite() -> Finding:
    import apsw

    version = apsw.sqlite_lib_version()
    parts = tuple(int(part) for part in version.split(".")[:3])
    text = f"{version} in apsw {apsw.apsw_version()}"
    if parts < _OLDEST_SQLITE:
        return Finding("sqlite", "bad", text, "install a newer apsw: this one can lose data")
    return Finding("sqlite", "ok", text)


def _programs() -> Iterator[Finding]:
    for name, why in _PROGRAMS:
        place = shutil.which(name)
        text = place or ("not here" if why else "not here; nothing needs it")
        yield Finding(name, "ok" if place or not why else "warn", text, "" if place else why)


def _sandbox(environ: Mapping[str, str], paths: Paths) -> Finding:
    """Say whether commands run in a sandbox here, and whether they could."""
    from ..ports.tools.sandbox import bubblewrap
    from ..workflows.config import load

    try:
        mode = load(paths, Path.cwd(), environ).tools.sandbox
    except SteersmanError:
        mode = "off"  # the settings have a line of their own
    program, fault = bubblewrap()
    if fault:
        verdicts: dict[str, Verdict] = {"off": "ok", "auto": "warn", "required": "bad"}
        hint = "" if mode == "off" else "install bubblewrap, or set tools.sandbox to off"
        return Finding("sandbox", verdicts[mode], f"{mode}: {fault}", hint)
    how = "on" if mode != "off" else 'off; tools.sandbox = "auto" turns it on'
    return Finding("sandbox", "ok", f"{how}; {program} works here")


def _terminal(environ: Mapping[str, str]) -> Finding:
    encoding = (sys.stdout.encoding or "").lower()
    columns, lines = shutil.get_terminal_size()
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    kind = f"a terminal ({environ.get('TERM', '')})" if is_terminal else "not a terminal"
    text = f"{kind}, {encoding}, {columns} columns, {lines} lines"
    if encoding.replace("-", "") != "utf8":
        return Finding("terminal", "warn", text, "set LANG to a UTF-8 locale, such as C.UTF-8")
    if is_terminal and environ.get("TERM", "dumb") == "dumb":
        return Finding("terminal", "warn", text, "set TERM: a dumb terminal gets the plain chat")
    return Finding("terminal", "ok", text)


def _folders(paths: Paths) -> Iterator[Finding]:
    for name, path in (("config", paths.config), ("state", paths.state), ("cache", paths.cache)):
        if not path.exists():
            yield Finding(name, "ok", f"{path} (made when it is needed)")
        else:
            yield _folder(name, path)


def _folder(name: str, path: Path) -> Finding:
    status = path.stat()
    mode = status.st_mode & 0o777
    text = f"{path} (mode {mode:04o})"
    if not path.is_dir():
        return Finding(name, "bad", text, "this is no folder: move it away")
    if status.st_uid != os.geteuid():
        return Finding(name, "bad", f"{text}, of user {status.st_uid}", "set STEERSMAN_HOME")
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        return Finding(name, "bad", f"{text}, not writable", f"chmod 700 {path}")
    if mode & 0o077:
        return Finding(name, "warn", f"{text}: others may look into it", f"chmod 700 {path}")
    return Finding(name, "ok", text)


def _disk(folder: Path) -> Finding:
    there = next(one for one in (folder, *folder.parents) if one.exists())
    free = shutil.disk_usage(there).free
    text = f"{size_text(free)} free at {there}"
    if free < _TIGHT:
        return Finding("disk", "bad" if free < _FULL else "warn", text, "make room")
    return Finding("disk", "ok", text)


def _store(environ: Mapping[str, str]) -> Finding:
    try:
        with stored(environ) as store:
            rows = store.sessions()
            words = {
                row.session: state_word(row, is_owned=store.is_owned(row.session)) for row in rows
            }
    except SteersmanError as error:
        return Finding("sessions", "bad", str(error), error.hint)
    dead = [session for session, word in words.items() if word == "crashed"]
    if dead:
        text = f"{len(rows)}, of which the process died: {', '.join(dead[:5])}"
        hint = f"nothing is lost: `steersman chat --resume {dead[0]}` takes it up"
        return Finding("sessions", "warn", text, hint)
    running = sum(word == "running" for word in words.values())
    return Finding("sessions", "ok", f"{len(rows)}, {running} of them running")


def _model(environ: Mapping[str, str], paths: Paths) -> Iterator[Finding]:
    from .models import chosen, missing_weights

    try:
        _, choice = chosen(environ)
    except SteersmanError as error:
        yield Finding("settings", "bad", str(error), error.hint)
        return
    yield Finding("settings", "ok", "no mistakes")
    if entry := missing_weights(choice, paths.cache):
        hint = f"`steersman models fetch {entry.name}`, or configure another model"
        yield Finding("model", "warn", f"{choice.line}; its weights are not here", hint)
        return
    yield _reached(choice.line, choice.config, environ)


def _reached(line: str, config: ModelConfig, environ: Mapping[str, str]) -> Finding:
    match config.provider:
        case "local":
            return _engine(line)
        case "scripted":
            is_there = Path(config.script).is_file()
            hint = "" if is_there else f"there is no file `{config.script}`"
            return Finding("model", "ok" if is_there else "bad", line, hint)
        case _:
            return _server(line, config, environ)


def _engine(line: str) -> Finding:
    if importlib.util.find_spec("xllamacpp") is None:
        return Finding("model", "warn", line, "pip install 'steersman[local]'")
    return Finding("model", "ok", line)


def _server(line: str, config: ModelConfig, environ: Mapping[str, str]) -> Finding:
    """Open a connection to the server and close it; nothing is asked, nothing costs."""
    url = urlsplit(config.base_url or "https://api.anthropic.com")
    port = url.port or (443 if url.scheme == "https" else 80)
    try:
        socket.create_connection((url.hostname or "", port), _PATIENCE).close()
    except OSError as error:
        text = f"{line}; {url.hostname}:{port} does not answer ({error.strerror or error})"
        return Finding("model", "bad", text, "start the server, or look at the network")
    if config.api_key_env and not environ.get(config.api_key_env):
        return Finding("model", "warn", line, f"{config.api_key_env} is not set: no key is sent")
    return Finding("model", "ok", f"{line}; it answers")
