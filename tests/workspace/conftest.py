"""A folder with files, an agent and a person who change it, and what it held."""

import os
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from steersman.machines import protocol as m
from steersman.workspace.workspace import Workspace

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")

Content = dict[str, object]


def content_of(folder: Path) -> Content:
    """Read everything in a folder but `.git`: bytes and mode of files, targets of links, folders."""
    found: Content = {}
    for here, names, files in os.walk(folder):
        if ".git" in names:
            names.remove(".git")
        for name in [*names, *files]:
            path = os.path.join(here, name)
            info = os.lstat(path)
            key = os.path.relpath(path, folder)
            if stat.S_ISLNK(info.st_mode):
                found[key] = ("link", os.readlink(path))
            elif stat.S_ISREG(info.st_mode):
                found[key] = ("file", Path(path).read_bytes(), stat.S_IMODE(info.st_mode))
            else:
                found[key] = "folder" if stat.S_ISDIR(info.st_mode) else "odd"
    return found


class Agent:
    """Changes a folder as a session does, with a workspace that looks on."""

    def __init__(self, state: Path, folder: Path, session: str = "s1") -> None:
        self.state, self.folder, self.session = state, folder, session
        self._calls = 0
        self._orders = 0
        self.restart()

    def restart(self) -> None:
        """Begin as a new process does: with what is on disk."""
        self._orders += 100
        self.workspace = Workspace(self.state, self.folder, self.session, os.environ)

    def command(
        self, act: Callable[[], object], turn: str = "t1", *, is_killed: bool = False
    ) -> None:
        """Change anything, as a command does; `is_killed`: its program dies before it has ended."""
        self._calls += 1
        self.workspace.begin(turn, f"{turn}.c{self._calls}", "shell", None)
        act()
        if is_killed:
            self.workspace.heartbeat.beat()  # the supervisor of the command, when that is gone
            self.restart()
        else:
            self.workspace.end(f"{turn}.c{self._calls}")

    def write(self, path: str, data: bytes, turn: str = "t1") -> None:
        """Write one file, as a tool of ours does."""
        self._calls += 1
        self.workspace.begin(turn, f"{turn}.c{self._calls}", "write", path)
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        self.workspace.end(f"{turn}.c{self._calls}")

    def revert(self, scope="turn", **fields) -> m.RestoreEnded:
        """Give an order."""
        self._orders += 1
        return self.workspace.revert(m.RestoreFiles(id=f"r{self._orders}", scope=scope, **fields))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder to work in."""
    made = tmp_path / "project"
    made.mkdir()
    return made


@pytest.fixture
def agent(tmp_path: Path, folder: Path) -> Agent:
    """An agent in that folder."""
    return Agent(tmp_path / "state", folder)


def git(folder: Path, *arguments: str) -> str:
    """Run the person's own git."""
    identity = ("-c", "user.name=ann", "-c", "user.email=ann@example.org")
    ran = subprocess.run(
        ["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True
    )
    return ran.stdout


def commit(folder: Path) -> None:
    """Commit everything, as the person."""
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "x")
