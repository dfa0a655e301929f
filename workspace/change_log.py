"""The change log of a session: which call changed which path, from what to what. Lines are only added.

A call is entered before it begins and again when its changes are known; calls may overlap, since the
children of a session work beside it. A line that a crash cut off is as if it had not been written. What
a revert gave back is taken out of force, and put back into force when the revert is undone.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import asdict

from ..machines.value import Value
from ..workflows.durability import replace_file, sync_folder
from .restore_plan import PathChange
from .scan import NOT_COMPARED, Others, PathState, from_data, to_data

# The side record: what git's index does not hold --------------------------------------------------
# Kept beside the index of a session, as JSON, and brought up to date with it.


PLAIN, PROGRAM = 0o644, 0o755


class SideRecord(Struct, kw_only=True):
    """`modes` are the permission bits of files that differ from `plain` (of programs: `program`).

    `folders` are those in which no file is known, `nested` those that are repositories of their own,
    `loose` maps what is not copied to its signature. All paths are relative to the work tree.
    """

    plain: int = PLAIN
    program: int = PROGRAM
    modes: dict[str, int] = field(default_factory=dict[str, int])
    folders: list[str] = field(default_factory=list[str])
    nested: list[str] = field(default_factory=list[str])
    loose: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])

    def mode(self, path: str, is_program: bool) -> int:
        """Return the permission bits of a file."""
        return self.modes.get(path, self.program if is_program else self.plain)

    def note_mode(self, path: str, mode: int) -> None:
        """Remember a file's permission bits, if they are not the default."""
        if mode == (self.program if mode & 0o100 else self.plain):
            self.modes.pop(path, None)
        else:
            self.modes[path] = mode

    def note_all(self, modes: dict[str, int]) -> None:
        """Replace the modes of all files: what most of them have becomes the default."""
        for name, bit in (("plain", 0), ("program", 0o100)):
            found = [mode for mode in modes.values() if mode & 0o100 == bit]
            if found:
                setattr(self, name, max(set(found), key=found.count))
        self.modes = {}
        for path, mode in modes.items():
            self.note_mode(path, mode)


def load_side(file: Path) -> SideRecord:
    """Read a side record; an empty one if there is none."""
    with suppress(FileNotFoundError):
        data: dict[str, Any] = json.loads(file.read_text("utf-8"))
        data["loose"] = {path: (touch[0], touch[1]) for path, touch in data["loose"].items()}
        return SideRecord(**data)
    return SideRecord()


def save_side(file: Path, side: SideRecord) -> None:
    """Write a side record, at once or not at all. Raises `OSError`."""
    replace_file(file, json.dumps(asdict(side)).encode(), 0o600)


Names = list[tuple[str, str]]
"""Touches by call and path."""


class OpenCall(Value):
    """A call whose changes are not known yet; `before` is what its own paths held, if it has any.

    Calls with the same `window` overlapped, or others between them did with both.
    """

    turn: str
    call: str
    tool: str
    is_command: bool
    before: dict[str, PathState | None] = field(default_factory=dict[str, PathState | None])
    window: int = 0

    def change(
        self,
        path: str,
        before: PathState | None,
        after: PathState | None,
        *,
        is_shared: bool = False,
        is_unsure: bool = False,
    ) -> PathChange:
        """Return what the call made of a path."""
        return PathChange(
            turn=self.turn,
            call=self.call,
            tool=self.tool,
            path=path,
            before=before,
            after=after,
            is_shared=is_shared,
            is_unsure=is_unsure,
            window=self.window,
        )


RECENT = 1_000
"""Changes that are kept in memory, of more turns than the newest."""
_BEGUN = re.compile(
    rb'\{"kind": "begun", "about": \["([^"\\]*)", "([^"\\]*)", .*"window": ([0-9]+)\}'
)
_ENDED = re.compile(
    rb'\{"kind": "ended", "about": \["([^"\\]*)", "([^"\\]*)", .*"blind": ("(?:[^"\\]|\\.)*")\}'
)
_REVERT = re.compile(rb'\{"kind": "(?:reverted|undone)", .*\}')
_LOOKED = re.compile(rb'\{"kind": "looked", .*\}')
"""Lines as they are written now; others are read as JSON."""


class FirstLook(Value):
    """A look before a command: `others` changed since the look before, with what they held then.

    `around` names the copy of the `Surroundings`, if this began a turn.
    """

    turn: str
    around: str = ""
    others: Others = field(default_factory=dict[str, PathState | None])


def _others(rows: list[Any]) -> Others:
    """Read the others of a look; an earlier version wrote only their names."""
    found: Others = {}
    for row in rows:
        path, was = (row, NOT_COMPARED) if isinstance(row, str) else (row[0], from_data(row[1]))
        found[path] = was
    return found


class _Folded:
    """What lines of a change log come to; the window is that of the call begun last."""

    def __init__(self) -> None:
        self.open: dict[str, OpenCall] = {}
        self.blind: dict[str, str] = {}
        self.touches: dict[tuple[str, str], PathChange] = {}
        self.reverted: dict[str, set[tuple[str, str]]] = {}
        self.looks: list[FirstLook] = []
        self.window = 0

    def in_force(self) -> list[PathChange]:
        """Return the changes that no revert gave back, oldest first."""
        gone = set[tuple[str, str]]().union(*self.reverted.values())
        return [touch for name, touch in self.touches.items() if name not in gone]

    def fold(self, line: dict[str, Any]) -> None:
        """Take one line."""
        match line:
            case {"kind": "begun", "about": [turn, call, tool, is_command], "before": before}:
                states = {path: from_data(state) for path, state in before}
                self.window = line.get("window", self.window + 1)
                self.open[call] = OpenCall(
                    turn=turn,
                    call=call,
                    tool=tool,
                    is_command=is_command,
                    before=states,
                    window=self.window,
                )
            case {"kind": "ended", "about": [turn, call, tool, window], "touches": touches}:
                self._end(
                    OpenCall(turn=turn, call=call, tool=tool, is_command=False, window=window),
                    touches,
                    line["blind"],
                )
            case {"kind": "ended", "touches": touches} if self.open:  # of one call at a time
                self._end(next(iter(self.open.values())), touches, line["blind"])
            case {"kind": "reverted", "id": name, "names": names}:
                self.reverted.setdefault(name, set()).update((pair[0], pair[1]) for pair in names)
            case {"kind": "undone", "id": name, "paths": paths}:
                left = self.reverted.get(name, set())
                self.reverted[name] = {pair for pair in left if pair[1] not in paths}
            case {"kind": "looked", "turn": turn, "around": around, "others": others}:
                self.looks.append(FirstLook(turn=turn, around=around, others=_others(others)))
            case _:  # a line of a later version
                return

    def _end(self, call: OpenCall, touches: list[list[Any]], blind: str) -> None:
        self.open.pop(call.call, None)
        if blind:
            self.blind[call.turn] = blind
        for path, before, after, is_shared, is_unsure in touches:
            states = from_data(before), from_data(after)
            change = call.change(path, *states, is_shared=is_shared, is_unsure=is_unsure)
            self.touches[call.call, path] = change


class ChangeLog:
    """One session's changes of files, oldest first.

    `open` are the calls that run now, by name; `left` are those that a process left which died; `blind`
    says of which turns it is not known what they changed, and why. In memory are only the changes of the
    newest turns: the file has all of them, and is read for questions about an older turn.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._recent = _Folded()
        self._past = 0  # number of the newest turn of which not all changes are in memory
        self._skim()
        self.open, self.blind = self._recent.open, self._recent.blind
        self.left = tuple(self.open.values())
        self.open.clear()

    def _skim(self) -> None:
        """Look through the file for the calls that have not ended, and for what is blind."""
        begun: dict[bytes, bytes] = {}
        for line in self._lines():
            if found := _BEGUN.fullmatch(line):
                self._past = max(self._past, number_of(found[1].decode()))
                self._recent.window = int(found[3])
                begun[found[2]] = line
            elif found := _ENDED.fullmatch(line):
                begun.pop(found[2], None)
                if found[3] != b'""':
                    self._recent.blind[found[1].decode()] = json.loads(found[3])
            elif _LOOKED.fullmatch(line):
                self._recent.fold(json.loads(line))
            elif not _REVERT.match(line):  # of an earlier version, or cut off
                self._recent = self._whole()
                turns = (touch.turn for touch in self._recent.touches.values())
                self._past = max(self._past, *map(number_of, turns), 0)
                self._recent.touches.clear()
                return
        for line in begun.values():
            self._recent.fold(json.loads(line))

    def _lines(self) -> Iterator[bytes]:
        with suppress(FileNotFoundError), open(self._file, "rb") as file:
            yield from (line for whole in file if (line := whole.rstrip(b"\n")))

    def _whole(self) -> _Folded:
        """Fold every line."""
        folded = _Folded()
        for line in self._lines():
            with suppress(ValueError):  # cut off by a crash
                folded.fold(json.loads(line.decode("ascii", "replace")))
        return folded

    @property
    def looks(self) -> list[FirstLook]:
        """The looks that began turns, or found changes by others; oldest first."""
        return self._recent.looks

    # Changes in force -----------------------------------------------------------------------------

    def touches(self) -> list[PathChange]:
        """Return the changes that no revert gave back, oldest first."""
        return self._whole().in_force()

    def _from(self, first: int) -> list[PathChange]:
        """Return at least the changes in force of the turns from this number on."""
        return self._recent.in_force() if first > self._past else self.touches()

    def since(self, turn: str) -> list[PathChange]:
        """Return the changes in force of a turn and of all after it."""
        first = number_of(turn)
        return [touch for touch in self._from(first) if number_of(touch.turn) >= first]

    def of(self, turns: Iterable[str]) -> list[PathChange]:
        """Return the changes in force of these turns."""
        wanted = set(turns)
        known = self._from(min(map(number_of, wanted), default=0)) if wanted else ()
        return [touch for touch in known if touch.turn in wanted]

    def newest(self, resumed: Iterable[tuple[str, str]] = ()) -> list[PathChange]:
        """Return the changes in force of the newest turn that has any, and of those it goes on from.

        `resumed`: pairs of a turn and the one that it goes on from.
        """
        newest, links = self._newest(), dict(resumed)
        names = [newest[-1].turn] if newest else []
        while names and names[-1] in links:
            names.append(links[names[-1]])
        return self.of(names) if len(names) > 1 else newest

    def _newest(self) -> list[PathChange]:
        for first in (self._past + 1, 0):
            touches = [touch for touch in self._from(first) if number_of(touch.turn) >= first]
            if touches:
                newest = max(touches, key=lambda touch: number_of(touch.turn)).turn
                return [touch for touch in touches if touch.turn == newest]
        return []

    def last(self, turns: Iterable[str] = ()) -> list[PathChange]:
        """Return the changes of the newest call that has any in force, in these turns or in all."""
        wanted = set(turns)
        touches = self.of(wanted) if wanted else self.touches()
        return [touch for touch in touches if touch.call == touches[-1].call]

    # Lines that are added -------------------------------------------------------------------------

    def begin(self, call: OpenCall) -> None:
        """Enter a call that is about to start."""
        before = [[path, to_data(state)] for path, state in call.before.items()]
        about = [call.turn, call.call, call.tool, call.is_command]
        window = self._recent.window + (not self.open)
        self._add({"kind": "begun", "about": about, "before": before, "window": window})

    def end(self, call: OpenCall, touches: Iterable[PathChange], blind: str = "") -> None:
        """Enter what a call changed; `blind` says why that is not known."""
        rows = [
            [
                touch.path,
                to_data(touch.before),
                to_data(touch.after),
                touch.is_shared,
                touch.is_unsure,
            ]
            for touch in touches
        ]
        about = [call.turn, call.call, call.tool, call.window]
        self._add({"kind": "ended", "about": about, "touches": rows, "blind": blind})

    def look(self, look: FirstLook) -> None:
        """Enter a look before a command; the line of that command makes it durable."""
        others = [[path, to_data(was)] for path, was in look.others.items()]
        about = {"turn": look.turn, "around": look.around, "others": others}
        self._add({"kind": "looked", **about}, syncs=False)

    def revert(self, name: str, given_back: Names) -> None:
        """Take changes out of force; twice is as once."""
        self._add({"kind": "reverted", "id": name, "names": given_back})

    def undo(self, name: str, paths: Iterable[str]) -> None:
        """Put the changes of these paths into force again that were reverted."""
        self._add({"kind": "undone", "id": name, "paths": list(paths)})

    def _add(self, line: dict[str, Any], *, syncs: bool = True) -> None:
        """Write a line, durably if it `syncs`, then apply it. Raises `OSError`."""
        data = json.dumps(line) + "\n"
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        with os.fdopen(os.open(self._file, flags, 0o600), "ab") as file:
            is_new = not file.tell()
            if not is_new and not self._ends_a_line():
                data = "\n" + data
            file.write(data.encode("ascii"))
            file.flush()
            if syncs:
                os.fsync(file.fileno())
        if is_new:
            sync_folder(self._file.parent)
        self._recent.fold(json.loads(data))
        self._forget()

    def _forget(self) -> None:
        """Keep the changes of the newest turn alone in memory, where there are many of others."""
        touches = self._recent.touches
        if len(touches) <= RECENT:
            return
        oldest, newest = (
            number_of(touches[name].turn) for name in (next(iter(touches)), next(reversed(touches)))
        )
        if oldest < newest:
            self._past = max(self._past, newest - 1)
            for name in [name for name in touches if number_of(touches[name].turn) < newest]:
                del touches[name]

    def _ends_a_line(self) -> bool:
        with open(self._file, "rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read() == b"\n"


def number_of(turn: str) -> int:
    """Return a turn's number, from its id."""
    return int(turn[1:]) if turn[1:].isdecimal() else 0
