"""The fold of the entries that change a session's queue; see `QueueRecord` for what it is folded into."""

from collections.abc import Callable
from typing import Any

from ..machines.lifecycles import ITEM, QUEUE
from . import entries as e
from .fold import changed, moved, remembered
from .queue_record import ItemRecord, QueueRecord
from .revert_entries import Reverted
from .revert_record import news_of

REMEMBERED_ITEMS = 50
ITEM_ENDS = ITEM.final


def apply_to_queue(queue: QueueRecord, entry: e.Entry, time: float) -> QueueRecord:
    """Return the queue's part of the record after one entry; others leave it as it is.

    Raises `StoreDamaged` if a machine refuses the entry.
    """
    match entry:
        case e.Answered() | e.ToolEnded():  # the most frequent ones are not about the queue
            return queue
        case e.Queued():
            return _queue_item(queue, entry, time)
        case e.Deferred():
            return _defer_item(queue, entry, time)
        case e.Requeued() | e.SteerAddressed():
            return _apply_to_steer(queue, entry, time)
        case e.Offered() | e.OfferAnswered() | e.OfferWanted() | e.Kept():
            return _apply_offer(queue, entry, time)
        case e.SteerArrived():
            return _arrive(queue, entry, time)
        case e.Edited():
            item = queue.items[entry.item]
            return _put(queue, _move(item, "edit", text=entry.text, attached=entry.attached))
        case e.Moved():
            return _move_item(queue, entry)
        case e.Withdrawn():
            if queue.items[entry.item].state == "superseded":
                queue = _put_back(queue, queue.items[entry.item])
            return _end_item(queue, entry.item, "withdraw", time)
        case e.Steered():
            for name in entry.items:
                taken = {"turn": entry.turn, "step": entry.step}
                queue = _end_item(queue, name, "steer", time, **taken)
            return queue
        case Reverted():
            news = "\n".join(filter(None, (queue.news, news_of(entry))))
            return _lose_progress(changed(queue, news=news), entry)
        case e.TurnStarted():
            return _start_item(queue, entry)
        case e.TurnEnded() | e.Interrupted() | e.ProgressMade():
            return _apply_to_running(queue, entry, time)
        case _:
            return _apply_to_all(queue, entry, time)


def _apply_to_all(queue: QueueRecord, entry: e.Entry, time: float) -> QueueRecord:
    """Fold what concerns the queue as a whole."""
    match entry:
        case e.Recovered():
            return _recover(queue, time)
        case e.QueueHeld():
            return _each_live(
                _shift(queue, "hold", time),
                lambda item: changed(
                    item, past_hold=False, is_next=item.is_next and not entry.is_all
                ),
            )
        case e.QueueReleased():
            queue = _shift(queue, "release", time)
            for name in entry.items:
                item = queue.items[name]
                if item.state == "superseded":
                    queue = _put_back(queue, _move(item, "resume"))
                    item = queue.items[name]
                queue = _put(queue, changed(item, is_next=True))
            return queue
        case e.SessionSuspended():
            return _drop_goals(queue, time)
        case e.SessionFinalized():
            return _shift(_drop_goals(queue, time), "close", time)
        case _:
            return queue


def _put(queue: QueueRecord, item: ItemRecord) -> QueueRecord:
    return changed(queue, items={**queue.items, item.id: item})


def _move(item: ItemRecord, event: str, **changes: Any) -> ItemRecord:
    return changed(item, state=moved(ITEM, item.state, event), **changes)


def _each_live(queue: QueueRecord, change: Callable[[ItemRecord], ItemRecord]) -> QueueRecord:
    """Change each item that has not ended."""
    live = {item.id: change(item) for item in queue.live()}
    return changed(queue, items={**queue.items, **live}) if live else queue


def _apply_to_steer(
    queue: QueueRecord, entry: e.Requeued | e.SteerAddressed, time: float
) -> QueueRecord:
    """Make of a steer a message of its own, or of a message a steer."""
    item = queue.items[entry.item]
    if isinstance(entry, e.SteerAddressed):
        item = _move(
            item,
            "address",
            for_turn=entry.turn,
            said_as="steer",
            is_next=False,
            for_children=dict.fromkeys(entry.for_children, ""),
            taken=time,
            past_hold=queue.runs_past_hold(),
        )
        return changed(_put(queue, item), taken=item.id)
    if item.state == "superseded":  # what replaced it was taken back
        return _put_back(queue, _move(item, "resume"))
    item = _move(
        item,
        "requeue",
        for_turn="",
        said_as="queue",
        is_next=False,
        why=entry.why,
        for_children={},
        past_hold=entry.past_hold,
    )
    item = _move(item, "offer") if entry.is_offered else item
    if item.id not in queue.order:  # it was put aside with the turn that it was for
        queue = changed(queue, order=(*queue.order, item.id))
    return _put(queue, item)


def _start_item(queue: QueueRecord, entry: e.TurnStarted) -> QueueRecord:
    item = queue.items[entry.item]
    begun = _move(
        item,
        "start",
        turn=entry.turn,
        is_next=False,
        attached=(),
        past_hold=queue.state == "held",
    )
    news = queue.news if item.purpose else ""
    queue = changed(queue, items={**queue.items, item.id: begun}, news=news)
    for steer in queue.steers(entry.resumes) if entry.resumes else ():
        queue = _put(queue, changed(steer, for_turn=entry.turn))
    return queue


def _lose_progress(queue: QueueRecord, entry: Reverted) -> QueueRecord:
    """What was given back whole is to be done again from the start."""
    is_whole = entry.scope == "turn" and not entry.is_dry_run
    for item in queue.items.values() if is_whole and entry.restored else ():
        if item.state in ("interrupted", "superseded") and item.turn in entry.turns:
            queue = _put(queue, changed(item, progress=None))
    return queue


def _apply_to_running(
    queue: QueueRecord, entry: e.TurnEnded | e.Interrupted | e.ProgressMade, time: float
) -> QueueRecord:
    for item in queue.live():
        if item.state != "running" or item.turn != entry.turn:
            continue
        match entry:
            case e.TurnEnded():
                event = "complete" if entry.status == "completed" else "fail"
                queue = _end_item(queue, item.id, event, time, why=entry.reason)
            case e.Interrupted(is_replaced=True):
                queue = _put_aside(queue, _move(item, "supersede", why=entry.cause))
            case e.Interrupted():
                queue = _put(queue, _move(item, "interrupt", why=entry.cause))
            case e.ProgressMade():
                progress = {"done": entry.done, "total": entry.total, "unit": entry.unit}
                queue = _put(queue, changed(item, progress=progress))
    return queue


def _put_aside(queue: QueueRecord, item: ItemRecord) -> QueueRecord:
    """Keep a message whose turn was replaced, with the steers for that turn, apart from the others."""
    aside = {item.id, *(steer.id for steer in queue.steers(item.turn))}
    order = tuple(name for name in queue.order if name not in aside)
    return changed(_put(queue, item), order=order)


def _put_back(queue: QueueRecord, item: ItemRecord) -> QueueRecord:
    """Line up again what was put aside; what the turn waited for comes with it."""
    steers = [one.id for one in queue.items.values() if _is_aside(queue, one, item.turn)]
    return changed(_put(queue, item), order=(*queue.order, item.id, *steers))


def _is_aside(queue: QueueRecord, item: ItemRecord, turn: str) -> bool:
    return item.state == "pending" and item.for_turn == turn and item.id not in queue.order


def _recover(queue: QueueRecord, time: float) -> QueueRecord:
    """Nothing runs by itself from here on; what was about to run comes first when it is resumed."""
    if queue.state == "closed":
        return queue
    queue = _each_live(_drop_goals(queue, time), _interrupted)
    return _shift(queue, "hold", time) if queue.order else queue


def _interrupted(item: ItemRecord) -> ItemRecord:
    """Return an item as its owner's death leaves it."""
    if item.state == "running":
        item = _move(item, "interrupt", why="crash")
    return changed(item, is_next=False, past_hold=False)


def _drop_goals(queue: QueueRecord, time: float) -> QueueRecord:
    """No goal goes on by itself after a restart."""
    for item in queue.pending():
        if item.goal:
            queue = _end_item(queue, item.id, "withdraw", time)
    return queue


def _shift(queue: QueueRecord, event: str, time: float) -> QueueRecord:
    state = moved(QUEUE, queue.state, event)
    return changed(queue, state=state, since=time) if state != queue.state else queue


def _add_item(
    queue: QueueRecord, item: ItemRecord, position: int | None = None, taken: str = ""
) -> QueueRecord:
    """Take an item in, at a position among what waits (from 1), or at the end without one.

    Raises `StoreDamaged` when the queue takes nothing in.
    """
    order = queue.order
    waiting = [other.id for other in queue.waiting()] if position is not None else []
    place = len(order)
    if position is not None and position <= len(waiting):
        place = order.index(waiting[position - 1])
    clients = queue.clients
    if item.client_id:
        clients = remembered(clients, item.client_id, item.id)
    return changed(
        queue,
        state=moved(QUEUE, queue.state, "accept"),
        made=queue.made + 1,
        number=item.number,
        items={**queue.items, item.id: item},
        order=(*order[:place], item.id, *order[place:]),
        clients=clients,
        taken=taken or queue.taken,
    )


def _queue_item(queue: QueueRecord, entry: e.Queued, time: float) -> QueueRecord:
    item = ItemRecord(
        entry.item,
        entry.number,
        entry.text,
        said_as=entry.said_as,
        user=entry.user,
        client_id=entry.client_id,
        is_next=entry.is_next,
        for_turn=entry.for_turn,
        for_children=dict.fromkeys(entry.for_children, ""),
        child=entry.child,
        attached=entry.attached,
        created=time,
        taken=time,
        purpose=entry.purpose,
        goal=entry.goal,
        past_hold=entry.past_hold,
    )
    return _add_item(queue, item, entry.position, "" if entry.goal else entry.item)


def _apply_offer(
    queue: QueueRecord, entry: e.Offered | e.OfferAnswered | e.OfferWanted | e.Kept, time: float
) -> QueueRecord:
    match entry:
        case e.Offered():
            return _offer_item(queue, entry, time)
        case e.OfferAnswered():
            return _put(queue, changed(queue.items[entry.item], answer=entry.text))
        case e.OfferWanted():
            return _put(queue, changed(queue.items[entry.item], wants=entry.wants))
        case e.Kept():
            item = queue.items[entry.item]
            return _put(queue, _move(item, "keep", past_hold=entry.past_hold))


def _offer_item(queue: QueueRecord, entry: e.Offered, time: float) -> QueueRecord:
    item = ItemRecord(
        entry.item,
        entry.number,
        entry.text,
        said_as="side_talk" if not entry.is_answered else "result",
        user=entry.user,
        client_id=entry.client_id,
        child=entry.child,
        answer=entry.text if entry.is_answered else "",
        created=time,
        taken=time,
    )
    return _add_item(queue, _move(item, "offer"))


def _arrive(queue: QueueRecord, entry: e.SteerArrived, time: float) -> QueueRecord:
    """Note where a child took a steer in; when all have answered and one has it, it is taken in.

    The first place counts: a child may take in again what it had before it was interrupted.
    """
    item = queue.items.get(entry.item)
    if item is None or item.state != "pending":
        return queue
    if item.for_children.get(entry.child) not in ("", "-"):
        return queue
    place = f"{entry.turn}.{entry.step}" if entry.turn else "-"
    places = {**item.for_children, entry.child: place}
    if "" in places.values() or set(places.values()) == {"-"}:
        return _put(queue, changed(item, for_children=places))
    taken = {"turn": entry.turn, "step": entry.step}
    return _end_item(queue, item.id, "steer", time, for_children=places, **taken)


def _defer_item(queue: QueueRecord, entry: e.Deferred, time: float) -> QueueRecord:
    """Let a steer wait anew; the one that was taken in stays so, and says what became of it."""
    item = ItemRecord(
        entry.new_item,
        entry.number,
        entry.text,
        said_as="queue",
        user=entry.user,
        why=entry.why,
        created=time,
        taken=time,
        deferred_from=entry.item,
        past_hold=entry.past_hold,
    )
    queue = _add_item(queue, item, entry.position)
    old = queue.items.get(entry.item)
    if old is None:
        return queue
    return _put(queue, changed(old, deferred_to=entry.new_item, why=entry.why))


def _move_item(queue: QueueRecord, entry: e.Moved) -> QueueRecord:
    """Put an item before another; what has ended in the meantime leaves things as they are."""
    if entry.item not in queue.order:
        return queue
    order = [name for name in queue.order if name != entry.item]
    known = entry.before in order
    order.insert(order.index(entry.before) if known else len(order), entry.item)
    return changed(queue, order=tuple(order))


def _end_item(
    queue: QueueRecord, name: str, event: str, time: float, **changes: Any
) -> QueueRecord:
    """End an item, and forget the oldest of those that have ended."""
    item = _move(queue.items[name], event, attached=(), past_hold=False, **changes)
    place = queue.order.index(name)
    order = (*queue.order[:place], *queue.order[place + 1 :])
    items = {**queue.items, name: item}
    ended = [old.id for old in items.values() if old.state in ITEM_ENDS]
    for old in ended[: max(0, len(ended) - REMEMBERED_ITEMS)]:
        del items[old]
    is_empty = not order and all(one.state in ITEM_ENDS for one in items.values())
    return changed(queue, items=items, order=order, number=0 if is_empty else queue.number)
