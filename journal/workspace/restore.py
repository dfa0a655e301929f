"""Puts paths back, all or none as far as a crash goes, and never through a link.

First everything that is to come is written into a folder of ours beside the files, while nothing has
changed yet: a full disk shows here. Then a line says that it begins, and from there on there are only
renames and removals, which need no room. A crash before that line is as if nobody had asked; after
it, the next start finishes. Each path is looked at once more right before it is replaced.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .blob_store import EVERYTHING, LARGEST, BlobStore, LostBlob
from .path_state import PathState, from_data, look_at, open_parent, signature, to_data
from .plan import CHANGED_SINCE, Kept, Put
from .side_record import save_json
from .syncing import sync_files

__all__ = ["STAGING", "Restore", "RestoreFailed", "load_restore"]

STAGING = ".steersman-revert-"
IN_THE_WAY = "something else is in its place"


class RestoreFailed(Exception):
    """Nothing was changed; the text says why."""


@dataclass(slots=True)
class Restore:
    """One restore and its file; `about` is what whoever asked for it wants to find again.

    `rescue` holds, for each path, what it held before, so that it can be had back.
    """

    name: str
    file: Path
    puts: list[Put]
    kept: list[Kept] = field(default_factory=list[Kept])
    rescue: dict[str, PathState | None] = field(default_factory=dict[str, PathState | None])
    about: dict[str, Any] = field(default_factory=dict[str, Any])
    phase: str = "staging"
    seen: dict[str, str] = field(default_factory=dict[str, str])

    def carry_out(self, root: Path, blobs: BlobStore) -> None:
        """Do it. Raises `RestoreFailed`; then nothing has changed."""
        self._see(root)
        try:
            self._save_from_harm(root, blobs)
            self.save()
            self._stage(root, blobs)
            self.phase = "moving"
            self.save()
        except OSError as error:
            self.abandon(root)
            why = error.strerror or str(error)
            raise RestoreFailed(f"nothing was changed: {why}") from error
        self.finish(root, blobs)

    def finish(self, root: Path, blobs: BlobStore) -> None:
        """Move everything to its place; also after a crash, any number of times."""
        files = [(number, one) for number, one in enumerate(self.puts) if _has_file(one)]
        for put in self.puts:
            if not _is_folder(put.now) and put.now is not None and not _has_file(put):
                self._attempt(root, blobs, put, self._remove)
        for put in sorted(self.puts, key=lambda one: one.path.count("/"), reverse=True):
            if _is_folder(put.now) and not _is_folder(put.target):
                self._attempt(root, blobs, put, self._remove_folder)
        for put in sorted(self.puts, key=lambda one: one.path.count("/")):
            if _is_folder(put.target):
                self._attempt(root, blobs, put, self._make_folder)
        for number, put in files:
            self._move(root, blobs, number, put)
        self._sweep(root)

    def abandon(self, root: Path) -> None:
        """Forget it; nothing has been moved."""
        self._sweep(root)
        self.file.unlink(missing_ok=True)

    def save(self) -> None:
        """Write its file, durably. Raises `OSError`."""
        data = {
            "name": self.name,
            "phase": self.phase,
            "puts": [[one.path, to_data(one.now), to_data(one.target)] for one in self.puts],
            "kept": [[one.path, one.why] for one in self.kept],
            "rescue": [[path, to_data(state)] for path, state in self.rescue.items()],
            "about": self.about,
        }
        save_json(self.file, data, is_durable=True)

    @property
    def done(self) -> list[Put]:
        """What was given back."""
        kept = {one.path for one in self.kept}
        return [one for one in self.puts if one.path not in kept]

    def refuse(self, path: str, why: str) -> None:
        """Leave a path as it is after all."""
        self.puts = [one for one in self.puts if one.path != path]
        self.kept.append(Kept(path, why))

    # Before anything changes ----------------------------------------------------------------------

    def _see(self, root: Path) -> None:
        for put in self.puts:
            found = look_at(root, put.path)
            self.seen[put.path] = "" if found is None else signature(found)

    def _save_from_harm(self, root: Path, blobs: BlobStore) -> None:
        """Make sure that what will be replaced has a copy."""
        for put in list(self.puts):
            state = put.now
            if state is not None and state.kind == "large":
                state = blobs.capture(root, put.path, EVERYTHING)
            if state is not None and not state.is_kept:
                self.refuse(put.path, "what is there now cannot be read, so no copy could be kept")
                continue
            try:
                for one in (state, put.target):
                    if one is not None and one.content and not blobs.has(one.content):
                        blobs.put(blobs.get(one.content))
            except LostBlob as lost:
                self.refuse(put.path, str(lost))
                continue
            self.rescue[put.path] = state

    def _stage(self, root: Path, blobs: BlobStore) -> None:
        staging = self._staging(root)
        staging.mkdir(mode=0o700)
        for number, put in enumerate(self.puts):
            if put.target is None or _is_folder(put.target):
                continue
            data = blobs.get(put.target.content)
            place = staging / str(number)
            if put.target.kind == "link":
                os.symlink(os.fsdecode(data), place)
                continue
            with open(place, "xb") as file:
                file.write(data)
                self._keep_owner(root, put, file.fileno())
        sync_files(staging)
        for number, put in enumerate(self.puts):
            if put.target is not None and put.target.kind == "file":
                (staging / str(number)).chmod(put.target.mode)

    def _keep_owner(self, root: Path, put: Put, file: int) -> None:
        """Where we may give files away, a file stays whose it was."""
        found = look_at(root, put.path) if os.geteuid() == 0 else None
        if found is not None and (found.st_uid, found.st_gid) != (0, 0):
            os.fchown(file, found.st_uid, found.st_gid)

    # One path -------------------------------------------------------------------------------------

    def _attempt(
        self, root: Path, blobs: BlobStore, put: Put, act: Callable[[Path, Put], None]
    ) -> None:
        """Do one removal or creation; what is in its way stays, and is named."""
        try:
            if self._is_due(root, blobs, put):
                act(root, put)
        except OSError:
            self._leave(put, IN_THE_WAY)

    def _remove(self, root: Path, put: Put) -> None:
        with open_parent(root, put.path) as (parent, name):
            if name in os.listdir((root / put.path).parent):  # not its twin of another case
                os.unlink(name, dir_fd=parent)

    def _remove_folder(self, root: Path, put: Put) -> None:
        with open_parent(root, put.path) as (parent, name), suppress(OSError):
            os.rmdir(name, dir_fd=parent)  # what else is in it keeps it

    def _make_folder(self, root: Path, put: Put) -> None:
        with open_parent(root, f"{put.path}/x", create=True):
            pass

    def _move(self, root: Path, blobs: BlobStore, number: int, put: Put) -> None:
        staged = self._staging(root) / str(number)
        if not os.path.lexists(staged):
            return  # moved before a crash
        try:
            if not self._is_due(root, blobs, put):
                return
            with open_parent(root, put.path, create=True) as (parent, name):
                os.rename(staged, name, dst_dir_fd=parent)
        except OSError:
            self._leave(put, IN_THE_WAY)

    def _is_due(self, root: Path, blobs: BlobStore, put: Put) -> bool:
        """Whether the path still holds what the plan was made for; if not, it is kept and named."""
        found = look_at(root, put.path)
        if found is None and put.target is None:
            return False
        is_emptied = found is None or stat.S_ISDIR(found.st_mode)
        if is_emptied and _is_folder(put.now) and not _is_folder(put.target):
            return True  # what was in it is on its way out
        if found is None and _is_folder(put.target):
            return True
        sign = "" if found is None else signature(found)
        if sign == self.seen.get(put.path, "never seen"):
            return True
        limit = LARGEST if put.now is not None and put.now.kind == "large" else EVERYTHING
        state = blobs.capture(root, put.path, limit)
        if state == put.target:
            return False
        if state == put.now:
            return True
        self._leave(put, CHANGED_SINCE)
        return False

    def _leave(self, put: Put, why: str) -> None:
        if all(one.path != put.path for one in self.kept):
            self.kept.append(Kept(put.path, why))
        self.rescue.pop(put.path, None)

    def _staging(self, root: Path) -> Path:
        return root / f"{STAGING}{self.name}"

    def _sweep(self, root: Path) -> None:
        shutil.rmtree(self._staging(root), ignore_errors=True)


def _is_folder(state: PathState | None) -> bool:
    return state is not None and state.kind == "folder"


def _has_file(put: Put) -> bool:
    """Whether a file or a link is to come to this path."""
    return put.target is not None and put.target.kind in ("file", "link")


def load_restore(file: Path) -> Restore:
    """Read the file of a restore. Raises `OSError`, `ValueError`."""
    data: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return Restore(
        data["name"],
        file,
        [Put(path, from_data(now), from_data(target)) for path, now, target in data["puts"]],
        [Kept(path, why) for path, why in data["kept"]],
        {path: from_data(state) for path, state in data["rescue"]},
        data["about"],
        data["phase"],
    )
