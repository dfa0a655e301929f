"""A session as data: its record, its actors, and how it came to be as it is.

One builder, whether the session lives in this process, lies in the store, or is looked at as it was:
field by field the same for the same entry, but for what only a living one can say: what its actors say
of themselves, dead letters and process ids. Where nobody can say it, it is null or left out; who had
the session at an earlier entry is not known either. A stored session is folded up to one entry, so that
the parts agree even while another process writes on. Subagents at work are dumps within the dump.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ...journal.child_record import at_work
from ...journal.codec import decode, encode_whole
from ...journal.history import entry_at, seq_at
from ...journal.log import Log
from ...journal.record import SessionRecord
from ...journal.store import SessionRow, Store
from ...machines.errors import UnknownSession
from ...machines.value import Value
from ..formats import iso
from .actor_view import Live, actors_of
from .trace import Trace, traced

if TYPE_CHECKING:
    from ...actors.runtime import Runtime


VERSION = 2
"""Of the dump's shape: rises when a field changes its meaning or goes."""

Traces = dict[str, Trace]
"""What was folded for earlier dumps of living sessions, so that the next folds only what is new."""


class _Living(Value):
    """What only a living session has; `pids` by tool call."""

    actors: Live
    pids: dict[str, int]
    letters: list[dict[str, Any]]


def dump_session(store: Store, row: SessionRow, seq: int | None = None) -> dict[str, Any]:
    """Return everything that is known of a stored session but its conversation; changes nothing.

    `seq` is an earlier entry, up to which it is told; its subagents are then as they were until the
    next one.
    """
    if seq is None:
        return _dump_at(store, row.session, row.seq, None)
    is_last = seq >= row.seq
    before = math.inf if is_last else entry_at(store, row.session, seq + 1).time
    return _dump_at(store, row.session, seq, before)


def dump_live(runtime: Runtime, session: str, traces: Traces | None = None) -> dict[str, Any]:
    """Return the same of a session that lives in this process; not for the loop's own thread."""
    traces = {} if traces is None else traces
    live = runtime.inspect(session)
    runtime.settle()  # what made it so is in the store
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
    living = _Living(actors=live["actors"], pids=runtime.pids(session), letters=letters)
    shown = replace(record, id=session)
    return _dump(
        runtime.store, shown, trace, lambda child: dump_live(runtime, child, traces), living
    )


def _dump_at(store: Store, session: str, seq: int, before: float | None) -> dict[str, Any]:
    """Fold a session up to an entry; `before` is when the next one came, none for how it is now."""

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
    living: _Living | None = None,
    *,
    is_past: bool = False,
) -> dict[str, Any]:
    trace.record.id = record.id
    data = encode_whole(replace(record, conversation=Log(), sources=Log()))
    for name in ("conversation", "sources", "spoken"):
        del data[name]
    owner = None if is_past else store.owner(record.id)
    held = {"pid": owner.pid, "since": iso(owner.started)} if owner else None
    lease = {"epoch": store.epoch(record.id), "node": owner.node if owner else "", **(held or {})}
    is_known = living is not None or not (is_past or store.is_owned(record.id))
    if living is not None:
        _show_pids(data, living.pids)
    return {
        "version": VERSION,
        **data,
        "messages": record.spoken,
        "owner": held,
        "lease": None if is_past else lease,
        "actors": actors_of(
            trace, living.actors if living else {}, "stopped" if is_known else None
        ),
        "transitions": list(trace.transitions),
        "dead_letters": living.letters if living else None,
        "hooks": list(trace.hooks),
        "subagents": dict(_subagents(record, of_child)),
    }


def _show_pids(data: dict[str, Any], pids: dict[str, int]) -> None:
    """Say of each call, of a turn or of a run's step, which process it is."""
    for turn in data["turns"].values():
        for call in turn["calls"].keys() & pids:
            turn["calls"][call]["pid"] = pids[call]
    for step in data["run"]["steps"].values() if data["run"] else ():
        step["pids"] = {call: pids[call] for call in step["calls"].values() if call in pids}


def _subagents(
    record: SessionRecord, of_child: Callable[[str], dict[str, Any]]
) -> Iterable[tuple[str, dict[str, Any]]]:
    for child in at_work(record.children):
        with suppress(UnknownSession):  # it waits for room, or lives in another home
            yield child.name, of_child(child.session)
