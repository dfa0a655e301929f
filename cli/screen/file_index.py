"""The files below a folder, for completion: read in a thread of their own, without what is ignored.

git itself is not asked: inside a repository it obeys that repository's settings, which may name programs.
The patterns of `.gitignore` files are read here, as far as people mostly write them.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from ...workflows.foreign_file import decoded, read_foreign

MOST = 20_000
"""Files and folders that are read, those near the top first."""
LONGEST = 2.0
"""Seconds that reading may take; what was found by then is offered."""
FRESH = 10.0
"""Seconds for which the list is used before it is read again."""
WAIT = 0.15
"""Seconds that a completion waits for the first list; a later key finds it."""
SKIPPED = frozenset(
    {".git", ".hg", ".svn", "__pycache__", "node_modules", ".venv", ".mypy_cache", ".ruff_cache"}
)
_RULES = 200  # patterns of one file that are read

Rule = tuple[str, bool, bool, str]
"""A pattern, whether it takes back, whether it is only for folders, and the folder of its file."""


class FileIndex:
    """The paths below a folder, relative, folders with a slash at the end; for any thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._paths: Sequence[str] = ()
        self._read = -FRESH
        self._lock = threading.Lock()
        self._is_reading = False
        self._first = threading.Event()

    def paths(self) -> Sequence[str]:
        """Return what is known; an old list is renewed meanwhile."""
        with self._lock:
            is_due = not self._is_reading and time.monotonic() - self._read > FRESH
            self._is_reading = self._is_reading or is_due
        if is_due:
            threading.Thread(target=self._renew, name="file-index", daemon=True).start()
        self._first.wait(WAIT)
        return self._paths

    def _renew(self) -> None:
        paths: list[str] = []
        until = time.monotonic() + LONGEST
        for path in walked(self._folder):
            paths.append(path)
            if len(paths) >= MOST or time.monotonic() > until:
                break
        with self._lock:
            self._paths, self._read, self._is_reading = paths, time.monotonic(), False
        self._first.set()


def walked(top: Path) -> Iterator[str]:
    """Yield the paths below a folder, level by level, without what is hidden or ignored."""
    level: list[tuple[str, tuple[Rule, ...]]] = [("", ())]
    while level:
        below: list[tuple[str, tuple[Rule, ...]]] = []
        for folder, above in level:
            rules = (*above, *_rules_in(top, folder))
            for entry in _entries(top / folder):
                path = f"{folder}{entry.name}"
                is_folder = entry.is_dir(follow_symlinks=False)
                if entry.name in SKIPPED or _is_ignored(path, rules, is_folder=is_folder):
                    continue
                if is_folder:
                    below.append((f"{path}/", rules))
                yield f"{path}/" if is_folder else path
        level = below


def ranked(paths: Sequence[str], typed: str, most: int) -> list[str]:
    """Return the paths that have the typed letters in order, the best first, at most `most`.

    Hidden ones only if a typed part begins with a dot. Whole words and beginnings of names are best.
    """
    wants_hidden = typed.startswith(".") or "/." in typed
    found = [
        (score, len(path), path)
        for path in paths
        if (score := _score(path, typed.casefold())) is not None
        and (wants_hidden or not ("/." in path or path.startswith(".")))
    ]
    return [path for _, _, path in sorted(found)[:most]]


def _score(path: str, typed: str) -> int | None:
    """Say how far a path is from what is typed: 0 is best; none if the letters are not there in order."""
    text = path.casefold()
    name = text.rstrip("/").rpartition("/")[2]
    near = (text.startswith(typed), name.startswith(typed), typed in name, typed in text)
    if any(near):
        return near.index(True)
    at, gaps = -1, 0
    for sign in typed:
        before, at = at, text.find(sign, at + 1)
        if at < 0:
            return None
        gaps += at - before - 1
    return 4 + gaps


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return sorted(found, key=lambda entry: entry.name)
    except OSError:
        return []


def _rules_in(top: Path, folder: str) -> Iterator[Rule]:
    """Read the `.gitignore` of a folder."""
    try:
        lines = decoded(read_foreign(top / folder / ".gitignore"), "replace").splitlines()
    except OSError:
        return
    for line in lines[:_RULES]:
        if (rule := line.strip()) and not rule.startswith("#"):
            pattern = rule.lstrip("!")
            yield pattern.rstrip("/"), rule.startswith("!"), pattern.endswith("/"), folder


def _is_ignored(path: str, rules: Sequence[Rule], *, is_folder: bool) -> bool:
    """Whether the last pattern that fits a path ignores it."""
    for pattern, takes_back, is_for_folders, base in reversed(rules):
        if is_for_folders and not is_folder:
            continue
        inner = path[len(base) :]
        is_anchored = "/" in pattern
        text = inner if is_anchored else inner.rpartition("/")[2]
        if fnmatchcase(text, pattern.removeprefix("/").replace("**/", "*")):
            return not takes_back
    return False
