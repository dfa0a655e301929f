"""Claude Code: `projects/FOLDER/ID.jsonl` in CLAUDE_CONFIG_DIR, which is `~/.claude`.

The records are a tree: each names the one before it as `parentUuid`. An answer of several parts is
several records with the same `message.id`. A summary begins a new tree. Subagents (`isSidechain`) and
what the program itself adds (`isMeta`) are left out. Read: what versions 1.0 to 2.1 write.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

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

_OTHER = {
    *(
        "queue-operation",
        "attachment",
        "last-prompt",
        "mode",
        "permission-mode",
        "system",
        "progress",
    ),
    *("file-history-snapshot", "agent-name", "agent-color", "agent-setting", "pr-link", "tag"),
    *("summary", "ai-title", "custom-title", "content-replacement", "worktree-state"),
}
_SPOKEN = ("user", "assistant")
_HARNESS = re.compile(
    r"\s*<(command-(name|message)|local-command-|bash-|system-reminder|task-notification)"
)
_STOP = "[Request interrupted by user"


def _said(records: Iterable[Record], notes: Notes) -> Iterator[Said]:
    known: dict[str, Record] = {}
    before = ""
    for record in records:
        notes.folder = notes.folder or text(record.get("cwd"))
        kind, name = text(record.get("type")), text(record.get("uuid"))
        if kind not in (*_OTHER, *_SPOKEN):
            notes.skip(kind)
        if not name or record.get("isSidechain"):
            continue
        parent = text(record.get("parentUuid"))
        if parent not in known and record.get("parentUuid") is not None:
            parent = before  # that line is damaged
        known[name] = {**record, "parentUuid": parent}
        before = name
    for record in _branch(known):
        yield from _message(record, notes)


def _branch(known: dict[str, Record]) -> list[Record]:
    """Return the records that lead to the newest message, in order.

    The parts of one answer, and the results of the calls in it, may lie on branches of their own.
    """
    way = set[str]()
    leaf = next((name for name in reversed(known) if known[name].get("type") in _SPOKEN), "")
    while leaf in known and leaf not in way:
        way.add(leaf)
        leaf = known[leaf]["parentUuid"]
    answers = {_answer(known[name]) for name in way} - {""}
    way |= {name for name, record in known.items() if _answer(record) in answers}
    calls = {text(part.get("id")) for name in way for part in _parts(known[name])} - {""}
    return [
        record
        for name, record in known.items()
        if name in way or any(text(part.get("tool_use_id")) in calls for part in _parts(record))
    ]


def _answer(record: Record) -> str:
    return text(table(record.get("message")).get("id")) if record.get("type") == "assistant" else ""


def _parts(record: Record) -> list[Record]:
    content = table(record.get("message")).get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else tables(content)


def _message(record: Record, notes: Notes) -> Iterator[Said]:
    is_user, parts = record.get("type") == "user", _parts(record)
    time = moment(record.get("timestamp"))
    if record.get("isCompactSummary") or record.get("isApiErrorMessage"):
        yield Said("summary" if is_user else "stop", flat(parts), time)
        return
    for part in [] if record.get("isMeta") else parts:
        kind, said = text(part.get("type")), text(part.get("text"))
        if kind.endswith("tool_result"):
            call = text(part.get("tool_use_id"))
            yield Said("result", flat(part.get("content")), time, call)
        elif kind.endswith("tool_use"):
            call, tool = text(part.get("id")), text(part.get("name"))
            yield Said("call", written(part.get("input")), time, call, tool)
        elif is_user and said.startswith(_STOP):
            yield Said("stop", "", time)
        elif kind in ("text", "image", "document"):
            is_harness = is_user and _HARNESS.match(said)
            shown = said if kind == "text" else f"[{kind}]"
            yield Said("user" if is_user else "assistant", "" if is_harness else shown, time)
        elif kind not in ("thinking", "redacted_thinking"):
            notes.skip(kind)


def _id(path: Path) -> str:
    is_one = len(path.parts) == 2 and not path.name.startswith("agent-")
    return path.stem if is_one else ""


CLAUDE = Source(
    places=(("CLAUDE_CONFIG_DIR", "projects"), ("HOME", ".claude/projects")),
    listed=files(_id),
    records=json_lines,
    said=_said,
)
