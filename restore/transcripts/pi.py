"""pi: `sessions/FOLDER/TIME_ID.jsonl` in PI_CODING_AGENT_DIR, which is `~/.pi/agent`.

PI_CODING_AGENT_SESSION_DIR names another folder for the sessions. The records are a tree: each names
the one before it as `parentId`, and the newest is where the session is. The agent's own pages describe
the format; its version is in the first record.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from ...machines.errors import UsageError
from .transcript import (
    Notes,
    Record,
    Said,
    Source,
    files,
    flat,
    json_lines,
    moment,
    table,
    tables,
    text,
    written,
)

_VERSION = 3
_OTHER = {
    *("model_change", "thinking_level_change", "custom", "custom_message", "label", "session_info"),
    "compaction",
}
_SILENT = {"custom", "branchSummary", "compactionSummary"}


def _said(records: Iterable[Record], notes: Notes) -> Iterator[Said]:
    known: dict[str, Record] = {}
    leaf = ""
    for record in records:
        if record.get("type") == "session":
            version = record.get("version", 1)
            if not isinstance(version, int) or version > _VERSION:
                raise UsageError(
                    f"the transcript has version {str(version)[:20]}; this program knows {_VERSION}",
                    "a later version of pi wrote it: update this program",
                )
            notes.folder = notes.folder or text(record.get("cwd"))
            continue
        parent = text(record.get("parentId"))
        if parent not in known and record.get("parentId", "") is not None:
            parent = leaf  # that line is damaged, or the version has no tree
        leaf = text(record.get("id")) or f"#{len(known)}"
        known[leaf] = {**record, "parentId": parent}
    branch: list[Record] = []
    while leaf in known:
        branch.append(record := known.pop(leaf))  # popped: a circle has an end
        leaf = record["parentId"]
    yield from _along(branch[::-1], notes)


def _along(branch: list[Record], notes: Notes) -> Iterator[Said]:
    """Yield what was said on a branch; a summary comes before the messages that it kept."""
    kept = {
        text(record.get("firstKeptEntryId")): text(record.get("summary"))
        for record in branch
        if record.get("type") == "compaction"
    }
    for record in branch:
        kind, time = text(record.get("type")), moment(record.get("timestamp"))
        if summary := kept.get(text(record.get("id"))):
            yield Said("summary", summary)
        if kind == "message":
            yield from _message(table(record.get("message")), time, notes)
        elif kind == "branch_summary":
            yield Said("assistant", f"[Of another branch]\n{text(record.get('summary'))}", time)
        elif kind not in _OTHER:
            notes.skip(kind)


def _message(message: Record, time: float, notes: Notes) -> Iterator[Said]:
    role, content = text(message.get("role")), message.get("content")
    if role == "user":
        yield Said("user", flat(content), time)
    elif role == "assistant":
        for part in tables(content):
            kind = text(part.get("type"))
            if kind == "text":
                yield Said("assistant", text(part.get("text")), time)
            elif kind == "toolCall":
                call, tool = text(part.get("id")), text(part.get("name"))
                yield Said("call", written(part.get("arguments")), time, call, tool)
            elif kind != "thinking":
                notes.skip(kind)
        if message.get("stopReason") in ("aborted", "error"):
            yield Said("stop", text(message.get("errorMessage")), time)
    elif role == "toolResult":
        yield Said("result", flat(content), time, text(message.get("toolCallId")))
    elif role == "bashExecution":
        ran = f"[Ran in a shell: {text(message.get('command'))}]\n{text(message.get('output'))}"
        yield Said("user", "" if message.get("excludeFromContext") else ran, time)
    elif role not in _SILENT:
        notes.skip(role)


def _id(path: Path) -> str:
    _, sign, name = path.stem.rpartition("_")
    return name if sign and len(path.parts) <= 2 else ""


PI = Source(
    places=(
        ("PI_CODING_AGENT_SESSION_DIR", ""),
        ("PI_CODING_AGENT_DIR", "sessions"),
        ("HOME", ".pi/agent/sessions"),
    ),
    listed=files(_id),
    records=json_lines,
    said=_said,
)
