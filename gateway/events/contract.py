"""The event contract: what machine interfaces are told, one JSON object each.

Events are translations of journal entries, made when an entry is folded and told when it is durable,
and of a few passing facts. Common fields are `type`, `seq` (the entry's number, null for a fact),
`time` (ISO 8601, UTC) and `session`.
"""

from collections.abc import Callable
from typing import Any

from ...journal import compaction_entries as c
from ...journal import entries as e
from ...journal import revert_entries as r
from ...journal.limit_entries import LimitReached, LimitsGranted
from ...journal.queue_record import ItemRecord, QueueRecord
from ...journal.record import SessionRecord
from ...machines.conversation import Usage
from ...machines.facts import (
    Fact,
    MessageKnown,
    MessageRejected,
    Noticed,
    OutputShown,
    StoreLost,
    TextStreamed,
    ThoughtStreamed,
)
from ..acknowledgement import accepted_text
from ..commands.limits import of_limits
from ..formats import iso
from .child import of_child
from .compaction import attachment_events, of_compaction, of_revert, output_of
from .goal import of_goal
from .run import of_run

Event = dict[str, Any]

CHANGES_QUEUE = (
    e.Queued,
    e.Requeued,
    e.Deferred,
    e.Edited,
    e.Moved,
    e.SteerAddressed,
    e.Withdrawn,
    e.QueueHeld,
    e.QueueReleased,
    e.TurnStarted,
    e.TurnEnded,
    e.Interrupted,
    e.Steered,
    e.Recovered,
    e.Offered,
    e.OfferAnswered,
    e.OfferWanted,
    e.Kept,
    e.SteerArrived,
)


def item_view(item: ItemRecord, *, is_held: bool) -> Event:
    """Show a queue item as programs see it; of what is offered the answer, of a steer for whom."""
    return {
        "id": item.id,
        "number": item.number,
        "state": item.state,
        "text": item.text,
        "progress": item.progress,
        "user": item.user,
        **({"answer": item.answer} if item.state == "offered" and item.answer else {}),
        **({"children": list(item.for_children)} if item.for_children else {}),
        **({"goal": item.goal} if item.goal else {}),
        **({"held": True} if is_held else {}),
    }


def queue_view(queue: QueueRecord, *, is_all: bool = False) -> Event:
    """Show a queue as programs see it: what has not ended, in order; `is_all`: what was replaced, too."""
    shown = [*queue.live(), *(queue.superseded() if is_all else ())]
    items = [item_view(one, is_held=queue.holds(one)) for one in shown]
    return {"state": queue.state, "items": items}


def usage_view(usage: Usage) -> Event:
    """Show tokens, every field."""
    return {
        "input": usage.input,
        "output": usage.output,
        "cache_read": usage.cache_read,
        "cache_write": usage.cache_write,
        "reasoning": usage.reasoning,
        "cost": round(usage.cost, 6),
    }


class Narrator:
    """Tells one session's story to whoever subscribed; `publish` must not block."""

    def __init__(
        self,
        session: str,
        publish: Callable[[Event], None],
        now: Callable[[], float],
        parent: str = "",
    ) -> None:
        self._common = {"session": session, **({"parent": parent} if parent else {})}
        self._publish = publish
        self._now = now

    def hear(
        self, entry: e.Entry, seq: int, time: float, record: SessionRecord
    ) -> tuple[Event, ...]:
        """Translate an entry, with the record as it is with this entry folded."""
        events = [*translate(entry, record), *of_goal(entry, record)]
        if record.run is not None:
            events += of_run(entry, record)
        if isinstance(entry, CHANGES_QUEUE):
            events.append({"type": "queue", **queue_view(record.queue)})
        common = {"seq": seq, "time": iso(time), **self._common}
        return tuple({"type": one.pop("type"), **common, **one} for one in events)

    def tell(self, told: tuple[Event, ...]) -> None:
        """Publish what is durable now."""
        for event in told:
            self._publish(event)

    def pass_on(self, fact: Fact) -> None:
        """Publish a passing fact."""
        event = _of_fact(fact)
        kind = event.pop("type")
        common = {"seq": None, "time": iso(self._now()), **self._common}
        self._publish({"type": kind, **common, **event})

    def say(self, kind: str, /, **fields: Any) -> None:
        """Publish an event that no actor knows of: a command's receipt, its result."""
        common = {"seq": None, "time": iso(self._now()), **self._common}
        self._publish({"type": kind, **common, **fields})


def translate(entry: e.Entry, record: SessionRecord) -> list[Event]:
    """Return the events of one entry, in order; many entries have one, some none."""
    match entry:
        case e.SessionOpened():
            return [_started(record, is_resumed=False)]
        case e.SessionResumed():
            return [_started(record, is_resumed=True)]
        case e.SessionSuspended():
            return [{"type": "session_suspended"}]
        case e.SessionFinalized():
            return [{"type": "session_finalized", "id": entry.finalize, "cause": entry.cause}]
        case e.Recovered():
            return _recovered(entry, record)
        case e.Queued(child="", purpose="", goal=""):
            return [_accepted(entry), *attachment_events(entry.attached)]
        case e.Edited():
            return attachment_events(entry.attached)
        case LimitReached() | LimitsGranted():
            return of_limits(entry)
        case c.CompactionBegun() | c.Compacted():
            return of_compaction(entry)
        case e.Requeued():
            return [_requeued(entry.item, entry.why, record.queue.items[entry.item])]
        case e.Deferred():
            return [_requeued(entry.item, entry.why, record.queue.items[entry.new_item])]
        case e.Steered():
            return [
                {"type": "steered", "id": item, "turn": entry.turn, "step": entry.step}
                for item in entry.items
            ]
        case _:
            return of_child(entry, record) or _of_turn(entry, record)


def _of_turn(entry: e.Entry, record: SessionRecord) -> list[Event]:
    match entry:
        case e.TurnStarted():
            fields = {"turn": entry.turn, "item": entry.item, "number": entry.number}
            return [{"type": "turn_started", **fields}]
        case e.ModelCallFailed():
            return [
                {
                    "type": "error",
                    "code": "model_failed",
                    "text": entry.reason,
                    "hint": entry.hint,
                }
            ]
        case e.TurnEnded():
            return [_turn_ended(entry.turn, entry.status, record)]
        case e.InterruptPlanned():
            notice = {"type": "notice", "text": f"Stopping after {', '.join(entry.tools)}"}
            return [*_taken_as_interrupt(entry), notice]
        case e.InterruptCalledOff():
            return [{"type": "notice", "text": "The stop is called off: the turn goes on."}]
        case e.InterruptRequested():
            turn = entry.turn or None
            interrupting = {"type": "interrupting", "turn": turn, "cause": entry.cause}
            return [*_taken_as_interrupt(entry), interrupting]
        case e.Interrupted():
            interrupted = {
                "type": "interrupted",
                "turn": entry.turn,
                "cause": entry.cause,
                "checkpoint": entry.checkpoint,
            }
            return [interrupted, _turn_ended(entry.turn, "interrupted", record)]
        case e.Stopped(turn=turn):
            killed = {"killed": list(entry.killed), "survivors": list(entry.survivors)}
            return [{"type": "stopped", "turn": turn or None, **killed}]
        case r.RevertBegun() | r.Reverted() | r.RevertRefused():
            return of_revert(entry, record)
        case e.ProgressMade():
            done = {"done": entry.done, "total": entry.total, "unit": entry.unit}
            return [{"type": "progress", "turn": entry.turn, **done}]
        case _:
            return _of_call(entry)


def _of_call(entry: e.Entry) -> list[Event]:
    match entry:
        case e.QuestionAsked():
            return [
                {
                    "type": "question",
                    "id": entry.question,
                    "kind": "permission",
                    "tool": entry.tool,
                    "arguments": entry.arguments,
                    "options": ["allow", "always", "deny"],
                    "rule": entry.rule or None,
                    "source": entry.source or None,
                    "outside": entry.is_outside,
                }
            ]
        case e.QuestionAnswered():
            answer = {"id": entry.question, "turn": entry.turn, "choice": entry.choice}
            return [{"type": "answered", **answer}]
        case e.ToolIntended():
            return [
                {
                    "type": "tool_started",
                    "turn": entry.turn,
                    "call": entry.call,
                    "tool": entry.tool,
                    "arguments": entry.arguments,
                }
            ]
        case e.ToolEnded():
            return [_tool_ended(entry, entry.status, entry.exit_code, entry.bytes)]
        case e.ToolRefused():
            return [{**_tool_ended(entry, entry.status, None, 0), "reason": entry.reason}]
        case _:
            return []


def _tool_ended(
    entry: e.ToolEnded | e.ToolRefused, status: str, exit_code: int | None, size: int
) -> Event:
    return {
        "type": "tool_ended",
        "turn": entry.turn,
        "call": entry.call,
        "tool": entry.tool,
        "status": status,
        "exit_code": exit_code,
        "bytes": size,
        **output_of(entry),
    }


def _started(record: SessionRecord, *, is_resumed: bool) -> Event:
    return {"type": "session_started", "resumed": is_resumed, "folder": record.folder}


def _recovered(entry: e.Recovered, record: SessionRecord) -> list[Event]:
    events = [_started(record, is_resumed=True)]
    if record.queue.order:
        events.append(
            {
                "type": "recovered",
                "cause": entry.cause,
                "items": queue_view(record.queue)["items"],
                "last_active": iso(entry.last_active),
                "unknown": _unknown(record),
            }
        )
    return events


def _unknown(record: SessionRecord) -> list[Event]:
    """List the calls of which nobody knows how they ended."""
    turn = record.turns.get(record.turn)
    calls = turn.calls.values() if turn else ()
    return [
        {"call": one.id, "tool": one.tool, "arguments": one.arguments}
        for one in calls
        if one.state == "unknown"
    ]


def _requeued(name: str, why: str, item: ItemRecord) -> Event:
    """Tell as what a message waits again: as itself, or, handed back, as another item."""
    return {"type": "requeued", "id": name, "why": why, "item": item.id, "number": item.number}


def _accepted(entry: e.Queued) -> Event:
    accepted = {
        "type": "accepted",
        "id": entry.item,
        "as": entry.said_as,
        "number": entry.number,
        "position": entry.position,
        "client_id": entry.client_id or None,
        "matched": entry.matched or None,
        "rule": entry.rule or None,
        "ack": entry.ack or None,
        "text": entry.text,
        **({"user": entry.user} if entry.user else {}),
        **({"children": list(entry.for_children)} if entry.for_children else {}),
    }
    return _with_ack_text(accepted)


def _taken_as_interrupt(entry: e.InterruptPlanned | e.InterruptRequested) -> list[Event]:
    if not entry.text:
        return []
    accepted = {
        "type": "accepted",
        "id": entry.receipt,
        "as": "interrupt",
        "number": None,
        "position": None,
        "client_id": entry.client_id or None,
        "matched": entry.matched or None,
        "rule": entry.rule or None,
        "ack": entry.ack or None,
        "text": entry.text,
        **({"user": entry.user} if entry.user else {}),
    }
    return [_with_ack_text(accepted)]


def _with_ack_text(accepted: Event) -> Event:
    """Add the words of the acknowledgement, for faces that have none of their own."""
    return {**accepted, "ack_text": accepted_text(accepted) or None}


def _turn_ended(turn: str, status: str, record: SessionRecord) -> Event:
    known = record.turns[turn]
    return {
        "type": "turn_ended",
        "turn": turn,
        "item": known.item,
        "status": status,
        "usage": {**usage_view(known.usage), "seconds": round(known.ended - known.started, 3)},
        **({"reason": known.reason} if known.reason else {}),
    }


def _of_fact(fact: Fact) -> Event:
    match fact:
        case TextStreamed(turn, delta):
            return {"type": "text", "turn": turn, "delta": delta}
        case ThoughtStreamed(turn, delta):
            return {"type": "thinking", "turn": turn, "delta": delta}
        case OutputShown(turn, call, text):
            return {"type": "output", "turn": turn, "call": call, "text": text}
        case Noticed(text, seconds):
            return {"type": "notice", "text": text, **({"seconds": seconds} if seconds else {})}
        case MessageRejected(reason, text, client_id):
            known = {"reason": reason, "text": text, "client_id": client_id or None}
            return {"type": "rejected", **known}
        case StoreLost(code, text, hint):
            return {"type": "error", "code": code, "text": text, "hint": hint}
        case MessageKnown():
            accepted = {
                "type": "accepted",
                "id": fact.id,
                "as": fact.said_as,
                "number": fact.number,
                "position": None,
                "client_id": fact.client_id or None,
                "matched": fact.matched or None,
                "rule": fact.rule or None,
                "ack": fact.ack or None,
                "text": "",
            }
            return _with_ack_text(accepted)
