"""What a disk may hold after the power went: a recorded run's file operations, replayed in part.

`recorded` reads what strace wrote of a run. `disks` then gives, for each moment of the run, what a
file system is allowed to have kept: of every file all that was synced, and of what was written since
none, all, a beginning, all but one, a part chosen by chance, or a last write that is torn between two
sectors. Names are durable with the next sync of their folder; of later ones any beginning may be there.

Only data that is written by calls is seen, none through shared memory: SQLite's `-shm` is left out,
which holds nothing that lasts. The scheme is that of ALICE (Pillai et al., OSDI 2014).
"""

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["OPTIONS", "Disk", "Operation", "disks", "recorded"]

CALLS = "openat,write,pwrite64,ftruncate,unlink,fsync,fdatasync"
OPTIONS = ("-ff", "-qq", "-y", "-xx", "-ttt", "-T", "-s", "10000000", "-e", f"trace={CALLS}")
"""What strace must be told, besides `-o LOG`; it then writes LOG.TID for each thread."""

SECTOR = 512
_LINE = re.compile(r"([\d.]+) (\w+)\((.*)\) = (-?\d+)(?:<(.*)>)? <([\d.]+)>$")
_EVENT = '"' + "".join(f"\\x{byte:02x}" for byte in b'{"type"')  # not what a tool says
_DESCRIPTOR = re.compile(r"(\d+)<(.*?)>")


@dataclass(frozen=True, order=True)
class Operation:
    """What happened: `kind` is said, make, write, truncate, remove, sync or sync_folder.

    It counts from `at`: a sync from its end, anything else from its begin. A sync covers what was
    before `began`. `place` is an offset or a size in bytes.
    """

    at: float
    began: float = field(compare=False)
    kind: str = field(compare=False)
    name: str = field(compare=False, default="")
    place: int = field(compare=False, default=0)
    data: bytes = field(compare=False, default=b"", repr=False)


@dataclass(frozen=True)
class Disk:
    """Files by name, and how many operations of the run had begun when the power went."""

    moment: int
    files: tuple[tuple[str, bytes], ...] = field(repr=False)

    def write(self, folder: Path) -> None:
        """Make these files in a folder."""
        for name, data in self.files:
            (folder / name).write_bytes(data)


def recorded(log: Path, folder: Path, names: Sequence[str]) -> list[Operation]:
    """Read what was done to files of these names in a folder, and what was said, in order."""
    found: list[Operation] = []
    for file in log.parent.glob(f"{log.name}.*"):
        for line in file.read_text().splitlines():
            parts = _LINE.match(line)
            if parts is not None and int(parts[4]) >= 0:
                operation = _operation(parts, folder)
                if operation and (operation.name in names or operation.kind in _NAMELESS):
                    found.append(operation)
    return sorted(found)


_NAMELESS = ("said", "sync_folder")


def _operation(line: re.Match[str], folder: Path) -> Operation | None:
    began, call, arguments = float(line[1]), line[2], line[3]
    parts = arguments.split(", ")
    descriptor = _DESCRIPTOR.match(parts[0])
    number, path = (descriptor[1], _text(descriptor[2])) if descriptor else ("", "")
    if call == "openat":
        path = _text(line[5] or "")
        if "O_CREAT" not in arguments or Path(path).parent != folder:
            return None
        return Operation(began, began, "make", Path(path).name)
    if call == "unlink":
        path = _text(parts[0].strip('"'))
        return (
            Operation(began, began, "remove", Path(path).name)
            if folder == Path(path).parent
            else None
        )
    if call == "write" and number == "1" and parts[1].startswith(_EVENT):
        return Operation(began, began, "said", data=_bytes(parts[1]))
    if call in ("fsync", "fdatasync") and Path(path) == folder:
        return Operation(began + float(line[6]), began, "sync_folder")
    if Path(path).parent != folder:
        return None
    name = Path(path).name
    match call:
        case "pwrite64":
            data = _bytes(parts[1])
            assert len(data) == int(line[4]), f"`{name}` was written in part"
            return Operation(began, began, "write", name, int(parts[3]), data)
        case "ftruncate":
            return Operation(began, began, "truncate", name, int(parts[1]))
        case "fsync" | "fdatasync":
            return Operation(began + float(line[6]), began, "sync", name)
        case _:
            raise AssertionError(f"`{call}` on `{name}` is not understood")


def _bytes(quoted: str) -> bytes:
    return bytes.fromhex(quoted.strip('"').replace("\\x", ""))


def _text(escaped: str) -> str:
    return _bytes(escaped).decode() if escaped.startswith("\\x") else escaped


class _File:
    """One file, whatever its name: what is durable of it, and what was done to it since."""

    def __init__(self) -> None:
        self.base = b""
        self.since: list[Operation] = []

    def sync(self, began: float) -> None:
        """Make durable what was done before."""
        self.base = _applied(self.base, [one for one in self.since if one.at < began])
        self.since = [one for one in self.since if one.at >= began]

    def variants(self, chance: random.Random) -> Iterator[bytes]:
        """Give what may be there of it: first nothing of the new, then all, then parts."""
        count = len(self.since)
        yield self.base
        yield _applied(self.base, self.since)
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
        held.extend(bytes(max(0, one.place - len(held))))
        held[one.place : one.place + len(one.data)] = one.data
    return bytes(held)


def _torn(one: Operation, chance: random.Random) -> Operation:
    """Cut a write between two sectors of the disk; a size is written whole."""
    ends = range(SECTOR - one.place % SECTOR, len(one.data), SECTOR)
    data = one.data[: chance.choice(ends)] if ends else one.data
    return Operation(one.at, one.began, one.kind, one.name, one.place, data)


class _Volume:
    """A folder while the run goes on: names as they are and as they are sure to be, and files."""

    def __init__(self) -> None:
        self.sure: dict[str, _File] = {}
        self.now: dict[str, _File] = {}
        self.changes: list[tuple[float, dict[str, _File]]] = []

    def take(self, one: Operation) -> None:
        """Have an operation done."""
        match one.kind:
            case "make" if one.name not in self.now:
                self._rename({**self.now, one.name: _File()}, one.at)
            case "remove":
                self._rename(
                    {name: file for name, file in self.now.items() if name != one.name}, one.at
                )
            case "write" | "truncate":
                self.now[one.name].since.append(one)
            case "sync":
                self.now[one.name].sync(one.began)
            case "sync_folder":
                covered = [names for at, names in self.changes if at < one.began]
                self.sure = covered[-1] if covered else self.sure
                self.changes = [change for change in self.changes if change[0] >= one.began]
            case _:
                return

    def disks(self, chance: random.Random) -> Iterator[dict[str, bytes]]:
        """Give every combination of names that may be there with one file varied, others old or new."""
        for names in (self.sure, *(names for _, names in self.changes)):
            old = {name: file.base for name, file in names.items()}
            new = {name: _applied(file.base, file.since) for name, file in names.items()}
            yield old
            yield new
            for name, file in names.items():
                for data in file.variants(chance) if file.since else ():
                    yield {**old, name: data}
                    yield {**new, name: data}

    def _rename(self, names: dict[str, _File], at: float) -> None:
        self.now = names
        self.changes.append((at, names))


def disks(run: Sequence[Operation], seed: int = 0) -> Iterator[Disk]:
    """Give each thing that the disk may hold, at any moment of a run that began with an empty folder.

    A content that is possible at several moments comes once, with the last of those that follow one
    another: then most had been said.
    """
    chance = random.Random(seed)
    volume = _Volume()
    before: dict[tuple[tuple[str, bytes], ...], None] = {}
    for moment, one in enumerate(run, 1):
        volume.take(one)
        after = dict.fromkeys(tuple(sorted(files.items())) for files in volume.disks(chance))
        for files in before.keys() - after.keys():
            yield Disk(moment - 1, files)
        before = after
    for files in before:
        yield Disk(len(run), files)
