"""Why the prompt cache was missed: what each call of a model shared with the call before it.

A request is the session's instructions, its tools and its conversation. These only ever grow, so that a
server finds the beginning again; what breaks that is in the journal. What a server has kept of it is its
own business: the `usage` of each answer says how much it found.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ...journal import entries as e
from ...journal.codec import decode_entry, encode_whole
from ...journal.record import SessionRecord, apply
from ...journal.store import SessionRow, Store
from ...machines.conversation import ChatMessage
from ...machines.value import Value
from ...ports.tools.text import counted
from ..wording.redaction import Redactor

KEPT = 300.0
"""Seconds for which providers keep a prompt, at least."""


class CachedCall(Value):
    """One call: its tokens, those that came from the cache, and the messages that it sent.

    `shared` of the messages are, at the same place, also those of the call before, or, `is_whole`, all
    of those. `is_missed`: less than half of what that call sent was found. `why` says what was other.
    """

    seq: int
    turn: str
    step: int
    input: int
    cached: int
    messages: int
    shared: int
    is_whole: bool
    is_missed: bool
    why: str


class _Asked(Value):
    """A call, when it was made and with which model; `read` is what its answer said of its tokens."""

    call: e.ModelCalled
    seq: int
    time: float
    model: str
    length: int = 0
    read: int = 0


class _Reader:
    """Folds a journal, and notes what lies between two calls: `_shared` messages, and `_why`."""

    def __init__(self) -> None:
        self.calls: list[CachedCall] = []
        self._record = SessionRecord()
        self._asked: _Asked | None = None
        self._before: _Asked | None = None
        self._shared, self._why = 0, ""

    def fold(self, entry: e.Entry, seq: int, time: float) -> None:
        """Take the next entry."""
        old = list(self._record.conversation) if isinstance(entry, e.Compacted) else []
        apply(self._record, entry, seq, time)
        if isinstance(entry, e.Compacted):
            self._compacted(old, entry, seq)
        elif isinstance(entry, e.ModelCalled):
            model = self._record.chosen_model or self._record.model
            self._asked = _Asked(call=entry, seq=seq, time=time, model=model)
        elif isinstance(entry, e.Answered) and self._asked is not None:
            self._answered(entry, self._asked)

    def _compacted(self, old: list[ChatMessage], entry: e.Compacted, seq: int) -> None:
        new = self._record.conversation
        same = next(
            (at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), len(new)
        )
        self._shared = min(self._shared, same)
        what = "summed up the conversation"
        what = what if entry.how == "summary" else "left out the oldest results of tools"
        self._why = self._why or f"entry {seq} {what}"

    def _answered(self, entry: e.Answered, asked: _Asked) -> None:
        length = len(self._record.conversation) - len(entry.messages)
        before, usage = self._before, entry.usage
        is_missed = before is not None and usage.cache_read < before.read / 2
        if before is not None and asked.model != before.model:
            self._shared = 0
        self.calls.append(
            CachedCall(
                seq=asked.seq,
                turn=asked.call.turn,
                step=asked.call.step,
                input=usage.input,
                cached=usage.cache_read,
                messages=length,
                shared=self._shared,
                is_whole=before is None or self._shared == before.length,
                is_missed=is_missed,
                why=self._cause(asked, before, is_missed=is_missed),
            )
        )
        self._before = replace(asked, length=length, read=usage.input)
        self._asked, self._shared, self._why = None, length, ""

    def _cause(self, asked: _Asked, before: _Asked | None, *, is_missed: bool) -> str:
        if before is None:
            return "the first call"
        if asked.model != before.model:
            return f"another model: {asked.model}, before it {before.model}"
        if self._why or not is_missed:
            return self._why
        pause = asked.time - before.time
        if pause > KEPT:
            return f"the messages are the same: {pause / 60:.0f} minutes lay between, and servers forget"
        return (
            "the messages are the same: the server lost them, or tools of an MCP server are others"
        )


def cached_calls(store: Store, row: SessionRow) -> list[CachedCall]:
    """Return the calls of a session's model that were answered, oldest first."""
    reader = _Reader()
    for stored in store.entries(row.session, 0, row.seq):
        reader.fold(decode_entry(stored.data), stored.seq, stored.time)
    return reader.calls


def cache_text(calls: list[CachedCall], redactor: Redactor) -> str:
    """Write the calls that missed the cache, and how many tokens were read once more for that."""
    total, found = sum(call.input for call in calls), sum(call.cached for call in calls)
    head = f"{counted(len(calls), 'call')}, {found:,} of {total:,} tokens from the cache"
    missed = [call for call in calls if call.is_missed]
    if not found:
        head += ", of which the server tells nothing"
        missed = [call for call in missed if not call.is_whole]
    if not missed:
        return f"{head}; no call missed it."
    lines = [f"{head}; {counted(len(missed), 'call')} missed it:", ""]
    for call in missed:
        shared = f"{call.shared} of {call.messages} messages as in the call before"
        lines.append(
            f"  entry {call.seq:<5} {call.turn} step {call.step}: {call.cached:,} of {call.input:,} "
            f"tokens; {shared}\n    {redactor.line(call.why)}"
        )
    return "\n".join(lines)


def cache_data(session: str, calls: list[CachedCall], redactor: Redactor) -> dict[str, Any]:
    """Write all calls as data."""
    rows: list[dict[str, Any]] = [redactor.data(encode_whole(call)) for call in calls]
    return {"session": session, "calls": rows}
