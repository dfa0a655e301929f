"""`steersman serve`: one program that runs the home's sessions, for terminals, pages and programs."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from ..gateway.serving import address_of, server_of
from ..machines.errors import SteersmanError, UsageError
from ..workflows.paths import Paths, make_private
from .output import show, warn

PATIENCE = 60.0
"""Seconds within which the program in the background has to serve, or to end."""
PAUSE = 0.05
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


def serve_here(host: str, port: int) -> int:
    """Serve until a signal. Raises `SteersmanError`."""
    try:
        from ..gateway.web.server import serve as run
    except ModuleNotFoundError as error:
        raise UsageError(
            f"serving needs the package `{error.name}`", "pip install 'steersman[web]'"
        ) from error
    from ..workflows.config import load

    paths = Paths.of(os.environ)
    settings = load(paths, Path.home(), os.environ).serve
    certificate = (settings.certificate, settings.key) if settings.certificate else None
    asyncio.run(
        run(
            paths,
            os.environ,
            host=host,
            port=port or settings.port,
            certificate=certificate,
            names=settings.names,
            on_ready=lambda address: show(f"serving at {address}"),
        )
    )
    return 0


def serve_in_background(host: str, port: int) -> int:
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
    command = [sys.executable, "-P", "-m", "steersman", "serve", "--foreground"]
    with suppress(FileNotFoundError):
        log.unlink()  # a link in its place is not followed
    with open(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        program = subprocess.Popen(
            [*command, "--host", host, "--port", str(port)],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        said = log.read_text(encoding="utf-8", errors="replace")
        if "serving at " in said:
            show(said.partition("serving at ")[2].split()[0])
            program.returncode = 0  # it goes on, and is nobody's child when this ends
            return 0
        if program.poll() is not None:
            warn(said.strip() or "steersman: the server ended at once")
            return program.returncode or 1
        time.sleep(PAUSE)
    program.terminate()
    raise SteersmanError(f"it did not serve within {PATIENCE:g} s", f"look into {log}")


def status() -> int:
    """Show where the home is served; exit code 1 if it is not."""
    paths = Paths.of(os.environ)
    owner = server_of(paths.state)
    if owner is None:
        show("no program serves this home; `steersman serve` starts one")
        return 1
    show(f"process {owner.pid} serves this home at {address_of(paths.state)}")
    return 0


def stop() -> int:
    """End the program that serves the home; its sessions are suspended."""
    state = Paths.of(os.environ).state
    owner = server_of(state)
    if owner is None:
        show("no program serves this home")
        return 1
    with suppress(ProcessLookupError):
        os.kill(owner.pid, signal.SIGTERM)
    deadline = time.monotonic() + PATIENCE
    while (now := server_of(state)) is not None and now == owner:
        if time.monotonic() > deadline:
            raise SteersmanError(
                f"process {owner.pid} does not end", f"`kill -9 {owner.pid}`; nothing is lost"
            )
        time.sleep(PAUSE)
    show(f"process {owner.pid} has ended; its sessions are suspended")
    return 0


def install() -> int:
    """Have the user's systemd start the server at login, and now."""
    unit = _unit()
    home = os.environ.get("STEERSMAN_HOME", "")
    setting = f"Environment=STEERSMAN_HOME={_quoted(home)}\n" if home else ""
    unit.parent.mkdir(parents=True, exist_ok=True)
    command = f"{_quoted(sys.executable)} -P -m steersman"
    unit.write_text(UNIT.format(command=command, home=setting), encoding="utf-8")
    show(f"wrote {unit}")
    return _systemctl("enable", "--now")


def uninstall() -> int:
    """Have systemd no longer start the server, and end it."""
    unit = _unit()
    if not unit.exists():
        show("no unit is installed")
        return 1
    code = _systemctl("disable", "--now")
    unit.unlink()
    show(f"removed {unit}")
    return code


def _unit() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "systemd" / "user" / "steersman.service"


def _quoted(text: str) -> str:
    """Write a word for systemd: percent signs are doubled, quotes and backslashes escaped."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def _systemctl(*words: str) -> int:
    command = ["systemctl", "--user", *words, "steersman.service"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        show("systemd is not here: start `steersman serve --foreground` in another way at login")
        return 1
    if done.returncode:
        show(f"`{' '.join(command)}` failed: {done.stderr.strip()}")
    return 1 if done.returncode else 0
