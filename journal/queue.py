"""The queue's part of a session's state as data, and the fold of the entries that change it.

The session and its queue actor each keep a copy and fold the same entries, not always in the same
order: what one of them decides may cross what the other does. So an entry names the items that it
changes, and never means "whichever is running now" where the answer could differ.
"""

from dataclasses import dataclass, field

from ..machines.item import ITEM
from ..machines.queue import QUEUE
from . import entries as e
from .fold import move, remember
from .item_record import ItemRecord
from .revert_entries import Reverted
from .revert_news import news_of

__all__ = ["ItemRecord", "QueueRecord", "apply_to_queue"]

REMEMBERED_ITEMS = 50
ITEM_ENDS = ITEM.final


@dataclass(slots=True)
class QueueRecord:
    """What waits and what became of it. `order` holds the ids of what has not ended.

    Only what the queue itself decides changes `order`; `live()` is the order that counts.
    `clients` maps the newest clients' own keys to the items they got; `taken` is the message that
    was read last, as a steer or anything else; `news` is what the model has to know with the next.
    """

    state: str = "open"
    since: float = 0.0
    items: dict[str, ItemRecord] = field(default_factory=dict[str, ItemRecord])
    order: list[str] = field(default_factory=list[str])
    made: int = 0
    number: int = 0
    clients: dict[str, str] = field(default_factory=dict[str, str])
    taken: str = ""
    news: str = ""

    def live(self) -> list[ItemRecord]:
        """Return what has not ended: what runs, what was interrupted, the oldest first, what waits.

        What was interrupted is lined up here and not in `order`, because it is the turn that decides
        of it: that may cross what the queue decides of its order.
        """
        return sorted((self.items[item] for item in self.order), key=_rank)

    def waiting(self) -> list[ItemRecord]:
        """Return the messages that wait for a turn of their own, in order (no steers)."""
        return [one for one in self.live() if one.state == "pending" and not one.is_steer]

    def pending(self) -> list[ItemRecord]:
        """Return all that waits, in order: for a turn of its own, or as a steer for a boundary."""
        return [one for one in self.live() if one.state == "pending"]

    def next_item(self) -> ItemRecord | None:
        """Return what runs next: what must run now, then what waits longest and is not held."""
        urgent = [
            one for one in self.live() if one.is_next and one.state in ("pending", "interrupted")
        ]
        if urgent:
            return _persons_first(urgent)
        waiting = [one for one in self.waiting() if not self.holds(one)]
        return _persons_first(waiting) if waiting else None

    def holds(self, item: ItemRecord) -> bool:
        """Whether a message waits for a person's word: the queue is held, and it came before that."""
        is_waiting = item.state == "pending" and not item.is_steer
        return is_waiting and self.state == "held" and not (item.past_hold or item.is_next)

    def runs_past_hold(self) -> bool:
        """Whether a turn was begun although the queue is held: what is said to it runs behind it."""
        return any(one.state == "running" and one.past_hold for one in self.live())

    def of_goal(self, goal: str, *states: str) -> list[ItemRecord]:
        """Return a goal's messages that are in one of these states, in order."""
        return [one for one in self.live() if one.goal == goal and one.state in states]

    def will_run(self) -> bool:
        """Whether something waits that will run by itself; a steer without a turn is about to."""
        return self.next_item() is not None or (self.state == "open" and bool(self.stranded()))

    def steers(self, turn: str) -> list[ItemRecord]:
        """Return the steers that wait for a boundary of `turn`, in order."""
        return [one for one in self.live() if one.state == "pending" and one.for_turn == turn]

    def handed_on(self, child: str) -> list[ItemRecord]:
        """Return the steers that a child was to take in, and has not yet, in order."""
        return [one for one in self.live() if one.for_children.get(child) == ""]

    def stranded(self) -> list[ItemRecord]:
        """Return the steers that wait for a turn which does not run (any more), in order."""
        running = {one.turn for one in self.live() if one.state == "running"}
        return [
            one
            for one in self.live()
            if one.state == "pending" and one.for_turn and one.for_turn not in running
        ]


def _rank(item: ItemRecord) -> tuple[int, int]:
    match item.state:
        case "running":
            return 0, 0
        case "interrupted":
            return 1, item.number
        case _:
            return 2, 0


def _persons_first(there: list[ItemRecord]) -> ItemRecord:
    """Pick the first, but no goal's message before somebody's own."""
    return min(there, key=lambda one: bool(one.goal))


def apply_to_queue(queue: QueueRecord, entry: e.Entry, time: float) -> None:
    """Fold one entry into the queue's part of the record, in place; others leave it alone."""
    match entry:
        case e.Queued():
            _queue_item(queue, entry, time)
        case e.Deferred():
            _defer_item(queue, entry, time)
        case e.Requeued():
            item = queue.items[entry.item]
            move(ITEM, item, "requeue")
            item.for_turn, item.said_as, item.is_next, item.why = "", "queue", False, entry.why
            item.for_children, item.past_hold = {}, entry.past_hold
            if entry.is_offered:
                move(ITEM, item, "offer")
        case e.SteerAddressed():
            item = queue.items[entry.item]
            move(ITEM, item, "address")
            item.for_turn, item.said_as, item.is_next = entry.turn, "steer", False
            item.for_children = dict.fromkeys(entry.for_children, "")
            queue.taken, item.taken = item.id, time
        case e.Offered() | e.OfferAnswered() | e.OfferWanted() | e.Kept():
            _apply_offer(queue, entry, time)
        case e.SteerArrived():
            _arrive(queue, entry, time)
        case e.Edited():
            move(ITEM, queue.items[entry.item], "edit")
            queue.items[entry.item].text = entry.text
            queue.items[entry.item].attached = entry.attached
        case e.Moved():
            _move_item(queue, entry)
        case e.Withdrawn():
            _end_item(queue, entry.item, "withdraw", time)
        case e.Steered():
            for name in entry.items:
                queue.items[name].turn, queue.items[name].step = entry.turn, entry.step
                _end_item(queue, name, "steer", time)
        case Reverted():
            queue.news = "\n".join(filter(None, (queue.news, news_of(entry))))
            _lose_progress(queue, entry)
        case e.TurnStarted():
            item = queue.items[entry.item]
            queue.news = queue.news if item.purpose else ""
            move(ITEM, item, "start")
            item.turn, item.is_next, item.attached = entry.turn, False, ()
            item.past_hold = queue.state == "held"
        case e.TurnEnded() | e.Interrupted() | e.ProgressMade():
            _apply_to_running(queue, entry, time)
        case e.Recovered():
            _recover(queue, time)
        case e.QueueHeld():
            _shift(queue, "hold", time)
            for item in queue.live():
                item.past_hold = False
                item.is_next = item.is_next and not entry.is_all
        case e.QueueReleased():
            _shift(queue, "release", time)
            for name in entry.items:
                queue.items[name].is_next = True
        case e.SessionSuspended():
            _drop_goals(queue, time)
        case e.SessionFinalized():
            _drop_goals(queue, time)
            _shift(queue, "close", time)
        case _:
            pass


def _lose_progress(queue: QueueRecord, entry: Reverted) -> None:
    """What was given back whole is to be done again from the start."""
    is_whole = entry.scope == "turn" and not entry.is_dry_run
    for item in queue.live() if is_whole and entry.restored else ():
        if item.state == "interrupted" and item.turn in entry.turns:
            item.progress = None


def _apply_to_running(
    queue: QueueRecord, entry: e.TurnEnded | e.Interrupted | e.ProgressMade, time: float
) -> None:
    for item in queue.live():
        if item.state != "running" or item.turn != entry.turn:
            continue
        match entry:
            case e.TurnEnded():
                item.why = entry.reason
                _end_item(
                    queue, item.id, "complete" if entry.status == "completed" else "fail", time
                )
            case e.Interrupted():
                move(ITEM, item, "interrupt")
                item.why = entry.cause
            case e.ProgressMade():
                item.progress = {"done": entry.done, "total": entry.total, "unit": entry.unit}


def _recover(queue: QueueRecord, time: float) -> None:
    """Nothing runs by itself from here on; what was about to run comes first when it is resumed."""
    if queue.state == "closed":
        return
    _drop_goals(queue, time)
    live = queue.live()
    for item in live:
        if item.state == "running":
            move(ITEM, item, "interrupt")
            item.why = "crash"
    for item in live:
        item.is_next = item.past_hold = False
    if queue.order:
        _shift(queue, "hold", time)


def _drop_goals(queue: QueueRecord, time: float) -> None:
    """No goal goes on by itself after a restart."""
    for item in [one for one in queue.pending() if one.goal]:
        _end_item(queue, item.id, "withdraw", time)


def _shift(queue: QueueRecord, event: str, time: float) -> None:
    state = queue.state
    move(QUEUE, queue, event)
    if queue.state != state:
        queue.since = time


def _queue_item(queue: QueueRecord, entry: e.Queued, time: float) -> None:
    move(QUEUE, queue, "accept")
    queue.made += 1
    queue.number = entry.number
    queue.items[entry.item] = ItemRecord(
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
    if not entry.goal:
        queue.taken = entry.item
    _place_item(queue, entry.item, entry.position)
    if entry.client_id:
        remember(queue.clients, entry.client_id, entry.item)


def _apply_offer(
    queue: QueueRecord, entry: e.Offered | e.OfferAnswered | e.OfferWanted | e.Kept, time: float
) -> None:
    match entry:
        case e.Offered():
            move(QUEUE, queue, "accept")
            queue.made += 1
            queue.number = entry.number
            item = queue.items[entry.item] = ItemRecord(
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
            move(ITEM, item, "offer")
            queue.order.append(entry.item)
            if entry.client_id:
                remember(queue.clients, entry.client_id, entry.item)
        case e.OfferAnswered():
            queue.items[entry.item].answer = entry.text
        case e.OfferWanted():
            queue.items[entry.item].wants = entry.wants
        case e.Kept():
            move(ITEM, queue.items[entry.item], "keep")
            queue.items[entry.item].past_hold = entry.past_hold


def _arrive(queue: QueueRecord, entry: e.SteerArrived, time: float) -> None:
    """Note where a child took a steer in; when all have answered and one has it, it is taken in.

    The first place counts: a child may take in again what it had before it was interrupted.
    """
    item = queue.items.get(entry.item)
    if item is None or item.state != "pending":
        return
    if item.for_children.get(entry.child) not in ("", "-"):
        return
    item.for_children[entry.child] = f"{entry.turn}.{entry.step}" if entry.turn else "-"
    places = item.for_children.values()
    if "" not in places and any(one != "-" for one in places):
        item.turn, item.step = entry.turn, entry.step
        _end_item(queue, item.id, "steer", time)


def _defer_item(queue: QueueRecord, entry: e.Deferred, time: float) -> None:
    """Let a steer wait anew; the one that was taken in stays so, and says what became of it."""
    move(QUEUE, queue, "accept")
    queue.made += 1
    queue.number = entry.number
    queue.items[entry.new_item] = ItemRecord(
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
    _place_item(queue, entry.new_item, entry.position)
    if (old := queue.items.get(entry.item)) is not None:
        old.deferred_to, old.why = entry.new_item, entry.why


def _place_item(queue: QueueRecord, name: str, position: int) -> None:
    """Put an item into the order; `position` counts from 1 among what waits without it."""
    waiting = [one.id for one in queue.waiting()]
    if position <= len(waiting):
        queue.order.insert(queue.order.index(waiting[position - 1]), name)
    else:
        queue.order.append(name)


def _move_item(queue: QueueRecord, entry: e.Moved) -> None:
    """Put an item before another; what has ended in the meantime leaves things as they are."""
    if entry.item not in queue.order:
        return
    queue.order.remove(entry.item)
    known = entry.before in queue.order
    queue.order.insert(queue.order.index(entry.before) if known else len(queue.order), entry.item)


def _end_item(queue: QueueRecord, name: str, event: str, time: float) -> None:
    item = queue.items[name]
    move(ITEM, item, event)
    item.attached, item.past_hold = (), False
    queue.order.remove(name)
    ended = [one for one in queue.items.values() if one.state in ITEM_ENDS]
    for old in ended[: max(0, len(ended) - REMEMBERED_ITEMS)]:
        del queue.items[old.id]
    if not queue.order:
        queue.number = 0
