"""One look at what differs from git's index: two processes side by side."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

from msgspec import Struct, field

from ..machines.value import Value
from .git import EXCLUDE, ShadowGit

# The state of a path, as data, looked up without ever following a link ----------------------------
# A path is text relative to the session's folder, in the form of `os.fsdecode`: what is no UTF-8 comes
# back byte for byte. Nothing (no file, no link, no folder) is `None`.


UNREADABLE = "unreadable"
"""The content of a path in a folder that may not be entered."""
IGNORE_FILE = ".gitignore"
Kind = Literal["file", "link", "folder", "large", "unread", "odd"]
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class PathState(Value):
    """A file, a link or a folder.

    `content` is the id of the blob with a file's bytes or a link's target. Of what no copy is kept
    (`large`: past the limit; `unread`: not readable; `odd`: a pipe, a socket, a device) it is a
    signature by which a change shows. `mode` are the permission bits of a file.
    """

    kind: Kind
    content: str = ""
    mode: int = 0

    @property
    def is_kept(self) -> bool:
        """Whether this can be put back."""
        return self.kind in ("file", "link", "folder")


Others = dict[str, PathState | None]
"""Paths that others changed, with what they held before: `NOT_COMPARED` where it is not known."""
NOT_COMPARED = PathState(kind="unread")


def to_data(state: PathState | None) -> list[Any] | None:
    """Turn a state into JSON data."""
    return None if state is None else [state.kind, state.content, state.mode]


def from_data(data: list[Any] | None) -> PathState | None:
    """Read what `to_data` wrote."""
    return None if data is None else PathState(kind=data[0], content=data[1], mode=data[2])


@contextmanager
def open_parent(root: Path, path: str) -> Generator[tuple[int, str]]:
    """Walk to the folder of a path, no link followed; yield its descriptor and the last name.

    Raises `OSError`: also where a folder on the way has become a link or a file.
    """
    *folders, name = path.split("/")
    with ExitStack() as stack:
        here = os.open(root, _FOLDER & ~os.O_NOFOLLOW)
        stack.callback(os.close, here)
        for folder in folders:
            here = os.open(folder, _FOLDER, dir_fd=here)
            stack.callback(os.close, here)
        yield here, name


def look_at(root: Path, path: str) -> os.stat_result | None:
    """Return a path's own `lstat`; none where there is nothing, or only something behind a link."""
    try:
        with open_parent(root, path) as (parent, name):
            return os.stat(name, dir_fd=parent, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno in _BEHIND_A_LINK:
            return None
        raise


_BEHIND_A_LINK = {40, 62}  # ELOOP, on Linux and on macOS


def missing_parents(folder: Path, path: str) -> list[str]:
    """List the folders that have to be made for a path."""
    parts = path.split("/")[:-1]
    missing: list[str] = []
    for end in range(len(parts)):
        way = "/".join(parts[: end + 1])
        found = look_at(folder, way)
        if found is None:
            missing.append(way)
        elif not stat.S_ISDIR(found.st_mode):
            return []
    return missing


def signature(found: os.stat_result) -> str:
    """Return what changes whenever a file is written or replaced."""
    kind = stat.S_IFMT(found.st_mode)
    times = f"{found.st_mtime_ns}:{found.st_ctime_ns}"
    return f"{kind:o}:{found.st_mode & 0o7777:o}:{found.st_size}:{found.st_ino}:{times}"


MOST_FILES = 100_000
MOST_BYTES = 4 << 30
SOME = 500
"""Folders that one command line names at most."""


class TooMuch(Exception):
    """The folder is past a limit; the text says which."""


class Scan(Struct, kw_only=True):
    """The differences, by path in the work tree.

    `dirty` maps it to its index entry (mode, blob), none if it has none; `deleted` are those that are
    no file any more. `folders` hold no file that the index knows, `nested` are repositories, and
    `closed` are folders that may not be read. A look at all that is there finds `rules`, the ignore
    files; `special`, which is no file, link or folder; `modes`, the permission bits of folders; and
    `hidden`, which the rules leave out.
    """

    dirty: dict[str, tuple[str, str] | None] = field(
        default_factory=dict[str, tuple[str, str] | None]
    )
    deleted: set[str] = field(default_factory=set[str])
    folders: list[str] = field(default_factory=list[str])
    nested: list[str] = field(default_factory=list[str])
    closed: list[str] = field(default_factory=list[str])
    rules: list[str] = field(default_factory=list[str])
    special: list[str] = field(default_factory=list[str])
    modes: dict[str, int] = field(default_factory=dict[str, int])
    hidden: list[str] = field(default_factory=list[str])

    def check_limits(self, top: Path, largest: int) -> None:
        """Raise `TooMuch` if there is more that is new than is worth copying."""
        fresh = [path for path, entry in self.dirty.items() if entry is None]
        if len(fresh) > MOST_FILES:
            raise TooMuch(f"more than {MOST_FILES:,} files")
        size = 0
        for path in fresh:
            try:
                one = os.lstat(top / path).st_size
            except OSError:
                continue
            size += one if one <= largest else 0
            if size > MOST_BYTES:
                raise TooMuch(f"more than {MOST_BYTES >> 30} GiB")


class Survey(NamedTuple):
    """Makes a scan look at all that is there, in the `folders` that hold files of the index, too.

    `take_rules` is called with the ignore files that were found, before what they say is needed.
    """

    folders: Iterable[str]
    take_rules: Callable[[list[str]], object]


def scan(git: ShadowGit, prefix: str, rules: Path, survey: Survey | None = None) -> Scan:
    """Compare the work tree below `prefix` with the index. Raises `GitFault`, `TooMuch`.

    `rules` is a file with all that is ignored; the ignore files of the tree have no say, since commands
    change them.
    """
    scope = ["--", prefix] if prefix else []
    way = ("-z", "--raw", "--no-renames", "--ignore-submodules=all")
    untracked = ("ls-files", "-z", "-o", f"--exclude-from={rules}")
    found = Scan()
    with git.start("diff-files", *way, *scope) as comparing:
        if survey is not None:
            for folder in sorted({"", *parents(f"{prefix}x"), *survey.folders}):
                _look_into(git.top, folder, found)
            found.special = [name for name in found.special if name.startswith(prefix)]
            survey.take_rules(found.rules)
        with git.start(*untracked, "--directory", *scope) as listing:
            if survey is not None:
                _read_hidden(git.run(*untracked, "-i", "--directory", *scope), found)
            _read_raw(git.finish(comparing), found)
            listed = _names(git.finish(listing))
    found.dirty |= dict.fromkeys(name for name in listed if not name.endswith("/"))
    folders = [name[:-1] for name in listed if name.endswith("/")]
    folders += [name for name in sorted(found.deleted) if is_folder(git.top / name)]
    inside: list[str] = []
    for folder in folders:
        if folder and f"{folder}/" != prefix:
            _walk(git.top, folder, found, inside)
        else:
            inside.append(folder)
    if survey is not None and inside:
        survey.take_rules(found.rules)
        _read_hidden(git.run(*untracked, "-i", "--directory", *scope), found)
    _expand(git, untracked, inside, found)
    found.folders.sort()
    return found


def _look_into(top: Path, folder: str, found: Scan) -> tuple[list[str], bool] | None:
    """Return a folder's folders, and whether it holds files; none of a repository, which is noted."""
    folders: list[str] = []
    has_files = False
    try:
        found.modes[folder] = stat.S_IMODE(os.lstat(f"{top}/{folder}").st_mode)
        with os.scandir(f"{top}/{folder}") as entries:
            for entry in entries:
                name = f"{folder}/{entry.name}" if folder else entry.name
                if entry.name == ".git":
                    if folder:
                        found.nested.append(folder)
                        return None
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(name)
                elif entry.is_file(follow_symlinks=False) or entry.is_symlink():
                    has_files = True
                    if entry.name == IGNORE_FILE:
                        found.rules.append(name)
                else:
                    found.special.append(name)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError:
        found.closed.append(folder)
    return folders, has_files


def _read_hidden(out: bytes, found: Scan) -> None:
    """Note what is ignored; what lies in an ignored folder goes with it."""
    found.hidden = []
    for name in sorted(_names(out)):
        if not (found.hidden and name.startswith(found.hidden[-1]) and found.hidden[-1][-1] == "/"):
            found.hidden.append(name)


def folders_of(names: Iterable[str]) -> set[str]:
    """Return all folders that these files lie in; the top is empty."""
    folders = {""}
    for name in names:
        folder = name.rpartition("/")[0]
        while folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    return folders


def is_folder(path: Path) -> bool:
    """Whether a path is a folder itself, and no link to one."""
    return path.is_dir() and not path.is_symlink()


def parents(path: str) -> Iterator[str]:
    """Give the folders that a path lies in, the nearest first."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def _walk(top: Path, folder: str, found: Scan, inside: list[str]) -> None:
    """Note the folders below one in which git knows no file; repositories are left alone."""
    holds_files = False
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        seen = _look_into(top, here, found)
        if seen is None:
            continue
        found.folders.append(here)
        if len(found.folders) > MOST_FILES:
            raise TooMuch(f"more than {MOST_FILES:,} folders")
        folders, has_files = seen
        holds_files = holds_files or has_files
        waiting += [name for name in folders if f"{name.rpartition('/')[2]}/" not in EXCLUDE]
    if holds_files:
        inside.append(folder)


def _expand(git: ShadowGit, untracked: tuple[str, ...], inside: list[str], found: Scan) -> None:
    """List the files in these folders that are not ignored."""
    for start in range(0, len(inside), SOME):
        some = [f"{folder}/" if folder else "." for folder in inside[start : start + SOME]]
        out = git.run(*untracked, "--", *some)
        found.dirty |= dict.fromkeys(name for name in _names(out) if not name.endswith("/"))


def _names(out: bytes) -> list[str]:
    return [os.fsdecode(name) for name in out.split(b"\0") if name]


def _read_raw(out: bytes, found: Scan) -> None:
    """Read `diff-files --raw -z`: pairs of a description and a path."""
    rows = out.split(b"\0")
    for about, path in zip(rows[::2], rows[1::2], strict=False):
        mode, _, name, _, status = about.decode().lstrip(":").split()
        text = os.fsdecode(path)
        if status == "U":
            continue
        found.dirty[text] = None if status == "A" else (mode, name)
        if status == "D":
            found.deleted.add(text)
