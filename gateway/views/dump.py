"""A session as data: its record, its actors, and its state transitions.

A dump of a live session, of a stored one, and of an earlier entry have the same fields, built by the
same code. Only a live session has the reports of its actors, dead letters and process ids; elsewhere
they are null or left out. The owner at an earlier entry is not known either. A stored session is folded
up to one entry, so that the parts agree while another process writes. The dumps of subagents at work
are parts of the dump.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypedDict, cast

from msgspec import defstruct
from msgspec.structs import fields, replace

from ...journal import entries as e
from ...journal.child_record import at_work
from ...journal.codec import decode, decode_entry, encode, encode_whole, kind_of
from ...journal.history import entry_at, record_at, seq_at
from ...journal.record import SessionRecord, apply, forget_conversation, without_conversation
from ...journal.store import SessionRow, Store, StoredEntry
from ...machines.errors import UnknownSession
from ..wording.formats import iso

if TYPE_CHECKING:
    from ...actors.runtime import Runtime


VERSION = 2
"""Version of the dump's fields: rises when a field changes its meaning or is removed."""

Live = Mapping[str, Mapping[str, Any]]
"""The reports of live actors, by the actor's name; see `actors/inspection.py`."""

Traces = dict[str, "Trace"]
"""The traces of earlier dumps of live sessions, so that the next dump folds only the new entries."""

_UNKNOWN = dict.fromkeys(("waiting_for", "rule", "mailbox", "last_message", "restarts"))
"""State that only the actor itself knows."""

TRACED = 200
"""Entries at the end of the journal that are searched for transitions."""
SHOWN = 20
"""Transitions, and results of hooks, that are kept."""
LAST = 3
"""Messages that are kept for each actor."""
_OF_QUEUE = (e.Queued, e.Requeued, e.Deferred, e.Withdrawn, e.QueueHeld, e.QueueReleased)
_REASONS = ("cause", "why", "reason", "status", "choice", "rule", "tool")
_CONVERSATION = ("conversation", "origins", "spoken")
"""Fields of a record that a dump leaves out."""


def session_state() -> type:
    """Return the type of what a dump has of the session's record."""
    shown = [(part.name, part.type) for part in fields(SessionRecord)]
    return defstruct("SessionState", [part for part in shown if part[0] not in _CONVERSATION])


class Dump(TypedDict):
    """A session as data, beside the fields of its record.

    Null is what only a live session has. `subagents` are the dumps of those at work, by name.
    """

    version: int
    messages: int
    owner: dict[str, Any] | None
    lease: dict[str, Any] | None
    actors: dict[str, dict[str, Any]]
    transitions: list[dict[str, Any]]
    dead_letters: list[dict[str, Any]] | None
    hooks: list[dict[str, Any]]
    subagents: dict[str, dict[str, Any]]


_TIMES = ("since", "started", "ended", "created", "updated", "taken", "turn_began", "until")
"""Fields of records that are times; 0 stands in them for one that has not come."""


def without_unknown_times(data: Any) -> Any:
    """Return a dump with null for each time that is not known."""
    if isinstance(data, list):
        return [without_unknown_times(part) for part in cast("Iterable[Any]", data)]
    if not isinstance(data, dict):
        return data
    found = cast("dict[str, Any]", data)
    return {
        name: None if name in _TIMES and part == 0 else without_unknown_times(part)
        for name, part in found.items()
    }


def dump_session(store: Store, row: SessionRow, seq: int | None = None) -> dict[str, Any]:
    """Return everything that is known of a stored session except its conversation; changes nothing.

    `seq` is an earlier entry: the dump is of the session after it, with the subagents as they were
    until the next entry.
    """
    if seq is None:
        return _dump_at(store, row.session, row.seq, None)
    is_last = seq >= row.seq
    before = math.inf if is_last else entry_at(store, row.session, seq + 1).time
    return _dump_at(store, row.session, seq, before)


def dump_live(runtime: Runtime, session: str, traces: Traces) -> dict[str, Any]:
    """Return the same of a live session of this process; not for the loop's own thread."""
    live = runtime.inspect(session)
    runtime.settle()  # the entries that led to this state are in the store
    record = decode(SessionRecord, live)
    trace = traces.get(session)
    if trace is None or trace.record.seq > record.seq:
        trace = traced(runtime.store, session, record.seq)
    traces[session] = trace.follow(runtime.store, record.seq)
    letters = [
        {
            "time": iso(letter.time),
            "actor": letter.actor,
            "message": letter.message,
            "reason": letter.reason,
        }
        for letter in runtime.dead_letters(session)
    ]
    return _dump(
        runtime.store,
        replace(record, id=session),
        trace,
        lambda child: dump_live(runtime, child, traces),
        actors=live["actors"],
        pids=runtime.pids(session),
        letters=letters,
    )


def _dump_at(store: Store, session: str, seq: int, before: float | None) -> dict[str, Any]:
    """Fold a session up to an entry; `before` is the time of the next entry, none if it is the last."""

    def of_child(child: str) -> dict[str, Any]:
        last = store.load(child).row.seq
        if before is not None:
            last = seq_at(store, child, last, before - 1e-6)
        return _dump_at(store, child, last, before)

    trace = traced(store, session, seq)
    return _dump(store, trace.record, trace, of_child, is_past=before is not None)


def _dump(
    store: Store,
    record: SessionRecord,
    trace: Trace,
    of_child: Callable[[str], dict[str, Any]],
    *,
    is_past: bool = False,
    actors: Live | None = None,
    pids: Mapping[str, int] | None = None,
    letters: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """Put a dump together; only a live session has `actors`, `pids` by tool call, and dead `letters`."""
    trace.record.id = record.id
    data = encode_whole(without_conversation(record))
    for name in _CONVERSATION:
        del data[name]
    owner = None if is_past else store.owner(record.id)
    held = {"pid": owner.pid, "since": iso(owner.started)} if owner else None
    lease = {"epoch": store.epoch(record.id), "node": owner.node if owner else "", **(held or {})}
    is_known = actors is not None or not (is_past or store.is_owned(record.id))
    if pids is not None:
        _show_pids(data, pids)
    return {
        "version": VERSION,
        **data,
        "messages": record.spoken,
        "owner": held,
        "lease": None if is_past else lease,
        "actors": _actors(trace, actors or {}, "stopped" if is_known else None),
        "transitions": list(trace.transitions),
        "dead_letters": letters,
        "hooks": list(trace.hooks),
        "subagents": dict(_subagents(record, of_child)),
    }


def _show_pids(data: dict[str, Any], pids: Mapping[str, int]) -> None:
    """Add the process id to each call of a turn and of a run's step."""
    for turn in data["turns"].values():
        for call in turn["calls"].keys() & pids:
            turn["calls"][call]["pid"] = pids[call]
    run: dict[str, Any] = data["run"] or {"steps": {}, "open": {}}
    for step in run["steps"].values():
        step["pids"] = {
            call: pids[call]
            for call, attempt in run["open"].items()
            if attempt["step"] == step["id"] and call in pids
        }


def _subagents(
    record: SessionRecord, of_child: Callable[[str], dict[str, Any]]
) -> Iterable[tuple[str, dict[str, Any]]]:
    for child in at_work(record.children):
        with suppress(UnknownSession):  # the child is not admitted yet, or belongs to another home
            yield child.name, of_child(child.session)


def _actors(trace: Trace, live: Live, absent: str | None) -> dict[str, Any]:
    """Return every actor of a session by its name, supervisors first.

    `absent` is the `supervised` of actors that did not report: `stopped`, or none if unknown. If an
    actor reports another state than the journal, `differs` has the journal's, empty for none.
    """
    actors = _journalled(trace.record)
    for name in live:
        if name not in actors:  # the state of a judge is not journalled
            actors[name] = _actor(name, None if name == "judge" else "", None)
    for name, actor in actors.items():
        actor |= {**_UNKNOWN, "last_messages": list(trace.last.get(name, ())), "supervised": absent}
        journalled = actor["state"]
        actor |= live.get(name, {})
        if journalled not in (None, actor["state"]):
            actor["differs"] = journalled
    return actors


def _journalled(record: SessionRecord) -> dict[str, Any]:
    turn, goal = record.turns.get(record.turn), record.goals.goal
    busy = [child.session for child in at_work(record.children)]
    supervised = [
        *("children", "queue"),
        *(["goal"] if record.goals.goals else []),
        *(["turn"] if turn else []),
    ]
    queue = record.queue
    actors = {
        "session": _actor("session", record.state, record.since or record.created, supervised),
        "children": {
            **_actor("subagent", "working" if busy else "idle", record.created, busy),
            "kind": "children",
        },
        "queue": _actor("queue", queue.state, queue.since or record.created),
    }
    if goal is not None:
        actors["goal"] = {**_actor("goal", goal.state, goal.since), "id": goal.id}
    if turn is not None:
        run = record.run
        of_it = ("turn", turn.state) if run is None else ("run", run.state)
        actors["turn"] = {**_actor(*of_it, turn.since), "kind": "turn", "id": turn.id}
    return actors


def _actor(
    machine: str, state: str | None, since: float | None, children: Sequence[str] = ()
) -> dict[str, Any]:
    return {
        "kind": machine,
        "machine": machine,
        "state": state,
        "since": None if since is None else iso(since),
        "children": list(children),
    }


# The last state transitions ----------------------------------------------------------------------


class Trace:
    """Folds entries into `record`, and keeps the last transitions and the last messages of each actor."""

    def __init__(self, record: SessionRecord) -> None:
        self.record = record
        self.transitions: deque[dict[str, Any]] = deque(maxlen=SHOWN)
        self.last: dict[str, deque[dict[str, Any]]] = {}
        self.hooks: deque[dict[str, Any]] = deque(maxlen=SHOWN)
        self._states = _states(record)

    def take(self, stored: StoredEntry) -> list[dict[str, Any]]:
        """Fold an entry, and return the transitions that it caused."""
        entry = decode_entry(stored.data)
        at = {"seq": stored.seq, "time": iso(stored.time)}
        if isinstance(entry, e.HookRan):
            self.hooks.append({**at, **encode(entry)})
        apply(self.record, entry, stored.seq, stored.time)
        forget_conversation(self.record)
        messages = self.last.setdefault(_addressee(entry), deque(maxlen=LAST))
        messages.append({**at, "kind": kind_of(type(entry))})
        before, self._states = self._states, _states(self.record)
        reasons = [str(value) for name in _REASONS if (value := getattr(entry, name, ""))]
        cause = ": ".join([kind_of(type(entry)), *reasons[:1]])
        moved = [
            {**at, "what": name, "from": before.get(name, ""), "to": state, "cause": cause}
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


def _states(record: SessionRecord) -> dict[str, str]:
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
    return states | {f"interrupt {stop.id}": stop.state for stop in record.stops.values()}


def _addressee(entry: e.Entry) -> str:
    """Name the actor that an entry is about."""
    if isinstance(entry, _OF_QUEUE):
        return "queue"
    if isinstance(entry, e.GoalEntry):
        return "goal"
    if getattr(entry, "child", "") and not getattr(entry, "item", ""):
        return "children"
    return "turn" if getattr(entry, "turn", "") else "session"
