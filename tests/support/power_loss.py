"""What a disk may hold after the power went: a recorded run's file operations, replayed in part.

`recorded` reads what strace wrote of a run. `disks` then gives, for each moment of the run, what a
file system is allowed to have kept: of every file all that was synced, and of what was written since
none, all, a beginning, all but one, a part chosen by chance, or a last write that is torn between two
sectors. Of the names there are two models:

- `posix`: the names in a folder are durable with the next sync of that folder; of later changes any
  beginning may be there, folder by folder.
- `ext4`: names change in one order for the whole file system, and any sync makes all earlier ones
  durable; the bytes of a file that was not synced may be missing all the same.

Only data that is written by calls is seen, none through shared memory: SQLite's `-shm` is left out,
which holds nothing that lasts. The scheme is that of ALICE (Pillai et al., OSDI 2014).
"""

import os
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

__all__ = ["APPENDED", "OPTIONS", "Content", "Disk", "Model", "Operation", "disks", "recorded"]

CALLS = (
    "openat,write,pwrite64,ftruncate,fsync,fdatasync,mkdirat,unlinkat,renameat,renameat2,"
    "?mkdir,?unlink,?rmdir,?rename,fchmod,?chmod,?symlink,symlinkat"
)
OPTIONS = ("-ff", "-y", "-xx", "-ttt", "-T", "-s", "10000000", "-e", f"trace={CALLS}")
"""What strace must be told, besides `-o LOG`; it then writes LOG.TID for each thread."""

SECTOR = 512
APPENDED = -1
_LINE = re.compile(r"([\d.]+) (\w+)\((.*)\) += (-?\d+)(?:<(.*)>)? <([\d.]+)>$")
_EVENT = '"' + "".join(f"\\x{byte:02x}" for byte in b'{"type"')  # not what a tool says
_DESCRIPTOR = re.compile(r"(?:\d+|AT_FDCWD)<(.*?)>")

Model = Literal["posix", "ext4"]
Content = Mapping[str, bytes | None]
"""Paths below the root: the bytes of files, none for folders."""


@dataclass(frozen=True, order=True)
class Operation:
    """What happened: `kind` is said, make, folder, link, write, truncate, mode, rename, remove or sync.

    It counts from `at`: a sync from its end, anything else from its begin. A sync covers what was
    before `began`. `place` is an offset (or `APPENDED`), a size in bytes, or the bits of a mode; `to`
    a rename's target; `data` what is written, or a link's text.
    """

    at: float
    began: float = field(compare=False)
    kind: str = field(compare=False)
    name: str = field(compare=False, default="")
    place: int = field(compare=False, default=0)
    data: bytes = field(compare=False, default=b"", repr=False)
    to: str = field(compare=False, default="")


@dataclass(frozen=True)
class Disk:
    """Files and folders by name, and how many operations of the run had begun when the power went."""

    moment: int
    files: tuple[tuple[str, bytes | None], ...] = field(repr=False)

    def write(self, root: Path) -> None:
        """Make these files and folders in a folder."""
        for name, data in self.files:
            if data is None:
                (root / name).mkdir(mode=0o700)
            else:
                (root / name).write_bytes(data)


# Recording ----------------------------------------------------------------------------------------


def recorded(log: Path, root: Path, is_wanted: Callable[[str], bool]) -> list[Operation]:
    """Read what was done to the wanted paths below a root, and what was said, in order."""
    found: list[Operation] = []
    for file in log.parent.glob(f"{log.name}.*"):
        for line in file.read_text().splitlines():
            parts = _LINE.match(line)
            operation = _operation(parts) if parts and int(parts[4]) >= 0 else None
            if operation is None:
                continue
            if operation.kind != "said":
                operation = _below(operation, root)
            if operation.kind == "said" or is_wanted(operation.name):
                found.append(operation)
    return sorted(found)


def _below(one: Operation, root: Path) -> Operation:
    names = [os.path.relpath(path, root) if path else "" for path in (one.name, one.to)]
    return Operation(one.at, one.began, one.kind, names[0], one.place, one.data, names[1])


def _operation(line: re.Match[str]) -> Operation | None:
    began, call, result = float(line[1]), line[2], int(line[4])
    parts = line[3].split(", ")
    descriptor = _DESCRIPTOR.match(parts[0])
    path = _text(descriptor[1]) if descriptor else ""
    match call.removesuffix("at").removesuffix("at2"):
        case "open" if "O_TRUNC" in line[3]:
            return Operation(began, began, "make", _text(line[5]), 0)
        case "open" if "O_CREAT" in line[3]:
            return Operation(began, began, "make", _text(line[5]), APPENDED)
        case "mkdir":
            return Operation(began, began, "folder", _paths(parts)[0])
        case "symlink":
            text, new = _paths(parts)
            return Operation(began, began, "link", new, data=os.fsencode(text))
        case "fchmod" | "chmod":
            return Operation(began, began, "mode", path or _paths(parts)[0], int(parts[1], 8))
        case "unlink" | "rmdir":
            return Operation(began, began, "remove", _paths(parts)[0])
        case "rename":
            old, new = _paths(parts)
            return Operation(began, began, "rename", old, to=new)
        case "write" if line[3].startswith("1<") and parts[1].startswith(_EVENT):
            return Operation(began, began, "said", data=_bytes(parts[1]))
        case "write" if path.startswith("/"):
            return Operation(began, began, "write", path, APPENDED, _bytes(parts[1])[:result])
        case "pwrite64":
            data = _bytes(parts[1])
            assert len(data) == result, f"`{path}` was written in part"
            return Operation(began, began, "write", path, int(parts[3]), data)
        case "ftruncate":
            return Operation(began, began, "truncate", path, int(parts[1]))
        case "fsync" | "fdatasync":
            return Operation(began + float(line[6]), began, "sync", path)
        case _:
            return None


def _paths(parts: Sequence[str]) -> list[str]:
    """Return the whole paths that a call names, each relative to the descriptor before it."""
    found: list[str] = []
    here = ""
    for part in parts:
        if descriptor := _DESCRIPTOR.match(part):
            here = _text(descriptor[1])
        elif part.startswith('"'):
            found.append(os.path.join(here, _text(part.strip('"'))))
    return found


def _bytes(quoted: str) -> bytes:
    return bytes.fromhex(quoted.strip('"').replace("\\x", ""))


def _text(escaped: str) -> str:
    return os.fsdecode(_bytes(escaped)) if escaped.startswith("\\x") else escaped


# What is durable ----------------------------------------------------------------------------------


class _File:
    """One file, whatever its name: what is durable of it, and what was done to it since."""

    def __init__(self, base: bytes = b"") -> None:
        self.base = base
        self.since: list[Operation] = []

    @property
    def now(self) -> bytes:
        """What a program reads."""
        return _applied(self.base, self.since)

    def sync(self, began: float) -> None:
        """Make durable what was done before."""
        self.base = _applied(self.base, [one for one in self.since if one.at < began])
        self.since = [one for one in self.since if one.at >= began]

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


def _applied(data: bytes, operations: Sequence[Operation]) -> bytes:
    held = bytearray(data)
    for one in operations:
        if one.kind == "truncate":
            del held[one.place :]
            held.extend(bytes(one.place - len(held)))
            continue
        place = len(held) if one.place == APPENDED else one.place
        held.extend(bytes(max(0, place - len(held))))
        held[place : place + len(one.data)] = one.data
    return bytes(held)


def _torn(one: Operation, chance: random.Random) -> Operation:
    """Cut a write between two sectors of the disk; a size is written whole."""
    ends = range(SECTOR - max(one.place, 0) % SECTOR, len(one.data), SECTOR)
    data = one.data[: chance.choice(ends)] if ends else one.data
    return Operation(one.at, one.began, one.kind, one.name, one.place, data)


_Names = dict[str, "_File | _Folder"]


class _Folder:
    """A folder: its names as they are, and as they are sure to be."""

    def __init__(self) -> None:
        self.sure: _Names = {}
        self.now: _Names = {}


@dataclass(frozen=True, eq=False)
class _Change:
    """Names of one folder that changed together at a time; none stands for one that went."""

    at: float
    folder: _Folder
    names: dict[str, "_File | _Folder | None"]


class _Volume:
    """The tree while the run goes on, with the changes of names that are not sure yet, in order."""

    def __init__(self, before: Content, model: Model) -> None:
        self._top = _Folder()
        self._model = model
        self._changes: list[_Change] = []
        for path, data in sorted(before.items()):
            node = _Folder() if data is None else _File(data)
            folder, name = self._home(path)
            folder.sure[name] = folder.now[name] = node

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
                self._change(one.at, folder, {name: _File()})
            case "make", _File() if one.place == 0:
                node.since.append(Operation(one.at, one.began, "truncate", one.name, 0))
            case "folder", _:
                self._change(one.at, folder, {name: _Folder()})
            case "remove", _:
                self._change(one.at, folder, {name: None})
            case "rename", _:
                target, new = self._home(one.to)
                if target is folder:
                    self._change(one.at, folder, {name: None, new: node})
                else:
                    self._change(one.at, target, {new: node})
                    self._change(one.at, folder, {name: None})
            case (("write" | "truncate"), _File()):
                node.since.append(one)
            case "sync", _:
                self._sync(node, one.began)
            case _:
                return

    def _change(
        self, at: float, folder: _Folder, names: dict[str, "_File | _Folder | None"]
    ) -> None:
        _put(folder.now, names)
        self._changes.append(_Change(at, folder, names))

    def _sync(self, node: "_File | _Folder | None", began: float) -> None:
        if isinstance(node, _File):
            node.sync(began)
        is_all = self._model == "ext4"
        left: list[_Change] = []
        for change in self._changes:
            if change.at < began and (is_all or change.folder is node):
                _put(change.folder.sure, change.names)
            else:
                left.append(change)
        self._changes = left

    def disks(self, chance: random.Random) -> Iterator[dict[str, bytes | None]]:
        """Give every combination of names that may be there with one file varied, others old or new."""
        for changes in self._kept():
            names: dict[int, _Names] = {}
            for change in changes:
                known = names.setdefault(id(change.folder), dict(change.folder.sure))
                _put(known, change.names)
            found = dict(self._walk(self._top, "", names))
            old = {path: node.base if node else None for path, node in found.items()}
            new = {path: node.now if node else None for path, node in found.items()}
            yield old
            yield new
            for path, node in found.items():
                for data in node.variants(chance) if node and node.since else ():
                    yield {**old, path: data}
                    yield {**new, path: data}

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

    def _walk(
        self, folder: _Folder, prefix: str, names: Mapping[int, _Names]
    ) -> Iterator[tuple[str, _File | None]]:
        for name, node in names.get(id(folder), folder.sure).items():
            if isinstance(node, _File):
                yield prefix + name, node
            else:
                yield prefix + name, None
                yield from self._walk(node, f"{prefix}{name}/", names)


def _put(names: _Names, changes: dict[str, "_File | _Folder | None"]) -> None:
    for name, node in changes.items():
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


def disks(
    run: Sequence[Operation], before: Content, model: Model = "posix", seed: int = 0
) -> Iterator[Disk]:
    """Give each thing that the disk may hold, at any moment of a run; `before` was there, for sure.

    A content that is possible at several moments comes once, with the last of those that follow one
    another: then most had been said.
    """
    chance = random.Random(seed)
    volume = _Volume(before, model)
    possible: dict[tuple[tuple[str, bytes | None], ...], None] = {}
    for moment, one in enumerate(run, 1):
        if one.kind == "said":
            continue
        volume.take(one)
        after = dict.fromkeys(tuple(sorted(files.items())) for files in volume.disks(chance))
        for files in possible.keys() - after.keys():
            yield Disk(moment - 1, files)
        possible = after
    for files in possible:
        yield Disk(len(run), files)
