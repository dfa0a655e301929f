"""Puts paths back, all or none as far as a crash goes, and never through a link.

First everything that is to come is written into a folder of its own beside the files, while nothing has
changed yet: a full disk shows here. Then a line says that it begins, and from there on there are only
renames and removals, which need no room. A crash before that line is as if nothing had been asked; after
it, the next start finishes. What the next step relies on is synced before it, so a power cut is a
crash like any other. Each path is looked at once more right before it is replaced.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from ..workflows.durability import is_draft, replace_file
from .blob_store import EVERYTHING, LARGEST, BlobStore, LostBlob
from .restore_plan import CHANGED_SINCE, KeptFile, PathWrite
from .scan import PathState, from_data, look_at, open_parent, signature, to_data
from .syncing import side_by_side, sync

STAGING = ".steersman-revert-"
HEAD = 200
"""Characters of a restore's file in which its name and phase stand."""
IN_THE_WAY = "something else is in its place"
FULL = (errno.ENOSPC, errno.EDQUOT)
ROOM = "free disk space (for example with `steersman home trash empty`), then try again"


class RestoreFailed(Exception):
    """Nothing was changed; the text says why."""


class Restore(Struct, kw_only=True):
    """One restore and its file; `about` is data of the caller, kept with it.

    `rescue` holds, for each path, what it held before, so that the restore can be undone.
    """

    name: str
    file: Path
    puts: list[PathWrite]
    kept: list[KeptFile] = field(default_factory=list[KeptFile])
    rescue: dict[str, PathState | None] = field(default_factory=dict[str, PathState | None])
    about: dict[str, Any] = field(default_factory=dict[str, Any])
    phase: str = "staging"
    seen: dict[str, str] = field(default_factory=dict[str, str])

    def prepare(self, root: Path, blobs: BlobStore) -> None:
        """Get ready to `finish`. Raises `RestoreFailed`; then nothing has changed, nor will."""
        self._see(root)
        try:
            self._save_from_harm(root, blobs)
            if self.puts:
                self.save()
                self._stage(root, blobs)
                self.phase = "moving"
                self.save()
        except OSError as error:
            self.abandon(root)
            raise RestoreFailed(f"nothing was changed: {reason_of(error)}") from error

    def finish(self, root: Path, blobs: BlobStore) -> None:
        """Move everything to its place; also after a crash, any number of times.

        Raises `OSError` if it may not outlive a power cut: then it has to be finished again.
        """
        for put in self.puts:
            goes = put.target is None or _is_folder(put.target)
            if goes and put.now is not None and not _is_folder(put.now):
                self._attempt(root, blobs, put, self._remove)
        for put in sorted(self.puts, key=lambda put: put.path.count("/"), reverse=True):
            if _is_folder(put.now) and not _is_folder(put.target):
                self._attempt(root, blobs, put, self._remove_folder)
        for number, put in sorted(enumerate(self.puts), key=lambda pair: pair[1].path.count("/")):
            if put.target is not None:
                self._move(root, blobs, number, put)
        sync({root / folder for put in self.puts for folder in Path(put.path).parents})
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
            "puts": [[put.path, to_data(put.now), to_data(put.target)] for put in self.puts],
            "kept": [[file.path, file.why] for file in self.kept],
            "rescue": [[path, to_data(state)] for path, state in self.rescue.items()],
            "about": self.about,
        }
        replace_file(self.file, json.dumps(data).encode(), 0o600)

    @property
    def done(self) -> list[PathWrite]:
        """The writes that were carried out."""
        kept = {file.path for file in self.kept}
        return [put for put in self.puts if put.path not in kept]

    def refuse(self, path: str, why: str) -> None:
        """Leave a path as it is after all."""
        self.puts = [put for put in self.puts if put.path != path]
        self.kept.append(KeptFile(path=path, why=why))

    # Before anything changes ----------------------------------------------------------------------

    def _see(self, root: Path) -> None:
        for put in self.puts:
            found = look_at(root, put.path)
            self.seen[put.path] = "" if found is None else signature(found)

    def _save_from_harm(self, root: Path, blobs: BlobStore) -> None:
        """Make sure that what will be replaced has a copy."""
        for put in list(self.puts):
            state = put.now
            if state is not None and state.kind in ("large", "unread"):
                state = blobs.capture(root, put.path, EVERYTHING)
            if state is not None and not state.is_kept:
                self.refuse(put.path, "the present content cannot be read, so it cannot be copied")
                continue
            try:
                for needed in (state, put.target):
                    if needed is not None and needed.content:
                        blobs.put(blobs.get(needed.content))
            except LostBlob as lost:
                self.refuse(put.path, str(lost))
                continue
            self.rescue[put.path] = state
        blobs.sync(self.rescue.values())

    def _stage(self, root: Path, blobs: BlobStore) -> None:
        """Write, durably, what will be put in place."""
        staging = self._staging(root)
        staging.mkdir(mode=0o700)

        def write(item: tuple[int, PathWrite]) -> None:
            number, put = item
            place = staging / str(number)
            match put.target:
                case PathState(kind="file", content=content, mode=mode):
                    self._stage_file(root, put, place, blobs.get(content), mode)
                case PathState(kind="link", content=content):
                    os.symlink(os.fsdecode(blobs.get(content)), place)
                case PathState():
                    place.mkdir()
                case None:
                    pass

        side_by_side(write, enumerate(self.puts))
        sync([staging, root])

    def _stage_file(self, root: Path, put: PathWrite, place: Path, data: bytes, mode: int) -> None:
        with open(place, "xb") as file:
            file.write(data)
            file.flush()
            self._keep_owner(root, put, file.fileno())
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())

    def _keep_owner(self, root: Path, put: PathWrite, file: int) -> None:
        """Where we may give files away, a file stays whose it was."""
        found = look_at(root, put.path) if os.geteuid() == 0 else None
        if found is not None and (found.st_uid, found.st_gid) != (0, 0):
            os.fchown(file, found.st_uid, found.st_gid)

    # One path -------------------------------------------------------------------------------------

    def _attempt(
        self, root: Path, blobs: BlobStore, put: PathWrite, act: Callable[[Path, PathWrite], None]
    ) -> None:
        """Do one removal; what is in its way stays, and is named."""
        try:
            if self._is_due(root, blobs, put):
                act(root, put)
        except OSError as error:
            self._leave(put, _obstacle(error))

    def _remove(self, root: Path, put: PathWrite) -> None:
        with open_parent(root, put.path) as (parent, name):
            if _is_there(parent, name) and _is_listed((root / put.path).parent, parent, name):
                os.unlink(name, dir_fd=parent)

    def _remove_folder(self, root: Path, put: PathWrite) -> None:
        with open_parent(root, put.path) as (parent, name), suppress(OSError):
            _remove_drafts(parent, name)
            os.rmdir(name, dir_fd=parent)  # what else is in it keeps it

    def _move(self, root: Path, blobs: BlobStore, number: int, put: PathWrite) -> None:
        staged = self._staging(root) / str(number)
        if not os.path.lexists(staged):
            return  # moved before a crash
        try:
            if not self._is_due(root, blobs, put):
                return
            with open_parent(root, put.path) as (parent, name):
                os.rename(staged, name, dst_dir_fd=parent)
        except OSError as error:
            self._leave(put, _obstacle(error))

    def _is_due(self, root: Path, blobs: BlobStore, put: PathWrite) -> bool:
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
        limit = (
            LARGEST if put.now is not None and put.now.kind in ("large", "unread") else EVERYTHING
        )
        state = blobs.capture(root, put.path, limit)
        if state == put.target:
            return False
        if state == put.now:
            return True
        self._leave(put, CHANGED_SINCE)
        return False

    def _leave(self, put: PathWrite, why: str) -> None:
        if all(file.path != put.path for file in self.kept):
            self.kept.append(KeptFile(path=put.path, why=why))
        self.rescue.pop(put.path, None)

    def _staging(self, root: Path) -> Path:
        return root / f"{STAGING}{self.name}"

    def _sweep(self, root: Path) -> None:
        """Leave nothing lying about; if it cannot be helped, it is only clutter."""
        shutil.rmtree(self._staging(root), ignore_errors=True)
        with suppress(OSError):
            sync([root])


def reason_of(error: Exception) -> str:
    """Say what went wrong and, of a full disk, what to do."""
    why = str(getattr(error, "strerror", None) or error)
    return f"{why}; {ROOM}" if getattr(error, "errno", 0) in FULL else why


def _obstacle(error: OSError) -> str:
    """Say why one path could not be restored."""
    if error.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR, errno.EISDIR, errno.ELOOP):
        return IN_THE_WAY
    return f"it could not be put in place: {reason_of(error)}"


def _is_listed(folder: Path, parent: int, name: str) -> bool:
    """Whether a name that was found in a folder, open as `parent`, is listed there, and not its twin.

    A file system that ignores case finds `readme` where `README` is listed. If it does not find the
    name in the other case, no listing is needed: one for each file of a large folder takes long.
    """
    other = name.swapcase()
    if name.isascii() and (other == name or not _is_there(parent, other)):
        return True
    return name in os.listdir(folder)


def _is_there(parent: int, name: str) -> bool:
    try:
        os.lstat(name, dir_fd=parent)
    except FileNotFoundError:
        return False
    return True


def _remove_drafts(parent: int, name: str) -> None:
    """Empty a folder in `parent` of what killed programs were writing, if nothing else is left."""
    folder = os.open(
        name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent
    )
    try:
        names = os.listdir(folder)
        for draft in names if all(map(is_draft, names)) else ():
            os.unlink(draft, dir_fd=folder)
    finally:
        os.close(folder)


def _is_folder(state: PathState | None) -> bool:
    return state is not None and state.kind == "folder"


def is_moving(file: Path) -> bool:
    """Whether the restore of this file is in the middle, or was cut off there; its head tells."""
    with suppress(OSError), open(file, encoding="utf-8") as head:
        return '"phase": "moving"' in head.read(HEAD)
    return False


def load_restore(file: Path) -> Restore:
    """Read the file of a restore. Raises `OSError`, `ValueError`."""
    data: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return Restore(
        name=data["name"],
        file=file,
        puts=[
            PathWrite(path=path, now=from_data(now), target=from_data(target))
            for path, now, target in data["puts"]
        ],
        kept=[KeptFile(path=path, why=why) for path, why in data["kept"]],
        rescue={path: from_data(state) for path, state in data["rescue"]},
        about=data["about"],
        phase=data["phase"],
    )
