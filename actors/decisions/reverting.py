"""Reverts: when one may begin, and its outcome.

A wish is journalled at once. It is carried out when the turn that it names has ended, everything the
turn started is proven dead, and no child is at work; until then the session goes on as if it had not
been asked. From then to the end no turn begins (`standing.is_reverting`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...journal import entries as e
from ...journal.record import SessionRecord
from ...journal.revert_record import RevertRecord, taken_back
from ...machines import protocol as m
from . import stopping
from .decision import NOTHING, Decision, answer, refusal, refused_with
from .queries import resumed_turns, workers

if TYPE_CHECKING:
    from ..environment import Environment


def before_turn(record: SessionRecord, turn: str) -> str:
    """Return the turn that one goes on from, if any: of a workflow's run all turns are one job."""
    if record.run is None:
        return record.turns[turn].resumes
    names = list(record.turns)
    at = names.index(turn)
    return names[at - 1] if at else ""


def resumptions(record: SessionRecord) -> tuple[tuple[str, str], ...]:
    """Return pairs of a turn and the one that it goes on from: they are one piece of work."""
    return tuple((turn, before) for turn in record.turns if (before := before_turn(record, turn)))


def order_of(record: SessionRecord, asked: e.RevertAsked) -> m.RestoreFiles:
    """Return what the ports are asked to do."""
    return m.RestoreFiles(
        id=asked.id,
        scope=asked.scope,
        turns=asked.turns,
        since=asked.since,
        paths=asked.paths,
        resumed=resumptions(record),
        force=asked.force,
        is_dry_run=asked.is_dry_run,
    )


def elsewhere(record: SessionRecord, here: str) -> tuple[str, ...]:
    """Name the storages, other than the one here, that have copies of files of the session's turns."""
    return tuple(name for name in record.storages if name != here)


def ending_of(
    record: SessionRecord, known: RevertRecord, message: m.RestoreEnded, others: tuple[str, ...]
) -> e.Reverted | e.RevertRefused:
    """Return what is journalled when a revert is over; `others` as of `elsewhere`.

    A turn that went on from one of those whose files were restored is reverted with it.
    """
    if message.fault:
        return e.RevertRefused(id=message.id, reason=message.fault)
    went_on = (
        turn
        for turn in record.turns
        if turn not in message.turns and {*resumed_turns(record, turn)} & {*message.turns}
    )
    notes = tuple(f"turns whose copies of files are at {name}" for name in others)
    left = {path for turn in message.turns for path in taken_back(record.reverts, turn)}
    return e.Reverted(
        id=message.id,
        scope=known.asked.scope,
        is_dry_run=known.asked.is_dry_run,
        restored=message.restored,
        kept=message.kept,
        shared=message.shared,
        yours=message.yours,
        turns=(*message.turns, *(went_on if record.run is None else ())),
        notes=(*message.notes, *notes),
        is_original=message.is_original and not notes,
        is_partial=known.asked.scope == "undo" and bool(left - {*message.restored}),
    )


def answer_of(known: RevertRecord | None) -> dict[str, Any]:
    """Return the reply to a request for a revert."""
    if known is None:
        return refused_with("there was no request for it")
    asked = known.asked
    done = known.outcome or e.Reverted(id=asked.id, scope=asked.scope)
    return {
        "ok": known.state == "restored",
        "id": asked.id,
        "scope": asked.scope,
        "dry_run": asked.is_dry_run,
        "turns": list(done.turns or asked.turns),
        "restored": list(done.restored),
        "kept": [path for path, _ in done.kept],
        "why": dict(done.kept),
        "shared": list(done.shared),
        "yours": list(done.yours),
        "notes": list(done.notes),
        "original": done.is_original,
        "reason": known.reason,
    }


def asking(
    message: m.Revert, name: str, turn: str = "", turns: tuple[str, ...] = ()
) -> e.RevertAsked:
    """Return what is journalled when a person asks for a revert; `turn` has to be over first."""
    return e.RevertAsked(
        id=name,
        scope=message.scope,
        turn=turn,
        turns=turns,
        since=message.since,
        paths=message.paths,
        force=message.force,
        is_dry_run=message.is_dry_run,
        user=message.user,
    )


def revert(record: SessionRecord, message: m.Revert, environment: Environment) -> Decision:
    """Stop what runs, unless this is a dry run; files are restored after that."""
    if record.state in ("finalizing", "finalized"):
        return refusal(m.FINALIZED)
    turn = None if message.is_dry_run else record.unfinished
    is_running = turn is not None and turn is record.running
    is_stop = is_running or bool(workers(record) and not message.is_dry_run)
    turns = _meant(record) if is_stop and message.scope != "undo" else _stopped(record, message)
    asked = asking(message, _name(record), turn.id if turn is not None else "", turns)
    stopped = NOTHING
    if is_stop:
        order = m.StopOrder(cause="stop", is_revert=True)
        stopped = stopping.stop(record, order, environment)
    return Decision(entries=(asked, *stopped.entries), reply=answer(id=asked.id))


def wish(
    record: SessionRecord, message: m.UserMessage, cause: str, environment: Environment
) -> Decision:
    """Note that a message which stops what runs wants its files as they were, too."""
    turn = record.unfinished
    if not message.revert or not (turn is not None or workers(record)):
        return NOTHING
    turns = _meant(record)
    asked = e.RevertAsked(
        id=_name(record),
        scope=message.revert,
        turn=turn.id if turn else "",
        turns=turns,
        user=message.said.user,
    )
    return Decision(entries=(asked,))


def _meant(record: SessionRecord) -> tuple[str, ...]:
    """Return the turns that a stop with a revert is about: what runs, or whose children do."""
    if record.unfinished is not None:
        return resumed_turns(record, record.turn)
    turns = [name for child in workers(record) for name in resumed_turns(record, child.turn)]
    return tuple(dict.fromkeys(turns))


def _stopped(record: SessionRecord, message: m.Revert) -> tuple[str, ...]:
    """Return the newest turn if it was stopped: a first revert is about that, not an older one."""
    newest = record.turns.get(record.turn)
    if message.scope == "undo" or message.since or newest is None or newest.state != "interrupted":
        return ()
    asked = (one.asked for one in record.reverts.values() if not one.asked.is_dry_run)
    is_known = any(newest.id in one.turns and one.scope != "undo" for one in asked)
    return () if is_known else resumed_turns(record, newest.id)


def _name(record: SessionRecord) -> str:
    return f"r{record.reverts_made + 1}"


def begin(record: SessionRecord) -> Decision:
    """Begin the oldest revert that may begin now; nothing while one is at work."""
    if record.queue.state == "closed" or record.state in ("leaving", "finalizing", "suspended"):
        return NOTHING  # it begins when the session is taken up again
    open_ones = [revert for revert in record.reverts.values() if revert.is_open]
    if any(revert.state != "asked" for revert in open_ones):
        return NOTHING
    is_over = record.unfinished is None and not workers(record)
    for known in open_ones:
        if known.asked.is_dry_run or is_over:
            effect = order_of(record, known.asked)
            return Decision(entries=(e.RevertStarted(id=known.id),), effects=(effect,))
    return NOTHING


def offline(record: SessionRecord, message: m.Revert, environment: Environment) -> Decision:
    """Restore files in a session that no process has open: what ran there died with its program."""
    if record.state in ("finalizing", "finalized"):
        return refusal(m.FINALIZED)
    asked = asking(message, _name(record), turns=_stopped(record, message))
    return Decision(
        entries=(asked, e.RevertStarted(id=asked.id)),
        effects=(order_of(record, asked),),
        reply=answer(id=asked.id),
    )


def take_up(record: SessionRecord) -> Decision:
    """Go on with the revert that a dead owner had begun; what was done is not done again."""
    reverts = record.reverts.values()
    begun = [revert for revert in reverts if revert.is_open and revert.state != "asked"]
    return Decision(effects=tuple(order_of(record, revert.asked) for revert in begun))


def restored(
    record: SessionRecord, message: m.RestoreCounted | m.RestoreEnded, environment: Environment
) -> Decision:
    """Note what the ports say of a revert."""
    known = record.reverts.get(message.id)
    if known is None or not known.is_open:
        return NOTHING
    if isinstance(message, m.RestoreCounted):
        entry: e.Entry = e.RevertBegun(id=message.id, files=message.files)
    else:
        entry = ending_of(record, known, message, elsewhere(record, environment.storage))
    return Decision(entries=(entry,))
