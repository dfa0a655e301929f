"""What a resume runs: what was interrupted, from its checkpoint, then what waits."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from ...journal import entries as e
from ...journal.queue_record import ItemRecord, QueueRecord
from ...journal.record import SessionRecord
from ...machines import protocol as m
from .decision import NOTHING, Decision, answer, refusal
from .queries import replaced_first, resumed_turns
from .rearrangement import objection
from .wording import chosen


def resume(record: SessionRecord, message: m.ResumeQueue) -> Decision:
    """Run what was interrupted, from its checkpoint, then what waits.

    Without a number that is also the turn that its model has just left unanswered, after what was
    interrupted; and where nothing is interrupted, what a message replaced last: before what is held, if
    that message began the newest turn, and where nothing is held. What was taken
    back by a revert stays if something else was interrupted, unless its number is given: the reply's
    `reverted` are its numbers.
    """
    queue = record.queue
    if queue.state == "closed":
        return refusal(m.FINALIZED)
    resumed = _resumable(queue)
    kept = [] if message.number else [item for item in _interrupted(queue) if item not in resumed]
    waiting = ("pending", "interrupted")
    there = [item for item in queue.live() if item.state in waiting and item not in kept]
    begins = [item for item in there if not item.is_steer]
    free = [item for item in begins if not item.editor] or begins
    first = chosen([*there, *queue.aside()] if message.number else free, message.number)
    running = next((item.number for item in queue.special() if item.state == "running"), None)
    if message.number and first is None:
        runs = message.number == running
        return refusal(f"#{running} runs already" if runs else f"No queued item #{message.number}")
    if message.number and first is not None and (why := objection(first, "resume")):
        cut_off = [item for item in (*there, *queue.superseded()) if item.turn]
        its = [item.number for item in cut_off if item.turn == first.for_turn]
        return refusal(f"{why}, which `/queue resume {its[0]}` continues" if its else why)
    is_cut_off = any(item.state == "interrupted" for item in there)
    is_held = queue.state == "held" or is_cut_off
    again = replaced_first(queue, record.turn)
    replaced = [] if again is None or message.number or message.is_beside_goal else [again]
    first = replaced[0] if replaced else first
    takes_lost = not (message.number or message.is_beside_goal)
    lost = [item for item in queue.aside() if takes_lost and item.state == "unanswered"]
    is_free = all(item.state != "interrupted" for item in begins)
    if lost and is_free:
        replaced, first = lost, lost[0]
    numbers = [item.number for item in kept]
    reply = answer(after=running, children=list(message.children), reverted=numbers)
    is_idle = message.is_beside_goal and all(item.goal for item in there)
    if is_idle or not (is_held or message.number or replaced):
        return Decision(reply={**reply, "restored": 0, "number": None})
    picked: tuple[ItemRecord, ...] = ()
    if first is not None and (message.number or replaced):
        picked = (first,)
    if lost and not is_free:  # the turn that goes on first would be the one that ends it
        picked = (*resumed, *lost)
    decision = released(record, picked)
    ahead = [item.id for item in queue.waiting()]
    is_later = message.number and first is not None and first.id in ahead[1:]
    if is_later and first is not None and not objection(first, "move"):  # it is listed so, too
        decision = Decision(entries=(e.Moved(item=first.id, before=ahead[0]),)) + decision
    if first is None:  # only steers are left, for children that go on
        return replace(decision, reply={**reply, "restored": 0, "number": None})
    begun = {item.id for item in picked or resumed}
    if is_held or first.state not in ("superseded", "unanswered"):
        begun |= {item.id for item in begins if item.state == "pending"}
    going = _going_on(record, picked or tuple(resumed), message.children)
    back = [item for item in (*there, *queue.aside()) if item.id in begun or going(item)]
    return replace(decision, reply={**reply, "restored": len(back), "number": first.number})


def _going_on(
    record: SessionRecord, resumed: tuple[ItemRecord, ...], children: tuple[str, ...]
) -> Callable[[ItemRecord], bool]:
    """Return a check of whether a steer enters work that goes on: a turn, or the children of one."""
    turns = {turn for item in resumed for turn in resumed_turns(record, item.turn)}
    names = {child.name for child in record.children.values() if child.turn in turns}
    names |= set(children)
    own = {item.turn for item in resumed}
    return lambda item: bool(
        (item.for_turn and item.for_turn in own) or names & set(item.for_children)
    )


def _interrupted(queue: QueueRecord) -> list[ItemRecord]:
    return [item for item in queue.special() if item.state == "interrupted"]


def _resumable(queue: QueueRecord) -> list[ItemRecord]:
    """Return what was interrupted; what was taken back only where that is all. A goal's is the goal's."""
    found = _interrupted(queue)
    return [item for item in found if item.goal or not item.is_reverted] or found


def released(record: SessionRecord, picked: tuple[ItemRecord, ...] = ()) -> Decision:
    """Let what is held run: what was picked first, else all that was interrupted."""
    resumed = _resumable(record.queue)
    first = tuple(item.id for item in picked or resumed)
    if record.queue.state != "held" and not first:
        return NOTHING
    return Decision(entries=(e.QueueReleased(resumed=len(resumed), items=first),))
