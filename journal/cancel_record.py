"""The receipts of cancels: what became of each order to stop, as data, and the fold that says so."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..machines.interrupt import INTERRUPT
from . import entries as e
from .fold import move, remember

if TYPE_CHECKING:
    from .record import SessionRecord

__all__ = ["CANCEL_ENDS", "CancelRecord", "follow_cancels", "take_cancel", "tell_of_child"]

REMEMBERED_CANCELS = 50
CANCEL_ENDS = INTERRUPT.final


@dataclass(slots=True)
class CancelRecord:
    """What became of an interrupt: the receipt of whoever asked for it.

    `told` are the tool calls and the children that were told to stop, `killed` and `survivors` pids,
    `kept` the items that were there when the turn had ended.
    """

    id: str
    turn: str
    cause: str
    state: str = "stopping"
    user: str = ""
    matched: str = ""
    rule: str = ""
    text: str = ""
    taken: float = 0.0
    told: list[str] = field(default_factory=list[str])
    killed: tuple[int, ...] = ()
    survivors: tuple[int, ...] = ()
    checkpoint: dict[str, Any] | None = None
    kept: list[str] = field(default_factory=list[str])


def take_cancel(
    record: SessionRecord, entry: e.InterruptPlanned | e.InterruptRequested, time: float
) -> None:
    """Write the receipt; one that was planned has it already."""
    is_planned = isinstance(entry, e.InterruptPlanned)
    if not is_planned and entry.turn:  # a turn that begins beside a stop of children goes on
        record.epoch += 1
    known = record.interrupts.get(entry.receipt)
    if known is not None:
        move(INTERRUPT, known, "take_effect")
        return
    record.receipts += 1
    if entry.client_id:
        remember(record.cancels, entry.client_id, entry.receipt)
    for earlier in record.interrupts.values():
        if earlier.state == "planned":
            move(INTERRUPT, earlier, "overtake")
    cancel = record.interrupts[entry.receipt] = CancelRecord(
        entry.receipt,
        entry.turn,
        entry.cause,
        INTERRUPT.initial,
        entry.user,
        entry.matched,
        entry.rule,
        entry.text,
        time,
    )
    if not is_planned:
        move(INTERRUPT, cancel, "take_effect")
    while len(record.interrupts) > REMEMBERED_CANCELS:
        del record.interrupts[next(iter(record.interrupts))]


def follow_cancels(
    record: SessionRecord,
    turn: str,
    stopping: list[str],
    entry: e.TurnEnded | e.Interrupted | e.Stopped,
) -> None:
    """Add to the receipts of a turn what its end shows; `stopping` are the calls told to stop."""
    for cancel in record.interrupts.values():
        if cancel.turn != turn or cancel.state in CANCEL_ENDS:
            continue
        match entry:
            case e.TurnEnded():
                move(INTERRUPT, cancel, "overtake")
            case e.Interrupted():
                cancel.checkpoint, cancel.kept = entry.checkpoint, list(record.queue.order)
                cancel.told = [*cancel.told, *stopping]
            case e.Stopped():
                move(INTERRUPT, cancel, "finish")
                cancel.killed, cancel.survivors = entry.killed, entry.survivors


def tell_of_child(record: SessionRecord, entry: e.ChildCancelled) -> None:
    """Add to a receipt a child that was told to end."""
    cancel = record.interrupts.get(entry.receipt)
    if cancel is not None:
        cancel.told.append(entry.child)
