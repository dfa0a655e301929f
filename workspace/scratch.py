"""A copy of a folder as it was before some of a session's calls, beside the folder."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Collection, Mapping
from itertools import count
from pathlib import Path

from ..machines.errors import UsageError
from .restore import Restore, RestoreFailed
from .restore_plan import chains, make_plan
from .scan import PathState
from .workspace import Workspace

MOST_BYTES, MOST_FILES = 2 * 1024**3, 200_000
"""How much is copied at most."""


def scratch_copy(
    place: Path,
    folder: Path,
    session: str,
    calls: Collection[str],
    scratch: Path,
    environ: Mapping[str, str],
) -> list[str]:
    """Copy a folder, without what a session's calls but `calls` changed; `scratch` is not there yet.

    Only what is in the copies of files at `place` can be taken back; returns the paths that cannot.
    Raises `UsageError` for a folder that is too large, and `OSError`.
    """
    _check_size(folder)
    shutil.copytree(folder, scratch, symlinks=True, ignore=_special)
    known = Workspace(place, folder, session, environ)
    touches = [change for change in known.changes() if change.call not in calls]
    blobs = known.blobs
    now: dict[str, PathState | None] = {
        path: blobs.capture(scratch, path, MOST_BYTES) for path in chains(touches)
    }
    plan = make_plan(touches, now, force=True)
    restore = Restore(
        name="scratch",
        file=scratch.with_name(f"{scratch.name}.json"),
        puts=list(plan.puts),
        kept=list(plan.kept),
    )
    try:
        restore.prepare(scratch, blobs)
        restore.finish(scratch, blobs)
    except RestoreFailed as error:
        raise OSError(str(error)) from error
    restore.file.unlink(missing_ok=True)
    return [kept.path for kept in restore.kept]


def _check_size(folder: Path) -> None:
    size, number = 0, count(1)
    for place, _, names in os.walk(folder):
        for name in names:
            found = os.lstat(os.path.join(place, name))
            size += found.st_size if stat.S_ISREG(found.st_mode) else 0
            if size > MOST_BYTES or next(number) > MOST_FILES:
                raise UsageError(
                    f"`{folder}` has more than {MOST_BYTES:,} bytes or {MOST_FILES:,} files",
                    "a scratch copy of it is not made; leave out `--live`",
                )


def _special(place: str, names: list[str]) -> set[str]:
    """Name what is neither a file, a folder nor a link: pipes and sockets have no content."""

    def is_plain(name: str) -> bool:
        mode = os.lstat(os.path.join(place, name)).st_mode
        return stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)

    return {name for name in names if not is_plain(name)}
