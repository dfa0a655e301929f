"""What a run of a program asked of its files, in order, as strace wrote it down.

Only data that is written by calls is seen, none through shared memory: SQLite's `-shm` is left out,
which holds nothing that lasts.
"""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["APPENDED", "OPTIONS", "Operation", "recorded"]

CALLS = (
    "openat,write,pwrite64,ftruncate,fsync,fdatasync,mkdirat,unlinkat,renameat,renameat2,"
    "?mkdir,?unlink,?rmdir,?rename,fchmod,?chmod,?symlink,symlinkat"
)
OPTIONS = ("-ff", "-y", "-xx", "-ttt", "-T", "-s", "10000000", "-e", f"trace={CALLS}")
"""What strace must be told, besides `-o LOG`; it then writes LOG.TID for each thread."""

APPENDED = -1
_LINE = re.compile(r"([\d.]+) (\w+)\((.*)\) += (-?\d+)(?:<(.*)>)? <([\d.]+)>$")
_EVENT = '"' + "".join(f"\\x{byte:02x}" for byte in b'{"type"')  # not what a tool says
_DESCRIPTOR = re.compile(r"(?:\d+|AT_FDCWD)<(.*?)>")


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
