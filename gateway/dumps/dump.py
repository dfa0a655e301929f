"""A session as data: its record, its actors, and how it came to be as it is.

One builder, whether the session lives in this process, lies in the store, or is looked at as it was:
field by field the same for the same entry, but for what only a living one has: mailboxes, restarts,
dead letters and process ids. A stored session is folded up to one entry, so that the parts agree
even while another process writes on. Subagents at work are dumps within the dump.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ...journal.child_record import at_work
from ...journal.codec import decode, encode_whole
from ...journal.history import entry_at, seq_at
from ...journal.log import Log
from ...journal.record import SessionRecord
from ...journal.store import SessionRow, Store
from ...machines.errors import UnknownSession
from ..formats import iso
from .actor_view import LANES, Live, actors_of
from .trace import Trace, traced

if TYPE_CHECKING:
    from ...actors.runtime import Runtime

__all__ = ["VERSION", "Traces", "dump_live", "dump_session"]

VERSION = 1
"""Of the dump's shape: rises when a field changes its meaning or goes."""

Traces = dict[str, Trace]
"""What was folded for earlier dumps of living sessions, so that the next folds only what is new."""


@dataclass(frozen=True, slots=True)
class _Living:
    """What only a living session has; `pids` by tool call."""

    actors: Live
    pids: dict[str, int] = field(default_factory=dict[str, int])
    letters: tuple[dict[str, Any], ...] = ()


def dump_session(store: Store, row: SessionRow, seq: int | None = None) -> dict[str, Any]:
    """Return everything that is known of a stored session but its conversation; changes nothing.

    `seq` is an earlier entry, up to which it is told; its subagents are then as they were until the
    next one.
    """
    before = None
    if seq is not None and seq < row.seq:
        before = entry_at(store, row.session, seq + 1).time
    return _dump_at(store, row.session, row.seq if seq is None else seq, before)


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
    known = runtime.sessions.get(session)
    letters = [
        {"time": iso(one.time), "actor": one.actor, "message": one.message, "reason": one.reason}
        for one in tuple(runtime.system.dead_letters)
        if one.path.split("/")[0] == session
    ]
    living = _Living(live["actors"], known.performer.pids if known else {}, tuple(letters))
    shown = replace(record, id=session)
    return _dump(
        runtime.store, shown, trace, living, lambda child: dump_live(runtime, child, traces)
    )


def _dump_at(store: Store, session: str, seq: int, before: float | None) -> dict[str, Any]:
    def of_child(child: str) -> dict[str, Any]:
        last = store.load(child).row.seq
        if before is not None:
            last = seq_at(store, child, last, before - 1e-6)
        return _dump_at(store, child, last, before)

    trace = traced(store, session, seq)
    living = _Living({"session": {"mailbox": _mail(store, session)}})
    return _dump(store, trace.record, trace, living, of_child)


def _dump(
    store: Store,
    record: SessionRecord,
    trace: Trace,
    living: _Living,
    of_child: Callable[[str], dict[str, Any]],
) -> dict[str, Any]:
    trace.record.id = record.id
    data = encode_whole(replace(record, conversation=Log(), sources=Log()))
    for name in ("conversation", "sources", "spoken"):
        del data[name]
    owner = store.owner(record.id)
    held = {"pid": owner.pid, "since": iso(owner.started)} if owner else None
    lease = {"epoch": store.epoch(record.id), "node": owner.node if owner else "", **(held or {})}
    _show_pids(data, living.pids)
    return {
        "version": VERSION,
        **data,
        "messages": record.spoken,
        "owner": held,
        "lease": lease,
        "actors": actors_of(trace, living.actors, is_owned=store.is_owned(record.id)),
        "transitions": list(trace.transitions),
        "dead_letters": list(living.letters),
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


def _mail(store: Store, session: str) -> dict[str, int]:
    """Count what waits in the session's inbox, by lane."""
    mail: dict[str, int] = dict.fromkeys(LANES, 0)
    for posted in store.unconsumed(session):
        mail[LANES[min(posted.lane, len(LANES) - 1)]] += 1
    return mail
