"""Where a message stands and why, in a sentence; and what a person can do about it."""

from __future__ import annotations

from ...journal.cancel_record import CancelRecord
from ...journal.queue_record import ItemRecord
from ...journal.record import SessionRecord
from ...journal.turn_record import TurnRecord
from ...machines.lifecycles import TURN

Outlook = tuple[str, str]
"""A sentence, and what to do next, empty if nothing."""


def outlook(record: SessionRecord, name: str, *, is_owned: bool) -> Outlook:
    """Say where an item or an order to stop stands; `is_owned`: a live process has the session."""
    if (order := record.interrupts.get(name)) is not None:
        return _of_order(order, is_owned)
    item = record.queue.items.get(name)
    if item is None:
        return "It ended long ago: only its entries are remembered.", ""
    match item.state:
        case "pending":
            return _pending(record, item, is_owned)
        case "running":
            return _running(record, item, is_owned)
        case "interrupted":
            cause = _turn(record, item).cause if item.turn in record.turns else "an interrupt"
            text = f"Its turn was cut off ({cause}) and can go on where it stopped."
            return text, _resume(record, is_owned)
        case "superseded":
            how = f"`/queue resume {item.number}`" if is_owned else ""
            return "Another message replaced its turn, which can go on where it stopped.", how
        case "steered":
            return _steered(record, item)
        case "done":
            return f"It was answered by turn {item.turn}.", ""
        case "failed":
            reason = _turn(record, item).reason if item.turn in record.turns else item.why
            return f"Its turn failed: {reason or 'nobody knows why'}.", "say it again"
        case "withdrawn":
            return "It was taken back.", ""
        case "offered":
            return _offered(record, item, is_owned)
        case _:
            return f"It is {item.state}.", ""


def _offered(record: SessionRecord, item: ItemRecord, is_owned: bool) -> Outlook:
    child = record.children.get(item.child)
    if child is not None and child.state == "interrupted" and not item.answer:
        return "Whoever answers it was interrupted, and can go on.", _resume(record, is_owned)
    if child is not None and not child.is_at_work and not item.answer:
        text = f"Whoever should answer it is {child.state}: no answer comes."
        return text, f"ask again, or `/queue pop {item.number}`"
    answer = "The answer is there" if item.answer else "The answer is not there yet"
    how = f"`/queue keep {item.number}`, `steer` or `pop` decides"
    return f"{answer}; it never runs by itself.", how


def _pending(record: SessionRecord, item: ItemRecord, is_owned: bool) -> Outlook:
    if record.state == "finalized":
        return "It waits in a session that has ended for good.", "say it in another session"
    if not is_owned:
        text = "It waits, and nobody has the session open."
        return text, f"`steersman chat --resume {record.id}`, and there `/queue resume`"
    if item.for_turn:
        turn = record.turns.get(item.for_turn)
        if turn is not None and turn.state == "interrupted":
            return f"It enters when turn {turn.id} goes on.", _resume(record, is_owned)
        doing = f", which {_doing(turn)}" if turn else ""
        return f"It enters turn {item.for_turn} at its next boundary{doing}.", ""
    if item.for_children:
        waits = [child for child, place in item.for_children.items() if not place]
        return f"It enters subagent {', '.join(waits)} at the next boundary.", ""
    running = record.turns.get(record.turn)
    is_running = running is not None and running.state not in TURN.final
    if record.queue.holds(item):
        text = "It waits because the queue is held"
        text += ": something was interrupted, and nothing goes on by itself."
        return text, _resume(record, is_owned)
    ahead = _ahead(record, item)
    if is_running and running is not None:
        behind = f" and {ahead} more" if ahead else ""
        text = f"It waits behind turn {running.id}, which {_doing(running)}{behind}."
        return (
            text,
            f"`steersman queue steer {item.number} --session {record.id}` hands it over now",
        )
    return f"It is the next to run{f', after {ahead} more' if ahead else ''}.", ""


def _running(record: SessionRecord, item: ItemRecord, is_owned: bool) -> Outlook:
    if not is_owned:
        text = "Its turn was cut off: the program that ran it is gone."
        return text, f"`steersman chat --resume {record.id}`, and there `/queue resume`"
    turn = record.turns.get(item.turn) or record.turns.get(record.turn)
    return f"It is being answered: turn {item.turn} {_doing(turn) if turn else 'runs'}.", ""


def _steered(record: SessionRecord, item: ItemRecord) -> Outlook:
    if item.deferred_to:
        again = record.queue.items.get(item.deferred_to)
        now = f", which is {again.state}" if again else ""
        return f"The model handed it back: it waits as {item.deferred_to}{now}.", ""
    if item.for_children:
        return f"It entered the work of {', '.join(item.for_children)}.", ""
    text = f"The model has it since turn {item.turn}, step {item.step}"
    turn = record.turns.get(item.turn)
    if turn is None:
        return f"{text}.", ""
    if turn.state in TURN.final:
        return f"{text}; that turn is {turn.state}.", ""
    return f"{text}; that turn {_doing(turn)}.", ""


def _of_order(order: CancelRecord, is_owned: bool) -> Outlook:
    killed = f" {len(order.killed)} processes were ended." if order.killed else ""
    match order.state:
        case "planned" if is_owned:
            return "It takes effect when the running tools have ended.", ""
        case "stopping" if is_owned:
            told = f" ({', '.join(order.told)} were told)" if order.told else ""
            return f"What it stops is still ending{told}.", ""
        case "planned" | "stopping":
            return "The program that obeyed it is gone, and what it ran with it.", ""
        case "overtaken":
            return "The turn ended before it took effect.", ""
        case "stopped":
            survivors = f" {len(order.survivors)} survived!" if order.survivors else ""
            return f"It was obeyed: everything that it stopped is dead.{killed}{survivors}", ""
        case _:
            return f"It is {order.state}.{killed}", ""


def _doing(turn: TurnRecord) -> str:
    match turn.state:
        case "calling":
            return f"waits for the model (step {turn.step})"
        case "acting":
            at_work = [
                f"an answer to question {one.question}"
                if one.state == "asking"
                else f"{one.tool} ({one.id})"
                for one in turn.calls.values()
                if one.state in ("asking", "running", "stopping")
            ]
            return f"waits for {', '.join(at_work) or 'its tools'}"
        case "boundary":
            return "is between two calls"
        case _:
            return f"is {turn.state}"


def _ahead(record: SessionRecord, item: ItemRecord) -> int:
    queue = record.queue
    waiting = [one.id for one in queue.pending() if queue.holds(one) == queue.holds(item)]
    return waiting.index(item.id) if item.id in waiting else 0


def _turn(record: SessionRecord, item: ItemRecord) -> TurnRecord:
    return record.turns[item.turn]


def _resume(record: SessionRecord, is_owned: bool) -> str:
    if is_owned:
        return f"`/queue resume` there, or `steersman queue resume --session {record.id}`"
    return f"`steersman chat --resume {record.id}`, and there `/queue resume`"
