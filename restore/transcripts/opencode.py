"""opencode: the database `opencode/opencode.db` in XDG_DATA_HOME, which is `~/.local/share`.

OPENCODE_DB is the path of another one. `session`, `message` and `part` have a row each, with what is
told of it as JSON in `data`; ids grow with time. Read: what versions 1.2 to 1.18 write. The database is
read as it is, also while opencode runs, and never written.
"""

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import apsw

from ...machines.errors import UsageError
from ...machines.json_shape import parse_json
from .transcript import (
    ID,
    LARGEST,
    LINE,
    Listed,
    Notes,
    Record,
    Said,
    Source,
    moment,
    table,
    tables,
    text,
    written,
)

_SILENT = {
    *("text", "reasoning", "step-start", "step-finish", "snapshot", "patch", "agent", "retry"),
    *("subtask", "compaction"),
}
_STEPS = 10_000
"""Times ten thousand instructions of SQLite: a database of strangers could compute for ever."""
_LIST = (
    "SELECT id, time_updated, directory, title FROM session WHERE parent_id IS NULL "
    "ORDER BY time_updated DESC LIMIT 10000"
)
_PARTS = "SELECT message_id, id, data FROM part WHERE session_id = ? ORDER BY id"
_MESSAGES = (
    "SELECT id, time_created, data FROM message WHERE session_id = ? ORDER BY time_created, id"
)


@contextmanager
def _reading(path: Path) -> Generator[Callable[..., Iterable[tuple[Any, ...]]]]:
    """Open the database without the right to write. Raises `OSError`, `UsageError`."""
    if path.stat(follow_symlinks=False).st_size > 16 * LARGEST:
        raise OSError(f"it has more than {16 * LARGEST:,} bytes")
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_NOFOLLOW
    try:
        with closing(
            apsw.Connection(str(path.parent.resolve() / path.name), flags=flags)
        ) as database:
            database.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
            database.limit(apsw.SQLITE_LIMIT_LENGTH, LINE)
            database.set_busy_timeout(5_000)
            steps = iter(range(_STEPS))
            database.set_progress_handler(lambda: next(steps, None) is None, 10_000)
            yield database.execute  # pyright: ignore[reportUnknownMemberType]
    except apsw.SQLError as error:
        raise UsageError(
            f"`{path}` has other tables than this program knows: {error}",
            "another version of opencode wrote it: update this program",
        ) from error
    except apsw.Error as error:
        raise OSError(str(error)) from error


def _listed(path: Path) -> Iterator[Listed]:
    with _reading(path) as rows:
        for name, time, folder, title in rows(_LIST):
            if ID.fullmatch(text(name)):
                told = {"folder": text(folder), "title": text(title)}
                yield Listed(id=name, path=path, updated=moment(time), **told)


def _records(listed: Listed, notes: Notes, is_whole: bool) -> Iterator[Record]:
    """Yield the messages, each with its parts."""

    def parsed(data: object, name: str) -> Record:
        try:
            return table(parse_json(text(data) or "null"))
        except ValueError as error:
            notes.damaged.append(f"{name}: {error}")
            return {"type": "text"}

    notes.folder, parts = listed.folder, dict[str, list[Record]]()
    with _reading(listed.path) as rows:
        found = rows("SELECT revert FROM session WHERE id = ?", (listed.id,))
        end = next((text(parsed(data, "the revert").get("messageID")) for (data,) in found), "")
        for message, name, data in rows(_PARTS, (listed.id,)):
            parts.setdefault(text(message), []).append(parsed(data, f"part {text(name)}"))
        for name, time, data in rows(_MESSAGES, (listed.id,)):
            if not end or text(name) < end:
                about = {"parts": parts.get(text(name), []), "at": time}
                yield {**parsed(data, f"message {text(name)}"), **about}


def _said(records: Iterable[Record], notes: Notes) -> Iterator[Said]:
    for message in records:
        is_user, time = message.get("role") == "user", moment(message["at"])
        for part in tables(message["parts"]):
            kind, said, state = (
                text(part.get("type")),
                text(part.get("text")),
                table(part.get("state")),
            )
            if kind == "text" and message.get("summary") is True:
                yield Said("summary", said, time)
            elif kind == "text" and not part.get("synthetic") and not part.get("ignored"):
                yield Said("user" if is_user else "assistant", said, time)
            elif kind == "file":
                yield Said("user", f"[file {text(part.get('filename'))}]", time)
            elif kind == "tool":
                call, tool = text(part.get("callID")), text(part.get("tool"))
                yield Said("call", written(state.get("input")), time, call, tool)
                if state.get("status") in ("completed", "error"):
                    yield Said(
                        "result", text(state.get("output") or state.get("error")), time, call
                    )
            elif kind not in _SILENT:
                notes.skip(kind)
        error = table(message.get("error"))
        if error or not (is_user or table(message.get("time")).get("completed")):
            why = text(table(error.get("data")).get("message")) or text(error.get("name"))
            yield Said("stop", why, time)


OPENCODE = Source(
    places=(
        ("OPENCODE_DB", ""),
        ("XDG_DATA_HOME", "opencode/opencode.db"),
        ("HOME", ".local/share/opencode/opencode.db"),
    ),
    listed=_listed,
    records=_records,
    said=_said,
)
