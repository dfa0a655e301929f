"""A session's last state transitions and their causes, found by folding its journal entry by entry."""

from __future__ import annotations

from collections import deque
from typing import Any

from ...journal import entries as e
from ...journal.codec import decode_entry, encode, kind_of
from ...journal.entries import HookRan
from ...journal.history import record_at
from ...journal.record import SessionRecord, apply, forget_conversation
from ...journal.store import Store, StoredEntry
from ..wording.formats import iso

TRACED = 200
"""Entries at the end of the journal that are searched for transitions."""
SHOWN = 20
"""Transitions, and results of hooks, that are kept."""
LAST = 3
"""Messages that are kept for each actor."""
_OF_QUEUE = (e.Queued, e.Requeued, e.Deferred, e.Withdrawn, e.QueueHeld, e.QueueReleased)
_REASONS = ("cause", "why", "reason", "status", "choice", "rule", "tool")


class Trace:
    """Folds entries into `record`, and keeps the last transitions and the last messages of each actor."""

    def __init__(self, record: SessionRecord) -> None:
        self.record = record
        self.transitions: deque[dict[str, Any]] = deque(maxlen=SHOWN)
        self.last: dict[str, deque[dict[str, Any]]] = {}
        self.hooks: deque[dict[str, Any]] = deque(maxlen=SHOWN)
        self._states = states_of(record)

    def take(self, stored: StoredEntry) -> list[dict[str, Any]]:
        """Fold an entry, and return the transitions that it caused."""
        entry = decode_entry(stored.data)
        at = {"seq": stored.seq, "time": iso(stored.time)}
        if isinstance(entry, HookRan):
            self.hooks.append({**at, **encode(entry)})
        apply(self.record, entry, stored.seq, stored.time)
        forget_conversation(self.record)
        messages = self.last.setdefault(addressee(entry), deque(maxlen=LAST))
        messages.append({**at, "kind": kind_of(type(entry))})
        before, self._states = self._states, states_of(self.record)
        moved = [
            {
                **at,
                "what": name,
                "from": before.get(name, ""),
                "to": state,
                "cause": cause_of(entry),
            }
            for name, state in self._states.items()
            if before.get(name) != state
        ]
        self.transitions.extend(moved)
        return moved

    def follow(self, store: Store, seq: int) -> Trace:
        """Fold the store's entries up to `seq`."""
        for stored in store.entries(self.record.id, self.record.seq, seq):
            self.take(stored)
        return self


def traced(store: Store, session: str, seq: int) -> Trace:
    """Fold a session up to an entry, and remember its last transitions."""
    record = record_at(store, session, max(0, seq - TRACED))
    record.id = session
    return Trace(record).follow(store, seq)


def states_of(record: SessionRecord) -> dict[str, str]:
    """Return the state of each part that has a machine, by its name."""
    states = {"session": record.state, "queue": record.queue.state}
    states |= {f"item {item.id}": item.state for item in record.queue.items.values()}
    if turn := record.turns.get(record.turn):
        states[f"turn {turn.id}"] = turn.state
        states |= {f"call {call.id}": call.state for call in turn.calls.values()}
    states |= {f"child {child.name}": child.state for child in record.children.values()}
    states |= {f"goal {goal.id}": goal.state for goal in record.goals.goals.values()}
    if record.run is not None:
        states["run"] = record.run.state
        states |= {f"step {step.id}": step.state for step in record.run.steps.values()}
    states |= {
        f"interrupt {interrupt.id}": interrupt.state for interrupt in record.interrupts.values()
    }
    return states


def addressee(entry: e.Entry) -> str:
    """Name the actor that an entry is about."""
    if isinstance(entry, _OF_QUEUE):
        return "queue"
    if isinstance(entry, e.GoalEntry):
        return "goal"
    if getattr(entry, "child", "") and not getattr(entry, "item", ""):
        return "children"
    return "turn" if getattr(entry, "turn", "") else "session"


def cause_of(entry: e.Entry) -> str:
    """Return the kind of an entry, with its reason if it has one."""
    reasons = [str(value) for name in _REASONS if (value := getattr(entry, name, ""))]
    return ": ".join([kind_of(type(entry)), *reasons[:1]])
