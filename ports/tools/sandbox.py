"""A sandbox for commands: bubblewrap (https://github.com/containers/bubblewrap), where it is there.

In it a command writes only in the session's folder, in a temporary folder of its own (its `/tmp`, kept
while the chat is open) and where `tools.writable` says. Everything else can be read, but not what
usually holds secrets (keys, credentials, histories, this program's own state), nor the sockets by which
a command could ask somebody else to do what it may not. It sees no process but its own.

The supervisor stands outside and sees all of them: what it promises of a stopped command (see
`process/supervisor.py`) holds in here, too. So no `--die-with-parent`, which would take from a command
the time to end by itself.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ...machines.errors import ToolError
from ...workflows.settings import SandboxMode

_OWN = ("--unshare-pid", "--unshare-ipc", "--unshare-uts")
_BASE = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
_MEND = 'install bubblewrap, or set tools.sandbox to "auto" or "off"'
_TRIAL_SECONDS = 5.0
_SECRETS = (
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store", ".vault-token"),
    *(".netrc", ".git-credentials", ".config/git/credentials", ".config/gh", ".config/hub"),
    *(".config/gcloud", ".config/rclone", ".config/op", ".local/share/keyrings", ".pypirc"),
    *(".npmrc", ".cargo/credentials", ".cargo/credentials.toml", ".terraform.d", ".mozilla"),
    *(".config/google-chrome", ".config/chromium", ".bash_history", ".zsh_history"),
    *(".python_history", ".psql_history", ".mysql_history"),
)
"""Below the home folder."""
_SOCKETS = ("/run/docker.sock", "/run/podman", "/run/containerd", "/run/dbus")


@dataclass(frozen=True, slots=True)
class SandboxPolicy:
    """What is configured; `hidden` are folders of this program. `auto`: where it can be had."""

    mode: SandboxMode = "off"
    network: bool = True
    writable: tuple[str, ...] = ()
    hidden: tuple[Path, ...] = ()

    def notice(self) -> str:
        """Say at the start that commands are not as well kept as was asked for; else empty."""
        fault = "" if self.mode == "off" else bubblewrap()[1]
        if not fault:
            return ""
        if self.mode == "required":
            then = f"commands are refused; {_MEND}"
        else:
            then = "commands run without one"
        return f"tools.sandbox is {self.mode}, but {fault}: {then}"


OFF = SandboxPolicy()


class Sandbox:
    """One session's sandbox; `place` is a folder for its temporary files, made when it is needed."""

    def __init__(
        self, policy: SandboxPolicy, folder: Path, place: Path, environ: Mapping[str, str]
    ) -> None:
        self._policy = policy
        self._folder = os.path.realpath(folder)
        self._place = place
        self._environ = environ

    def wrap(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        """Put a command into the sandbox, if there is to be one. Blocks for a moment, the first time.

        Raises `ToolError` where one is required and can't be had.
        """
        if self._policy.mode == "off":
            return argv
        program, fault = bubblewrap()
        if fault and self._policy.mode == "required":
            raise ToolError(f"it was not run: a sandbox is required, but {fault}", _MEND)
        return argv if fault else (program, *self._walls(), "--", *argv)

    def clear(self) -> None:
        """Delete the temporary files. Blocks."""
        shutil.rmtree(self._place, ignore_errors=True)

    def _walls(self) -> Iterator[str]:
        """List bubblewrap's options; later ones lie over earlier ones."""
        self._place.mkdir(parents=True, exist_ok=True, mode=0o700)
        yield from _OWN
        if not self._policy.network:
            yield "--unshare-net"
        yield from _BASE
        yield from ("--bind", str(self._place), "/tmp")
        for one in self._policy.writable:
            path = os.path.realpath(os.path.expanduser(one))
            yield from ("--bind-try", path, path)
        yield from ("--bind", self._folder, self._folder)
        yield from self._curtains()
        yield from ("--setenv", "TMPDIR", "/tmp", "--chdir", self._folder)

    def _curtains(self) -> Iterator[str]:
        """Hide what is nobody's business; only what is there can be, and need be."""
        home = self._environ.get("HOME") or os.path.expanduser("~")
        runtime = self._environ.get("XDG_RUNTIME_DIR", "")
        places = [*(os.path.join(home, one) for one in _SECRETS), runtime, *_SOCKETS]
        for one in [*places, *map(str, self._policy.hidden)]:
            path = os.path.realpath(one) if one else ""
            if not path or self._folder == path or self._folder.startswith(f"{path}/"):
                continue
            if os.path.isdir(path):
                yield from ("--tmpfs", path)
            elif os.path.lexists(path):
                yield from ("--ro-bind", "/dev/null", path)


@cache
def bubblewrap() -> tuple[str, str]:
    """Return the program and an empty text, or nothing and why there is no sandbox to be had.

    It is tried once: some systems and containers forbid what it needs. Blocks.
    """
    program = shutil.which("bwrap")
    if program is None:
        return "", "bubblewrap (`bwrap`) is not installed"
    trial = (program, *_OWN, *_BASE, "true")
    try:
        ran = subprocess.run(trial, capture_output=True, timeout=_TRIAL_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return "", f"bubblewrap does not run here ({error})"
    if ran.returncode:
        said = ran.stderr.decode(errors="replace").strip().removeprefix("bwrap: ")
        return "", f"bubblewrap does not work here ({said[:200] or ran.returncode})"
    return program, ""
