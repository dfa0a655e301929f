"""The decisions of a session about work whose actor, or program, has died."""

from __future__ import annotations

from collections.abc import Mapping

from ...journal import entries as e
from ...journal.child_record import at_work
from ...journal.record import SessionRecord
from ...journal.recovery import NO_OUTCOMES, closing_messages, recovered
from . import reverting
from .decision import NOTHING, Decision
from .queries import stopping_effects


def take_up(record: SessionRecord, outcomes: Mapping[str, str] = NO_OUTCOMES) -> Decision:
    """Put in order what a dead owner left. Nothing runs automatically.

    `outcomes` are those of calls that ran, as far as their tools told them.
    """
    if record.seq == 0 or record.state == "finalized":
        return NOTHING
    is_at_work = record.state not in ("idle", "suspended") or any(at_work(record.children))
    is_cut = bool(record.queue.order) or is_at_work
    entry = recovered(record, outcomes) if is_cut else e.SessionResumed()
    return Decision(entries=(entry,)) + reverting.take_up(record)


def turn_failed(record: SessionRecord, reason: str) -> Decision:
    """End a turn whose actor failed; the session goes on."""
    over = e.TurnEnded(
        turn=record.turn,
        status="failed",
        reason=f"a fault in the program ended the turn ({reason})",
        hint="send it again, or ask what was done",
        messages=closing_messages(record),
    )
    return Decision(entries=(over,), urgent=tuple(stopping_effects(record)))
