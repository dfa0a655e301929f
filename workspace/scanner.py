"""Looks at a whole folder and says what changed in it since the last look.

Git's index is the memory between two looks: its stat cache makes one of ten thousand unchanged files
cost some hundredths of a second, and what it holds of a path is what the path held. So there is one
index for each session, seeded from the person's own where there is one, and it is never read again
from a tree: that would throw the cache away and hash everything again.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import cast

from msgspec import Struct, field
from msgspec.structs import replace

from ..workflows.durability import replace_file
from .blob_store import EVERYTHING, LARGEST, BlobStore
from .change_log import SideRecord, load_side, save_side
from .git import (
    EXCLUDE,
    Entry,
    GitFault,
    Repository,
    ShadowGit,
    copy_index,
    entries,
    is_whole,
    read_entries,
    staged,
    take_from,
)
from .scan import (
    NOT_COMPARED,
    Kind,
    Others,
    PathState,
    Scan,
    Survey,
    folders_of,
    is_folder,
    parents,
    scan,
    signature,
)
from .surroundings import (
    GIT_CHANGED,
    Surroundings,
    clock,
    differences,
    has_git_changed,
    join_rules,
    read_rules,
    what_it_is,
)

RECENT = 3.0
"""Seconds within which git may overlook that a file's mode changed."""

GONE = -2
"""The size of a file that is not there."""
MOST_COMPARED = 1_000
"""Files whose contents are compared to say which of them others changed."""

Change = tuple[str, PathState | None, PathState | None]
"""A path, what it held at the last look, what it holds now."""


class _Pending(Struct, kw_only=True):
    """The findings of a look that the index does not have yet: paths to add, to drop, not copied."""

    found: Scan
    there: list[str] = field(default_factory=list[str])
    gone: list[str] = field(default_factory=list[str])
    loose: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    modes: dict[str, int] = field(default_factory=dict[str, int])

    def sort_in(self, path: str, after: PathState | None) -> None:
        """Note what has to be done about a path."""
        if after is None or after.kind in ("file", "link"):
            self.there.append(path)
            if after is not None and after.kind == "file":
                self.modes[path] = after.mode
        else:
            self.gone.append(path)
            if after.kind != "folder":
                self.loose[path] = (after.kind, after.content)


class WorkspaceScanner:
    """One session's looks at `prefix` (empty or with a slash at its end) of a work tree.

    The work tree is that of the person's `repository`, if there is one; `lender` are its objects, which
    may be thrown away at any time.
    `unreadable` is what could not be looked at, as names in the session's folder.
    """

    def __init__(
        self,
        git: ShadowGit,
        blobs: BlobStore,
        *,
        prefix: str,
        side_file: Path,
        repository: Repository | None = None,
        lender: Path | None = None,
    ) -> None:
        self.unreadable: set[str] = set()
        self._repository = repository
        self._rules = side_file.with_name(side_file.stem.replace("side-", "rules-"))
        self._lender = lender
        self._lent: tuple[int, ...] = ()
        self._git = git
        self._blobs = blobs
        self._prefix = prefix
        self._side_file = side_file
        self.side = SideRecord()
        self._recent: dict[str, int] = {}
        self._index_seen = ("", "")
        self._known_folders = set[str]()
        self._pending = _Pending(found=Scan())

    @property
    def has_looked(self) -> bool:
        """Whether there is anything to compare with."""
        return self._side_file.exists() and self._git.index.exists()

    # The first look -------------------------------------------------------------------------------

    def begin(self, repository: Repository | None, earlier: Path | None) -> None:
        """Get ready: take up the index of this session, of an `earlier` one, or the person's own.

        Raises `GitFault`, `ValueError` for what cannot be read.
        """
        if self._git.index.exists():
            if not is_whole(self._git.index):
                raise GitFault("the index is torn")
            self.side = load_side(self._side_file)
            return
        if earlier is not None:
            self.side = load_side(earlier.with_name(earlier.name.replace("index-", "side-")))
            copy_index(earlier, self._git.index)
        elif repository is not None:
            self._lent = _times(self._lender)
            sign = signature(repository.index.stat())
            rows = take_from(self._git, repository)
            self._index_seen = sign, hashlib.sha256(rows).hexdigest()
            self._distrust(list(read_entries(rows)), repository.may_convert())
        if not self._git.index.exists():  # what an empty folder holds is known, too
            self._git.run("read-tree", "--empty")
        save_side(self._side_file, self.side)

    def _distrust(self, rows: list[Entry], may_convert: bool) -> None:
        """Drop what the person's index may not be asked about; note the permission bits.

        Other repositories, conflicts, what is not on the disk, and files that lie in the work tree in
        another form than in the repository (line ends, pointers to large files; their sizes differ):
        they are looked at as if they were new. No change is overlooked because of a flag.
        """
        modes, found = self._stat_all(path for _, _, _, path in rows)
        sizes: dict[str, int] = {}
        may_convert = may_convert or any(path.endswith(".gitattributes") for *_, path in rows)
        if may_convert:
            sizes = self._git.sizes({name for _, mode, name, _ in rows if mode != "160000"})
        drop: list[str] = []
        flagged: list[str] = []
        for tag, mode, name, path in rows:
            is_other = mode == "160000" or tag.upper() == "M" or found.get(path) == GONE
            if is_other or (may_convert and found.get(path, -1) not in (-1, sizes.get(name))):
                drop.append(path)
            elif tag.islower() or tag == "S":
                flagged.append(path)
        self.side.note_all(modes)
        self._git.update((), drop)
        self._known_folders = folders_of(path for *_, path in rows if path.startswith(self._prefix))
        said = b"".join(os.fsencode(path) + b"\0" for path in flagged)
        for flag in ("assume-unchanged", "skip-worktree") if flagged else ():
            self._git.run("update-index", f"--no-{flag}", "-z", "--stdin", said=said)

    def _stat_all(self, paths: Iterable[str]) -> tuple[dict[str, int], dict[str, int]]:
        """Return the permission bits of files, and the sizes of files and links, `GONE` if not there."""
        modes: dict[str, int] = {}
        sizes: dict[str, int] = {}
        top = os.fspath(self._git.top)
        recent = time.time() - RECENT
        for path in paths:
            try:
                found = os.lstat(f"{top}/{path}")
            except (FileNotFoundError, NotADirectoryError):
                sizes[path] = GONE
                continue
            except OSError:
                continue
            sizes[path] = found.st_size
            if stat.S_ISREG(found.st_mode):
                modes[path] = stat.S_IMODE(found.st_mode)
                if found.st_ctime > recent:
                    self._recent[path] = modes[path]
        return modes, sizes

    # Looks ----------------------------------------------------------------------------------------

    def begin_turn(self, earlier: Mapping[str, bytes]) -> tuple[Surroundings, Others]:
        """Catch up, and fix what is ignored until the next turn begins; return what lies outside.

        `earlier` has the contents of ignore files from before the turn, where it changed them already.
        """
        always = [*EXCLUDE, self._repository.exclude if self._repository else ""]

        def take(names: list[str]) -> None:
            texts = {name: read_rules(self._git.top, name) for name in names}
            texts |= {f"{self._prefix}{name}": text for name, text in earlier.items()}
            rules = join_rules(always, texts.items())
            if not self._rules.exists() or self._rules.read_bytes() != rules:
                replace_file(self._rules, rules, 0o600)

        found = scan(self._git, self._prefix, self._rules, Survey(self._folders(), take))
        others = self._catch_up(found)
        return self._around(found), others

    def _folders(self) -> set[str]:
        """Return the folders of the files that the index knows."""
        if not self._known_folders:
            scope = ["--", self._prefix] if self._prefix else []
            rows = self._git.run("ls-files", "-z", *scope).split(b"\0")
            self._known_folders = folders_of(map(os.fsdecode, rows))
        return self._known_folders

    def _scan(self) -> Scan:
        if not self._rules.exists():  # of an earlier version
            self.begin_turn({})
        return scan(self._git, self._prefix, self._rules)

    def compare(
        self, before: Surroundings, restored: Collection[str]
    ) -> tuple[dict[str, list[str]], Others]:
        """Look at all that is there, by the rules of a turn that began with `before`, and catch up.

        Return what lies outside and is not as it was then, by what it is, and what changed since the
        last look. Raises `TooMuch`, `GitFault`.
        """
        then = self._rules.with_suffix(".then")
        replace_file(then, before.rules.encode("latin-1"), 0o600)
        found = scan(self._git, self._prefix, then, Survey(self._folders(), len))
        around = self._around(found, before.mode)
        outside = differences(self._git.top / self._prefix, before, around, restored)
        git = self._repository.folder if self._repository else self._git.top / ".git"
        if os.path.lexists(git) and has_git_changed(git, before, around):
            outside[GIT_CHANGED] = [".git"]
        return outside, self._catch_up(found)

    def _around(self, found: Scan, usual: int | None = None) -> Surroundings:
        moment, drift = clock()
        if usual is None:
            modes = list(found.modes.values())
            usual = max(set(modes), key=modes.count, default=0o755)
        return Surroundings(
            moment=moment,
            drift=drift,
            rules=self._rules.read_bytes().decode("latin-1"),
            staged=self._staged(),
            hidden=tuple(map(self._own_name, found.hidden)),
            nested=tuple(map(self._own_name, found.nested)),
            closed=tuple(map(self._own_name, found.closed)),
            mode=usual,
            modes={
                self._own_name(name): mode for name, mode in found.modes.items() if mode != usual
            },
            special={
                self._own_name(name): what_it_is(self._git.top / name) for name in found.special
            },
        )

    def _staged(self) -> str:
        """Return what changes with the entries of the person's index, if there is one."""
        index = self._repository.index if self._repository else None
        if index is None or not index.exists():
            return ""
        sign = signature(index.stat())
        if self._index_seen[0] != sign:
            self._index_seen = sign, hashlib.sha256(staged(self._git.over(index))).hexdigest()
        return self._index_seen[1]

    def catch_up(self) -> Others:
        """Take note of the folder as it is, by whatever change. Raises `TooMuch`, `GitFault`."""
        return self._catch_up(self._scan())

    def _catch_up(self, found: Scan) -> Others:
        self._keep_lent(found)
        self._forget_recent(found)
        if not found.dirty and found.folders == self.side.folders:
            return {}
        found.check_limits(self._git.top, LARGEST)
        if len(found.dirty) <= MOST_COMPARED:
            changes = self._changes(found, keeps=False)
            self.settle()
            above = {folder for path, _, _ in changes for folder in parents(path)}
            return {path: was for path, was, _ in changes if path not in above}
        pending = _Pending(found=found)
        for path in found.dirty:
            state = None if path in found.deleted else self._light(path)
            pending.sort_in(path, state)
        self._take_note(pending)
        return dict.fromkeys(map(self._own_name, found.dirty), NOT_COMPARED)

    def _keep_lent(self, found: Scan) -> None:
        """Where objects of the lender may have gone, copy again what still is as they said."""
        if (now := _times(self._lender)) == self._lent:
            return
        rows = [
            listed
            for listed in entries(self._git)
            if listed[1] != "160000" and listed[3] not in found.dirty
        ]
        there = self._git.sizes({name for _, _, name, _ in rows})
        for _, _, name, path in rows:
            if name not in there:
                self._blobs.capture(self._git.top, path, EVERYTHING)
        self._lent = now

    def _forget_recent(self, found: Scan) -> None:
        """Take note of recent modes as they are now, and forget those that are not so recent."""
        recent = {path: mode for path, mode in self._recent.items() if path not in found.dirty}
        self._recent = {}
        modes, _ = self._stat_all(recent)
        for path, mode in modes.items():
            self.side.note_mode(path, mode)

    def changes(self) -> list[Change]:
        """Say what changed since the last look, with copies kept, but do not take note of it yet.

        `settle` does that, once the caller has written down the answer. Raises `GitFault`.
        """
        found = self._scan()
        found.check_limits(self._git.top, LARGEST)
        changes = self._changes(found, keeps=True)
        self._blobs.own(
            before.content for _, before, _ in changes if before and before.kind in ("file", "link")
        )
        return changes

    def _changes(self, found: Scan, *, keeps: bool) -> list[Change]:
        pending = self._pending = _Pending(found=found)
        changes: list[Change] = []
        for path, entry in found.dirty.items():
            before, after = self._known(path, entry), self._state(path, found, keeps=keeps)
            pending.sort_in(path, after)
            if before != after:
                changes.append((self._own_name(path), before, after))
        gone = [path for path in self.side.loose if not os.path.lexists(self._git.top / path)]
        changes += [(self._own_name(path), self._known(path, None), None) for path in gone]
        changes += self._recent_modes(pending)
        return _joined([*changes, *self._folder_changes(found)])

    def _recent_modes(self, pending: _Pending) -> Iterator[Change]:
        """Find changes of modes that git overlooks: its clock counts in seconds."""
        for path, mode in self._recent.items():
            if path in pending.found.dirty or _mode_of(self._git.top / path) in (None, mode):
                continue
            now = self._blobs.capture(self._git.top, path, LARGEST)
            if now is not None and now.kind == "file":
                pending.sort_in(path, now)
                yield self._own_name(path), replace(now, mode=mode), now

    def settle(self) -> None:
        """Take note of what `changes` found. Raises `OSError`, `GitFault`."""
        self._take_note(self._pending)

    def _state(self, path: str, found: Scan, *, keeps: bool) -> PathState | None:
        if path in found.deleted:
            return None
        state = self._blobs.capture(self._git.top, path, LARGEST, keeps=keeps)
        if state is not None and state.kind == "unread":
            self.unreadable.add(self._own_name(path))
        return state

    def _known(self, path: str, entry: tuple[str, str] | None) -> PathState | None:
        """Return what a path held at the last look."""
        if entry is None:
            if loose := self.side.loose.get(path):
                return PathState(kind=cast("Kind", loose[0]), content=loose[1])
            if any(folder in self.unreadable for folder in parents(self._own_name(path))):
                return PathState(kind="unread")  # it was not looked at
            return None
        mode, name = entry
        if mode == "120000":
            return PathState(kind="link", content=name)
        return PathState(kind="file", content=name, mode=self.side.mode(path, mode == "100755"))

    def _light(self, path: str) -> PathState | None:
        """Say what a path is without reading it."""
        try:
            found = os.lstat(self._git.top / path)
        except OSError:
            return None
        if stat.S_ISDIR(found.st_mode):
            return PathState(kind="folder")
        if stat.S_ISLNK(found.st_mode):
            return PathState(kind="link")
        if not stat.S_ISREG(found.st_mode):
            return PathState(kind="odd", content=signature(found))
        if found.st_size > LARGEST:
            return PathState(kind="large", content=signature(found))
        if not os.access(self._git.top / path, os.R_OK):
            self.unreadable.add(self._own_name(path))
            return PathState(kind="unread", content=signature(found))
        mode = stat.S_IMODE(found.st_mode)
        if found.st_ctime > time.time() - RECENT:
            self._recent[path] = mode
        return PathState(kind="file", mode=mode)

    def _take_note(self, pending: _Pending) -> None:
        """Bring index and side record up to date: the record first, so that it is never behind."""
        found, side = pending.found, self.side
        self.unreadable.update(self._own_name(name) for name in found.closed)
        for path, mode in pending.modes.items():
            side.note_mode(path, mode)
            self._recent[path] = mode
        side.loose = pending.loose
        emptied = {parent for path in found.deleted for parent in parents(path)}
        left = {path for path in emptied if is_folder(self._git.top / path)}
        side.folders, side.nested = sorted({*found.folders, *left}), found.nested
        save_side(self._side_file, side)
        known = [path for path in pending.gone if found.dirty.get(path) is not None]
        self._update(pending.there, known)

    def _update(self, there: list[str], gone: list[str]) -> None:
        """Bring the index up to date, whatever single files do meanwhile."""
        if not there and not gone:
            return
        try:
            self._known_folders.clear()
            self._git.update(there, gone)
        except GitFault:
            if len(there) < 2:
                self._git.update((), [*there, *gone])
                return
            half = len(there) // 2
            self._update(there[:half], gone)
            self._update(there[half:], [])

    def _folder_changes(self, found: Scan) -> Iterator[Change]:
        """Compare the folders without files of two looks."""
        folder = PathState(kind="folder")
        known = set(self.side.folders)
        had_files = {parent for path in found.deleted for parent in parents(path)}
        for path in found.folders:
            if path not in known and path not in had_files:
                yield self._own_name(path), None, folder
        for path in sorted(known | had_files):
            if len(path) >= len(self._prefix) and not is_folder(self._git.top / path):
                yield self._own_name(path), folder, None

    def _own_name(self, path: str) -> str:
        return path[len(self._prefix) :]


def _joined(changes: Iterable[Change]) -> list[Change]:
    """Make one change of a path's end as one thing and its beginning as another."""
    found: dict[str, Change] = {}
    for path, before, after in changes:
        known = found.get(path)
        if known is not None:
            before, after = known[1] or before, known[2] or after
        found[path] = path, before, after
    return list(found.values())


def _times(objects: Path | None) -> tuple[int, ...]:
    """Return what changes when objects are packed or thrown away."""
    places = [objects, objects / "pack"] if objects is not None else []
    with suppress(OSError):
        return tuple(place.stat().st_mtime_ns for place in places)
    return ()


def _mode_of(path: Path) -> int | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return stat.S_IMODE(found.st_mode) if stat.S_ISREG(found.st_mode) else None
