"""What waits in a session and what became of it, as data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..machines.attachment import Attachment

# One message of a session's queue, as data --------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ItemRecord:
    """One message; `progress` is {done, total, unit}.

    `turn` is the last turn that ran it, or took it in at `step`; `why` says what it became, where
    that is not plain; `taken` is when it was last read as what it is. `for_children` maps the
    children that a steer was handed on to to where each took it in: empty while it has not, `-` when
    it can't. `child` is whose answer it is, and `answer` that, once it is there; `wants` is what
    becomes of it then: steer, keep, or nothing. A steer that the model handed back names the item
    that it became (`deferred_to`), and that one the steer (`deferred_from`). `attached` is kept until the
    conversation has it. `purpose` is empty for a message, `compaction` for an order to sum up, `again`
    where a failed run is tried again. `goal` is the goal whose next turn it begins: a message that
    nobody said. `past_hold`: it came after the queue was held, and runs in spite of that.
    """

    id: str
    number: int
    text: str
    state: str = "pending"
    said_as: str = "turn"
    user: str = ""
    client_id: str = ""
    is_next: bool = False
    for_turn: str = ""
    for_children: Mapping[str, str] = field(default_factory=dict[str, str])
    child: str = ""
    answer: str = ""
    wants: str = ""
    turn: str = ""
    step: int = 0
    why: str = ""
    created: float = 0.0
    taken: float = 0.0
    progress: Mapping[str, Any] | None = None
    deferred_to: str = ""
    deferred_from: str = ""
    attached: tuple[Attachment, ...] = ()
    purpose: str = ""
    goal: str = ""
    past_hold: bool = False

    @property
    def is_steer(self) -> bool:
        """Whether it waits for a boundary, here or of a child."""
        return bool(self.for_turn or self.for_children)


@dataclass(frozen=True, slots=True)
class QueueRecord:
    """What waits and what became of it.

    `order` holds the ids of what has not ended, but for messages whose turn was replaced, and the
    steers that wait for such a turn.

    Only what the queue itself decides changes `order`; `live()` is the order that counts.
    `clients` maps the newest clients' own keys to the items they got; `taken` is the message that
    was read last, as a steer or anything else; `news` is what the model has to know with the next.
    """

    state: str = "open"
    since: float = 0.0
    items: Mapping[str, ItemRecord] = field(default_factory=dict[str, ItemRecord])
    order: tuple[str, ...] = field(default_factory=tuple[str, ...])
    made: int = 0
    number: int = 0
    clients: Mapping[str, str] = field(default_factory=dict[str, str])
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

    def ahead(self) -> list[ItemRecord]:
        """Return what comes before the turn of a goal: all that waits, but for an interrupted turn."""
        cut = {one.turn for one in self.live() if one.state == "interrupted"}
        return [one for one in self.pending() if not one.for_turn or one.for_turn not in cut]

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

    def superseded(self) -> list[ItemRecord]:
        """Return the messages whose turn another one replaced, the oldest first."""
        return [one for one in self.items.values() if one.state == "superseded"]

    def handed_on(self, child: str) -> list[ItemRecord]:
        """Return the steers that a child was to take in, and has not yet, in order."""
        return [one for one in self.live() if one.for_children.get(child) == ""]

    def stranded(self) -> list[ItemRecord]:
        """Return the steers that wait for a turn which does not run, and won't go on, in order.

        A goal goes on with a turn of its own: what was said to one that is interrupted comes first.
        """
        live = self.live()
        running = {one.turn for one in live if one.state == "running"}
        running |= {one.turn for one in live if one.state == "interrupted" and not one.goal}
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
