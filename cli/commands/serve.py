"""`steersman serve`: one program that runs the home's sessions; and `schedule`: what it does when."""

from __future__ import annotations

import asyncio
import logging
import os
import plistlib
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import typer

from ...gateway.reach import address_of, server_of
from ...gateway.wording.formats import iso
from ...machines.errors import SteersmanError, UsageError
from ...ports.process.ancestry import is_alive, started
from ...ports.process.own_python import module_command, search_path
from ...workflows.extras import how_to_install
from ...workflows.home_folder import home_folder
from ...workflows.paths import Paths, make_private
from ..options import Json, flag, group, option
from ..output import show, show_document, show_either, show_table, warn
from ..stored import stored

SERVE_TIMEOUT = 60.0
"""Seconds within which the program in the background has to serve, or to end."""
PAUSE = 0.05
LABEL = "io.steersman.serve"
"""The name of the server's agent for launchd."""
UNIT = """\
[Unit]
Description=steersman: sessions of agents

[Service]
ExecStart={command} serve --foreground
Restart=on-failure
{home}
[Install]
WantedBy=default.target
"""

serve = group("serve", "steersman serve --port 8200", is_command=True)


@serve.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    host: Annotated[str, option("ADDRESS", "Other than loopback only with TLS.")] = "127.0.0.1",
    port: Annotated[int, option("N", "The port; 0: as configured.", min=0, max=65535)] = 0,
    is_foreground: Annotated[
        bool, flag("--foreground", "Stay in this terminal until Ctrl-C.")
    ] = False,
    log_format: Annotated[
        Literal["text", "json"], option("text|json", "JSON: one object a line, also of sessions.")
    ] = "text",
) -> int:
    """Start to serve, and print the address."""
    if context.invoked_subcommand is not None:
        return 0
    if not is_foreground:
        return _serve_in_background(host, port, is_json=log_format == "json")
    _serve_here(host, port, is_json=log_format == "json")
    return 0


def _serve_here(host: str, port: int, *, is_json: bool) -> None:
    """Serve until a signal; `is_json`: what is logged is JSON. Raises `SteersmanError`."""
    try:
        from ...gateway.web.log_lines import log_as_json
        from ...gateway.web.server import serve as run
    except ModuleNotFoundError as error:
        raise UsageError(
            f"serving needs the package `{error.name}`", how_to_install("web")
        ) from error
    from ...workflows.config import load

    paths = Paths.of(os.environ)
    settings = load(paths, home_folder(), os.environ).serve
    if is_json:
        log_as_json()
    say = logging.getLogger("serve").info if is_json else show
    certificate = (settings.certificate, settings.key) if settings.certificate else None
    asyncio.run(
        run(
            paths,
            os.environ,
            host=host,
            port=port or settings.port,
            certificate=certificate,
            names=settings.names,
            on_ready=lambda address: say(f"serving at {address}"),
            is_logged=is_json,
        )
    )


def _serve_in_background(host: str, port: int, *, is_json: bool) -> int:
    """Start a program that serves, in a session of its own, and wait until it does.

    Where that program cannot serve, its message and its exit code are those of this command.
    """
    paths = Paths.of(os.environ)
    if (owner := server_of(paths.state)) is not None:
        raise UsageError(
            f"process {owner.pid} serves this home already at {address_of(paths.state)}",
            "`steersman serve stop` ends it",
        )
    log = make_private(paths.state) / "serve.log"
    command = module_command("steersman", "serve", "--foreground")
    log_format = "json" if is_json else "text"
    with suppress(FileNotFoundError):
        log.unlink()  # a link in its place is not followed
    with open(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        program = subprocess.Popen(
            [*command, "--host", host, "--port", str(port), "--log-format", log_format],
            env={**os.environ, **search_path(os.environ)},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    deadline = time.monotonic() + SERVE_TIMEOUT
    while time.monotonic() < deadline:
        said = log.read_text(encoding="utf-8", errors="replace")
        if found := re.search(r"serving at ([^\s\"]+)[\s\"]", said):
            show(found[1])
            program.returncode = 0  # it goes on, and is an orphan when this process ends
            return 0
        if program.poll() is not None:
            warn(said.strip() or "steersman: the server ended at once")
            return program.returncode or 1
        time.sleep(PAUSE)
    program.terminate()
    raise SteersmanError(f"it did not serve within {SERVE_TIMEOUT:g} s", f"look into {log}")


@serve.command()
def status(as_json: Json = False) -> int:
    """Show where the home is served; exit code 1 if it is not.

    Example: steersman serve status
    """
    paths = Paths.of(os.environ)
    owner = server_of(paths.state)
    if owner is None:
        said = "no program serves this home; `steersman serve` starts one"
        show_either({"serving": False, "address": None}, said, as_json)
        return 1
    address = address_of(paths.state)
    about = {"serving": True, "address": address, "pid": owner.pid, "since": iso(owner.started)}
    show_either(about, f"process {owner.pid} serves this home at {address}", as_json)
    return 0


@serve.command()
def stop() -> int:
    """End the program that serves the home; its sessions are suspended.

    Example: steersman serve stop
    """
    state = Paths.of(os.environ).state
    owner = server_of(state)
    if owner is None:
        show("no program serves this home")
        return 1
    began = started(owner.pid)
    with suppress(ProcessLookupError):
        os.kill(owner.pid, signal.SIGTERM)
    deadline = time.monotonic() + SERVE_TIMEOUT
    while is_alive(owner.pid, began):
        if time.monotonic() > deadline:
            raise SteersmanError(
                f"process {owner.pid} does not end", f"`kill -9 {owner.pid}`; nothing is lost"
            )
        time.sleep(PAUSE)
    show(f"process {owner.pid} has ended; its sessions are suspended")
    return 0


class LoginService(NamedTuple):
    """What starts the server at login: a file, and the commands that begin and end it."""

    path: Path
    text: bytes
    begin: tuple[str, ...]
    end: tuple[str, ...]


@serve.command()
def install() -> int:
    """Have systemd, or launchd on macOS, start the server at login, and now.

    Example: steersman serve install
    """
    service = login_service()
    try:
        service.path.parent.mkdir(parents=True, exist_ok=True)
        service.path.write_bytes(service.text)
    except OSError as error:
        message = f"{service.path} cannot be written: {error.strerror}"
        raise SteersmanError(
            message, "run `steersman serve` yourself, or set XDG_CONFIG_HOME"
        ) from error
    show(f"wrote {service.path}")
    return _carried_out(service.begin)


@serve.command()
def uninstall() -> int:
    """Start the server at login no longer, and end it.

    Example: steersman serve uninstall
    """
    service = login_service()
    if not service.path.exists():
        show("nothing is installed")
        return 1
    code = _carried_out(service.end)
    service.path.unlink()
    show(f"removed {service.path}")
    return code


def login_service() -> LoginService:
    """Describe what starts the server at login here; its file need not be there."""
    home = os.environ.get("STEERSMAN_HOME", "")
    return _launch_agent(home) if sys.platform == "darwin" else _unit(home)


def _unit(home: str) -> LoginService:
    """Describe the server to systemd."""
    base = Path(os.environ.get("XDG_CONFIG_HOME") or home_folder() / ".config")
    setting = f"Environment=STEERSMAN_HOME={_quoted(home)}\n" if home else ""
    program, *options = module_command("steersman")
    command = " ".join((_quoted(program), *options))
    manager = ("systemctl", "--user")
    return LoginService(
        path=base / "systemd" / "user" / "steersman.service",
        text=UNIT.format(command=command, home=setting).encode(),
        begin=(*manager, "enable", "--now", "steersman.service"),
        end=(*manager, "disable", "--now", "steersman.service"),
    )


def _launch_agent(home: str) -> LoginService:
    """Describe the server to launchd: https://developer.apple.com/library/archive/documentation/MacOSX."""
    path = home_folder() / "Library" / "LaunchAgents" / f"{LABEL}.plist"
    described: dict[str, Any] = {
        "Label": LABEL,
        "ProgramArguments": [*module_command("steersman", "serve", "--foreground")],
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "EnvironmentVariables": {"STEERSMAN_HOME": home} if home else {},
    }
    domain = f"gui/{os.getuid()}"
    return LoginService(
        path=path,
        text=plistlib.dumps(described),
        begin=("launchctl", "bootstrap", domain, str(path)),
        end=("launchctl", "bootout", f"{domain}/{LABEL}"),
    )


def _quoted(text: str) -> str:
    """Write a word for systemd: percent signs are doubled, quotes and backslashes escaped."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def _carried_out(command: tuple[str, ...]) -> int:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        show(f"`{command[0]}` is not here: start `steersman serve --foreground` in another way")
        return 1
    if done.returncode:
        show(f"`{' '.join(command)}` failed: {done.stderr.strip()}")
    return 1 if done.returncode else 0


# Schedules ----------------------------------------------------------------------------------------


FOLDED = 40
"""Columns of a message in the list."""
SAID = 200
"""Columns of what a schedule's newest session said."""

schedule = group("schedule", "steersman schedule list")


@schedule.command("list")
def show_all(as_json: Json = False) -> None:
    """List the schedules: when each happens next, and what came of it last.

    Example: steersman schedule list
    """
    from ...gateway.views.schedule_view import schedules_now
    from ...workflows.schedules import SystemZone

    paths = Paths.of(os.environ)
    with stored(os.environ) as store:
        try:
            found = schedules_now(paths, os.environ, store, time.time(), SystemZone())
        except ModuleNotFoundError as error:
            raise UsageError(
                f"schedules need the package `{error.name}`", how_to_install("web")
            ) from error
    if as_json:
        show_document({"schedules": found})
        return

    def row(view: Mapping[str, Any]) -> list[str]:
        came, last = ["-", "-", ""], view["last"]
        if last:
            came = [_moment(last["planned"]), last["outcome"], last["session"]]
        return [view["name"], _moment(view["next"]), *(cell or "-" for cell in came), _what(view)]

    if not found:
        show("there are no schedules; docs/schedules.md shows how to write one")
        return
    head = ["name", "next", "last", "outcome", "session", "what"]
    show_table(head, [row(view) for view in found])
    for view in found:
        name, last = view["name"], view["last"]
        if last is not None and last["said"]:
            show(f"{name}, {_moment(last['planned'])}: {_folded(last['said'], SAID)}")
        if view["fault"]:
            warn(f"{name} cannot be carried out: {view['fault']}")
        elif last is not None and last["reason"]:
            times = f" {last['count']} times" if last["count"] > 1 else ""
            warn(f"{name} {last['state']}{times}: {last['reason']}")
        if last is not None and last["outcome"] == "interrupted":
            way = "run --resume" if "run" in view else "chat --resume"
            warn(f"{name} was interrupted: `steersman {way} {last['session']}` goes on")
    if server_of(paths.state) is None:
        warn("no program serves this home, so nothing happens: `steersman serve` starts one")


def _moment(moment: str | None) -> str:
    """Write a time as people here read it."""
    return f"{datetime.fromisoformat(moment).astimezone():%Y-%m-%d %H:%M}" if moment else "-"


def _folded(text: str, most: int) -> str:
    """Write a text on one line of at most so many columns, cut behind a word."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


def _what(view: Mapping[str, Any]) -> str:
    """Say in a line what a schedule does."""
    if run := view.get("run"):
        return f"run {run}" + (f" in {view['folder']}" if "folder" in view else "")
    said = _folded(view.get("say", ""), FOLDED)
    return f"say to {view['session']}: {said}" if "session" in view else f"say: {said}"
