"""A session's queue as data, and the fold of the entries that change it.

The messages that wait in a session, and those that have ended.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, assert_never

from msgspec import field
from msgspec.structs import replace

from ..machines import protocol as m
from ..machines.lifecycles import ITEM, QUEUE
from ..machines.protocol import shown
from ..machines.value import Value
from . import entries as e
from .fold import EntryKinds, moved, remembered
from .revert_record import news_of

REMEMBERED_ITEMS = 50
REMEMBERED_ASIDE = 200
"""Messages whose turn was replaced, and which can be resumed."""
ITEM_ENDS = ITEM.final
NOT_YET, AT_REST, NEVER = "", "~", "-"
"""What a child has done with a steer that was handed on to it, besides taking it in."""
_BEGUN = ("running", "interrupted")
_ASIDE = ("superseded", "unanswered")
_GONE = ("unanswered", *ITEM_ENDS)


class ItemRecord(Value):
    """One message, or what stands in its place."""

    id: str
    """Its name: `m1`, `m2`, …"""
    number: int
    """The number that people see."""
    said: m.Said
    """What was said; without what is attached once the conversation has it."""
    routed: m.Routed = m.Routed()
    """How the routing table took it."""
    kind: m.ItemKind = m.ItemKind.MESSAGE
    """What it is."""
    state: str = "pending"
    """A state of the item machine."""
    is_next: bool = False
    """It runs before everything that waits, also while the queue is held."""
    for_turn: str = ""
    """The turn at whose boundary it enters, for a steer."""
    for_children: Mapping[str, str] = field(default_factory=dict[str, str])
    """The children that a steer was handed on to, each with where it took the steer in: empty while it
    has not, `~` while it has stopped and can go on, `-` when it can't."""
    child: str = ""
    """The child whose answer it is."""
    answer: str = ""
    """The answer of that child, once it is there."""
    wants: str = ""
    """What becomes of the answer then: steer, keep, or nothing."""
    turn: str = ""
    """The last turn that ran it, or took it in."""
    step: int = 0
    """The step of that turn before which it was taken in."""
    why: str = ""
    """What it became, where that is not plain."""
    created: float = 0.0
    """Seconds since 1970."""
    taken: float = 0.0
    """When it was last read as what it is, in seconds since 1970."""
    progress: Mapping[str, Any] | None = None
    """How far its turn is: {done, total, unit}."""
    is_reverted: bool = False
    """Whether its turn's files were taken back as a whole: what else was interrupted is resumed first."""
    deferred_to: str = ""
    """The item that a steer became which the model handed back."""
    deferred_from: str = ""
    """The steer that it was before the model handed that back."""
    goal: str = ""
    """The goal whose next turn it begins."""
    past_hold: bool = False
    """It came after the queue was held, and runs all the same."""
    editor: str = ""
    """The client in which a person edits it: until that is over, it neither starts nor enters a turn."""
    is_stopped: bool = False
    """The side talk that was to answer it was stopped, and can be resumed."""

    @property
    def text(self) -> str:
        """Its text as people read it."""
        return shown(self.kind, self.said.text)

    @property
    def is_steer(self) -> bool:
        """Whether it waits for a boundary, here or of a child."""
        return bool(self.for_turn or self.for_children)

    @property
    def is_over(self) -> bool:
        """Whether it has ended, or is set aside: its turn was replaced, or not answered."""
        return self.state in _ASIDE or self.state in ITEM_ENDS

    @property
    def only_waits(self) -> bool:
        """Whether it waits for a turn of its own, and there is nothing special about it."""
        more = self.is_next or self.is_steer or self.past_hold or self.editor
        return self.state == "pending" and self.kind in m.SPOKEN and not more


class QueueRecord(Value, dict=True):
    """The items of a queue, waiting and ended.

    Only what the queue itself decides changes `order`; `live()` is the order that counts.
    """

    state: str = "open"
    """A state of the queue machine."""
    since: float = 0.0
    """When it came into that state, in seconds since 1970."""
    items: Mapping[str, ItemRecord] = field(default_factory=dict[str, ItemRecord])
    """All that wait or run, and the newest that have ended, by name."""
    order: tuple[str, ...] = field(default_factory=tuple[str, ...])
    """What has not ended, but for what is set aside (`aside`)."""
    made: int = 0
    """How many items it has had."""
    number: int = 0
    """The number that people see of the newest item."""
    clients: Mapping[str, str] = field(default_factory=dict[str, str])
    """The newest clients' own keys, with the items that they got."""
    taken: str = ""
    """The message that was read last, as a steer or anything else."""
    unanswered: str = ""
    """The message whose turn ended without an answer of its model, while no other has begun."""
    news: str = ""
    """What the model has to know with the next message."""

    def live(self) -> list[ItemRecord]:
        """Return what has not ended: what runs, what was interrupted, the oldest first, what waits.

        What was interrupted is lined up here and not in `order`, because it is the turn that decides
        of it: that may cross what the queue decides of its order.
        """
        return list(self._live)

    @cached_property
    def _live(self) -> tuple[ItemRecord, ...]:
        begun = self._begun
        rest = (self.items[name] for name in self.order if name not in begun)
        return (*begun.values(), *rest)

    @cached_property
    def _apart(self) -> Mapping[str, ItemRecord]:
        """What can go on and does more than wait, in no order, also what was put aside."""
        return _apart_of(self.items)

    @cached_property
    def _begun(self) -> Mapping[str, ItemRecord]:
        begun = sorted((item for item in self._apart.values() if item.state in _BEGUN), key=_rank)
        return {item.id: item for item in begun}

    @cached_property
    def _special(self) -> tuple[ItemRecord, ...]:
        apart, begun = self._apart, self._begun
        is_more = len(apart) > len(begun)
        names = (name for name in self.order if name in apart and name not in begun)
        return (
            (*begun.values(), *(apart[name] for name in names)) if is_more else (*begun.values(),)
        )

    def special(self) -> list[ItemRecord]:
        """Return those of `live` that do more than wait: they run, steer, are offered or edited.

        They are few however long the queue is, and known without looking through it.
        """
        return list(self._special)

    def unedited(self) -> "QueueRecord":
        """Return the queue with nobody at its messages, as no program has them open."""
        return self.having(*(replace(item, editor="") for item in self.special() if item.editor))

    def apart(self) -> Iterable[ItemRecord]:
        """Return what `special` returns, in no order, and what was put aside."""
        return self._apart.values()

    def is_live(self, name: str) -> bool:
        """Whether an item has a place in the queue."""
        item = self.items.get(name)
        if item is None or item.is_over:
            return False
        return item.only_waits or any(one.id == name for one in self._special)

    def place(self, name: str) -> int:
        """Return the place of an item in `live`, from 1."""
        begun = list(self._begun)
        if name in begun:
            return begun.index(name) + 1
        if name == self.order[-1]:
            return len(self.order)
        before = self.order[: self.order.index(name)]
        return len(begun) + len(before) - sum(other in before for other in begun) + 1

    def having(
        self, *items: ItemRecord, forgets: Iterable[str] = (), **changes: Any
    ) -> "QueueRecord":
        """Return the queue with these items, new or changed, without some, with other attributes.

        What is known of this queue's items is handed on, so that no reader looks through all of them.
        """
        new = {item.id: item for item in items}
        there = {**self.items, **new}
        for name in forgets:
            del there[name]
        queue = replace(self, items=there, **changes)
        apart = {name: item for name, item in self._apart.items() if there.get(name) is item}
        vars(queue)["_apart"] = apart | _apart_of(new)
        return queue

    def waiting(self) -> list[ItemRecord]:
        """Return the messages that wait for a turn of their own, in order (no steers)."""
        return [item for item in self._live if item.state == "pending" and not item.is_steer]

    @property
    def only_waiting_count(self) -> int:
        """How many messages wait for a turn of their own, with nothing special about them."""
        return len(self.order) - len(self._special)

    @property
    def waiting_count(self) -> int:
        """How many messages wait for a turn of their own."""
        more = (item for item in self._special if item.state == "pending" and not item.is_steer)
        return self.only_waiting_count + sum(1 for _ in more)

    @property
    def pending_count(self) -> int:
        """How many wait, for a turn of their own or as a steer for a boundary."""
        return self.only_waiting_count + sum(item.state == "pending" for item in self._special)

    def pending(self) -> list[ItemRecord]:
        """Return all that waits, in order: for a turn of its own, or as a steer for a boundary."""
        return [item for item in self._live if item.state == "pending"]

    @property
    def is_ahead(self) -> bool:
        """Whether anything comes before a goal's turn: all that waits, but for an interrupted turn."""
        if self.only_waiting_count:
            return True
        cut = {item.turn for item in self._special if item.state == "interrupted"}
        waiting = (item for item in self._special if item.state == "pending")
        return any(not item.for_turn or item.for_turn not in cut for item in waiting)

    def next_item(self) -> ItemRecord | None:
        """Return what runs next: what must run now, then what waits longest and is not held."""
        urgent = [
            item
            for item in self._special
            if item.is_next and item.state in ("pending", "interrupted") and not item.editor
        ]
        if urgent:
            return _persons_first(urgent)
        there = self._special if self.state == "held" else (self.items[name] for name in self.order)
        later = None
        for item in there:
            if item.state != "pending" or item.is_steer or item.editor or self.holds(item):
                continue
            if not item.goal:
                return item
            later = later or item
        return later

    def holds(self, item: ItemRecord) -> bool:
        """Whether a message waits for a person's word: the queue is held, and it came before that."""
        is_waiting = item.state == "pending" and not item.is_steer
        return is_waiting and self.state == "held" and not (item.past_hold or item.is_next)

    def runs_past_hold(self) -> bool:
        """Whether a turn was begun although the queue is held: messages to it run behind it."""
        return any(item.state == "running" and item.past_hold for item in self._special)

    def of_goal(self, goal: str, *states: str) -> list[ItemRecord]:
        """Return a goal's messages that are in one of these states, in order."""
        return [item for item in self._special if item.goal == goal and item.state in states]

    def will_run(self) -> bool:
        """Whether an item will run without a person's word, or a steer without a turn is about to."""
        return self.next_item() is not None or (self.state == "open" and bool(self.stranded()))

    def steers(self, turn: str) -> list[ItemRecord]:
        """Return the steers that may enter `turn` at its next boundary, in order."""
        return [item for item in self.steers_for(turn) if not item.editor]

    def steers_for(self, turn: str) -> list[ItemRecord]:
        """Return all steers that wait for a boundary of `turn`, in order, edited ones too."""
        return [item for item in self._special if item.state == "pending" and item.for_turn == turn]

    def superseded(self) -> list[ItemRecord]:
        """Return the messages whose turn another one replaced, the oldest first."""
        found = [item for item in self.apart() if item.state == "superseded"]
        return sorted(found, key=lambda item: int(item.id[1:]))

    def aside(self) -> list[ItemRecord]:
        """Return what waits for nothing and can be resumed all the same.

        That is each message whose turn another one replaced, with the steers for that turn, and one
        whose turn the model did not answer.
        """
        steers = [item for item in self.apart() if item.state == "pending" and item.for_turn]
        aside = [self.items[self.unanswered]] if self.unanswered else []
        for item in self.superseded():
            aside += [item, *(steer for steer in steers if steer.for_turn == item.turn)]
        return aside

    def handed_on(self, child: str) -> list[ItemRecord]:
        """Return the steers that a child was to take in, and has not yet, in order."""
        return [
            item for item in self._special if item.for_children.get(child) in (NOT_YET, AT_REST)
        ]

    def stranded(self) -> list[ItemRecord]:
        """Return the steers that wait for a turn which does not run, and won't go on, in order.

        A goal goes on with a turn of its own: messages to one that is interrupted come first.
        """
        live = self._special
        steers = [item for item in live if item.for_turn and item.state == "pending"]
        if not steers:
            return []
        running = {item.turn for item in live if item.state == "running"}
        running |= {item.turn for item in live if item.state == "interrupted" and not item.goal}
        return [item for item in steers if item.for_turn not in running]


def _apart_of(items: Mapping[str, ItemRecord]) -> dict[str, ItemRecord]:
    there = ((name, one) for name, one in items.items() if one.state not in _GONE)
    return {name: one for name, one in there if not one.only_waits}


def _rank(item: ItemRecord) -> tuple[int, int]:
    """Return the place of an item that has begun: first what runs, then by number what was cut off."""
    return (0, 0) if item.state == "running" else (1, item.number)


def _persons_first(there: list[ItemRecord]) -> ItemRecord:
    """Return the first item, a person's before a goal's."""
    return min(there, key=lambda item: bool(item.goal))


_Folded = (
    e.AnyQueueEntry
    | e.ChildInterrupted
    | e.ChildResumed
    | e.Reverted
    | e.TurnStarted
    | e.TurnEnded
    | e.Interrupted
    | e.ProgressMade
    | e.Recovered
    | e.SessionSuspended
    | e.SessionFinalized
)
_FOLDED = EntryKinds[_Folded](_Folded)


def apply_to_queue(queue: QueueRecord, entry: e.Entry, time: float) -> QueueRecord:
    """Return the queue's part of the record after one entry; others leave it as it is.

    Raises `StoreDamaged` if a machine refuses the entry.
    """
    if not _FOLDED.include(entry):
        return queue
    match entry:
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
        case e.EditBegun():
            return queue.having(_move(queue.items[entry.item], "begin_edit", editor=entry.editor))
        case e.EditEnded():
            return queue.having(_move(queue.items[entry.item], "end_edit", editor=""))
        case e.Edited():
            item = _move(replace(queue.items[entry.item], editor=""), "edit", said=entry.said)
            return queue.having(item)
        case e.Moved():
            return _move_item(queue, entry)
        case e.Withdrawn():
            item = queue.items[entry.item]
            queue = _put_back(queue, item) if item.state in _ASIDE else queue
            return _end_item(queue, entry.item, "withdraw", time, why=entry.why or item.why)
        case e.Steered():
            for name in entry.items:
                taken = {"turn": entry.turn, "step": entry.step}
                queue = _end_item(queue, name, "steer", time, **taken)
            return queue
        case e.Reverted():
            news = "\n".join(filter(None, (queue.news, news_of(entry))))
            return _mark_reverted(replace(queue, news=news), entry)
        case e.TurnStarted():
            return _start_item(queue, entry, time)
        case e.TurnEnded() | e.Interrupted() | e.ProgressMade():
            return _apply_to_running(queue, entry, time)
        case e.ChildInterrupted() | e.ChildResumed():
            is_stopped = isinstance(entry, e.ChildInterrupted)
            queue = _rest(queue, entry.child, is_at_rest=is_stopped)
            return _stop_talk(queue, entry.child, is_stopped)
        case e.Recovered():
            return _recover(queue, time)
        case e.QueueHeld():
            queue = _shift(queue, "hold", time)
            if entry.only:
                later = (item for item in queue.live() if item.id not in entry.only)
                return queue.having(*(replace(item, past_hold=True) for item in later))
            return queue.having(  # also steers that were put aside: they came before the hold
                *(
                    replace(item, past_hold=False, is_next=item.is_next and not entry.is_all)
                    for item in queue.apart()
                )
            )
        case e.QueueReleased():
            queue = _shift(queue, "release", time)
            for name in entry.items:
                item = queue.items[name]
                is_aside = item.state in _ASIDE
                item = _move(item, "resume", is_next=True)
                queue = _put_back(queue, item) if is_aside else queue.having(item)
            return queue
        case e.SessionSuspended():
            return _drop_goals(queue.unedited(), time)
        case e.SessionFinalized():
            return _shift(_drop_goals(queue, time), "close", time)
        case _:
            assert_never(entry)


def facts(item: ItemRecord) -> frozenset[str]:
    """Return what the guards of the machine ask about an item."""
    there = {
        "spoken": item.kind in m.SPOKEN,
        "of_goal": item.kind is m.ItemKind.GOAL,
        "edited": bool(item.editor),
        "waits_for_boundary": item.is_steer,
        "handed_on": bool(item.for_children),
        "with_child": any(place not in (AT_REST, NEVER) for place in item.for_children.values()),
        "answered": bool(item.answer),
    }
    return frozenset(name for name, is_so in there.items() if is_so)


def _move(item: ItemRecord, event: str, **changes: Any) -> ItemRecord:
    """Return an item after an event. Raises `StoreDamaged` when its machine refuses or ignores it."""
    return replace(item, state=moved(ITEM, item.state, event, facts(item), strict=True), **changes)


def _without_files(said: m.Said) -> m.Said:
    return replace(said, attached=()) if said.attached else said


def _apply_to_steer(
    queue: QueueRecord, entry: e.Requeued | e.SteerAddressed, time: float
) -> QueueRecord:
    """Turn a steer into a message of its own, or a message into a steer."""
    item = queue.items[entry.item]
    if isinstance(entry, e.SteerAddressed):
        item = _move(
            item,
            "address",
            for_turn=entry.turn,
            routed=replace(item.routed, said_as="steer"),
            is_next=False,
            for_children=dict.fromkeys(entry.for_children, ""),
            taken=time,
            past_hold=queue.runs_past_hold(),
        )
        return queue.having(item, taken=item.id)
    if item.state == "superseded":  # what replaced it was taken back
        return _put_back(queue, _move(item, "resume"))
    item = _move(
        item,
        "requeue",
        for_turn="",
        routed=replace(item.routed, said_as="queue"),
        is_next=False,
        why=entry.why,
        for_children={},
        past_hold=entry.past_hold,
    )
    item = _move(item, "offer") if entry.is_offered else item
    is_aside = item.id not in queue.order  # with the turn that it was for
    return queue.having(item, order=(*queue.order, item.id) if is_aside else queue.order)


def _start_item(queue: QueueRecord, entry: e.TurnStarted, time: float) -> QueueRecord:
    if queue.unanswered:
        queue = _end_item(queue, queue.unanswered, "fail", time)
    item = queue.items[entry.item]
    begun = _move(
        item,
        "start",
        turn=entry.turn,
        is_next=False,
        is_reverted=False,
        said=_without_files(item.said),
        past_hold=queue.state == "held",
    )
    news = queue.news if item.kind in m.SILENT else ""
    steers = queue.steers_for(entry.resumes) if entry.resumes else ()
    return queue.having(
        begun, *(replace(steer, for_turn=entry.turn) for steer in steers), news=news
    )


def _mark_reverted(queue: QueueRecord, entry: e.Reverted) -> QueueRecord:
    """Note which items' turns were reverted as a whole, or are no longer: reverted ones start again."""
    is_whole = entry.scope in ("turn", "undo") and not entry.is_dry_run
    for item in queue.items.values() if is_whole and entry.restored else ():
        if item.state in ("interrupted", "superseded") and item.turn in entry.turns:
            is_reverted = entry.scope == "turn" or entry.is_partial
            progress = None if is_reverted else item.progress
            queue = queue.having(replace(item, progress=progress, is_reverted=is_reverted))
    return queue


def _apply_to_running(
    queue: QueueRecord, entry: e.TurnEnded | e.Interrupted | e.ProgressMade, time: float
) -> QueueRecord:
    for item in queue.special():
        if item.state != "running" or item.turn != entry.turn:
            continue
        match entry:
            case e.TurnEnded(is_unanswered=True):
                item = _move(item, "go_unanswered", why=entry.reason, past_hold=False)
                order = tuple(name for name in queue.order if name != item.id)
                queue = queue.having(item, order=order, unanswered=item.id)
            case e.TurnEnded():
                event = "complete" if entry.status == "completed" else "fail"
                queue = _end_item(queue, item.id, event, time, why=entry.reason)
            case e.Interrupted(is_replaced=True):
                queue = _put_aside(queue, _move(item, "supersede", why=entry.cause))
            case e.Interrupted():
                queue = queue.having(_move(item, "interrupt", why=entry.cause))
            case e.ProgressMade():
                progress = {"done": entry.done, "total": entry.total, "unit": entry.unit}
                queue = queue.having(replace(item, progress=progress))
    return queue


def _put_aside(queue: QueueRecord, item: ItemRecord) -> QueueRecord:
    """Keep a message whose turn was replaced, with the steers for that turn, apart from the others."""
    aside = {item.id, *(steer.id for steer in queue.steers_for(item.turn))}
    order = tuple(name for name in queue.order if name not in aside)
    return _forget_aside(queue.having(item, order=order))


def _forget_aside(queue: QueueRecord) -> QueueRecord:
    """Forget the oldest of very many messages that were put aside, with the steers for their turns."""
    old = {item.turn for item in queue.superseded()[:-REMEMBERED_ASIDE]}
    gone = {item.id for item in queue.aside() if old & {item.turn, item.for_turn}} if old else None
    return queue.having(forgets=gone) if gone else queue


def _put_back(queue: QueueRecord, item: ItemRecord) -> QueueRecord:
    """Put an item that was set aside back into the order, with the steers for its turn."""
    steers = [other.id for other in queue.aside() if other.for_turn == item.turn]
    unanswered = "" if queue.unanswered == item.id else queue.unanswered
    return queue.having(item, order=(*queue.order, item.id, *steers), unanswered=unanswered)


def _recover(queue: QueueRecord, time: float) -> QueueRecord:
    """Hold the queue after a crash; the item that was about to run comes first when it is resumed."""
    if queue.state == "closed":
        return queue
    queue = _drop_goals(queue, time)
    queue = queue.having(*map(_interrupted, queue.special()))
    return _shift(queue, "hold", time) if queue.order else queue


def _interrupted(item: ItemRecord) -> ItemRecord:
    """Return an item as its owner's death leaves it."""
    if item.state == "running":
        item = _move(item, "interrupt", why="crash")
    for child in item.for_children:
        item = _placed(item, child, NOT_YET, AT_REST)
    return replace(item, is_next=False, past_hold=False, editor="")


def _drop_goals(queue: QueueRecord, time: float) -> QueueRecord:
    """Withdraw the messages of goals: after a restart no goal continues automatically."""
    for item in queue.special():
        if item.goal and item.state == "pending":
            queue = _end_item(queue, item.id, "withdraw", time)
    return queue


def _shift(queue: QueueRecord, event: str, time: float) -> QueueRecord:
    state = moved(QUEUE, queue.state, event)
    return replace(queue, state=state, since=time) if state != queue.state else queue


def _add_item(
    queue: QueueRecord, item: ItemRecord, position: int | None = None, taken: str = ""
) -> QueueRecord:
    """Take an item in, at a position among what waits (from 1), or at the end without one.

    Raises `StoreDamaged` when the queue takes nothing in.
    """
    order = queue.order
    place = len(order)
    if position is not None and position <= queue.waiting_count:
        place = order.index(queue.waiting()[position - 1].id)
    clients = queue.clients
    if key := item.said.client_id:
        clients = remembered(clients, key, item.id)
    return queue.having(
        item,
        state=moved(QUEUE, queue.state, "accept"),
        made=queue.made + 1,
        number=item.number,
        order=(*order[:place], item.id, *order[place:]),
        clients=clients,
        taken=taken or queue.taken,
    )


def _queue_item(queue: QueueRecord, entry: e.Queued, time: float) -> QueueRecord:
    item = ItemRecord(
        id=entry.item,
        number=entry.number,
        said=entry.said,
        routed=entry.routed,
        kind=entry.item_kind,
        is_next=entry.is_next,
        for_turn=entry.for_turn,
        for_children=dict.fromkeys(entry.for_children, ""),
        child=entry.child,
        created=time,
        taken=time,
        goal=entry.goal,
        past_hold=entry.past_hold,
        progress=entry.progress,
    )
    item = _move(item, "bring") if entry.is_interrupted else item
    return _add_item(queue, item, entry.position, "" if entry.goal else entry.item)


def _apply_offer(
    queue: QueueRecord, entry: e.Offered | e.OfferAnswered | e.OfferWanted | e.Kept, time: float
) -> QueueRecord:
    match entry:
        case e.Offered():
            return _offer_item(queue, entry, time)
        case e.OfferAnswered():
            new = {"answer": entry.text, "is_stopped": False}
            return queue.having(_move(queue.items[entry.item], "answer", **new))
        case e.OfferWanted():
            return queue.having(_move(queue.items[entry.item], "want", wants=entry.wants))
        case e.Kept():
            item = queue.items[entry.item]
            return queue.having(_move(item, "keep", past_hold=entry.past_hold))


def _offer_item(queue: QueueRecord, entry: e.Offered, time: float) -> QueueRecord:
    item = ItemRecord(
        id=entry.item,
        number=entry.number,
        said=entry.said,
        routed=m.Routed(said_as="result" if entry.is_answered else "side_talk"),
        kind=m.ItemKind.RESULT if entry.is_answered else m.ItemKind.TALK,
        child=entry.child,
        answer=entry.said.text if entry.is_answered else "",
        created=time,
        taken=time,
    )
    return _add_item(queue, _move(item, "offer"))


def _stop_talk(queue: QueueRecord, child: str, is_stopped: bool) -> QueueRecord:
    """Note that the side talk about an item was stopped, or goes on."""
    for item in queue.special():
        if item.state == "offered" and item.child == child and not item.answer:
            queue = queue.having(replace(item, is_stopped=is_stopped))
    return queue


def _rest(queue: QueueRecord, child: str, *, is_at_rest: bool) -> QueueRecord:
    """Note of the steers for a child that it has stopped, or goes on."""
    before, after = (NOT_YET, AT_REST) if is_at_rest else (AT_REST, NOT_YET)
    return queue.having(*(_placed(item, child, before, after) for item in queue.handed_on(child)))


def _placed(item: ItemRecord, child: str, before: str, after: str) -> ItemRecord:
    if item.for_children.get(child) != before:
        return item
    return replace(item, for_children={**item.for_children, child: after})


def _arrive(queue: QueueRecord, entry: e.SteerArrived, time: float) -> QueueRecord:
    """Note where a child took a steer in. It is delivered when all have answered and one has it.

    The first place counts: a child may take the same steer in again after an interruption.
    """
    item = queue.items.get(entry.item)
    if item is None or item.state != "pending":
        return queue
    if item.for_children.get(entry.child) not in (NOT_YET, AT_REST, NEVER):
        return queue
    place = f"{entry.turn}.{entry.step}" if entry.turn else NEVER
    places = {**item.for_children, entry.child: place}
    if {NOT_YET, AT_REST} & set(places.values()) or set(places.values()) == {NEVER}:
        return queue.having(replace(item, for_children=places))
    taken = {"turn": entry.turn, "step": entry.step}
    return _end_item(queue, item.id, "steer", time, for_children=places, **taken)


def _defer_item(queue: QueueRecord, entry: e.Deferred, time: float) -> QueueRecord:
    """Requeue the steer as a new item. The delivered item keeps its state and links to the new one."""
    item = ItemRecord(
        id=entry.new_item,
        number=entry.number,
        said=entry.said,
        routed=m.Routed(said_as="queue"),
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
    return queue.having(replace(old, deferred_to=entry.new_item, why=entry.why))


def _move_item(queue: QueueRecord, entry: e.Moved) -> QueueRecord:
    """Put an item before another; what is over in the meantime leaves things as they are."""
    if entry.item not in queue.order:
        return queue
    _move(queue.items[entry.item], "move")
    order = [name for name in queue.order if name != entry.item]
    known = entry.before in order
    order.insert(order.index(entry.before) if known else len(order), entry.item)
    return queue.having(order=tuple(order))


def _end_item(
    queue: QueueRecord, name: str, event: str, time: float, **changes: Any
) -> QueueRecord:
    """End an item, and forget the oldest of those that have ended."""
    item = queue.items[name]
    said = _without_files(item.said)
    item = _move(item, event, said=said, past_hold=False, editor="", **changes)
    order = tuple(other for other in queue.order if other != name)  # not of a steer put aside
    unanswered = "" if queue.unanswered == name else queue.unanswered
    queue = queue.having(item, order=order, unanswered=unanswered)
    if len(queue.items) - len(order) > REMEMBERED_ITEMS:
        ended = [old.id for old in queue.items.values() if old.state in ITEM_ENDS]
        queue = queue.having(forgets=ended[:-REMEMBERED_ITEMS])
    is_empty = not order and all(known.state in ITEM_ENDS for known in queue.items.values())
    return replace(queue, number=0) if is_empty else queue
