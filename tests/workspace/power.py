"""What disks may hold after the power went in the middle of a recorded run that renames files.

The scheme is that of `journal/power_loss.py`, for folders in folders: of a file that was not synced
there may be what was durable, all, or a half; of the names in a folder that was not synced any
beginning of what was done to them, folder by folder. A rename is there as a whole or not at all.
"""

import os
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["OPTIONS", "Call", "disks", "recorded", "write"]

_KINDS = "openat,write,fsync,fchmod,?chmod,?rename,renameat,?unlink,unlinkat,?mkdir,mkdirat"
OPTIONS = (
    *("-y", "-xx", "-ttt", "-T", "-s", "10000000"),
    *("-e", f"trace={_KINDS},?rmdir,?symlink,symlinkat"),
)
"""What strace must be told to record a run, besides `-f -o LOG`."""

_LINE = re.compile(r"(?:\d+ +)?([\d.]+) (\w+)\((.*)\) += (\d+)(?:<(.*)>)? <([\d.]+)>$")
_PARTS = re.compile(r"(\d+)<(.*?)>|AT_FDCWD<(.*?)>|\"(.*?)\"|([^,\s]+)")
_CUT = re.compile(r"^(\d+) +([\d.]+) (\w+\(.*) <unfinished \.\.\.>$")
_REST = re.compile(r"^(\d+) +[\d.]+ <\.\.\. \w+ resumed>(.*)$")

Call = tuple[str, list[str]]
"""A system call's kind and what it is about: whole paths, bytes as hexadecimal digits, modes."""


def recorded(log: Path) -> list[Call]:
    """Read what strace wrote, in order: a sync counts from its end, anything else from its begin."""
    begun: dict[str, str] = {}
    found: list[tuple[float, Call]] = []
    for line in log.read_text().splitlines():
        if cut := _CUT.match(line):
            begun[cut[1]] = f"{cut[2]} {cut[3]}"
            continue
        if rest := _REST.match(line):
            line = begun.pop(rest[1]) + rest[2]
        if (parts := _LINE.match(line)) and (call := _call(parts)):
            late = float(parts[6]) if call[0] == "sync" else 0.0
            found.append((float(parts[1]) + late, call))
    return [call for _, call in sorted(found, key=lambda one: one[0])]


def _call(line: re.Match[str]) -> Call | None:
    kind, said = line[2], [_plain(one) for one in _PARTS.findall(line[3])]
    match kind.removesuffix("at"), said:
        case "open", [_, _, flags, *_] if "O_CREAT" in flags or "O_TRUNC" in flags:
            return "empty" if "O_TRUNC" in flags else "make", [_text(line[5] or "")]
        case "write", [path, data, _] if path:
            return "write", [path, data]
        case "fsync", [path]:
            return "sync", [path]
        case "fchmod" | "chmod", [path, mode]:
            return "mode", [_text(path), mode]
        case "rename", [here, old, there, new]:
            return "rename", [os.path.join(here, _text(old)), os.path.join(there, _text(new))]
        case "rename", [old, new]:
            return "rename", [_text(old), _text(new)]
        case "unlink", [here, name, _]:
            return "remove", [os.path.join(here, _text(name))]
        case "unlink" | "rmdir", [name]:
            return "remove", [_text(name)]
        case "mkdir", [here, name, _]:
            return "folder", [os.path.join(here, _text(name))]
        case "mkdir", [name, _]:
            return "folder", [_text(name)]
        case "symlink", [target, here, name]:
            return "link", [_text(target), os.path.join(here, _text(name))]
        case "symlink", [target, name]:
            return "link", [_text(target), _text(name)]
        case _:
            return None


def _plain(part: tuple[str, str, str, str, str]) -> str:
    """Return a descriptor's path, a quoted text as it is (in hexadecimal), or a word."""
    number, path, here, quoted, word = part
    return _text(path) if number else _text(here) if here else quoted or word


def _text(escaped: str) -> str:
    if not escaped.startswith("\\x"):
        return escaped
    return os.fsdecode(bytes.fromhex(escaped.replace("\\x", "")))


@dataclass(eq=False)
class _Node:
    """A file (bytes), a link (text) or a folder (its names); `sure` is what of it is on the disk."""

    now: bytes | str | dict[str, "_Node"]
    sure: bytes | str | dict[str, "_Node"]
    mode: int = 0o600
    sure_mode: int = 0o600


@dataclass(eq=False)
class _Change:
    """Names that are set, or go (none), together; of the folder `of`, as far as order goes."""

    of: _Node
    sets: list[tuple[_Node, str, _Node | None]] = field(default_factory=list)


def _load(place: Path) -> _Node:
    if place.is_symlink():
        return _Node(os.readlink(place), os.readlink(place))
    if place.is_file():
        mode = place.stat().st_mode & 0o7777
        return _Node(place.read_bytes(), place.read_bytes(), mode, mode)
    names = {one.name: _load(one) for one in place.iterdir()}
    return _Node(dict(names), dict(names))


class _Disks:
    def __init__(self, origin: Path, root: str) -> None:
        self._top, self._root = _load(origin), root
        self._pending: list[_Change] = []

    def _find(self, path: str) -> _Node | None:
        node: _Node | None = self._top
        for name in os.path.relpath(path, self._root).split("/"):
            if name != ".":
                node = node.now.get(name) if node and isinstance(node.now, dict) else None
        return node

    def take(self, kind: str, about: list[str]) -> bool:
        """Have a call done; whether it is about this place."""
        path = about[1] if kind == "link" else about[0]
        if not os.path.normpath(path).startswith(self._root):
            return False
        node = self._find(path)
        match kind:
            case "make" | "empty" if node is None:
                self._set((path, _Node(b"", b"")))
            case "empty" if isinstance(node.now, bytes):
                node.now = b""
            case "write" if isinstance(node.now, bytes):
                node.now += bytes.fromhex(about[1].replace("\\x", ""))
            case "mode":
                node.mode = int(about[1], 8)
            case "rename":
                self._set((about[1], node), (path, None))
            case "remove":
                self._set((path, None))
            case "folder":
                self._set((path, _Node({}, {})))
            case "link":
                self._set((path, _Node(about[0], about[0])))
            case "sync" if isinstance(node.now, dict):
                self._sync_names(node)
            case "sync":
                node.sure, node.sure_mode = node.now, node.mode
            case _:
                assert kind == "make", kind
        return True

    def _set(self, *sets: tuple[str, _Node | None]) -> None:
        change: _Change | None = None
        for path, node in sets:
            home, name = self._find(os.path.dirname(path)), os.path.basename(path)
            assert home is not None, path
            assert isinstance(home.now, dict), path
            change = change or _Change(home)
            change.sets.append((home, name, node))
            if node is None:
                home.now.pop(name)
            else:
                home.now[name] = node
        if change is not None:
            self._pending.append(change)

    def _sync_names(self, folder: _Node) -> None:
        for change in self._pending:
            if any(home is folder for home, _, _ in change.sets):
                for home, name, node in change.sets:
                    assert isinstance(home.sure, dict)
                    _put(home.sure, name, node)
        self._pending = [
            one for one in self._pending if all(home is not folder for home, _, _ in one.sets)
        ]

    def variants(self, chance: random.Random) -> Iterator["_Picture"]:
        """Give what may be there now."""
        folders = list({id(one.of): one.of for one in self._pending}.values())
        yield self._picture([], chance.random)
        yield self._picture(self._pending, lambda: 0.0)
        for folder in folders:
            yield self._picture([one for one in self._pending if one.of is folder], chance.random)
            yield self._picture(
                [one for one in self._pending if one.of is not folder], chance.random
            )
        for _ in folders:
            ends = {id(folder): chance.randrange(len(self._pending) + 1) for folder in folders}
            kept = [one for at, one in enumerate(self._pending) if at < ends[id(one.of)]]
            yield self._picture(kept, chance.random)

    def _picture(self, changes: list[_Change], chance) -> "_Picture":
        names: dict[int, dict[str, _Node]] = {}
        for change in changes:
            for home, name, node in change.sets:
                assert isinstance(home.sure, dict)
                _put(names.setdefault(id(home), dict(home.sure)), name, node)
        found: _Picture = {}

        def draw(node: _Node, path: str) -> None:
            if isinstance(node.now, dict):
                found[path] = None
                assert isinstance(node.sure, dict)
                for name, inner in names.get(id(node), node.sure).items():
                    draw(inner, os.path.join(path, name))
            elif isinstance(node.now, str):
                found[path] = node.now
            else:
                assert isinstance(node.sure, bytes)
                half = node.now[: len(node.now) // 2]
                data = [node.sure, node.now, half, bytes(len(node.now))][int(chance() * 4)]
                is_sure = node.sure == node.now and node.sure_mode == node.mode
                found[path] = (node.now if is_sure else data, node.sure_mode)

        draw(self._top, self._root)
        return found


def _put(names: dict[str, _Node], name: str, node: _Node | None) -> None:
    if node is None:
        names.pop(name, None)
    else:
        names[name] = node


_Picture = dict[str, str | tuple[bytes, int] | None]
"""Whole paths: folders, targets of links, bytes and modes of files."""


def disks(
    origin: Path, root: Path, run: list[Call], seed: int = 0
) -> Iterator[tuple[int, _Picture]]:
    """Give each thing that the disk may hold at any moment of a run in `root`, a copy of `origin`.

    One that may be there at several moments comes once, with the last of those that follow another.
    """
    chance, state = random.Random(seed), _Disks(origin, str(root))
    before: dict[tuple[tuple[str, object], ...], _Picture] = {}
    for moment, (kind, about) in enumerate(run, 1):
        if state.take(kind, about):
            after = {tuple(sorted(one.items())): one for one in state.variants(chance)}
            for key in before.keys() - after.keys():
                yield moment - 1, before[key]
            before = after
    for picture in before.values():
        yield len(run), picture


def write(picture: _Picture) -> None:
    """Make what a picture shows."""
    for path, what in picture.items():
        match what:
            case None:
                os.makedirs(path, exist_ok=True)
            case str():
                os.symlink(what, path)
            case data, mode:
                Path(path).write_bytes(data)
                os.chmod(path, mode)
