"""A folder that an agent has ruined, again and again the same, for restores that are cut off."""

import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace
from workspace.conftest import Agent, Content, content_of
from workspace.test_workspace import fill, ruin

from steersman.machines import protocol as m
from steersman.workspace.restore import STAGING
from steersman.workspace.workspace import Workspace

__all__ = ["ALL", "FULL", "ORDER", "Origin", "prepare", "revert"]

ORDER = m.RestoreFiles(id="r1", scope="turn", force=True)
ALL = "all went back"
FULL = (
    "nothing was changed: No space left on device; "
    "free disk space (for example with `steersman home trash empty`), then try again"
)


@dataclass(frozen=True)
class Origin:
    """A place that an agent has ruined, to be copied; its folder is `project`.

    `before` and `after` are what the folder held before and after the agent.
    """

    place: Path
    before: Content
    after: Content

    @contextmanager
    def copy(self) -> Generator[Path]:
        """Give a copy at the place where it was ruined: by that its copies of files are found."""
        root = self.place.with_name("run")
        shutil.copytree(self.place, root, symlinks=True)
        try:
            yield root
        finally:
            shutil.rmtree(root)

    def check(self, root: Path) -> str:
        """Start again: all or nothing, nothing left lying about; then it can be done, and undone."""
        folder = root / "project"
        agent = Agent(root / "state", folder)
        agent.workspace.count(m.RestoreFiles(id="", scope="turn"))
        found = content_of(folder)
        assert found in (self.before, self.after)
        agent.workspace.revert(ORDER)
        assert content_of(folder) == self.before
        agent.workspace.revert(m.RestoreFiles(id="r2", scope="undo"))
        assert content_of(folder) == self.after
        return "finished" if found == self.before else "never began"

    def check_told(self, root: Path, told: str) -> None:
        """The reports are true; with free space again everything is restored."""
        folder = root / "project"
        found = content_of(folder)
        found.pop(f"{STAGING}r1", None)  # empty, until it is known that what lay there outlives all
        assert found == (self.before if told == ALL else self.after)
        Workspace(root / "state", folder, "s1", os.environ).revert(replace(ORDER, id="r9"))
        assert content_of(folder) == self.before


@contextmanager
def prepare() -> Generator[Origin]:
    """A folder with all kinds of things, ruined by a command."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        root, place = Path(name, "run"), Path(name, "origin")
        folder = root / "project"
        folder.mkdir(parents=True)
        fill(folder)
        (folder / "left").mkdir()
        (folder / "left/alone").write_text("in a folder that a person removes when it is empty")
        before = content_of(folder)
        agent = Agent(root / "state", folder)
        agent.command(lambda: ruin(folder))
        agent.command((folder / "left/alone").unlink)
        (folder / "left").rmdir()
        (folder / "src/f1.txt").write_text("a person's, and overwritten, since that is demanded")
        after = content_of(folder)
        root.rename(place)
        yield Origin(place, before, after)


def revert(root: Path) -> int:
    """Give everything back, as a process of its own would."""
    Workspace(root / "state", root / "project", "s1", os.environ).revert(ORDER)
    return 0
