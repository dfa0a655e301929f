"""What disks may hold after the power went in the middle of a recorded run that renames files.

Runs are recorded as by `support/power_loss.py`, whose model is of a few files with many writes each. This
one is of trees with many files, links and modes: of a file that was not synced there may be what was
durable, all, a half, or zeros; of the names in a folder that was not synced any beginning of what was
done to them, folder by folder. A rename is there as a whole or not at all.
"""

import os
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from support.power_loss import APPENDED, Operation

__all__ = ["disks", "write"]


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
    def __init__(self, origin: Path) -> None:
        self._top = _load(origin)
        self._pending: list[_Change] = []

    def _find(self, path: str) -> _Node | None:
        node: _Node | None = self._top
        for name in path.split("/"):
            if name not in ("", "."):
                node = node.now.get(name) if node and isinstance(node.now, dict) else None
        return node

    def take(self, one: Operation) -> None:
        """Have an operation done."""
        node = self._find(one.name)
        match one.kind:
            case "make" if node is None:
                self._set((one.name, _Node(b"", b"")))
            case "make" if isinstance(node.now, bytes):
                node.now = node.now if one.place == APPENDED else b""
            case "write" if isinstance(node.now, bytes):
                assert one.place == APPENDED, one
                node.now += one.data
            case "mode":
                node.mode = one.place
            case "rename":
                self._set((one.to, node), (one.name, None))
            case "remove":
                self._set((one.name, None))
            case "folder":
                self._set((one.name, _Node({}, {})))
            case "link":
                text = os.fsdecode(one.data)
                self._set((one.name, _Node(text, text)))
            case "sync" if isinstance(node.now, dict):
                self._sync_names(node)
            case "sync":
                node.sure, node.sure_mode = node.now, node.mode
            case _:
                raise AssertionError(one)

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

    def _picture(self, changes: list[_Change], chance: Callable[[], float]) -> "_Picture":
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

        draw(self._top, "")
        return found


def _put(names: dict[str, _Node], name: str, node: _Node | None) -> None:
    if node is None:
        names.pop(name, None)
    else:
        names[name] = node


_Picture = dict[str, str | tuple[bytes, int] | None]
"""Paths below the root: folders, targets of links, bytes and modes of files."""


def disks(origin: Path, run: Sequence[Operation], seed: int = 0) -> Iterator[tuple[int, _Picture]]:
    """Give each thing that the disk may hold at any moment of a run in a copy of `origin`.

    One that may be there at several moments comes once, with the last of those that follow another.
    """
    chance, state = random.Random(seed), _Disks(origin)
    before: dict[tuple[tuple[str, object], ...], _Picture] = {}
    for moment, one in enumerate(run, 1):
        state.take(one)
        after = {tuple(sorted(one.items())): one for one in state.variants(chance)}
        for key in before.keys() - after.keys():
            yield moment - 1, before[key]
        before = after
    for picture in before.values():
        yield len(run), picture


def write(picture: _Picture, root: Path) -> None:
    """Make what a picture shows, in a folder."""
    for name, what in picture.items():
        path = root / name
        match what:
            case None:
                path.mkdir(parents=True, exist_ok=True)
            case str():
                path.symlink_to(what)
            case data, mode:
                path.write_bytes(data)
                path.chmod(mode)
