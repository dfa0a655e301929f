"""Giving files back: when it may begin, and what becomes of it.

A wish is journalled at once. It is carried out when the turn that it names has ended, everything the
turn started is proven dead, and no child is at work; until then the session goes on as if it had not
been asked. From then to the end no turn begins (`standing.is_reverting`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...journal import entries as e
from ...journal import revert_entries as r
from ...journal.record import SessionRecord
from ...journal.revert_record import RevertRecord
from ...journal.turn_record import TurnRecord
from ...machines.effects import RestoreFiles
from ...machines.messages import Revert, UserMessage
from ...machines.results import RestoreCounted, RestoreEnded
from . import stopping
from .decision import NOTHING, Decision, answer, refusal
from .standing import resumed_turns, workers

if TYPE_CHECKING:
    from ..environment import Environment


# A revert in the words of the ports, of the journal, and of whoever asked for it ------------------


def before_turn(record: SessionRecord, turn: str) -> str:
    """Return the turn that one goes on from, if any: of a workflow's run all turns are one job."""
    if record.run is None:
        return record.turns[turn].resumes
    names = list(record.turns)
    at = names.index(turn)
    return names[at - 1] if at else ""


def order_of(record: SessionRecord, one: RevertRecord) -> RestoreFiles:
    """Return what the ports are asked to do."""
    pairs = ((one, before) for one in record.turns if (before := before_turn(record, one)))
    return RestoreFiles(
        one.id,
        one.scope,
        one.turns,
        one.since,
        one.paths,
        tuple(pairs),
        one.force,
        one.is_dry_run,
    )


def ending_of(known: RevertRecord, message: RestoreEnded) -> r.Reverted | r.RevertRefused:
    """Return what is journalled when a revert is over."""
    if message.fault:
        return r.RevertRefused(message.id, message.fault)
    return r.Reverted(
        message.id,
        known.scope,
        known.is_dry_run,
        message.restored,
        message.kept,
        message.shared,
        message.yours,
        message.turns,
        message.notes,
    )


def answer_of(known: RevertRecord | None) -> dict[str, Any]:
    """Return what whoever asked for a revert is told of it."""
    if known is None:
        return {"ok": False, "reason": "nobody asked for that"}
    return {
        "ok": known.state == "restored",
        "id": known.id,
        "scope": known.scope,
        "dry_run": known.is_dry_run,
        "turns": list(known.turns),
        "restored": list(known.restored),
        "kept": [path for path, _ in known.kept],
        "why": dict(known.kept),
        "shared": list(known.shared),
        "yours": list(known.yours),
        "notes": list(known.notes),
        "reason": known.reason,
    }


def revert(record: SessionRecord, message: Revert, environment: Environment) -> Decision:
    """Stop what runs, unless it is only asked what would be done; files are given back after that."""
    if record.state in ("finalizing", "finalized"):
        return refusal("the session has ended for good")
    turn = None if message.is_dry_run else record.unfinished
    is_stop = _is_stopped(record, turn) or bool(workers(record) and not message.is_dry_run)
    turns = _meant(record) if is_stop and message.scope != "undo" else ()
    asked = r.RevertAsked(
        _name(record),
        message.scope,
        turn.id if turn is not None else "",
        turns,
        message.since,
        message.paths,
        message.force,
        message.is_dry_run,
    )
    stopped = NOTHING
    if is_stop:
        order = stopping.Stop(cause="stop")
        stopped = stopping.stop(record, order, environment, is_revert=True)
    return Decision(entries=(asked, *stopped.entries), reply=answer(id=asked.id))


def _is_stopped(record: SessionRecord, turn: TurnRecord | None) -> bool:
    return turn is not None and turn is record.running


def wish(
    record: SessionRecord, message: UserMessage, cause: str, environment: Environment
) -> Decision:
    """Note that a message which stops what runs wants its files as they were, too."""
    turn = record.unfinished
    if not message.revert or not (turn is not None or workers(record)):
        return NOTHING
    turns = _meant(record)
    asked = r.RevertAsked(_name(record), message.revert, turn.id if turn else "", turns)
    return Decision(entries=(asked,))


def _meant(record: SessionRecord) -> tuple[str, ...]:
    """Return the turns that a stop with a revert is about: what runs, or whose children do."""
    if record.unfinished is not None:
        return resumed_turns(record, record.turn)
    turns = [name for child in workers(record) for name in resumed_turns(record, child.turn)]
    return tuple(dict.fromkeys(turns))


def _name(record: SessionRecord) -> str:
    return f"r{record.reverts_made + 1}"


def begin(record: SessionRecord) -> Decision:
    """Begin the oldest revert that may begin now; nothing while one is at work."""
    if record.queue.state == "closed" or record.state in ("leaving", "finalizing", "suspended"):
        return NOTHING  # it begins when the session is taken up again
    wishes = [one for one in record.reverts.values() if one.is_open]
    if any(one.state != "asked" for one in wishes):
        return NOTHING
    is_over = record.unfinished is None and not workers(record)
    for known in wishes:
        if known.is_dry_run or is_over:
            effect = order_of(record, known)
            return Decision(entries=(r.RevertStarted(known.id),), effects=(effect,))
    return NOTHING


def offline(record: SessionRecord, message: Revert) -> Decision:
    """Give files back in a session that nobody has open: whatever ran there died with its program."""
    if record.state in ("finalizing", "finalized"):
        return refusal("the session has ended for good")
    known = RevertRecord(
        _name(record),
        message.scope,
        since=message.since,
        paths=message.paths,
        force=message.force,
        is_dry_run=message.is_dry_run,
    )
    asked = r.RevertAsked(
        known.id,
        known.scope,
        since=known.since,
        paths=known.paths,
        force=known.force,
        is_dry_run=known.is_dry_run,
    )
    return Decision(
        entries=(asked, r.RevertStarted(known.id)),
        effects=(order_of(record, known),),
        reply=answer(id=known.id),
    )


def take_up(record: SessionRecord) -> Decision:
    """Go on with the revert that a dead owner had begun; what was done is not done again."""
    begun = [one for one in record.reverts.values() if one.is_open and one.state != "asked"]
    return Decision(effects=tuple(order_of(record, known) for known in begun))


def restored(record: SessionRecord, message: RestoreCounted | RestoreEnded) -> Decision:
    """Note what the ports say of a revert."""
    known = record.reverts.get(message.id)
    if known is None or not known.is_open:
        return NOTHING
    if isinstance(message, RestoreCounted):
        entry: e.Entry = r.RevertBegun(message.id, message.files)
    else:
        entry = ending_of(known, message)
    return Decision(entries=(entry,))
