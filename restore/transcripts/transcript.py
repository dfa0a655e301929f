"""A transcript as another agent keeps it, and what every reader of one uses.

A transcript is text of strangers: it is read within bounds, never run, and what cannot be read is named
and left out. An agent is a `Source`: where its transcripts are, and what its records say.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal

from ...machines.json_shape import is_array, is_object, parse_json
from ...machines.value import Value
from ...workflows.foreign_file import decoded, read_foreign, read_head
from ...workflows.home_folder import expanded, home_folder

LARGEST: Final = 256 * 1024 * 1024
LINE: Final = 8 * 1024 * 1024
"""Bytes of a transcript, and of a record, which may hold a picture."""
_HEAD = 256 * 1024
"""Bytes of a transcript that are read for a list."""
_FILES, _LINES, _KINDS = 50_000, 500_000, 20
ID: Final = re.compile(r"[A-Za-z0-9_-]{1,80}")
_YEAR_3000 = 32_503_680_000.0

Record = dict[str, Any]


class Said(Value, kw_only=False):
    """One thing that a transcript tells; `time` is in seconds since 1970, 0 if it is not known.

    A `call` and its `result` have the agent's id of the call, a call also its tool. A `stop` ends a turn
    early. A `summary` stands for all before it.
    """

    kind: Literal["user", "assistant", "call", "result", "stop", "summary"]
    text: str
    time: float = 0.0
    call: str = ""
    tool: str = ""


class Listed(Value):
    """A transcript that is there; a list of files does not know `folder` and `title`."""

    id: str
    path: Path
    updated: float
    folder: str = ""
    title: str = ""


class Notes:
    """What a reader notes beside what was said."""

    def __init__(self) -> None:
        self.folder = ""
        self.skipped: Counter[str] = Counter()
        self.damaged: list[str] = []

    def skip(self, kind: str) -> None:
        """Count a record of a kind that this program does not know."""
        known = kind[:40] or "no kind"
        self.skipped[known if known in self.skipped or len(self.skipped) < _KINDS else "…"] += 1


class Source(Value):
    """An agent whose transcripts can be read.

    Of `places`, (variable, path below its value), the first whose variable is set holds them. `listed`
    yields what is there, `records` one transcript, or at most so much of it, and `said` what it tells.
    """

    places: tuple[tuple[str, str], ...]
    listed: Callable[[Path], Iterable[Listed]]
    records: Callable[[Listed, Notes, bool], Iterable[Record]]
    said: Callable[[Iterable[Record], Notes], Iterator[Said]]

    def location(self, environ: Mapping[str, str]) -> Path:
        """Return the folder or the file that holds the transcripts."""
        for variable, below in self.places:
            if value := environ.get(variable, "").strip():
                return expanded(value) / below
        return home_folder() / self.places[-1][1]

    def read(self, listed: Listed, notes: Notes, *, is_whole: bool = True) -> list[Said]:
        """Read a transcript, or its begin. Raises `OSError`, and `UsageError` for a newer format."""
        return list(self.said(self.records(listed, notes, is_whole), notes))


# Files of JSON lines ------------------------------------------------------------------------------


def files(id_of: Callable[[Path], str]) -> Callable[[Path], Iterator[Listed]]:
    """Return what lists the JSON lines below a folder; no link is followed.

    `id_of` gives a transcript's id by its path in the folder, empty if it is none.
    """

    def listed(home: Path) -> Iterator[Listed]:
        folders, seen = [] if home.is_symlink() else [home], 0
        while folders:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if (seen := seen + 1) > _FILES:
                        raise OSError(f"it has more than {_FILES:,} files")
                    path = Path(entry.path)
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(path)
                    elif path.suffix == ".jsonl" and entry.is_file(follow_symlinks=False):
                        name = id_of(path.relative_to(home))
                        if ID.fullmatch(name):
                            updated = entry.stat(follow_symlinks=False).st_mtime
                            yield Listed(id=name, path=path, updated=updated)

    return listed


def json_lines(listed: Listed, notes: Notes, is_whole: bool) -> Iterator[Record]:
    """Parse JSON lines; one that is damaged is noted and left out."""
    if is_whole:
        lines = read_foreign(listed.path, LARGEST, follows_links=False).split(b"\n", _LINES)
    else:
        lines = read_head(listed.path, _HEAD).split(b"\n")[:-1]
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            if len(line) > LINE:
                raise ValueError(f"it has more than {LINE:,} bytes")
            record = parse_json(decoded(line))
            if not is_object(record):
                raise ValueError("it is no object")
        except UnicodeDecodeError:
            notes.damaged.append(f"line {number}: it is not UTF-8")
        except ValueError as error:
            notes.damaged.append(f"line {number}: {error}")
        else:
            yield record


# Values of any shape ------------------------------------------------------------------------------


def table(value: object) -> Record:
    """Return an object, or an empty one for anything else."""
    return value if is_object(value) else {}


def tables(value: object) -> list[Record]:
    """Return the objects of a list; nothing for anything else."""
    return [item for item in value if is_object(item)] if is_array(value) else []


def text(value: object) -> str:
    """Return a string that every encoding can hold, or an empty one for anything else."""
    return str(value.encode(errors="replace"), "utf-8") if isinstance(value, str) else ""


def flat(content: object) -> str:
    """Return the text of a message: a string, or a list of parts, of which pictures are only named."""
    if isinstance(content, str):
        return text(content)
    parts = (
        text(part.get("text")) or ("[picture]" if "image" in text(part.get("type")) else "")
        for part in tables(content)
    )
    return "\n".join(filter(None, parts))


def written(arguments: object) -> str:
    """Return the arguments of a call as they are, if they are a text, or as JSON."""
    is_text = isinstance(arguments, str)
    return text(arguments if is_text else json.dumps(arguments, ensure_ascii=False))


def moment(value: object) -> float:
    """Return a time, written in ISO 8601 or in milliseconds, in seconds; 0 for anything else."""
    found = 0.0
    try:
        if isinstance(value, str):
            found = datetime.fromisoformat(value).timestamp()
        elif isinstance(value, int | float):
            found = value / 1000
    except (ValueError, OverflowError):
        pass
    return found if 0 < found < _YEAR_3000 else 0.0
