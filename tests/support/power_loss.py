"""What a disk may hold after the power went: a recorded run's file operations, replayed in part.

`disks` gives, for each moment of the run, what a file system is allowed to have kept. Of every file that
is all that was synced, and of what was written since none, all, a beginning, all but one, a part chosen
by chance, or a last write that is torn between two sectors. Of the names there are two models:

- `posix`: the names in a folder are durable with the next sync of that folder; of later changes any
  beginning may be there, folder by folder.
- `ext4`: names change in one order for the whole file system, and any sync makes all earlier ones
  durable; the bytes of a file that was not synced may be missing all the same.

A rename is there as a whole or not at all. The scheme is that of ALICE (Pillai et al., OSDI 2014), which
tries everything that there may be of a few files with many writes each. Where there are many files, each
is as chance will have it: `is_sampled`.
"""

import os
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from support.recording import APPENDED, Operation

__all__ = ["Content", "Disk", "Held", "Model", "content_below", "disks"]

SECTOR = 512
PRIVATE = 0o600
"""The mode of a file of which nothing else is known."""

Model = Literal["posix", "ext4"]
Held = bytes | str | None
"""The bytes of a file, the target of a link, none for a folder."""
Content = Mapping[str, Held]
"""What is there, by its path below the root."""


@dataclass(frozen=True)
class Disk:
    """What is there by its path, and how many operations of the run had begun when the power went.

    `modes` are those of files that are not `PRIVATE`.
    """

    moment: int
    files: tuple[tuple[str, Held], ...] = field(repr=False)
    modes: tuple[tuple[str, int], ...] = field(default=(), repr=False)

    def write(self, root: Path) -> None:
        """Make these files, links and folders in a folder, which is made if it is not there."""
        root.mkdir(exist_ok=True)
        modes = dict(self.modes)
        for name, held in self.files:
            match held:
                case None:
                    (root / name).mkdir(mode=0o700)
                case str():
                    (root / name).symlink_to(held)
                case bytes():
                    (root / name).write_bytes(held)
                    (root / name).chmod(modes.get(name, PRIVATE))


def content_below(root: Path) -> tuple[Content, dict[str, int]]:
    """Read what is there before a run: everything below a folder, and the modes of its files."""
    found: dict[str, Held] = {}
    modes: dict[str, int] = {}
    for path in root.rglob("*"):
        name = str(path.relative_to(root))
        if path.is_symlink():
            found[name] = os.readlink(path)
        elif path.is_dir():
            found[name] = None
        else:
            found[name], modes[name] = path.read_bytes(), path.stat().st_mode & 0o7777
    return found, modes


# What is durable ----------------------------------------------------------------------------------


class _File:
    """One file, whatever its name: what is durable of it, and what was done to it since."""

    def __init__(self, base: bytes = b"", mode: int = PRIVATE) -> None:
        self.base = base
        self.since: list[Operation] = []
        self.mode = self.sure_mode = mode

    @property
    def now(self) -> bytes:
        """What a program reads."""
        return _applied(self.base, self.since)

    def sync(self, began: float) -> None:
        """Make durable what was done before."""
        self.base = _applied(self.base, [one for one in self.since if one.at < began])
        self.since = [one for one in self.since if one.at >= began]
        self.sure_mode = self.mode

    def variants(self, chance: random.Random) -> Iterator[bytes]:
        """Give what may be there of it: first nothing of the new, then all, then parts."""
        count = len(self.since)
        yield self.base
        yield self.now
        for number in range(count):
            yield _applied(self.base, self.since[: number + 1])
            yield _applied(self.base, self.since[:number] + self.since[number + 1 :])
            yield _applied(self.base, [*self.since[:number], _torn(self.since[number], chance)])
        for _ in range(min(count, 8)):
            yield _applied(self.base, [one for one in self.since if chance.random() < 0.5])

    def sample(self, chance: random.Random) -> bytes:
        """Return one of the things that may be there: what was sure, all, a half, or zeros."""
        now = self.now
        if not self.since and self.sure_mode == self.mode:
            return now
        return chance.choice((self.base, now, now[: len(now) // 2], bytes(len(now))))


def _applied(data: bytes, operations: Sequence[Operation]) -> bytes:
    held = bytearray(data)
    for operation in operations:
        if operation.kind == "truncate":
            del held[operation.place :]
            held.extend(bytes(operation.place - len(held)))
            continue
        place = len(held) if operation.place == APPENDED else operation.place
        held.extend(bytes(max(0, place - len(held))))
        held[place : place + len(operation.data)] = operation.data
    return bytes(held)


def _torn(one: Operation, chance: random.Random) -> Operation:
    """Cut a write between two sectors of the disk; a size is written whole."""
    ends = range(SECTOR - max(one.place, 0) % SECTOR, len(one.data), SECTOR)
    data = one.data[: chance.choice(ends)] if ends else one.data
    return Operation(one.at, one.began, one.kind, one.name, one.place, data)


class _Folder:
    """A folder: its names as they are, and as they are sure to be."""

    def __init__(self) -> None:
        self.sure: _Names = {}
        self.now: _Names = {}


_Node = _File | _Folder | str
"""A file, a folder, or the target of a link."""
_Names = dict[str, _Node]


@dataclass(frozen=True, eq=False)
class _Change:
    """Names that changed together at a time, of one or two folders; none stands for one that went.

    Its place in the order of changes is in the first of them.
    """

    at: float
    names: tuple[tuple[_Folder, str, _Node | None], ...]

    @property
    def folder(self) -> _Folder:
        """The folder in whose order it is."""
        return self.names[0][0]

    def is_in(self, node: _Node | None) -> bool:
        """Whether it changes a name in this folder."""
        return any(folder is node for folder, _, _ in self.names)


class _Volume:
    """The tree while the run goes on, with the changes of names that are not sure yet, in order."""

    def __init__(self, before: Content, modes: Mapping[str, int], model: Model) -> None:
        self._top = _Folder()
        self._model = model
        self._changes: list[_Change] = []
        for path, held in sorted(before.items()):
            node = _File(held, modes.get(path, PRIVATE)) if isinstance(held, bytes) else held
            folder, name = self._home(path)
            folder.sure[name] = folder.now[name] = _Folder() if node is None else node

    def _home(self, path: str) -> tuple[_Folder, str]:
        *parents, name = path.split("/")
        folder = self._top
        for parent in parents:
            inner = folder.now[parent]
            assert isinstance(inner, _Folder), path
            folder = inner
        return folder, name

    def take(self, one: Operation) -> None:
        """Have an operation done."""
        folder, name = self._home(one.name) if one.name != "." else (self._top, ".")
        node = self._top if name == "." else folder.now.get(name)
        match one.kind, node:
            case "make", None:
                self._change(one.at, (folder, name, _File()))
            case "make", _File() if one.place == 0:
                node.since.append(Operation(one.at, one.began, "truncate", one.name, 0))
            case "folder", _:
                self._change(one.at, (folder, name, _Folder()))
            case "link", _:
                self._change(one.at, (folder, name, os.fsdecode(one.data)))
            case "remove", _:
                self._change(one.at, (folder, name, None))
            case "rename", _:
                self._change(one.at, (*self._home(one.to), node), (folder, name, None))
            case (("write" | "truncate"), _File()):
                node.since.append(one)
            case "mode", _File():
                node.mode = one.place
            case "sync", _:
                self._sync(node, one.began)
            case _:
                return

    def _change(self, at: float, *names: tuple[_Folder, str, _Node | None]) -> None:
        for folder, name, node in names:
            _put(folder.now, name, node)
        self._changes.append(_Change(at, names))

    def _sync(self, node: _Node | None, began: float) -> None:
        if isinstance(node, _File):
            node.sync(began)
        left: list[_Change] = []
        for change in self._changes:
            if change.at < began and (self._model == "ext4" or change.is_in(node)):
                for folder, name, inner in change.names:
                    _put(folder.sure, name, inner)
            else:
                left.append(change)
        self._changes = left

    def pictures(self, chance: random.Random) -> Iterator["_Picture"]:
        """Give every combination of names that may be there with one file varied, others old or new."""
        for changes in self._kept():
            found = dict(self._walk(changes))
            modes = _modes(found)
            old = {path: _held(node, is_new=False) for path, node in found.items()}
            new = {path: _held(node, is_new=True) for path, node in found.items()}
            yield _picture(old, modes)
            yield _picture(new, modes)
            for path, node in found.items():
                for data in node.variants(chance) if isinstance(node, _File) and node.since else ():
                    yield _picture({**old, path: data}, modes)
                    yield _picture({**new, path: data}, modes)

    def samples(self, chance: random.Random) -> Iterator["_Picture"]:
        """Give some combinations of names that may be there, each with files as chance will have it."""
        folders = list({id(change.folder): change.folder for change in self._changes}.values())
        tried = [[], self._changes]
        for folder in folders:
            tried.append([change for change in self._changes if change.folder is folder])
            tried.append([change for change in self._changes if change.folder is not folder])
        for _ in folders:
            ends = {id(folder): chance.randrange(len(self._changes) + 1) for folder in folders}
            kept = [one for at, one in enumerate(self._changes) if at < ends[id(one.folder)]]
            tried.append(kept)
        for changes in tried:
            found = dict(self._walk(changes))
            drawn = {
                path: node.sample(chance) if isinstance(node, _File) else _held(node, is_new=True)
                for path, node in found.items()
            }
            yield _picture(drawn, _modes(found))

    def _kept(self) -> Iterator[list[_Change]]:
        """Give the changes of names that may have come to the disk."""
        if self._model == "ext4":
            yield from (self._changes[:end] for end in range(len(self._changes) + 1))
            return
        yield []
        yield self._changes
        for folder in {id(change.folder): change.folder for change in self._changes}.values():
            own = [change for change in self._changes if change.folder is folder]
            others = [change for change in self._changes if change.folder is not folder]
            for end in range(len(own) + 1):
                yield own[:end]
                yield [*own[:end], *others]

    def _walk(self, changes: Sequence[_Change]) -> Iterator[tuple[str, _Node]]:
        """Give the paths that are there if these changes came to the disk, folders first."""
        names: dict[int, _Names] = {}
        for change in changes:
            for folder, name, node in change.names:
                _put(names.setdefault(id(folder), dict(folder.sure)), name, node)

        def below(folder: _Folder, prefix: str) -> Iterator[tuple[str, _Node]]:
            for name, node in names.get(id(folder), folder.sure).items():
                yield prefix + name, node
                if isinstance(node, _Folder):
                    yield from below(node, f"{prefix}{name}/")

        return below(self._top, "")


def _put(names: _Names, name: str, node: _Node | None) -> None:
    if node is None:
        names.pop(name, None)
    else:
        names[name] = node


def _held(node: _Node, *, is_new: bool) -> Held:
    if isinstance(node, _File):
        return node.now if is_new else node.base
    return node if isinstance(node, str) else None


def _modes(found: Mapping[str, _Node]) -> tuple[tuple[str, int], ...]:
    files = ((path, node) for path, node in found.items() if isinstance(node, _File))
    return tuple(
        sorted((path, node.sure_mode) for path, node in files if node.sure_mode != PRIVATE)
    )


_Picture = tuple[tuple[tuple[str, Held], ...], tuple[tuple[str, int], ...]]


def _picture(files: Content, modes: tuple[tuple[str, int], ...]) -> _Picture:
    return tuple(sorted(files.items(), key=lambda item: item[0])), modes


def disks(
    run: Sequence[Operation],
    before: Content,
    model: Model = "posix",
    seed: int = 0,
    *,
    modes: Mapping[str, int] | None = None,
    is_sampled: bool = False,
) -> Iterator[Disk]:
    """Give each thing that the disk may hold, at any moment of a run; `before` was there, for sure.

    A content that is possible at several moments comes once, with the last of those that follow one
    another: then most had been said.
    """
    chance = random.Random(seed)
    volume = _Volume(before, modes or {}, model)
    possible: dict[_Picture, None] = {}
    for moment, one in enumerate(run, 1):
        if one.kind == "said":
            continue
        volume.take(one)
        after = dict.fromkeys(volume.samples(chance) if is_sampled else volume.pictures(chance))
        for files, known in possible.keys() - after.keys():
            yield Disk(moment - 1, files, known)
        possible = after
    for files, known in possible:
        yield Disk(len(run), files, known)
