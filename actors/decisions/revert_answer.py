"""A revert in the words of the ports, of the journal, and of whoever asked for it."""

from __future__ import annotations

from typing import Any

from ...journal import revert_entries as r
from ...journal.record import SessionRecord
from ...journal.revert_record import RevertRecord
from ...machines.effects import RestoreFiles
from ...machines.results import RestoreEnded

__all__ = ["answer_of", "before_turn", "ending_of", "order_of"]


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
