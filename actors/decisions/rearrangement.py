"""Changes of the queue that a person asks for: edit, move, hand over or take back a message.

Pure: each function reads the queue's record and answers with the entries that do it and the reply
to the client. Numbers never change, only the order does.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ...journal import entries as e
from ...journal.queue_record import AT_REST, ItemRecord, QueueRecord, facts
from ...machines import protocol as m
from ...machines.lifecycles import ITEM
from ...machines.machine import Refusal, step
from .decision import Decision, answer, refusal
from .wording import spoken

NOTHING_RUNS = "nothing runs that it could steer"

MOMENT = 10.0
"""Seconds for which the reading of a message can be taken back."""


def hold(record: QueueRecord, why: str, *, is_all: bool) -> tuple[e.Entry, ...]:
    """Hold what waits; with `is_all` also what was to run next. Nothing if nothing is left to hold."""
    live = record.live()
    is_loose = any(item.past_hold or (is_all and item.is_next) for item in live)
    if not live or not (record.state == "open" or is_loose):
        return ()
    return (e.QueueHeld(why=why, is_all=is_all),)


def objection(item: ItemRecord, event: str) -> str:
    """Say why an item's machine does not accept an event; empty if it does."""
    moved = step(ITEM, item.state, event, facts(item))
    return f"#{item.number} {doing(item)}" if isinstance(moved, Refusal) or moved.ignored else ""


def edit(record: QueueRecord, message: m.QueueChange) -> Decision:
    """Replace the text of a waiting message, unless a person edits it in another client."""
    item = _find(record, message.number)
    if item is None:
        return _missing(message.number)
    is_own = item.editor == message.editor
    if why := objection(replace(item, editor="") if is_own else item, "edit"):
        return refusal(f"{why}: send a message instead" if item.state == "running" else why)
    new = message.said
    if new is None or not new.text.strip():
        return refusal(f"#{item.number} needs a text: /queue pop {item.number} removes it")
    said = replace(item.said, text=new.text, attached=new.attached, user=message.user)
    edited = e.Edited(item=item.id, said=said, user=message.user)
    return Decision(reply=_yes(item, text=new.text), entries=(edited,))


def begin_edit(record: QueueRecord, message: m.QueueChange) -> Decision:
    """Keep a waiting message from starting while a person edits it in one client."""
    item = _find(record, message.number)
    if item is None:
        return _missing(message.number)
    if item.editor and item.editor == message.editor:
        return Decision(reply=_yes(item))
    if why := objection(item, "begin_edit"):
        return refusal(why)
    return Decision(reply=_yes(item), entries=(e.EditBegun(item=item.id, editor=message.editor),))


def end_edit(record: QueueRecord, message: m.QueueChange) -> Decision:
    """Let a message go that is not edited any more; without a number all that a client edits."""
    ended = [
        item
        for item in record.items.values()
        if item.editor and item.editor == message.editor and message.number in (None, item.number)
    ]
    entries = tuple(e.EditEnded(item=item.id) for item in ended)
    return Decision(reply=answer(ended=[item.number for item in ended]), entries=entries)


def move(record: QueueRecord, message: m.QueueChange) -> Decision:
    """Put a message at a position among what waits; what was interrupted always comes before it.

    The position is counted from 1, the message that runs next; steers are not counted.
    """
    item = _find(record, message.number)
    if item is None:
        return _missing(message.number)
    if why := objection(item, "move"):
        return refusal(f"{why}: it can't be moved")
    waiting = record.waiting()
    waiting.remove(item)
    place = max(1, min(message.position, len(waiting) + 1))
    if place <= len(waiting):
        before = waiting[place - 1].id
    else:  # behind the last one
        rest = record.order[record.order.index((waiting or [item])[-1].id) + 1 :]
        before = next((name for name in rest if name != item.id), "")
    return Decision(
        reply=_yes(item, position=place), entries=(e.Moved(item=item.id, before=before),)
    )


def steer(record: QueueRecord, message: m.QueueChange) -> Decision:
    """Hand a waiting message to the running turn, or to the children that are named."""
    item = _find(record, message.number)
    if item is None:
        return _missing(message.number)
    if not objection(item, "want"):
        return _want(item, "steer")
    if why := objection(item, "address"):
        return refusal(why)
    running = next((item.turn for item in record.live() if item.state == "running"), "")
    if to := message.for_children:
        passing = m.PassSteer(item=item.id, names=to, said=replace(item.said, text=spoken(item)))
        reply = _yes(item, children=list(to))
        return Decision(
            reply=reply,
            entries=(e.SteerAddressed(item=item.id, turn="", for_children=to),),
            effects=(passing,),
        )
    if not running:
        return Decision(reply=_yes(item, turn=""), entries=(_run_alone(item),))
    return Decision(
        reply=_yes(item, turn=running), entries=(e.SteerAddressed(item=item.id, turn=running),)
    )


def _want(item: ItemRecord, wants: str) -> Decision:
    """Note what is to become of an answer that is not there yet."""
    wanted = e.OfferWanted(item=item.id, wants=wants)
    return Decision(reply=_yes(item, when="it is answered"), entries=(wanted,))


def _run_alone(item: ItemRecord) -> e.Entry:
    """Let a message run as one that is said now: what is held stays held."""
    if item.state == "offered":
        return e.Kept(item=item.id, past_hold=True)
    return e.Requeued(item=item.id, why=NOTHING_RUNS, past_hold=True)


def keep(record: QueueRecord, message: m.QueueChange) -> Decision:
    """Let what is offered wait for its turn like a message; of what has no answer yet, when it has."""
    offered = [item for item in record.live() if item.state == "offered"]
    found = (
        [item for item in offered if item.number == message.number] if message.number else offered
    )
    if not found:
        what = f"#{message.number} is" if message.number else "Nothing is"
        return refusal(f"{what} not offered" if message.number else f"{what} offered")
    item = found[-1]
    if not objection(item, "want"):
        return _want(item, "keep")
    is_free = all(other.state not in ("running", "pending") for other in record.live())
    kept = e.Kept(item=item.id, past_hold=record.runs_past_hold())
    return Decision(reply=_yes(item, runs=is_free and record.state == "open"), entries=(kept,))


def import_items(record: QueueRecord, message: m.QueueImport, limit: int) -> Decision:
    """Take all of these in, last, or none; where nothing runs they stay held, so nothing starts."""
    room = limit - len(record.pending())
    if len(message.items) > room and not message.may_overfill:
        return refusal("queue_full", room=max(0, room))
    waiting = len(record.waiting())
    imported: list[e.Entry] = [
        e.Queued(
            item=f"m{record.made + n}",
            number=record.number + n,
            said=item.said,
            routed=m.Routed(said_as="queue"),
            position=waiting + n,
            is_interrupted=item.is_interrupted,
            progress=item.progress,
        )
        for n, item in enumerate(message.items, 1)
    ]
    numbers = [entry.number for entry in imported if isinstance(entry, e.Queued)]
    is_idle = all(item.state != "running" for item in record.live())
    is_held = bool(imported) and is_idle and record.state == "open"
    state = "held" if is_held else record.state
    entries = (*imported, *((e.QueueHeld(why="import"),) if is_held else ()))
    return Decision(reply=answer(imported=numbers, state=state), entries=entries)


def take_back(record: QueueRecord, now: float) -> Decision:
    """Let the message that was read last wait in the queue instead.

    The reply's `stop` names a turn that it runs, which the client must stop; `offered` is the number
    of the message whose turn was stopped for it, and can be resumed.
    """
    item = record.items.get(record.taken)
    if item is None or now - item.taken > MOMENT:
        return refusal(f"Nothing was said in the last {MOMENT:.0f} seconds")
    if item.state == "steered":
        return refusal(f"#{item.number} was delivered already, at step {item.step}")
    replaced = record.superseded()[-1:]
    cut_off = [other for other in record.live() if other.state == "interrupted"] or replaced
    stopped = next((other.number for other in cut_off), None)
    goes_on = any(other.state == "running" and other is not item for other in record.live())
    offered = stopped if item.routed.said_as == "interrupt" and not goes_on else None
    again = tuple(
        e.Requeued(item=other.id, why="taken back") for other in replaced if other.number == offered
    )
    if item.for_children:
        return refusal(f"#{item.number} {_with_children(item)}")
    if item.state == "pending" and (item.for_turn or item.routed.said_as == "interrupt"):
        back = e.Requeued(item=item.id, why="taken back", past_hold=record.runs_past_hold())
        return Decision(reply=_yes(item, offered=offered), entries=(back, *again))
    if item.state == "running" and item.routed.said_as == "interrupt":
        return Decision(reply=_yes(item, offered=offered, stop=item.turn), entries=again)
    return refusal(f"#{item.number} {doing(item)}: there is nothing to take back")


def withdraw(record: QueueRecord, number: int | None) -> Decision:
    """Take a message back; without a number the last."""
    item = _find(record, number) if number else next(reversed(record.live()), None)
    if item is None:
        return _missing(number) if number else refusal("Empty queue")
    if why := objection(item, "withdraw"):
        return refusal(f"{why}: `/stop` ends it" if item.state == "running" else why)
    reply = answer(withdrawn=[item.number], text=item.text)
    return Decision(reply=reply, entries=(withdrawn(item),))


def withdrawn(item: ItemRecord, moved_to: str = "") -> e.Withdrawn:
    """Take a message back, also from the children that have it and do not work."""
    return e.Withdrawn(item=item.id, children=tuple(item.for_children), moved_to=moved_to)


def _find(record: QueueRecord, number: int | None) -> ItemRecord | None:
    there = (*record.live(), *record.aside())
    return next((item for item in there if item.number == number), None)


_APART = {
    m.ItemKind.GOAL: "goes on with the goal: /goal changes that",
    m.ItemKind.SUMMARY: "is an order to sum up the conversation: /queue pop takes it back",
    m.ItemKind.RETRY: "tries the run again",
}


def doing(item: ItemRecord) -> str:
    """Say in words what an item does."""
    if item.state in ("pending", "interrupted") and item.kind in _APART:
        return _APART[item.kind]
    if item.state == "pending":
        if item.editor:
            return "is being edited"
        if item.for_children:
            return _with_children(item)
        return f"waits for turn {item.for_turn} already" if item.for_turn else "waits in the queue"
    return {
        "running": "is running",
        "interrupted": "was interrupted: /queue resume runs it",
        "offered": f"is offered: `/queue steer {item.number}`, `keep` or `pop` decides",
    }.get(item.state, f"is {item.state}")


def _with_children(item: ItemRecord) -> str:
    names = ", ".join(item.for_children)
    if AT_REST in item.for_children.values():
        return f"waits for {names} to go on"
    return f"is with {names} already"


def _missing(number: int | None) -> Decision:
    return refusal(f"No queued item #{number}")


def _yes(item: ItemRecord, **fields: Any) -> dict[str, Any]:
    return answer(id=item.id, number=item.number, **fields)
