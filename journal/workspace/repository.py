"""The person's own git repository around a folder: found and read, never run, never written.

Its files are read directly. To run git inside it would obey its configuration, which may name programs.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

from ...machines.value import Value

_CONVERTS = re.compile(r"autocrlf|\beol\b|attributesfile|\[include", re.IGNORECASE)


class Repository(Value):
    """A work tree (`top`), its own git folder, and the one that it shares with other work trees."""

    top: Path
    folder: Path
    common: Path

    @property
    def index(self) -> Path:
        """The index of this work tree."""
        return self.folder / "index"

    @property
    def objects(self) -> Path:
        """Where its objects lie."""
        return self.common / "objects"

    @property
    def exclude(self) -> str:
        """What it ignores without saying so in the work tree."""
        return _text(self.common / "info" / "exclude")

    @property
    def can_be_borrowed_from(self) -> bool:
        """Whether its index names objects as we do."""
        is_sha256 = "sha256" in _text(self.common / "config").lower()
        return self.index.is_file() and self.objects.is_dir() and not is_sha256

    def may_convert(self) -> bool:
        """Whether a setting may make files differ between work tree and repository."""
        home = Path(os.path.expanduser("~"))
        configs = (
            self.common / "config",
            self.folder / "config.worktree",
            home / ".gitconfig",
            home / ".config" / "git" / "config",
            Path("/etc/gitconfig"),
        )
        attributes = self.common / "info" / "attributes", home / ".config" / "git" / "attributes"
        has_attributes = any(
            os.path.exists(path) for path in attributes
        )  # false where we may not look
        return has_attributes or any(_CONVERTS.search(_text(config)) for config in configs)


def find_repository(folder: Path) -> Repository | None:
    """Find the work tree that a folder lies in, if it lies in one."""
    for top in (folder, *folder.parents):
        mark = top / ".git"
        if mark.is_dir():
            return (
                Repository(top=top, folder=mark, common=mark) if (mark / "HEAD").exists() else None
            )
        if mark.is_file():
            return _linked(top, mark)
    return None


def _linked(top: Path, mark: Path) -> Repository | None:
    """Read the file `.git` of a linked work tree or a submodule."""
    said = _text(mark)
    if not said.startswith("gitdir:"):
        return None
    folder = top / said.removeprefix("gitdir:").strip()
    shared = _text(folder / "commondir").strip()
    common = (folder / shared) if shared else folder
    return (
        Repository(top=top, folder=folder.resolve(), common=common.resolve())
        if folder.is_dir()
        else None
    )


def _text(file: Path) -> str:
    with suppress(OSError):
        return file.read_text("utf-8", "replace")
    return ""
