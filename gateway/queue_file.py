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

The store is the truth; this file mirrors it. An import takes all of a file or nothing.
"""

import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import tomli_w

from ..journal.record import QueueRecord
from ..machines.errors import ConfigError
from ..workflows.document import is_list, is_table
from .progress import progress_text

__all__ = ["SavedItem", "document", "parse", "write"]

WAITING = ("pending", "interrupted", "running")


@dataclass(frozen=True, slots=True)
class SavedItem:
    """One message of a queue file."""

    content: str
    status: str = "pending"
    user: str = ""


def document(session: str, queue: QueueRecord, now: float) -> dict[str, Any]:
    """Return what is written: everything in the queue that has not ended, in order, times in UTC."""
    return {
        "session_id": session,
        "saved_at": _utc(now),
        "items": [
            {
                "id": item.id,
                "content": item.text,
                "status": item.state,
                "created_at": _utc(item.created),
                "progress": progress_text(item.progress).strip(" ()"),
                "user": item.user,
            }
            for item in queue.live()
        ],
    }


def write(data: dict[str, Any]) -> bytes:
    """Write a document as TOML."""
    return tomli_w.dumps(data, multiline_strings=False).encode()


def parse(text: str, file: str) -> list[SavedItem]:
    """Read a queue file: what waits in it, in order.

    Raises `ConfigError` that names the place, for a damaged file and for one that is something else.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(
            f"not TOML: {error}",
            "nothing was imported; `/queue export` writes such files",
            file=file,
        ) from error
    items = data.get("items")
    if not is_list(items):
        raise _foreign("it has no [[items]]", file)
    return [
        found
        for number, item in enumerate(items, 1)
        if (found := _item(item, number, file)).status in WAITING
    ]


def _item(item: Any, number: int, file: str) -> SavedItem:
    where = f"item {number}"
    if not is_table(item):
        raise _foreign(f"{where} is not a table", file)
    content, status, user = (item.get(key) for key in ("content", "status", "user"))
    if not isinstance(content, str) or not content.strip():
        raise _foreign(f"{where} has no `content`", file)
    status, user = status or "pending", user or ""
    if not isinstance(status, str) or not isinstance(user, str):
        raise _foreign(f"{where}: `status` and `user` must be texts", file)
    return SavedItem(content, status, user)


def _foreign(what: str, file: str) -> ConfigError:
    return ConfigError(
        f"this is no queue file: {what}",
        "nothing was imported; `/queue export FILE` writes one to compare with",
        file=file,
    )


def _utc(time: float) -> datetime:
    return datetime.fromtimestamp(round(time), UTC)
