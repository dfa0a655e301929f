"""`steersman doctor`: checks this machine and reports what to repair.

Each function of a check returns findings and changes nothing.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
import shutil
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Annotated

from msgspec.structs import asdict, replace

from ...gateway.plugins import plug_in_states
from ...gateway.session_info import state_of
from ...gateway.wording.formats import size_text
from ...gateway.wording.redaction import redactor_of
from ...journal.store import Store
from ...machines.errors import SteersmanError
from ...ports.models.provider import ModelConfig, ReachResult, provider_of
from ...ports.process.leftover import leftovers
from ...ports.process.own_python import INTERPRETER
from ...workflows.home_place import storage_of
from ...workflows.paths import Paths
from ...workspace.prune import size_of
from ..options import Json, flag
from ..output import can_colour, show, show_document
from ..stored import disk_use, stored
from ..wrapping import wrapped
from .home import Finding, Verdict, home_findings

# Models: all are reached for at the same time -----------------------------------------------------


_CONNECT_TIMEOUT = 2.0  # seconds until a model server has accepted a connection
_NAMING = 1.0  # seconds more, for resolving its address


def reach(models: Sequence[tuple[str, ModelConfig]], environ: Mapping[str, str]) -> list[Finding]:
    """Check whether models can be reached; each comes with its description. Keeps the order."""
    found: dict[int, ReachResult] = {}

    def reach_one(at: int, config: ModelConfig) -> None:
        found[at] = provider_of(config).reach(config, environ, _CONNECT_TIMEOUT)

    # Daemons: one that hangs in the name service must not hold up the end of the program.
    threads = [
        threading.Thread(target=reach_one, args=(at, config), daemon=True)
        for at, (_, config) in enumerate(models)
    ]
    for thread in threads:
        thread.start()
    until = time.monotonic() + _CONNECT_TIMEOUT + _NAMING
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    late = ReachResult("bad", "no answer in time", "check the network, and `base_url`")
    results = [found.get(at, late) for at in range(len(models))]
    return [
        Finding("model", result.status, "; ".join(filter(None, (line, result.text))), result.hint)
        for (line, _), result in zip(models, results, strict=True)
    ]


# Disk use, and processes whose program is dead ----------------------------------------------------


_LARGEST = 3  # sessions that are named
_ENDING = 2.0  # seconds within which the helpers of a dead program exit
_POLL = 0.1  # seconds


def disk_finding(store: Store, paths: Paths) -> Finding:
    """Report the size of the state and cache folders, and the largest sessions."""
    folders = {"state": paths.state, "cache": paths.cache}
    takes = [
        f"{name} {size_text(size_of(path) if path.exists() else 0)}"
        for name, path in folders.items()
    ]
    sizes = sorted(
        disk_use(store, storage_of(paths, os.environ)).items(), key=lambda entry: -entry[1]
    )
    largest = [f"{session} {size_text(size)}" for session, size in sizes[:_LARGEST] if size]
    if largest:
        takes.append(f"the largest sessions: {', '.join(largest)}")
    return Finding("use", "ok", "; ".join(takes))


def leftover_findings() -> Iterator[Finding]:
    """Report each process that outlived the program that started it, and how to end it."""
    until = time.monotonic() + _ENDING
    while (left := leftovers()) and time.monotonic() < until:
        time.sleep(_POLL)
    if not left:
        yield Finding("processes", "ok", "none is left over")
    for leftover in left:
        below = f", with {', '.join(map(str, leftover.below))} below it" if leftover.below else ""
        text = (
            f"{leftover.pid} is left over: {leftover.what}{below}; "
            f"started by process {leftover.owner}, which is dead"
        )
        ends = " ".join(map(str, (leftover.pid, *leftover.below)))
        yield Finding("processes", "warn", text, f"kill -9 {ends}")


# Python, programs, folders, sessions --------------------------------------------------------------


_OLDEST_SQLITE = (3, 51, 3)  # earlier ones may corrupt a log that two processes write
_NEED = re.compile(r"(?P<name>[\w.-]+)(?:[^;]*>=(?P<least>[\d.]+))?")
_FULL, _TIGHT = 100 * 10**6, 10**9  # bytes free


def check_up() -> Iterator[Finding]:
    """Run all checks, in the order of the report."""
    paths = Paths.of(os.environ)
    about = f"{platform.python_version()} at {INTERPRETER}, {platform.platform()}"
    yield Finding("python", "ok", about)
    yield _packages()
    yield _sqlite()
    yield _git()
    yield _sandbox(paths)
    yield _terminal()
    for name, path in (("config", paths.config), ("state", paths.state), ("cache", paths.cache)):
        yield _folder(name, path) if path.exists() else _missing(name, path)
    yield _disk(paths.state)
    yield from _store(paths)
    yield from leftover_findings()
    yield from _plug_ins()
    yield from _models(paths)


def _packages() -> Finding:
    """Check whether the required packages are installed, and recent enough."""
    try:
        lines = metadata.requires("steersman") or []
    except metadata.PackageNotFoundError:
        return Finding(
            "packages",
            "warn",
            "steersman runs from its checkout",
            "`pip install -e .` in the checkout",
        )
    needed = [found for line in lines if "extra ==" not in line and (found := _NEED.match(line))]
    there = [f"steersman {metadata.version('steersman')}"]
    problems: list[str] = []
    for name, least in (need.group("name", "least") for need in needed):
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            problems.append(f"{name} is not installed")
            continue
        there.append(f"{name} {version}")
        if least and _numbers(version) < _numbers(least):
            problems.append(f"{name} {version} is too old: {least} is needed")
    if problems:
        return Finding("packages", "bad", "; ".join(problems), "install steersman again, with pip")
    return Finding("packages", "ok", ", ".join(there))


def _plug_ins() -> Iterator[Finding]:
    """Report what installed packages add, and each plug-in that cannot be used."""
    states = plug_in_states()
    for state in states:
        if state.fault:
            plug_in = state.plug_in
            text = f"{plug_in.noun} `{plug_in.name}` of {plug_in.origin}: {state.fault}"
            yield Finding("plug-ins", "warn", text, state.hint)
    usable = [state for state in states if not state.fault]
    origins = ", ".join(dict.fromkeys(state.plug_in.origin for state in usable))
    text = f"{len(usable)} of {origins}" if usable else "none is installed"
    if usable or not states:
        yield Finding("plug-ins", "ok", text)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def _sqlite() -> Finding:
    import apsw

    version = apsw.sqlite_lib_version()
    text = f"{version} in apsw {apsw.apsw_version()}"
    if _numbers(version) < _OLDEST_SQLITE:
        return Finding("sqlite", "bad", text, "install a newer apsw: this one can lose data")
    return Finding("sqlite", "ok", text)


def _git() -> Finding:
    if path := shutil.which("git"):
        return Finding("git", "ok", path)
    return Finding("git", "warn", "not here", "install git: checkpoints of a folder need it")


def _sandbox(paths: Paths) -> Finding:
    """Check whether commands run in a sandbox here, and whether they could."""
    from ...ports.tools.sandbox import bubblewrap
    from ...workflows.config import load

    try:
        mode = load(paths, Path.cwd(), os.environ).tools.sandbox
    except SteersmanError:
        return Finding("sandbox", "ok", "not known, as the settings have a mistake")
    program, fault = bubblewrap()
    if fault:
        verdicts: dict[str, Verdict] = {"off": "ok", "auto": "warn", "required": "bad"}
        hint = "" if mode == "off" else "install bubblewrap, or set tools.sandbox to off"
        return Finding("sandbox", verdicts[mode], f"{mode}: {fault}", hint)
    how = "on" if mode != "off" else 'off; tools.sandbox = "auto" turns it on'
    return Finding("sandbox", "ok", f"{how}; {program} works here")


def _terminal() -> Finding:
    encoding = (sys.stdout.encoding or "").lower()
    columns, lines = shutil.get_terminal_size()
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    kind = f"a terminal ({os.environ.get('TERM', '')})" if is_terminal else "not a terminal"
    colours = "colours" if can_colour(os.environ) else "no colours"
    text = f"{kind}, {encoding}, {columns} columns, {lines} lines, {colours}"
    if encoding.replace("-", "") != "utf8":
        return Finding("terminal", "warn", text, "set LANG to a UTF-8 locale, such as C.UTF-8")
    if is_terminal and os.environ.get("TERM", "dumb") == "dumb":
        return Finding("terminal", "warn", text, "set TERM: a dumb terminal gets the plain chat")
    return Finding("terminal", "ok", text)


def _missing(name: str, path: Path) -> Finding:
    """Check whether a missing folder could be created."""
    above = next(parent for parent in path.parents if parent.exists())
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        text = f"{path} cannot be created: {above} is not writable"
        return Finding(name, "bad", text, "set STEERSMAN_HOME to a folder that you own")
    return Finding(name, "ok", f"{path} (made when it is needed)")


def _folder(name: str, path: Path) -> Finding:
    status = path.stat()
    mode = status.st_mode & 0o777
    text = f"{path} (mode {mode:04o})"
    private = f"chmod 700 {shlex.quote(str(path))}"
    if not path.is_dir():
        return Finding(name, "bad", text, "this is no folder: move it away")
    if status.st_uid != os.geteuid():
        return Finding(name, "bad", f"{text}, of user {status.st_uid}", "set STEERSMAN_HOME")
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        return Finding(name, "bad", f"{text}, not writable", private)
    if mode & 0o077:
        return Finding(name, "warn", f"{text}: other users may read it", private)
    return Finding(name, "ok", text)


def _disk(folder: Path) -> Finding:
    there = next(parent for parent in (folder, *folder.parents) if parent.exists())
    free = shutil.disk_usage(there).free
    text = f"{size_text(free)} free at {there}"
    if free < _TIGHT:
        return Finding("disk", "bad" if free < _FULL else "warn", text, "make room")
    return Finding("disk", "ok", text)


def _store(paths: Paths) -> Iterator[Finding]:
    try:
        with stored(os.environ) as store:
            rows = store.sessions()
            words = {row.session: state_of(row, store.owner(row.session)) for row in rows}
            rows = [row for row in rows if words[row.session] != "never began"]
            use = disk_finding(store, paths)
    except SteersmanError as error:
        yield Finding("sessions", "bad", str(error), error.hint)
        return
    broken = [session for session, word in words.items() if word == "damaged"]
    if broken:
        text = f"{len(broken)} cannot be read: {', '.join(broken[:5])}"
        hint = "`steersman home check` says more"
        yield Finding("sessions", "warn", text, hint)
    dead = [session for session, word in words.items() if word == "crashed"]
    if dead:
        text = f"{len(rows)}, of which the process died: {', '.join(dead[:5])}"
        hint = f"nothing is lost: `steersman chat --resume {dead[0]}` resumes it"
        yield Finding("sessions", "warn", text, hint)
    else:
        running = sum(word == "running" for word in words.values())
        yield Finding("sessions", "ok", f"{len(rows)}, {running} of them running")
    yield use


def _models(paths: Paths) -> Iterator[Finding]:
    """Check the model of a chat in this folder, and the other configured models."""
    from ...ports.models.availability import availability
    from .models import chosen

    try:
        models, choice = chosen(os.environ)
    except SteersmanError as error:
        yield Finding("settings", "bad", str(error), error.hint)
        return
    yield Finding("settings", "ok", "no mistakes")
    others = [config for name, config in models.items() if name != choice.name]
    lines = [(f"model {config.name}: not the one of a chat here", config) for config in others]
    found = availability(choice.config, paths.cache, os.environ)
    if found.state in ("to fetch", "no engine", "no weights"):
        text = f"{choice.line}; {found.text}"
        yield Finding("model", "warn", text, found.hint)
    else:
        lines.insert(0, (choice.line, choice.config))
    for finding, (_, config) in zip(reach(lines, os.environ), lines, strict=True):
        if config is choice.config:
            yield finding
        else:  # a chat here does not use it
            verdict: Verdict = "ok" if finding.verdict == "ok" else "warn"
            yield replace(finding, name="models", verdict=verdict)


_TEXT, _ENDLESS = 16, 1 << 30  # the column at which texts begin; columns of what is no terminal


def doctor(
    as_json: Json = False,
    of_home: Annotated[
        bool, flag("--home", "check the home instead: the database, nodes, mail")
    ] = False,
) -> int:
    """Check this machine, and report what to repair.

    Example: steersman doctor
    """
    findings = home_findings() if of_home else check_up()
    redactor = redactor_of(os.environ)
    is_bad = False
    found: list[dict[str, str]] = []
    for finding in findings:
        is_bad = is_bad or finding.verdict == "bad"
        if as_json:
            found.append(redactor.data(asdict(finding)))
            continue
        room = _ENDLESS
        if sys.stdout.isatty():
            room = max(20, shutil.get_terminal_size().columns - _TEXT)
        texts = wrapped(redactor.text(finding.text), room)
        texts += wrapped(redactor.text(finding.hint), room) if finding.hint else []
        show(f"{finding.verdict:<4}  {finding.name:<9} {texts[0]}")
        for text in texts[1:]:
            show(f"{'':<{_TEXT}}{text}")
    if as_json:
        show_document({"ok": not is_bad, "checks": found})
    return 1 if is_bad else 0
