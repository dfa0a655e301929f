"""What other sessions changed in the same folder between two looks, as their change logs say.

A command may change anything, so a look cannot tell its changes from those of a session beside it. The
other session can: it has entered them. Where both ran a command, a change is of the one that ended first,
as it is among the commands of one session.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import field

from ..machines.value import Value
from .scan import PathState, from_data


class Foreign(Value):
    """What others `left` of paths, and the paths whose content is theirs, whatever it is (`taken`)."""

    left: dict[str, PathState | None] = field(default_factory=dict[str, PathState | None])
    taken: set[str] = field(default_factory=set[str])

    def is_of(self, path: str, now: PathState | None) -> bool:
        """Whether what a path holds now is theirs."""
        return path in self.taken or (path in self.left and self.left[path] == now)

    def add(self, line: dict[str, Any], writing: dict[str, list[str]]) -> None:
        """Take one line of a log; `writing` are the paths of the calls that have begun in it."""
        match line:
            case {"kind": "begun", "about": [_, call, *_], "before": before}:
                writing[call] = [path for path, _ in before]
            case {"kind": "ended", "about": [_, call, *_], "touches": touches}:
                writing.pop(call, None)
                self.left.update((path, from_data(after)) for path, _, after, *_ in touches)
            case {"kind": "reverted", "names": names}:
                self.taken.update(path for _, path in names)
            case {"kind": "undone", "paths": paths}:
                self.taken.update(paths)
            case _:
                return


class OtherSessions:
    """The logs of a folder's other sessions in `place`, each read from where it ended before.

    Where that is, is kept in a file, for the process that finds commands which a dead one has left.
    """

    def __init__(self, place: Path, own: str) -> None:
        self._place, self._own = place, f"ledger-{own}.jsonl"
        self._kept = place / f"beside-{own}.json"
        self._read: dict[str, int] = {}  # bytes, by the name of the log

    def skip(self) -> None:
        """Leave out what was entered until now."""
        for file in self._place.glob("ledger-*.jsonl"):
            with suppress(OSError):
                self._read[file.name] = file.stat().st_size
        self.keep()

    def since(self) -> Foreign:
        """Return what was entered since the last look."""
        found = Foreign()
        for file in self._place.glob("ledger-*.jsonl"):
            if file.name != self._own:
                with suppress(OSError):
                    self._add(file, found)
        return found

    def since_the_crash(self) -> Foreign:
        """Return what was entered since the last look of a dead process; nothing if it kept none."""
        with suppress(OSError, ValueError):
            self._read = json.loads(self._kept.read_bytes())
            return self.since()
        return Foreign()

    def keep(self) -> None:
        """Write how far the logs are read, once what was found is entered.

        A process that dies leaves it, a power cut need not.
        """
        written = self._kept.with_suffix(".new")
        with suppress(OSError):  # then a crash leaves it unknown whose change is whose
            written.write_text(json.dumps(self._read), "ascii")
            written.replace(self._kept)

    def _add(self, file: Path, found: Foreign) -> None:
        start = self._read.get(file.name, 0)
        if file.stat().st_size == start:
            return
        with file.open("rb") as log:
            log.seek(start)
            whole = log.read().rpartition(b"\n")[0]
        self._read[file.name] = start + len(whole)
        writing: dict[str, list[str]] = {}
        for line in whole.splitlines():
            with suppress(ValueError):  # cut off by a crash
                found.add(json.loads(line), writing)
        for paths in writing.values():
            found.taken.update(paths)
