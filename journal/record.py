"""The state of a session as data, and the fold that makes it from the journal.

`apply` is the only thing that changes a record. It is pure apart from the record it is given: the
same entries give the same record, in the live program, in recovery and when somebody asks how things
were last Tuesday. Every change of state goes through a machine; an entry that a machine refuses is a
fault of the program and raises `StoreDamaged`, never a silent repair.
"""

from dataclasses import dataclass, field
from typing import Any

from ..machines.call import CALL
from ..machines.conversation import ChatMessage, Usage
from ..machines.errors import StoreDamaged
from ..machines.item import ITEM
from ..machines.machine import Machine
from ..machines.queue import QUEUE
from ..machines.session import SESSION
from ..machines.step import Refusal, step
from ..machines.turn import TURN
from . import entries as e

__all__ = [
    "CallRecord",
    "ItemRecord",
    "QueueRecord",
    "SessionRecord",
    "TurnRecord",
    "apply",
    "apply_to_queue",
    "messages_of",
]

ENDED = ("done", "failed", "withdrawn", "steered")
EVENT_OF_STATUS = {"ok": "succeed", "failed": "fail", "timed_out": "time_out", "killed": "kill"}
EVENT_OF_REFUSAL = {"denied": "deny", "failed": "reject", "skipped": "stop"}
REMEMBERED_TURNS = 50
REMEMBERED_ITEMS = 50


@dataclass(slots=True)
class ItemRecord:
    """One message; `progress` is {done, total, unit}, `turn` the last turn that ran it."""

    id: str
    number: int
    text: str
    state: str = "pending"
    said_as: str = "turn"
    user: str = ""
    client_id: str = ""
    is_next: bool = False
    for_turn: str = ""
    turn: str = ""
    created: float = 0.0
    progress: dict[str, Any] | None = None


@dataclass(slots=True)
class CallRecord:
    """One tool call of the turn that runs, or ran last."""

    id: str
    tool: str
    arguments: dict[str, Any]
    state: str = "requested"
    step: int = 0
    wire_id: str = ""
    question: str = ""
    exit_code: int | None = None
    bytes: int = 0
    killed: tuple[int, ...] = ()
    survivors: tuple[int, ...] = ()
    since: float = 0.0


@dataclass(slots=True)
class TurnRecord:
    """One turn; `calls` are kept for the newest turn only."""

    id: str
    item: str
    number: int
    state: str = "boundary"
    step: int = 0
    started: float = 0.0
    ended: float = 0.0
    since: float = 0.0
    resumes: str = ""
    cause: str = ""
    reason: str = ""
    usage: Usage = field(default_factory=Usage)
    calls: dict[str, CallRecord] = field(default_factory=dict)


@dataclass(slots=True)
class QueueRecord:
    """What waits and what became of it. `order` holds the ids of what has not ended, in order."""

    state: str = "open"
    since: float = 0.0
    items: dict[str, ItemRecord] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    made: int = 0
    number: int = 0
    clients: dict[str, str] = field(default_factory=dict)

    def live(self) -> list[ItemRecord]:
        """Return what has not ended, in order."""
        return [self.items[item] for item in self.order]

    def waiting(self) -> list[ItemRecord]:
        """Return the messages that wait for a turn of their own, in order (no steers)."""
        return [one for one in self.live() if one.state == "pending" and not one.for_turn]

    def next_item(self) -> ItemRecord | None:
        """Return what runs next: what must run now, then, unless held, what waits longest."""
        urgent = [
            one for one in self.live() if one.is_next and one.state in ("pending", "interrupted")
        ]
        if urgent:
            return urgent[0]
        waiting = self.waiting()
        return waiting[0] if waiting and self.state == "open" else None

    def steers(self, turn: str) -> list[ItemRecord]:
        """Return the steers that wait for a boundary of `turn`, in order."""
        return [one for one in self.live() if one.state == "pending" and one.for_turn == turn]


@dataclass(slots=True)
class SessionRecord:
    """A whole session. `epoch` rises with every turn and every cancel."""

    id: str = ""
    folder: str = ""
    agent: str = ""
    model: str = ""
    system: str = ""
    tools: tuple[str, ...] = ()
    parent: str = ""
    state: str = "idle"
    since: float = 0.0
    seq: int = 0
    created: float = 0.0
    updated: float = 0.0
    epoch: int = 0
    turn: str = ""
    turns_made: int = 0
    receipts: int = 0
    finalize_cause: str = ""
    usage: Usage = field(default_factory=Usage)
    turns: dict[str, TurnRecord] = field(default_factory=dict)
    queue: QueueRecord = field(default_factory=QueueRecord)
    conversation: list[ChatMessage] = field(default_factory=list)
    sources: list[int] = field(default_factory=list)

    @property
    def running(self) -> TurnRecord | None:
        """The newest turn, if it has not ended."""
        turn = self.turns.get(self.turn)
        return turn if turn is not None and turn.state not in TURN.final else None


def messages_of(entry: e.Entry) -> tuple[ChatMessage, ...]:
    """Return what an entry appends to the conversation."""
    return getattr(entry, "messages", ())


def _move(machine: Machine, owner: Any, event: str, facts: frozenset[str] = frozenset()) -> None:
    moved = step(machine, owner.state, event, facts)
    if isinstance(moved, Refusal):
        raise StoreDamaged(
            f"the journal contradicts the {machine.name} machine: {moved.reason}",
            "keep a copy of the database and report this; `steersman inspect` shows what is there",
        )
    owner.state = moved.state


def apply(record: SessionRecord, entry: e.Entry, seq: int, time: float) -> None:
    """Fold one entry into the record, in place. Raises `StoreDamaged` if a machine refuses it."""
    if seq != record.seq + 1:
        raise StoreDamaged(f"entry {seq} follows entry {record.seq}: the journal has a gap")
    record.seq = seq
    record.updated = time
    state = record.state
    apply_to_queue(record.queue, entry, time)
    _apply_to_session(record, entry, time)
    if record.state != state:
        record.since = time
    said = messages_of(entry)
    if said:
        record.conversation.extend(said)
        record.sources.append(seq)


def _apply_to_session(record: SessionRecord, entry: e.Entry, time: float) -> None:
    match entry:
        case e.SessionOpened():
            record.id, record.folder = entry.session, entry.folder
            record.agent, record.model = entry.agent, entry.model
            record.system, record.tools = entry.system, entry.tools
            record.parent, record.created, record.since = entry.parent, time, time
        case e.SessionResumed():
            _move(SESSION, record, "resume")
        case e.SessionLeaving():
            _move(SESSION, record, "suspend")
        case e.SessionSuspended():
            if record.state != "suspended":
                _move(SESSION, record, "suspend")
        case e.SessionFinalizing():
            record.finalize_cause = entry.cause
            _move(SESSION, record, "finalize")
        case e.SessionFinalized():
            if record.state != "finalized":
                _move(SESSION, record, "finalize")
        case e.Recovered():
            _recover(record, time)
        case e.TurnStarted():
            _start_turn(record, entry, time)
        case e.InterruptRequested():
            record.receipts += 1
            record.epoch += 1
        case e.TurnEnded() | e.Interrupted() | e.Stopped():
            _end_turn(record, entry, time)
        case e.LateResult():
            record.usage += entry.usage
        case _:
            _apply_to_turn(record, entry, time)


def _start_turn(record: SessionRecord, entry: e.TurnStarted, time: float) -> None:
    if record.state == "idle":
        _move(SESSION, record, "start")
    _move(SESSION, record, "turn_started")
    record.epoch, record.turn = entry.epoch, entry.turn
    record.turns_made += 1
    for earlier in record.turns.values():
        earlier.calls.clear()
    record.turns[entry.turn] = TurnRecord(
        entry.turn, entry.item, entry.number, started=time, since=time, resumes=entry.resumes
    )
    while len(record.turns) > REMEMBERED_TURNS:
        del record.turns[next(iter(record.turns))]


def _end_turn(
    record: SessionRecord, entry: e.TurnEnded | e.Interrupted | e.Stopped, time: float
) -> None:
    turn = record.turns[entry.turn]
    if isinstance(entry, e.Stopped):
        _move(SESSION, record, "stopped")
        return
    turn.ended = turn.since = time
    if isinstance(entry, e.Interrupted):
        _move(TURN, turn, "interrupt")
        turn.cause = entry.cause
        for call in turn.calls.values():
            if call.state not in CALL.final:
                _move(CALL, call, "stop")
        _move(SESSION, record, "interrupted")
        return
    turn.reason = entry.reason
    if turn.state not in TURN.final:
        _end_state(turn, entry.status)
    _move(SESSION, record, "turn_ended")


def _end_state(turn: TurnRecord, status: str) -> None:
    """Move a turn to its end; a failure is legal from every live state (its actor may have died)."""
    if status == "completed":
        _move(TURN, turn, "finish")
    else:
        _move(TURN, turn, "fail")
        for call in turn.calls.values():
            if call.state not in CALL.final:
                _move(CALL, call, "lose")


def _apply_to_turn(record: SessionRecord, entry: e.Entry, time: float) -> None:
    name = getattr(entry, "turn", "")
    turn = record.turns.get(name)
    if turn is None:
        return
    state = turn.state
    match entry:
        case e.ModelCalled():
            turn.step = entry.step
            _move(TURN, turn, "proceed")
        case e.Answered():
            turn.usage += entry.usage
            record.usage += entry.usage
            calls = entry.messages[0].tool_calls if entry.messages else ()
            for one in calls:
                turn.calls[one.call] = CallRecord(
                    one.call, one.tool, one.arguments, step=entry.step, wire_id=one.wire_id
                )
            _move(TURN, turn, "answer", frozenset({"has_calls"} if calls else ()))
        case e.ModelCallFailed():
            _move(TURN, turn, "model_failed")
            turn.reason = entry.reason
        case e.QuestionAsked() | e.ToolIntended() | e.ToolRefused() | e.ToolEnded():
            _apply_to_call(turn, turn.calls[entry.call], entry, time)
        case _:
            pass
    if turn.state != state:
        turn.since = time


def _apply_to_call(turn: TurnRecord, call: CallRecord, entry: e.Entry, time: float) -> None:
    call.since = time
    match entry:
        case e.QuestionAsked():
            _move(CALL, call, "ask")
            call.question = entry.question
        case e.ToolIntended():
            _move(CALL, call, "intend")
        case e.ToolRefused():
            _move(CALL, call, EVENT_OF_REFUSAL[entry.status])
        case e.ToolEnded():
            _move(CALL, call, EVENT_OF_STATUS[entry.status])
            call.exit_code, call.bytes = entry.exit_code, entry.bytes
            call.killed, call.survivors = entry.killed, entry.survivors
        case _:
            pass
    if turn.state == "acting" and all(one.state in CALL.final for one in turn.calls.values()):
        _move(TURN, turn, "calls_done")


def _recover(record: SessionRecord, time: float) -> None:
    turn = record.running
    if turn is not None:
        _move(TURN, turn, "interrupt")
        turn.cause, turn.ended, turn.since = "crash", time, time
    newest = record.turns.get(record.turn)
    if newest is not None:
        for call in newest.calls.values():
            if call.state not in CALL.final:
                _move(CALL, call, "lose")
    record.epoch += 1
    _move(SESSION, record, "recover")


def apply_to_queue(queue: QueueRecord, entry: e.Entry, time: float) -> None:
    """Fold one entry into the queue's part of the record, in place; others leave it alone."""
    match entry:
        case e.Queued():
            _queue_item(queue, entry, time)
        case e.Requeued():
            item = queue.items[entry.item]
            _move(ITEM, item, "requeue")
            item.for_turn, item.said_as = "", "queue"
        case e.Withdrawn():
            _end_item(queue, entry.item, "withdraw")
        case e.Steered():
            for name in entry.items:
                queue.items[name].turn = entry.turn
                _end_item(queue, name, "steer")
        case e.TurnStarted():
            item = queue.items[entry.item]
            _move(ITEM, item, "start")
            item.turn, item.is_next = entry.turn, False
            queue.order.remove(item.id)
            queue.order.insert(0, item.id)
        case e.TurnEnded():
            for item in _running(queue):
                _end_item(queue, item.id, "complete" if entry.status == "completed" else "fail")
        case e.Interrupted() | e.Recovered():
            for item in _running(queue):
                _move(ITEM, item, "interrupt")
            if isinstance(entry, e.Recovered) and queue.order:
                _shift(queue, "hold", time)
        case e.ProgressMade():
            for item in _running(queue):
                item.progress = {"done": entry.done, "total": entry.total, "unit": entry.unit}
        case e.QueueHeld():
            _shift(queue, "hold", time)
        case e.QueueReleased():
            _shift(queue, "release", time)
            for item in queue.live():
                item.is_next = item.is_next or item.state == "interrupted"
        case e.SessionFinalized():
            _shift(queue, "close", time)
        case _:
            pass


def _running(queue: QueueRecord) -> list[ItemRecord]:
    return [one for one in queue.live() if one.state == "running"]


def _shift(queue: QueueRecord, event: str, time: float) -> None:
    state = queue.state
    _move(QUEUE, queue, event)
    if queue.state != state:
        queue.since = time


def _queue_item(queue: QueueRecord, entry: e.Queued, time: float) -> None:
    _move(QUEUE, queue, "accept")
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
        created=time,
    )
    waiting = [one.id for one in queue.live() if one.state == "pending" and not one.for_turn]
    if entry.position <= len(waiting):
        queue.order.insert(queue.order.index(waiting[entry.position - 1]), entry.item)
    else:
        queue.order.append(entry.item)
    if entry.client_id:
        queue.clients[entry.client_id] = entry.item


def _end_item(queue: QueueRecord, name: str, event: str) -> None:
    item = queue.items[name]
    _move(ITEM, item, event)
    queue.order.remove(name)
    ended = [one for one in queue.items.values() if one.state in ENDED]
    for old in ended[: max(0, len(ended) - REMEMBERED_ITEMS)]:
        del queue.items[old.id]
    if not queue.order:
        queue.number = 0
