"""What the copies of files take, which of them a budget has no room for, and their deletion."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from ..machines.value import Value
from .change_log import ChangeLog
from .git import GitFault, ShadowGit, entries, find_git
from .restore import load_restore

FRESH = 3600.0
"""Seconds in which a copy may be on its way into a change log that does not name it yet."""


class KeptCopies(Value):
    """The files of one session in one store; `time` is their last change.

    `can_undo`: it has the last revert of its folder, which a person may want to take back.
    """

    store: Path
    session: str
    time: float
    can_undo: bool


def kept_in(place: Path) -> list[KeptCopies]:
    """List the sessions that have copies, the least recently used first."""
    return sorted(_sessions(place), key=lambda found: found.time)


def beyond(
    place: Path, kept: Sequence[KeptCopies], is_spared: Callable[[KeptCopies], bool], budget: int
) -> set[str]:
    """Return the sessions without which all takes `budget` bytes, the first ones of `kept`."""
    left = size_of(place)
    if left <= budget:
        return set()
    weights = {(found.store, found.session): _weight(found) for found in kept}
    needed = Counter(copy for copies, _ in weights.values() for copy in copies)
    gone: set[str] = set()
    for found in kept:
        if left > budget and not is_spared(found):
            copies, own = weights[found.store, found.session]
            needed.subtract(copies)
            left -= own + sum(size for copy, size in copies.items() if not needed[copy])
            gone.add(found.session)
    return gone


def _weight(kept: KeptCopies) -> tuple[dict[Path, int], int]:
    """Return the copies that a session names, with their bytes, and the bytes of its own files."""
    own = [file for pattern in _OWN for file in kept.store.glob(pattern.format(kept.session))]
    try:
        names = _named(kept.store, own)
    except (OSError, ValueError, GitFault):
        names = set[str]()
    objects = kept.store / "git" / "objects"
    files = (objects / name[:2] / name[2:] for name in names if name.isalnum())
    return {file: size for file in files if (size := _bytes(file))}, sum(map(_bytes, own))


def _bytes(file: Path) -> int:
    """Return the bytes of a file; 0 if there is none, or the name is that of a folder."""
    with suppress(OSError, ValueError):
        found = os.lstat(file)
        return found.st_size if stat.S_ISREG(found.st_mode) else 0
    return 0


def forget(place: Path, sessions: Sequence[str]) -> int:
    """Delete the copies of these sessions, whatever their age; returns the bytes that were freed."""
    before = size_of(place)
    for kept in [found for found in _sessions(place) if found.session in sessions]:
        _forget(kept)
        _sweep(kept.store)
    return max(0, before - size_of(place))


def sizes_of(place: Path) -> dict[str, int]:
    """Return the bytes of each session's own files; copies that sessions share count for none."""
    sizes: dict[str, int] = {}
    for kept in _sessions(place):
        own = sum(file.stat().st_size for file in kept.store.glob(f"*{kept.session}*"))
        sizes[kept.session] = sizes.get(kept.session, 0) + own
    return sizes


def size_of(place: Path) -> int:
    """Return the bytes that lie below a folder."""
    size = 0
    for here, _, files in os.walk(place):
        for name in files:
            with suppress(OSError):
                size += os.lstat(os.path.join(here, name)).st_size
    return size


def _sessions(place: Path) -> Iterator[KeptCopies]:
    for file in place.glob("*/ledger-*.jsonl"):
        session = file.stem.removeprefix("ledger-")
        try:
            can_undo = session == _last_reverter(file.parent)
            changed = file.stat().st_mtime
        except FileNotFoundError:
            continue  # another process prunes, too
        yield KeptCopies(store=file.parent, session=session, time=changed, can_undo=can_undo)


def _last_reverter(store: Path) -> str:
    """Return the session that reverted last in a folder; empty if that was undone, or there was none."""
    files = sorted(store.glob("restore-*-*.json"), key=lambda file: file.stat().st_mtime_ns)
    for file in files[-1:]:
        with suppress(OSError, ValueError):
            if load_restore(file).about["scope"] != "undo":
                return file.stem.removeprefix("restore-").rpartition("-")[0]
    return ""


def lost_copies(kept: KeptCopies) -> set[str]:
    """Return the paths that a session changed, and whose copies from before are gone."""
    wanted = {
        change.before.content: change.path
        for change in ChangeLog(kept.store / f"ledger-{kept.session}.jsonl").touches()
        if change.before is not None and change.before.kind in ("file", "link")
    }
    objects = kept.store / "git" / "objects"
    missing = [name for name in wanted if not (objects / name[:2] / name[2:]).exists()]
    if not missing:
        return set()
    folder = Path(os.fsdecode((kept.store / "folder").read_bytes()))
    git = ShadowGit(find_git(os.environ), kept.store / "git", folder, kept.store / "index-none")
    there = git.sizes(missing)  # in a pack, or in the repository that is borrowed from
    return {wanted[name] for name in missing if name not in there}


_OWN = (
    "ledger-{}.jsonl",
    "index-{}",
    "index-{}.lock",
    "side-{}.json",
    "beside-{}.json",
    "restore-{}-*.json",
    "rules-{}",
    "rules-{}.then",
)


def _forget(kept: KeptCopies) -> None:
    """Delete a session's own files; its copies are left for `_sweep`."""
    for pattern in _OWN:
        for file in kept.store.glob(pattern.format(kept.session)):
            file.unlink(missing_ok=True)


def _sweep(store: Path) -> None:
    """Delete the copies that no session here needs any more.

    A copy that is as new as the newest file may be on its way into a change log; no clock is asked.
    """
    if not any(store.glob("ledger-*.jsonl")):
        shutil.rmtree(store, ignore_errors=True)
        return
    try:
        needed = _named(store, store.iterdir())
    except (OSError, ValueError, GitFault):
        return  # what cannot be read may name anything
    copies = list((store / "git" / "objects").glob("??/*"))
    newest = max(_changed(file) for file in (*store.iterdir(), *copies))
    for copy in copies:
        if f"{copy.parent.name}{copy.name}" not in needed and newest - _changed(copy) > FRESH:
            copy.unlink(missing_ok=True)


def _changed(file: Path) -> float:
    """Return when a file was changed; 0 if it is gone."""
    with suppress(OSError):
        return file.stat().st_mtime
    return 0.0


def _named(store: Path, files: Iterable[Path]) -> set[str]:
    """Return all that these of a store's files name; among it are the names of copies."""
    names: set[str] = set()
    for file in files:
        if file.name.startswith(("ledger-", "restore-")):
            for line in file.read_text("utf-8").split("\n"):
                if line:
                    names.update(_strings(json.loads(line)))
        elif file.name.startswith("index-") and file.suffix != ".lock":
            folder = Path(os.fsdecode((store / "folder").read_bytes()))
            git = ShadowGit(find_git(os.environ), store / "git", folder, file)
            names.update(name for _, _, name, _ in entries(git))
    return names


def _strings(data: Any) -> Iterator[str]:
    """Give all texts in JSON data: one of them may name a copy."""
    match data:
        case str():
            yield data
        case [*items]:
            for item in items:
                yield from _strings(item)
        case dict():
            yield from _strings(list(cast("dict[str, Any]", data).values()))
        case _:
            return
