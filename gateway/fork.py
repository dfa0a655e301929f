"""A fork: a new session that begins with the conversation of another, up to the end of a turn.

Only the conversation is taken along: nothing waits in a fork, and files are not touched.
"""

from __future__ import annotations

import secrets

from ..journal import entries as e
from ..journal.codec import decode_entry
from ..journal.recovery import closing_messages, load_record
from ..journal.store import SessionRow, Store
from ..machines.errors import UsageError
from .scribe import writing


def fork(store: Store, row: SessionRow, turn: str, now: float) -> str:
    """Make a session from the conversation of another; `turn` is empty for all of it.

    Returns its id. Raises `UsageError` for a turn that there is not.
    """
    seq = end_of_turn(store, row, turn) if turn else row.seq
    record = load_record(store, row.session, seq)
    session = secrets.token_hex(4)
    name = f"{record.name or row.session}, forked" + (f" at {_id(turn)}" if turn else "")
    store.create(SessionRow(session, row.folder, agent=row.agent, created=now, updated=now))
    with writing(store, session) as scribe:
        opened = e.SessionOpened(
            session,
            record.folder,
            record.agent,
            record.model,
            record.system,
            record.tools,
            messages=(*record.conversation, *closing_messages(record)),
            forked_from=f"{row.session}@{seq}",
        )
        left = (e.SessionLeaving("fork"), e.SessionSuspended("fork"))
        scribe.write(now, opened, e.SessionRenamed(name), *left)
    return session


def end_of_turn(store: Store, row: SessionRow, turn: str) -> int:
    """Return the last entry before the turn that came after this one. Raises `UsageError`."""
    wanted, is_there, known = _id(turn), False, list[str]()
    for stored in store.entries(row.session, 0, row.seq):
        if stored.data["kind"] != "turn_started":
            continue
        if is_there:
            return stored.seq - 1
        entry = decode_entry(stored.data)
        assert isinstance(entry, e.TurnStarted)
        is_there = entry.turn == wanted
        known.append(entry.turn)
    if not is_there:
        has = f"its turns are {known[0]} to {known[-1]}" if known else "it has had none yet"
        raise UsageError(f"session `{row.session}` has no turn `{turn}`", has)
    return row.seq


def _id(turn: str) -> str:
    """Take `3` for turn t3."""
    return f"t{turn}" if turn.isdigit() else turn
