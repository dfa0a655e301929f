"""A sandbox for commands: bubblewrap (https://github.com/containers/bubblewrap), if it is installed.

A command in it can write only to the session's folder, to a separate temporary folder (its `/tmp`,
kept while the chat is open) and to the folders in `tools.writable`; of the folder's git repository it
cannot write what acts later, outside (see `_pinned`). It can read everything else,
except files that usually hold secrets (keys, credentials, histories, this program's own state) and
sockets of services that would act on its behalf. It sees only its own processes, has no network unless
that is allowed, and no capabilities, also as root: it cannot mount anything, make devices, or write the
files of other users.

The supervisor is outside and sees all processes, so a stop is proven here as well (see
`process/supervisor.py`). `--die-with-parent` is not used: it would skip the grace period of a command.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path

from ...machines.errors import ToolError
from ...machines.value import Value
from ...workflows.foreign_file import read_text
from ...workflows.home_folder import home_of_account
from ...workflows.settings import SandboxMode
from ...workspace.git import PINS

# Of other users bubblewrap drops the capabilities anyway, and where it is setuid refuses the option.
_NO_CAPABILITIES = ("--cap-drop", "ALL") if os.geteuid() == 0 else ()
_OWN = ("--unshare-pid", "--unshare-ipc", "--unshare-uts", *_NO_CAPABILITIES)
_BASE = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
_INSTALL = 'install bubblewrap, or set tools.sandbox to "auto" or "off"'
_TRIAL_SECONDS = 5.0
_LINE = 4096  # bytes of a file with the path of a repository
_SECRETS = (
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store", ".vault-token"),
    *(".netrc", ".git-credentials", ".config/git/credentials", ".config/gh", ".config/hub"),
    *(".config/gcloud", ".config/rclone", ".config/op", ".local/share/keyrings", ".pypirc"),
    *(".npmrc", ".cargo/credentials", ".cargo/credentials.toml", ".terraform.d", ".mozilla"),
    *(".config/google-chrome", ".config/chromium", ".bash_history", ".zsh_history"),
    *(".python_history", ".psql_history", ".mysql_history"),
    *(".colima", ".lima", ".orbstack", ".rd", ".local/share/containers/podman/machine"),
)
"""Below the home folder."""
_ACTS = (("config", ""), *PINS.items())
"""What acts of a git folder, and what git reads where it is missing; None is a folder."""
_GROUPS = ("modules", "worktrees")
_MOST = 200  # git folders in a repository; one with more, or with links, is read-only
_RUN = (
    *("/run/systemd/resolve/resolv.conf", "/run/systemd/resolve/stub-resolv.conf"),
    *("/run/resolvconf/resolv.conf", "/run/NetworkManager/resolv.conf", "/run/current-system"),
)
"""What is seen of `/run`, which has the sockets of services."""


class SandboxPolicy(Value):
    """The configured sandbox; `hidden` are folders of this program. `auto`: if bubblewrap works."""

    mode: SandboxMode = "off"
    network: bool = True
    writable: tuple[str, ...] = ()
    hidden: tuple[Path, ...] = ()

    @property
    def is_in_force(self) -> bool:
        """Whether commands run in a sandbox here. The first call blocks for a trial."""
        return self.mode != "off" and not bubblewrap()[1]

    def notice(self) -> str:
        """Return a warning if there is no sandbox although one is required; else empty."""
        fault = bubblewrap()[1] if self.mode == "required" else ""
        said = f"tools.sandbox is required, but {fault}: commands are refused; {_INSTALL}"
        return said if fault else ""

    @property
    def told(self) -> str:
        """What models are told of a sandbox that they may ask to leave; empty where there is none.

        No trial is made, which would take time.
        """
        return self.limits if self.mode == "auto" and shutil.which("bwrap") else ""

    @property
    def limits(self) -> str:
        """What a command in it cannot do, for people and models."""
        network = "" if self.network else ", and reach no network"
        return f"write only in the folder and in a /tmp of their own{network}"


OFF = SandboxPolicy()


class Sandbox:
    """One session's sandbox; `place` is a folder for its temporary files, made when it is needed."""

    def __init__(
        self, policy: SandboxPolicy, folder: Path, place: Path, environ: Mapping[str, str]
    ) -> None:
        self._policy = policy
        self._folder = os.path.realpath(folder)
        self._place, self._environ = place, environ

    def wrap(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        """Wrap a command into the sandbox, if one is configured. The first call blocks for a trial.

        Raises `ToolError` if a sandbox is required and does not work.
        """
        if self._policy.mode == "off":
            return argv
        program, fault = bubblewrap()
        if fault and self._policy.mode == "required":
            raise ToolError(f"it was not run: a sandbox is required, but {fault}", _INSTALL)
        return argv if fault else (program, *self._options(), "--", *argv)

    def clear(self) -> None:
        """Delete the temporary files. Blocks."""
        shutil.rmtree(self._place, ignore_errors=True)

    def _options(self) -> Iterator[str]:
        """List bubblewrap's options; later ones lie over earlier ones."""
        self._place.mkdir(parents=True, exist_ok=True, mode=0o700)
        yield from _OWN
        if not self._policy.network:
            yield "--unshare-net"
        yield from _BASE
        yield from (
            "--tmpfs",
            "/run",
            *(word for one in _RUN for word in ("--ro-bind-try", one, one)),
        )
        yield from ("--bind", str(self._place), "/tmp")
        for folder in self._policy.writable:
            path = os.path.realpath(os.path.expanduser(folder))
            yield from ("--bind-try", path, path)
        yield from ("--bind", self._folder, self._folder)
        yield from self._repository
        yield from self._hidden()
        yield from ("--setenv", "TMPDIR", "/tmp", "--chdir", self._folder)

    @cached_property
    def _repository(self) -> tuple[str, ...]:
        """The options for the git repository that the folder is in, or is a work tree of.

        Found once, before the first command: what a command makes may change while it is looked at.
        """
        mark = os.path.join(self._folder, ".git")
        own = ("--ro-bind-try", mark, mark) if os.path.isfile(mark) else ()
        return (*own, *(option for git in git_folders(self._folder) for option in _pinned(git)))

    def _hidden(self) -> Iterator[str]:
        """List the options that hide secrets and sockets, of those that exist."""
        home = self._environ.get("HOME") or home_of_account()
        runtime = self._environ.get("XDG_RUNTIME_DIR", "")
        places = [*(os.path.join(home, name) for name in _SECRETS), runtime]
        for place in [*places, *map(str, self._policy.hidden)]:
            path = os.path.realpath(place) if place else ""
            if not path or self._folder == path or self._folder.startswith(f"{path}/"):
                continue
            if os.path.isdir(path):
                yield from ("--tmpfs", path)
            elif os.path.lexists(path):
                yield from ("--ro-bind", "/dev/null", path)


def _pinned(repository: str) -> list[str]:
    """Return the options by which git works in a repository, while what acts later stays. Blocks.

    A mount can neither be renamed nor removed, nor can what lies in a read-only one be made. So each
    folder on the way is a mount of its own, and what is missing is made. Git reads a configuration from
    wherever `commondir` leads; `.` is the folder itself.
    """
    options, waiting, number = list[str](), [Path(repository)], 0
    try:
        while waiting:
            place, number = waiting.pop(), number + 1
            if number > _MOST:
                raise OSError("too many folders")
            options += ("--bind-try", str(place), str(place))
            if place.name not in _GROUPS and os.path.lexists(place / "HEAD"):
                for name, content in _ACTS:
                    options += ("--ro-bind-try", *[str(_made(place / name, content))] * 2)
                waiting += [place / name for name in _GROUPS if _is_folder(place / name)]
            else:
                waiting += filter(_is_folder, place.iterdir())
    except OSError:
        return ["--ro-bind-try", repository, repository]
    return options


def _made(place: Path, content: str | None) -> Path:
    """Make what is missing. Raises `OSError`, also for a link, on which nothing can be mounted."""
    if place.is_symlink():
        raise OSError("a link")
    if content is None:
        place.mkdir(exist_ok=True)
    elif not place.exists():
        with open(place, "x") as file:
            file.write(content)
    return place


def _is_folder(place: Path) -> bool:
    """Whether it is one. Raises `OSError` for a link."""
    if place.is_symlink():
        raise OSError("a link")
    return place.is_dir()


def git_folders(folder: str) -> list[str]:
    """Return the folders in which git keeps what belongs to a folder. Blocks.

    A work tree counts only if its repository names it, too: a `.git` file may say anything.
    """
    for above in (Path(folder), *Path(folder).parents):
        git = above / ".git"
        if git.is_dir() and not git.is_symlink():
            return [str(git)]
        if git.is_file():
            try:
                own = Path(os.path.join(above, _line(git).removeprefix("gitdir: ")))
                if os.path.realpath(_line(own / "gitdir")) != os.path.realpath(git):
                    return []
                return [os.path.realpath(own / _line(own / "commondir"))]
            except (OSError, ValueError):
                return []
    return []


def _line(file: Path) -> str:
    return read_text(file, _LINE).rstrip("\n")


@cache
def bubblewrap() -> tuple[str, str]:
    """Return the program and an empty text, or an empty path and why there is no sandbox.

    The program is tried once, since some systems and containers forbid what it needs. Blocks.
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
        reason = ran.stderr.decode(errors="replace").strip().removeprefix("bwrap: ")
        return "", f"bubblewrap does not work here ({reason[:200] or ran.returncode})"
    return program, ""
