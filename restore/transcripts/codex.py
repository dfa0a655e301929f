"""Codex: `sessions/YYYY/MM/DD/rollout-TIME-ID.jsonl` in CODEX_HOME, which is `~/.codex`.

Each line has `timestamp`, `type` and `payload`. `response_item` is what the model saw and said, in the
form of the Responses API; `event_msg` shows the same to a person, and tells how turns end. Read: what
versions 0.40 to 0.171 write.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from ...machines.json_shape import is_array
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

_OTHER = {"event_msg", "turn_context", "world_state", "token_usage_record", "compacted"}
_SILENT = {"reasoning", "ghost_snapshot", "compaction", "context_compaction", "other"}
_CALLS = {"function_call", "custom_tool_call", "local_shell_call", "web_search_call"}
_HARNESS = re.compile(
    r"\s*(# AGENTS\.md instructions|<(environment_context|user_(instructions|action|shell_command)"
    r"|turn_aborted|skills?(_instructions)?|subagent_notification|recommended_plugins|INSTRUCTIONS)>)"
)
"""How a message begins that the program has written in the person's place."""


def _said(records: Iterable[Record], notes: Notes) -> Iterator[Said]:
    found: list[Said] = []
    for record in records:
        kind, payload = text(record.get("type")), table(record.get("payload"))
        time, event = moment(record.get("timestamp")), payload.get("type")
        if kind == "session_meta":
            notes.folder = notes.folder or text(payload.get("cwd"))
        elif kind == "response_item":
            found += _item(payload, time, notes)
        elif kind == "compacted" and (summary := text(payload.get("message"))):
            found.append(Said("summary", summary, time))
        elif kind == "event_msg" and event == "turn_aborted":
            found.append(Said("stop", text(payload.get("reason")), time))
        elif kind == "event_msg" and event == "thread_rolled_back":
            turns = payload.get("num_turns")
            begins = [at for at, said in enumerate(found) if said.kind == "user"]
            if isinstance(turns, int) and turns > 0:
                del found[begins[-turns] if turns <= len(begins) else 0 :]
        elif kind not in _OTHER:
            notes.skip(kind)
    yield from found


def _item(item: Record, time: float, notes: Notes) -> Iterator[Said]:
    kind, call = text(item.get("type")), text(item.get("call_id"))
    if kind == "message":
        yield from _message(item, time)
    elif kind in _CALLS:
        asked = item.get("arguments") or item.get("input") or item.get("action") or ""
        tool = text(item.get("name")) or kind.removesuffix("_call")
        yield Said("call", written(asked), time, call, tool)
    elif kind.endswith("_call_output"):
        output = item.get("output")
        yield Said("result", flat(table(output).get("content", output)), time, call)
    elif kind not in _SILENT:
        notes.skip(kind)


def _message(item: Record, time: float) -> Iterator[Said]:
    role, parts = item.get("role"), [flat([part]) for part in tables(item.get("content"))]
    kinds = table(item.get("internal_chat_message_metadata_passthrough")).get("content_item_kinds")
    is_own = not is_array(kinds) or any(text(kind).startswith("user.") for kind in kinds)
    if role == "user" and is_own:
        yield Said("user", "\n".join(part for part in parts if not _HARNESS.match(part)), time)
    elif role == "assistant":
        yield Said("assistant", "\n".join(parts), time)


_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_UUID_LENGTH = 36


def _id(path: Path) -> str:
    name = path.stem[-_UUID_LENGTH:]
    return name if path.name.startswith("rollout-") and _UUID.fullmatch(name) else ""


CODEX = Source(
    places=(("CODEX_HOME", "sessions"), ("HOME", ".codex/sessions")),
    listed=files(_id),
    records=json_lines,
    said=_said,
)
