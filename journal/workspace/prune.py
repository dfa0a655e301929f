"""Frees what the copies of files take: those of sessions that ended long ago, and the oldest first."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from ...machines.value import Value
from .git import GitFault, ShadowGit, entries, find_git
from .restore import load_restore

FRESH = 3600.0
"""Seconds in which a copy may be on its way into a change log that does not name it yet."""
NEVER = float("inf")


class Pruned(Value):
    """The sessions whose copies were deleted, and the bytes that were freed and are left."""

    sessions: tuple[str, ...]
    freed: int
    left: int


class _Kept(Value):
    """The files of one session in one store; `time` is their last change.

    `can_undo`: it has the last revert of its folder, which a person may want to take back.
    """

    store: Path
    session: str
    time: float
    can_undo: bool


def prune(
    place: Path,
    is_needed: Callable[[str], bool],
    now: float,
    budget: int,
    age: float = NEVER,
) -> Pruned:
    """Delete what nothing has touched for `age` seconds, and the oldest while all is over `budget`.

    A session that is needed is left alone. For the budget's sake nothing goes that is fresh (its
    copies would stay) or with which the last revert of a folder can be undone.
    """
    before = left = size_of(place)
    if before <= budget and age == NEVER:
        return Pruned(sessions=(), freed=0, left=left)
    gone: list[str] = []
    for kept in sorted(_sessions(place), key=lambda found: found.time):
        is_over = left > budget and now - kept.time > FRESH and not kept.can_undo
        if (is_over or now - kept.time > age) and not is_needed(kept.session):
            _forget(kept)
            _sweep(kept.store, now)
            gone.append(kept.session)
            left = size_of(place)
    return Pruned(sessions=tuple(gone), freed=max(0, before - left), left=left)


def forget(place: Path, sessions: Sequence[str]) -> int:
    """Delete the copies of these sessions, whatever their age; returns the bytes that were freed."""
    before = size_of(place)
    for kept in [found for found in _sessions(place) if found.session in sessions]:
        _forget(kept)
        _sweep(kept.store, time.time())
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


def _sessions(place: Path) -> Iterator[_Kept]:
    for file in place.glob("*/ledger-*.jsonl"):
        session = file.stem.removeprefix("ledger-")
        try:
            can_undo = session == _last_reverter(file.parent)
            changed = file.stat().st_mtime
        except FileNotFoundError:
            continue  # another process prunes, too
        yield _Kept(store=file.parent, session=session, time=changed, can_undo=can_undo)


def _last_reverter(store: Path) -> str:
    """Return the session that reverted last in a folder; empty if that was undone, or there was none."""
    files = sorted(store.glob("restore-*-*.json"), key=lambda file: file.stat().st_mtime_ns)
    for file in files[-1:]:
        with suppress(OSError, ValueError):
            if load_restore(file).about["scope"] != "undo":
                return file.stem.removeprefix("restore-").rpartition("-")[0]
    return ""


def _forget(kept: _Kept) -> None:
    """Delete a session's own files; its copies are left for `_sweep`."""
    for pattern in ("ledger-{}.jsonl", "index-{}", "index-{}.lock", "side-{}.json"):
        (kept.store / pattern.format(kept.session)).unlink(missing_ok=True)
    for file in kept.store.glob(f"restore-{kept.session}-*.json"):
        file.unlink(missing_ok=True)


def _sweep(store: Path, now: float) -> None:
    """Delete the copies that no session here needs any more."""
    if not any(store.glob("ledger-*.jsonl")):
        shutil.rmtree(store, ignore_errors=True)
        return
    try:
        needed = _needed(store)
    except (OSError, ValueError, GitFault):
        return  # what cannot be read may name anything
    for file in (store / "git" / "objects").glob("??/*"):
        with suppress(OSError):
            if f"{file.parent.name}{file.name}" not in needed and (
                now - file.stat().st_mtime > FRESH
            ):
                file.unlink()


def _needed(store: Path) -> set[str]:
    names: set[str] = set()
    for file in [*store.glob("ledger-*.jsonl"), *store.glob("restore-*.json")]:
        for line in file.read_text("utf-8").split("\n"):
            if line:
                names.update(_strings(json.loads(line)))
    folder = Path(os.fsdecode((store / "folder").read_bytes()))
    for index in store.glob("index-*"):
        git = ShadowGit(find_git(os.environ), store / "git", folder, index)
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
