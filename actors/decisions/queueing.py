"""The decisions of the queue: which messages enter, what a boundary takes in, which runs next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from ...journal import entries as e
from ...journal.queue_record import NEVER, ItemRecord
from ...journal.record import SessionRecord
from ...machines import protocol as m
from ...machines.conversation import ChatMessage
from ...machines.delivery import Relation
from ...machines.disposition import LATE_ACK
from ...machines.lifecycles import RUN
from .decision import NOTHING, Decision, answer, refusal
from .intake import hand_back, taken_in
from .queries import is_reverting, known, waiting_steers
from .rearrangement import (
    begin_edit,
    edit,
    end_edit,
    hold,
    import_items,
    keep,
    move,
    objection,
    steer,
    withdraw,
    withdrawn,
)
from .rearrangement import take_back as taken_back
from .results import discarded, with_results
from .resuming import released
from .wording import pictures_of, with_news

if TYPE_CHECKING:
    from ..environment import Environment


# Messages that enter ------------------------------------------------------------------------------


def enqueue(record: SessionRecord, order: m.Enqueue, environment: Environment) -> Decision:
    """Take a message in, as it was routed; as a message of its own if the turn it is for has ended."""
    before = _known(record, order.said.client_id)
    if before is not None:
        return before
    if record.queue.state == "closed":
        return _refused(order, "session_finalized", m.ANOTHER_CHAT)
    if _is_over(record) and not order.child:
        return _refused(order, "run_succeeded", m.ANOTHER_RUN.format(record.id))
    if _is_returned(record, order.child):
        return NOTHING
    if order.for_turn and not _is_running(record, order.for_turn):
        if order.child and not environment.delegation.depth:
            return offer(record, m.Offer(said=order.said, child=order.child))
        late = replace(order.routed, said_as="turn", ack=LATE_ACK)
        order = replace(order, routed=late, for_turn="", is_next=True)
    is_full = record.queue.pending_count >= environment.policy.max_queue_size
    if is_full and not (order.is_next or order.child):
        return _refused(order, "queue_full", m.FULL_QUEUE.format(environment.policy.max_queue_size))
    return _taken(record, order)


def _is_over(record: SessionRecord) -> bool:
    """Whether the session is a run that has succeeded, in which nothing will begin any more."""
    return record.run is not None and record.run.state in RUN.final


def _is_returned(record: SessionRecord, name: str) -> bool:
    """Whether a child's result is here already: it may be sent once more when a turn has failed."""
    child = record.children.get(name)
    return child is not None and child.is_returned


def _taken(record: SessionRecord, order: m.Enqueue) -> Decision:
    queue = record.queue
    waiting = queue.waiting_count
    place = waiting + 1 if order.position is None else min(order.position, waiting + 1)
    name, to = f"m{queue.made + 1}", order.for_children
    queued = e.Queued(
        item=name,
        number=queue.number + 1,
        said=order.said,
        routed=order.routed,
        item_kind=order.kind,
        is_next=order.is_next,
        for_turn=order.for_turn,
        position=place,
        for_children=to,
        child=order.child,
        past_hold=queue.runs_past_hold() and not order.is_overtaken,
    )
    passed = m.PassSteer(item=name, names=to, said=order.said, beneath=order.beneath)
    child = record.children.get(order.child)
    held: tuple[e.QueueHeld, ...] = ()
    if child is not None and child.is_kept and not order.for_turn:  # it was stopped with the child
        held = (e.QueueHeld(why="interrupt", is_all=True),)
    elif order.is_overtaken and record.run is None and queue.state == "open":
        held = (e.QueueHeld(why="interrupt", only=(name,)),)
    return Decision(
        entries=(queued, *held),
        effects=(passed,) if to else (),
        orders=(("turn", m.SteerWaits(item=name)),) if order.for_turn else (),
    )


def _known(record: SessionRecord, client_id: str) -> Decision | None:
    """Say what a message got that came a second time before the first was decided."""
    before = known(record, client_id)
    return Decision(facts=(before,)) if isinstance(before, m.MessageKnown) else None


def _refused(order: m.Enqueue, reason: str, hint: str = "") -> Decision:
    return Decision(facts=(m.MessageRejected(reason=reason, said=order.said, hint=hint),))


def _is_running(record: SessionRecord, turn: str) -> bool:
    running = record.running
    return running is not None and running.id == turn and record.state == "busy"


def enqueue_goal(record: SessionRecord, order: m.GoalMessage, environment: Environment) -> Decision:
    """Queue the message that continues a goal, unless a message of a person waits.

    Its first also waits behind or past those of others. An interrupted turn of the goal goes on by it.
    """
    queue = record.queue
    if queue.state == "closed" or not _goal_may_act(record, order.goal):
        return NOTHING
    newest = [turn.id for turn in record.turns.values() if not _is_silent(record, turn.item)]
    if order.after is not None and order.after != (newest[-1] if newest else ""):
        return NOTHING
    its = [item for item in queue.special() if item.goal]
    gone = [item.id for item in its if item.state == "interrupted"]
    if any(item.state in ("pending", "running") for item in its):
        return NOTHING
    is_busy = any(item.state == "running" for item in queue.special())
    if not order.is_first and (is_busy or queue.is_ahead):
        return NOTHING
    brought, said = with_results(record, order)
    gone += brought
    queued = e.Queued(
        item=f"m{queue.made + 1}",
        number=queue.number + 1 if len(queue.order) > len(gone) else 1,
        said=said,
        routed=m.Routed(said_as="goal", rule="goal"),
        item_kind=m.ItemKind.GOAL,
        position=queue.waiting_count + 1,
        goal=order.goal,
        past_hold=queue.state == "held",
    )
    return Decision(entries=(*(e.Withdrawn(item=name) for name in gone), queued))


def _is_silent(record: SessionRecord, name: str) -> bool:
    """Whether a turn's message says nothing to the model."""
    item = record.queue.items.get(name)
    return item is not None and item.kind in m.SILENT


# Offers -------------------------------------------------------------------------------------------


def offer(record: SessionRecord, order: m.Offer) -> Decision:
    """Give a result a place where it waits for a person's word."""
    if _is_returned(record, order.child) or record.queue.state == "closed":
        return NOTHING
    queue = record.queue
    offered = e.Offered(
        item=f"m{queue.made + 1}",
        number=queue.number + 1,
        said=order.said,
        child=order.child,
        is_answered=True,
    )
    return Decision(entries=(offered,))


def question(record: SessionRecord, asked: m.SideTalk) -> e.Offered:
    """Give the question of a side talk its place; the answer waits there for a person's word."""
    queue = record.queue
    return e.Offered(
        item=f"m{queue.made + 1}",
        number=queue.number + 1,
        said=asked.said,
        child=f"talk-{queue.made + 1}",
        is_answered=False,
    )


def offer_answer(record: SessionRecord, order: m.AnswerOffer) -> Decision:
    """Note an answer, and do with it what a person wanted done when it comes."""
    item = record.queue.items.get(order.item)
    if item is None or item.state != "offered" or item.answer:
        return NOTHING
    answered = e.OfferAnswered(item=item.id, text=order.text)
    if item.wants == "steer" and record.running is not None and record.state == "busy":
        addressed = e.SteerAddressed(item=item.id, turn=record.turn)
        return Decision(
            entries=(answered, addressed), orders=(("turn", m.SteerWaits(item=item.id)),)
        )
    if item.wants == "keep":
        kept = e.Kept(item=item.id, past_hold=record.queue.runs_past_hold())
        return Decision(entries=(answered, kept))
    return Decision(entries=(answered,))


# Steers -------------------------------------------------------------------------------------------


def take_steers(record: SessionRecord, order: m.TakeSteers) -> Decision:
    """Hand over what waits for a boundary of the turn; it looks at the record when it is woken."""
    turn = record.running
    woken = Decision(orders=(("turn", m.Wake()),))
    if turn is None or turn.id != order.turn or turn.state != "boundary":
        return woken
    steers = record.queue.steers(turn.id) if record.run is not None else waiting_steers(record)
    if not steers or record.state != "busy":
        return woken
    names = tuple(item.id for item in steers)
    said = (ChatMessage(role="user", text=taken_in(steers), pictures=pictures_of(steers)),)
    steered = e.Steered(items=names, turn=order.turn, step=order.step, messages=said)
    return Decision(entries=(steered,)) + woken


def give_back(record: SessionRecord, order: m.HandBack) -> Decision:
    """Let a steer that the model can't work in wait again, and answer its tool call."""
    if not _is_running(record, order.turn):
        return NOTHING  # the turn is being stopped, and its calls with it
    found = hand_back(record.queue, order)
    status: m.ToolStatus = "ok" if found.reply["ok"] else "failed"
    result = m.ToolResult(status=status, text=found.reply["text"])
    finished = m.ToolFinished(turn=order.turn, epoch=order.epoch, call=order.call, result=result)
    return Decision(entries=found.entries, orders=(("turn", finished),))


def recall(record: SessionRecord, message: m.Recall, environment: Environment) -> Decision:
    """Take back the steer with this key, if it still waits."""
    item = record.queue.items.get(record.queue.clients.get(message.key, ""))
    if item is None or item.state != "pending" or objection(item, "withdraw"):
        return NOTHING
    return Decision(entries=(withdrawn(item),))


# Changes that people ask for ----------------------------------------------------------------------


_OF_ITEM = {each.__name__: each for each in (edit, begin_edit, end_edit, move, keep)}


def change(record: SessionRecord, message: m.QueueChange) -> Decision:
    """Carry out a change of the queue that a person asked for."""
    queue = record.queue
    if queue.state == "closed":
        return refusal(m.FINALIZED)
    match message.op:
        case "hold":
            held = hold(queue, "interrupt", is_all=True)
            return Decision(entries=held, reply=answer(state="held" if held else queue.state))
        case "release":
            return replace(released(record), reply=answer())
        case "withdraw":
            return _without_talks(record, _but_the_run(record, withdraw(queue, message.number)))
        case "clear" | "discard":
            return _clear(record, message)
        case "steer":
            return _steer(record, message)
        case op:
            return _OF_ITEM[op](queue, message)


def _steer(record: SessionRecord, message: m.QueueChange) -> Decision:
    decision = steer(record.queue, message)
    steers = (entry for entry in decision.entries if isinstance(entry, e.SteerAddressed))
    told = tuple(("turn", m.SteerWaits(item=entry.item)) for entry in steers if entry.turn)
    return replace(decision, orders=told)


def _clear(record: SessionRecord, message: m.QueueChange) -> Decision:
    stopped = discarded(record) if message.op == "discard" else ()
    there = (*record.queue.live(), *record.queue.aside())
    gone = [item for item in there if not objection(item, "withdraw")]
    gone = [item for item in gone if not _is_of_run(record, item)]
    entries: tuple[e.Entry, ...] = (*(withdrawn(item, message.moved_to) for item in gone), *stopped)
    numbers, names = [item.number for item in gone], [entry.child for entry in stopped]
    reply = answer(withdrawn=numbers, children=names)
    return _without_talks(record, Decision(reply=reply, entries=entries))


def _but_the_run(record: SessionRecord, found: Decision) -> Decision:
    """Refuse to take back the item that is a run: nothing else could continue the run."""
    for entry in found.entries:
        if isinstance(entry, e.Withdrawn) and _is_of_run(record, record.queue.items[entry.item]):
            number = record.queue.items[entry.item].number
            return refusal(
                f"#{number} is the run: `steersman run --resume {record.id}` continues it"
            )
    return found


def _without_talks(record: SessionRecord, found: Decision) -> Decision:
    """Take messages back; a side talk whose question is gone is stopped."""
    gone = {entry.item for entry in found.entries if isinstance(entry, e.Withdrawn)}
    talks = [
        child.name
        for child in record.children.values()
        if child.is_at_work and child.relation == Relation.SIDE_TALK and child.item in gone
    ]
    return replace(found, orders=tuple(("children", m.EndChild(child=name)) for name in talks))


def take_in(record: SessionRecord, message: m.QueueImport, environment: Environment) -> Decision:
    """Take in what was saved elsewhere."""
    if record.queue.state == "closed":
        return refusal(m.FINALIZED)
    if _is_over(record):
        return refusal(f"the run has succeeded; {m.ANOTHER_RUN.format(record.id)}")
    limit = environment.policy.max_queue_size
    return import_items(record.queue, message, limit)


def take_back(record: SessionRecord, now: float) -> Decision:
    """Let the message that was read last wait in the queue instead."""
    return taken_back(record.queue, now)


# Due work -----------------------------------------------------------------------------------------


def due(record: SessionRecord, environment: Environment) -> Decision:
    """Decide what follows from the record as it is: one thing at a time, until nothing does."""
    if record.queue.state == "closed" or not record.seq:
        return NOTHING
    entries = (
        _stranded(record, environment)
        or _missed(record)
        or _for_agents(record)
        or _without_goal(record)
        or _held_in_vain(record)
        or _next_turn(record, environment)
    )
    return Decision(entries=entries)


def _stranded(record: SessionRecord, environment: Environment) -> tuple[e.Entry, ...]:
    """Take back the steers of a turn that has ended: they are messages of their own now."""
    is_person = not environment.delegation.depth
    newest = record.turns.get(record.turn)
    is_cut = newest is not None and newest.state == "interrupted"
    why = "the turn ended first"
    return tuple(
        e.Requeued(
            item=item.id,
            why=why,
            is_offered=bool(item.child) and is_person,
            past_hold=item.past_hold and not is_cut,
        )
        for item in record.queue.stranded()
    )


def _missed(record: SessionRecord) -> tuple[e.Entry, ...]:
    """Take back the steers that no child could take in: they wait for the parent."""
    past_hold = record.queue.runs_past_hold()
    return tuple(
        e.Requeued(
            item=item.id, why=f"{' and '.join(item.for_children)} ended first", past_hold=past_hold
        )
        for item in record.queue.special()
        if item.for_children and all(place == NEVER for place in item.for_children.values())
    )


def _for_agents(record: SessionRecord) -> tuple[e.Entry, ...]:
    """Hand the steers of a run's earlier turn to the next agent that begins."""
    if record.run is None or record.running is None or record.state != "busy":
        return ()
    waiting = [item for item in record.queue.waiting() if not objection(item, "address")]
    return tuple(e.SteerAddressed(item=item.id, turn=record.turn) for item in waiting)


def _without_goal(record: SessionRecord) -> tuple[e.Entry, ...]:
    """Take back a goal's messages when it is not pursued any more, or messages of people come first."""
    goals = record.goals
    goal = goals.goal
    current = goal.id if goal is not None and goal.is_pursued else ""
    is_over = goal is None or goal.is_over
    gone: list[str] = []
    for item in record.queue.special():
        is_its = item.goal == goals.current
        if item.goal and item.state == "pending" and item.goal != current:
            gone.append(item.id)
        if item.goal and item.state == "interrupted" and (is_over or not is_its):
            gone.append(item.id)
    return tuple(e.Withdrawn(item=name) for name in gone)


def _held_in_vain(record: SessionRecord) -> tuple[e.Entry, ...]:
    is_empty = record.queue.state == "held" and not record.queue.order
    return (e.QueueReleased(),) if is_empty else ()


def _next_turn(record: SessionRecord, environment: Environment) -> tuple[e.Entry, ...]:
    """Begin the turn of what runs next, if one may begin now."""
    item = record.queue.next_item()
    if item is None or not _may_start(record, environment):
        return ()
    if record.run is not None and (item := _next_of_run(record)) is None:
        return hold(record.queue, "interrupt", is_all=True)
    if item.goal and item.state == "pending" and not _goal_may_act(record, item.goal):
        return ()  # a person may resume its interrupted turn all the same
    resumes = item.turn if item.state == "interrupted" else ""
    steers = record.queue.steers(resumes) if resumes and record.run is None else []
    said = with_news(record.queue.news, item, environment.owner)
    if steers:
        said = f"{said}\n\n{taken_in(steers)}"
    overtaken = (
        ()
        if item.goal
        else tuple(
            e.Withdrawn(item=other.id)
            for other in record.queue.special()
            if other.goal and other.state == "pending"
        )
    )
    started = e.TurnStarted(
        turn=f"t{record.turns_made + 1}",
        item=item.id,
        number=item.number,
        epoch=record.epoch + 1,
        resumes=resumes,
        messages=()
        if item.kind in m.SILENT
        else (ChatMessage(role="user", text=said, pictures=pictures_of((item, *steers))),),
        ancestors=environment.ancestors.mandate(),
        storage=environment.storage if record.storages[-1:] != (environment.storage,) else "",
    )
    names = tuple(steer.id for steer in steers)
    entered = (e.Steered(items=names, turn=started.turn, step=1),) if steers else ()
    return (*overtaken, started, *entered)


def _may_start(record: SessionRecord, environment: Environment) -> bool:
    """Whether a turn may begin: nothing runs or is being reverted, and no ancestor forbids it."""
    is_free = record.state == "idle" and record.unfinished is None and not is_reverting(record)
    return is_free and not environment.is_offline and environment.ancestors.may_start()


def _goal_may_act(record: SessionRecord, name: str) -> bool:
    goal = record.goals.goal
    is_its = goal is not None and goal.id == name and goal.is_pursued
    return is_its and goal is not None and goal.epoch >= record.stopped.get(Relation.GOAL, 0)


def _next_of_run(record: SessionRecord) -> ItemRecord | None:
    """Return the item that is the run, if it may run now; what people said waits for its agents."""
    queue = record.queue
    for item in queue.live():
        waits = item.state == "pending" and not item.is_steer and not queue.holds(item)
        is_resumed = item.state == "interrupted" and item.is_next
        if (waits or is_resumed) and not item.editor and _is_of_run(record, item):
            return item
    return None


def _is_of_run(record: SessionRecord, item: ItemRecord) -> bool:
    """Whether an item is the run of its session; no other item of that session begins a turn."""
    run = record.run
    is_run = run is not None and (run.item in ("", item.id) or item.kind is m.ItemKind.RETRY)
    return is_run and run is not None and run.state not in RUN.final
