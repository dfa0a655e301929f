"""The story of one message: every entry that says what became of it, and why it stands where it does.

Found by walking the journal from the entry that took the message in. An entry belongs to the story
if it names the message, the turn that runs it or took it in, or the order to stop that it is; and,
as long as the message waits, if it says what it waits for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ...journal.history import record_at, seq_at
from ...journal.record import SessionRecord
from ...journal.store import SessionRow, Store, StoredEntry
from ...machines.errors import UsageError
from ...machines.lifecycles import ITEM
from ..formats import iso
from .outlook import outlook
from .story_text import told
from .trace import Trace

_TAKEN_IN = ("queued", "deferred", "offered")
_ORDERS = ("interrupt_requested", "interrupt_planned")
_OF_WAITING = (
    *("queue_held", "queue_released", "session_suspended", "session_resumed", "recovered"),
    *("session_finalized", "turn_ended", "interrupted", "stopped", "session_leaving"),
)
"""What decides over messages that wait, whoever it names."""
_OF_SEVERAL = ("queue_released", "steered")
"""What lists messages by name under `items`, which elsewhere is how many they are."""
_ENDS = ("turn_ended", "stopped")


@dataclass(slots=True)
class Story:
    """A message (an item, or an order to stop) and its hops; `entries` are what they were made of."""

    session: str
    message: dict[str, Any]
    hops: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    entries: list[StoredEntry] = field(default_factory=list[StoredEntry])
    turn: str = ""
    outlook: str = ""
    hint: str = ""

    def view(self) -> dict[str, Any]:
        """Show it as programs see it."""
        parts = {"turn": self.turn, "hint": self.hint}
        return {
            "session": self.session,
            "message": self.message,
            "hops": self.hops,
            "outlook": self.outlook,
            **{name: value for name, value in parts.items() if value},
        }


def story_of(store: Store, row: SessionRow, name: str, *, is_owned: bool) -> Story:
    """Tell the story of a message: its number, `last`, its id, its receipt, or a client's own id.

    Of several with one number it is the newest. Raises `UsageError` if there is none.
    """
    now = record_at(store, row.session, row.seq)
    first = _first(store, row, now, name.removeprefix("#"))
    if first is None:
        raise UsageError(
            f"no message `{name}` was taken in by session `{row.session}`",
            "give the number, the id or the receipt that its acknowledgement showed; what was "
            "refused was given back at once, and is not journalled",
        )
    story = Story(row.session, _message(first))
    for stored, moved in _walk(store, row, first):
        if not _belongs(story, stored, now):
            continue
        _follow(story, stored)
        since = stored.time - first.time
        hop = {"seq": stored.seq, "time": iso(stored.time), "after": round(since, 3)}
        kind = stored.data["kind"]
        story.hops.append({**hop, "kind": kind, "text": told(stored.data), "moved": moved})
        story.entries.append(stored)
    story.outlook, story.hint = outlook(now, story.message["id"], is_owned=is_owned)
    story.message["state"] = _state(now, story.message["id"])
    return story


def _first(store: Store, row: SessionRow, now: SessionRecord, name: str) -> StoredEntry | None:
    """Find the entry that took the message in; one that is remembered is not searched for long."""
    items = list(now.queue.items.values())
    known = [one for one in items if name in (one.id, str(one.number), one.client_id)]
    if name == "last" and items:
        known = items
    after = 0
    if known:
        newest = max(known, key=lambda one: one.created)
        name = newest.id
        after = max(0, seq_at(store, row.session, row.seq, newest.created - 1e-3) - 1)
    found = None
    for stored in store.entries(row.session, after, row.seq):
        if stored.data["kind"] in (*_TAKEN_IN, *_ORDERS) and name in _names(stored.data):
            if found is None or stored.data["kind"] not in _ORDERS:
                found = stored
            if known:
                break
    return found


def _names(data: dict[str, Any]) -> tuple[str, ...]:
    """Return what a message can be called by."""
    if data["kind"] in _ORDERS:
        return (data["receipt"], data.get("client_id") or data["receipt"])
    item = str(data.get("new_item") or data["item"])
    return (item, str(data["number"]), data.get("client_id") or item)


def _message(first: StoredEntry) -> dict[str, Any]:
    data = first.data
    is_order = data["kind"] in _ORDERS
    return {
        "id": data["receipt"] if is_order else str(data.get("new_item") or data["item"]),
        "kind": "interrupt" if is_order else data.get("said_as") or data["kind"],
        **({} if is_order else {"number": data["number"]}),
        "text": data.get("text", ""),
        "user": data.get("user", ""),
    }


def _walk(
    store: Store, row: SessionRow, first: StoredEntry
) -> Iterator[tuple[StoredEntry, list[dict[str, Any]]]]:
    trace = Trace(record_at(store, row.session, first.seq - 1))
    for stored in store.entries(row.session, first.seq - 1, row.seq):
        moved = trace.take(stored)
        yield stored, [{name: one[name] for name in ("what", "from", "to")} for one in moved]


def _belongs(story: Story, stored: StoredEntry, now: SessionRecord) -> bool:
    data, name = stored.data, story.message["id"]
    item = now.queue.items.get(name)
    if item is not None and item.child and data.get("child") == item.child:
        return True  # whoever answers it
    if name in (
        data.get("item"),
        data.get("new_item"),
        data.get("receipt"),
        data.get("before"),
        *(data.get("items", ()) if data["kind"] in _OF_SEVERAL else ()),
    ):
        return True
    if story.turn:
        is_of_it = data.get("turn") == story.turn or data["kind"] == "recovered"
        return is_of_it and not _is_over(story)
    return data["kind"] in _OF_WAITING and not _is_over(story)


def _is_over(story: Story) -> bool:
    """Whether the message has ended by what was told so far."""
    if story.turn:
        return any(
            one.data["kind"] in _ENDS and one.data.get("turn") == story.turn
            for one in story.entries
        )
    ended = {f"item {story.message['id']}", f"interrupt {story.message['id']}"}
    return any(
        one["what"] in ended and one["to"] in (*ITEM.final, "done", "overtaken", "called_off")
        for hop in story.hops
        for one in hop["moved"]
    )


def _follow(story: Story, stored: StoredEntry) -> None:
    """Go along with the turn that runs the message, took it in, or is stopped by it."""
    data, name = stored.data, story.message["id"]
    is_started = data["kind"] == "turn_started" and data["item"] == name
    is_taken_in = data["kind"] == "steered" and name in data["items"]
    is_order = data["kind"] in _ORDERS and data["receipt"] == name
    if is_started or is_taken_in or is_order:
        story.turn = data.get("turn", "")


def _state(now: SessionRecord, name: str) -> str:
    found = now.queue.items.get(name) or now.interrupts.get(name)
    return found.state if found else "forgotten"
