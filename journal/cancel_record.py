"""The receipts of cancels: what became of each order to stop, as data, and the fold that says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..machines.lifecycles import INTERRUPT
from . import entries as e
from .fold import changed, moved, remembered

if TYPE_CHECKING:
    from .record import SessionRecord


Stop = (
    e.InterruptPlanned | e.InterruptRequested | e.StopNoted | e.SessionLeaving | e.SessionFinalizing
)
"""The entries that stop somebody."""

REMEMBERED_CANCELS = 50
CANCEL_ENDS = INTERRUPT.final


@dataclass(frozen=True, slots=True)
class CancelRecord:
    """What became of an interrupt: the receipt of whoever asked for it.

    `told` are the tool calls and the children that were told to stop, `killed` and `survivors` pids,
    `kept` the items that were there when the turn had ended. `epoch` is the one that it raised the
    session to; `reaches`, `order` and `is_replaced` as in
    the entry.
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
    told: tuple[str, ...] = field(default_factory=tuple[str, ...])
    killed: tuple[int, ...] = ()
    survivors: tuple[int, ...] = ()
    epoch: int = 0
    reaches: tuple[str, ...] = ()
    order: int = 0
    is_replaced: bool = False
    checkpoint: Mapping[str, Any] | None = None
    kept: tuple[str, ...] = field(default_factory=tuple[str, ...])


def take_cancel(
    record: SessionRecord, entry: e.InterruptPlanned | e.InterruptRequested, time: float
) -> None:
    """Write the receipt; one that was planned has it already."""
    is_planned = isinstance(entry, e.InterruptPlanned)
    raise_epoch(record, entry, entry.receipt)
    known = record.interrupts.get(entry.receipt)
    if known is not None:
        effective = {"epoch": record.epoch, "reaches": (*known.reaches, *entry.reaches)}
        known = move_cancel(known, "take_effect", **effective)
        record.interrupts = {**record.interrupts, known.id: known}
        return
    record.receipts += 1
    if entry.client_id:
        record.cancels = remembered(record.cancels, entry.client_id, entry.receipt)
    cancel = CancelRecord(
        entry.receipt,
        entry.turn,
        entry.cause,
        INTERRUPT.initial if is_planned else moved(INTERRUPT, INTERRUPT.initial, "take_effect"),
        entry.user,
        entry.matched,
        entry.rule,
        entry.text,
        time,
        epoch=record.epoch,
        reaches=entry.reaches,
        order=entry.order,
        is_replaced=entry.is_replaced,
    )
    receipts = {
        name: move_cancel(earlier, "overtake") if earlier.state == "planned" else earlier
        for name, earlier in record.interrupts.items()
    }
    receipts[cancel.id] = cancel
    while len(receipts) > REMEMBERED_CANCELS:
        del receipts[next(iter(receipts))]
    record.interrupts = receipts


def raise_epoch(record: SessionRecord, entry: Stop, receipt: str = "") -> None:
    """Mark whom a stop reaches: nothing that was ordered before it begins any more."""
    record.epoch += 1
    record.cancelled = {**record.cancelled, **dict.fromkeys(entry.reaches, record.epoch)}
    record.overtaken = max(record.overtaken, getattr(entry, "said", 0))
    spared = getattr(entry, "spares", ())
    mark: dict[str, Any] = {
        "cancelled": record.epoch,
        "cancelled_by": receipt,
        "cancelled_cause": entry.cause,
    }
    reached = {
        name: changed(child, **mark)
        for name, child in record.children.items()
        if child.is_at_work
        and child.relation in entry.reaches
        and name not in spared
        and child.cancelled <= child.epoch
    }
    if reached:
        record.children = {**record.children, **reached}


def move_cancel(cancel: CancelRecord, event: str, **changes: Any) -> CancelRecord:
    """Return a receipt after an event. Raises `StoreDamaged` when its machine refuses."""
    return changed(cancel, state=moved(INTERRUPT, cancel.state, event), **changes)


def follow_cancels(
    record: SessionRecord,
    turn: str,
    stopping: Sequence[str],
    entry: e.TurnEnded | e.Interrupted | e.Stopped,
) -> None:
    """Add to the receipts of a turn what its end shows; `stopping` are the calls told to stop."""
    followed: dict[str, CancelRecord] = {}
    for name, cancel in record.interrupts.items():
        if cancel.turn != turn or cancel.state in CANCEL_ENDS:
            continue
        if isinstance(entry, e.Stopped) and entry.receipt not in ("", name):
            continue
        match entry:
            case e.TurnEnded():
                followed[name] = move_cancel(cancel, "overtake")
            case e.Interrupted():
                followed[name] = changed(
                    cancel,
                    checkpoint=entry.checkpoint,
                    kept=tuple(record.queue.order),
                    told=(*cancel.told, *stopping),
                )
            case e.Stopped():
                ends = {"killed": entry.killed, "survivors": entry.survivors}
                followed[name] = move_cancel(cancel, "finish", **ends)
    if followed:
        record.interrupts = {**record.interrupts, **followed}


def finish_cancels(record: SessionRecord) -> None:
    """End the receipts of a session whose owner has died: nothing that it ran is left."""
    record.interrupts = {
        name: cancel if cancel.state in CANCEL_ENDS else move_cancel(cancel, "finish")
        for name, cancel in record.interrupts.items()
    }


def tell_of_dead_child(record: SessionRecord, entry: e.ChildInterrupted | e.ChildEnded) -> None:
    """Add to a receipt what was killed with a child that the stop reached."""
    child = record.children[entry.child]
    cancel = record.interrupts.get(child.cancelled_by)
    if cancel is None or cancel.state in CANCEL_ENDS or not (entry.killed or entry.survivors):
        return
    killed, survivors = (*cancel.killed, *entry.killed), (*cancel.survivors, *entry.survivors)
    cancel = changed(cancel, killed=killed, survivors=survivors)
    record.interrupts = {**record.interrupts, cancel.id: cancel}


def tell_of_child(record: SessionRecord, entry: e.ChildCancelled) -> None:
    """Add to a receipt a child that was told to end."""
    cancel = record.interrupts.get(entry.receipt)
    if cancel is not None:
        cancel = changed(cancel, told=(*cancel.told, entry.child))
        record.interrupts = {**record.interrupts, cancel.id: cancel}
