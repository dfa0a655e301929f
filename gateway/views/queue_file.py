"""A queue as a TOML file, for people and other programs: written often, read only by `/queue import`.

    session_id = "9f3a01c2"
    saved_at = 2026-11-21T10:15:30Z
    [[items]]
    id = "m2"
    content = "and the tests"
    status = "pending"
    created_at = 2026-11-21T10:14:02Z
    progress = ""
    user = "ann"

A message that steers has `type = "steer"`, too.
The file is a copy; the store has the queue. An import adds all of a file or nothing.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import tomli_w

from ...journal.queue_record import ItemRecord, QueueRecord
from ...machines import protocol as m
from ...machines.errors import ConfigError
from ...workflows.document import is_list, is_table, parse_document
from ...workflows.durability import replace_file
from ...workflows.foreign_file import read_foreign
from ..wording.formats import progress_text

WAITING = ("pending", "interrupted", "running")
LIMIT = 8 * 1024 * 1024
"""Bytes of a queue file; a queue that people wrote is far smaller."""


def item_text(item: ItemRecord) -> str:
    """Write a message as one table of `items`, with its times in UTC."""
    table = {
        "id": item.id,
        "content": item.text,
        "status": item.state,
        **({"type": "steer"} if item.is_steer else {}),
        "created_at": _utc(item.created),
        "progress": progress_text(item.progress).strip(" ()"),
        "user": item.said.user,
    }
    return f"[[items]]\n{_toml(table)}"


def document(session: str, items: Sequence[str], now: float) -> bytes:
    """Return the document of a queue, from the texts of its messages."""
    head = {"session_id": session, "saved_at": _utc(now)}
    text = "\n".join((_toml(head), *items)) if items else _toml({**head, "items": []})
    return text.encode("utf-8", "replace")


def _toml(data: dict[str, Any]) -> str:
    return tomli_w.dumps(data, multiline_strings=False)


def parse(content: bytes, file: str, session: str = "") -> list[m.ImportedItem]:
    """Return the waiting messages of a queue file, in order.

    What ran when it was written waits, too, but not in its own `session`: there it would run twice.
    Raises `ConfigError` with the place for a damaged file, and for a file that is no queue file.
    """
    found, problems = parse_document(file, content)
    for fault in problems:
        raise _foreign(fault.problem.message, file, fault.line, fault.column)
    items = found.data.get("items")
    if not is_list(items):
        raise _foreign("it has no [[items]]", file)
    read = [_item(item, number, file) for number, item in enumerate(items, 1)]
    is_own = bool(session) and found.data.get("session_id") == session
    waits = [status for status in WAITING if not (is_own and status == "running")]
    return [item for status, item in read if status in waits]


def read_file(path: Path, session: str = "") -> list[m.ImportedItem]:
    """Read a queue file; a symbolic link is not followed. Raises `ConfigError`."""
    try:
        data = read_foreign(path, LIMIT, follows_links=False)
    except OSError as error:
        what = "it is a symbolic link" if path.is_symlink() else error.strerror or error
        raise _unusable(f"it cannot be read: {what}", path) from error
    return parse(data, str(path), session)


def write_file(path: Path, session: str, queue: QueueRecord, now: float) -> int:
    """Write a queue into a file in one step and return how many items it has.

    Raises `ConfigError` for a symbolic link, and for an existing file that is no queue file.
    """
    if path.is_symlink() or path.exists():
        read_file(path)
    items = [item_text(item) for item in queue.live()]
    try:
        replace_file(path, document(session, items, now), 0o600)
    except OSError as error:
        raise _unusable(f"it cannot be written: {error.strerror}", path) from error
    return len(items)


def _unusable(what: str, path: Path) -> ConfigError:
    return ConfigError(what, "name another file; nothing was changed", file=str(path))


def _item(item: Any, number: int, file: str) -> tuple[str, m.ImportedItem]:
    where = f"item {number}"
    if not is_table(item):
        raise _foreign(f"{where} is not a table", file)
    content, status, user = (item.get(key) for key in ("content", "status", "user"))
    if not isinstance(content, str) or not content.strip():
        raise _foreign(f"{where} has no `content`", file)
    status, user = status or "pending", user or ""
    if not isinstance(status, str) or not isinstance(user, str):
        raise _foreign(f"{where}: `status` and `user` must be texts", file)
    return status, m.ImportedItem(
        said=m.Said(text=content, user=user), is_steer=item.get("type") == "steer"
    )


def _foreign(what: str, file: str, line: int = 0, column: int = 0) -> ConfigError:
    return ConfigError(
        f"this is not a queue file: {what}",
        "nothing was imported; `/queue export FILE` writes one to compare with",
        file=file,
        line=line,
        column=column,
    )


def _utc(time: float) -> datetime:
    return datetime.fromtimestamp(round(time), UTC)
