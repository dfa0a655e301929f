"""How a session stands: questions about its record that several decisions ask."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any

from msgspec.structs import replace

from ...journal.child_record import ChildRecord, at_work, names_for
from ...journal.queue_record import ItemRecord, QueueRecord
from ...journal.record import SessionRecord
from ...machines import protocol as m
from ...machines.conversation import ToolRequest
from ...machines.delivery import Relation
from ...machines.disposition import Situation
from ...machines.lifecycles import RUN
from ...machines.policy import Policy

DELEGATE = "delegate"
"""The tool that is no process but a child session."""
DISMISS = "dismiss"
"""The tool that ends a child."""
CLOSES = ("leaving", "finalizing")
"""The states of a session in which no child begins any more."""
OVER = ("suspended", "finalized")
"""The states of a session that is left or has ended."""
_GO_ON = ("running", "interrupted", "superseded", "unanswered")
"""The states of an item whose turn runs, or can go on."""


def situation(record: SessionRecord) -> Situation:
    """Say what the session is doing, in the words of the routing table."""
    has_children = any(child.is_at_work for child in record.children.values())
    match record.state:
        case "busy" if record.run is not None:
            return Situation.DELEGATING  # a run does nothing itself
        case "busy":
            if names_for(record.children, record.turn) or is_waiting_for_child(record):
                return Situation.DELEGATING
            return Situation.ACCOMPANIED if has_children else Situation.BUSY
        case "interrupting" | "leaving":
            return Situation.INTERRUPTING
        case "finalizing" | "finalized":
            return Situation.FINALIZING
        case _ if has_children or record.goals.is_pursued:
            return Situation.UNATTENDED
        case _:
            return Situation.HELD if record.queue.state == "held" else Situation.IDLE


def recipient(child: ChildRecord, detached: Container[str]) -> Relation:
    """Return the relation by which the table is asked about a child; `detached` are agents."""
    if child.relation == Relation.FOREGROUND_CHILD and child.agent in detached:
        return Relation.DETACHED_CHILD
    return Relation(child.relation)


def is_waiting_for_child(record: SessionRecord) -> bool:
    """Whether a call of the turn waits for a child, be it at work or just asked for."""
    turn = record.running
    calls = turn.calls.values() if turn is not None else ()
    return any(call.tool == DELEGATE and call.state == "running" for call in calls)


def is_asked_here(record: SessionRecord, question: str) -> bool:
    """Whether a question is one of the session's own turn, not of a child."""
    turn = record.running
    if turn is None:
        return False
    return question in (turn.question, *(call.question for call in turn.calls.values()))


def running_calls(record: SessionRecord) -> list[str]:
    """Return the tools of the turn's own calls that run, in order; one that is asked about does not."""
    turn = record.running
    calls = turn.calls.values() if turn is not None else ()
    return [call.tool for call in calls if call.state == "running" and not call.within]


def waiting_steers(record: SessionRecord) -> list[ItemRecord]:
    """Return the steers that the running turn can take in now, in order.

    None before its first answer: the model answers the message that began the turn first. What comes
    after others have been taken in waits for the next boundary, since user and agent alternate.
    """
    turn = record.running
    if turn is None or not turn.step or record.conversation[-1].role == "user":
        return []
    return record.queue.steers(turn.id)


def request_of(call: Any) -> ToolRequest:
    """Return a call of the record (`CallRecord`) as the model asked for it."""
    return ToolRequest(
        call=call.id,
        tool=call.tool,
        arguments=call.arguments,
        fault=call.fault,
    )


def policy_of(record: SessionRecord, configured: Policy) -> Policy:
    """Return the policy in force: what a person chose for the session, else what is configured."""
    chosen: dict[str, Any] = {}
    if record.busy_mode:
        chosen["busy_mode"] = record.busy_mode
    if record.is_auto_queue is not None:
        chosen["is_auto_queue"] = record.is_auto_queue
    if record.mode:
        chosen["mode"] = record.mode
    return replace(configured, **chosen) if chosen else configured


def inspect_queue(record: SessionRecord) -> dict[str, Any]:
    """Return the queue's state, how many wait in it, and whether nothing runs or will by itself."""
    queue = record.queue
    return {"state": queue.state, "waiting": queue.waiting_count, "quiet": record.is_quiet}


def known(record: SessionRecord, client_id: str) -> m.MessageKnown | None:
    """Return what a message with this key got when it came before."""
    name = record.queue.clients.get(client_id) if client_id else None
    if name is not None:
        item = record.queue.items.get(name)
        said_as, number = (item.routed.said_as, item.number) if item else ("turn", None)
        routed = m.Routed(said_as=said_as)
        return m.MessageKnown(id=name, number=number, client_id=client_id, routed=routed)
    receipt = record.stop_keys.get(client_id) if client_id else None
    if not receipt:
        return None
    routed = m.Routed(said_as="interrupt")
    return m.MessageKnown(id=receipt, number=None, client_id=client_id, routed=routed)


def workers(record: SessionRecord) -> list[ChildRecord]:
    """Return the children that may change files: all at work but side talks, which only read."""
    found = at_work(record.children)
    return [child for child in found if child.relation != Relation.SIDE_TALK]


def before_turn(record: SessionRecord, turn: str) -> str:
    """Return the turn that one goes on from, if any: of a workflow's run all turns are one job."""
    if record.run is None:
        return record.turns[turn].resumes
    names = list(record.turns)
    at = names.index(turn)
    return names[at - 1] if at else ""


def not_open(record: SessionRecord) -> str:
    """Say why a session that no program runs carries out no order, and what can be done."""
    if record.run is None:
        return m.NOT_OPEN.format(record.id)
    if record.run.state in RUN.final:
        return f"the run is over: {m.ANOTHER_RUN.format(record.id)}"
    return m.RUN_NOT_OPEN.format(record.id)


def resumed_turns(record: SessionRecord, name: str) -> tuple[str, ...]:
    """Return a turn, with those that it goes on from, newest first."""
    names: list[str] = []
    while name in record.turns:
        names.append(name)
        name = before_turn(record, name)
    return tuple(names)


def given_up(record: SessionRecord) -> list[ChildRecord]:
    """Return the interrupted children for which nothing waits that could go on.

    Their turn was taken back, or has ended; of a run, it has made another attempt.
    """
    if record.state in (*CLOSES, *OVER):
        return []
    interrupted = [
        child
        for child in record.children.values()
        if child.state == "interrupted" and child.relation == Relation.FOREGROUND_CHILD
    ]
    if not interrupted:
        return []
    if record.run is not None:
        awaited = {name for step in record.run.steps.values() for name in step.children.values()}
        return [child for child in interrupted if child.name not in awaited]
    begun = [item.turn for item in record.queue.items.values() if item.state in _GO_ON]
    turns = {turn for name in begun for turn in (name, *resumed_turns(record, name))}
    return [child for child in interrupted if child.turn not in turns]


def is_revert_wanted(record: SessionRecord) -> bool:
    """Whether files are to be restored as soon as nothing can change them any more."""
    return any(revert.is_open and not revert.asked.is_dry_run for revert in record.reverts.values())


def is_reverting(record: SessionRecord) -> bool:
    """Whether files are being restored, or will be next, or once the children have stopped.

    No turn begins meanwhile.
    """
    if any(revert.state in ("started", "restoring") for revert in record.reverts.values()):
        return True
    if not is_revert_wanted(record) or record.unfinished is not None:
        return False
    working = workers(record)
    return not working or any(child.stopped > child.epoch for child in working)


def last_word(record: SessionRecord) -> str:
    """Return what the agent said last."""
    for message in reversed(record.conversation):
        if message.role == "assistant":
            return message.text
    return ""


def owner_of_turn(record: SessionRecord) -> str:
    """Return who began the running turn; empty if none runs, or if no person began it."""
    turn = record.running
    item = record.queue.items.get(turn.item) if turn is not None else None
    return item.said.user if item is not None else ""


def stopping_effects(
    record: SessionRecord,
) -> Iterator[m.CancelModel | m.StopTool | m.StopChild | m.LookAfter]:
    """Name everything to be stopped so that nothing of the newest turn is left."""
    turn = record.unfinished
    if turn is None:
        return
    yield m.CancelModel(turn=turn.id)
    for call in turn.calls.values():
        if call.state in ("running", "stopping") and not call.within:
            is_of_child = call.tool in (DELEGATE, DISMISS)
            yield (m.StopChild if is_of_child else m.StopTool)(
                turn=turn.id, epoch=turn.epoch, call=call.id
            )
    run = record.run
    if run is None:
        return
    for attempt in run.open.values():
        if not attempt.is_child:
            yield m.StopTool(turn=run.turn, epoch=turn.epoch, call=attempt.call)
    for step in run.steps.values():
        if step.state == "running":
            yield m.LookAfter(turn=run.turn, step=step.id)


def replaced_first(queue: QueueRecord, turn: str) -> ItemRecord | None:
    """Return the message that a resume begins with although another one replaced its turn.

    That is the last such one where nothing is interrupted and nothing held, or where the session's
    newest `turn` is that of the message that replaced it.
    """
    found = queue.superseded()[-1:]
    if not found or any(item.state == "interrupted" for item in queue.live()):
        return None
    number = int(found[0].turn[1:] or 0)
    is_newest = turn in (f"t{number}", f"t{number + 1}")
    return found[0] if queue.state != "held" or is_newest else None
