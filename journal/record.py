"""The state of a session as data, and the fold that makes it from the journal.

`apply` is the only thing that changes a record, whose parts are immutable. It is pure apart from the
record it is given: the same entries give the same record, in the live program, in recovery and when
somebody asks how things were last Tuesday. Every change of state goes through a machine; an entry that
a machine refuses raises `StoreDamaged`: the ledger then refuses the decision that it is part of, and a
journal that has such an entry is damaged.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..machines.context import Fill
from ..machines.conversation import ChatMessage, Usage
from ..machines.delivery import Relation
from ..machines.errors import StoreDamaged
from ..machines.lifecycles import SESSION, TURN
from ..machines.policy import RoutesChoice
from . import entries as e
from .agent_entries import AgentSessionKnown
from .cancel_record import (
    CancelRecord,
    finish_cancels,
    follow_cancels,
    move_cancel,
    raise_epoch,
    take_cancel,
    tell_of_child,
    tell_of_dead_child,
)
from .child_record import ChildRecord, apply_to_children
from .compaction_entries import Compacted
from .compaction_record import apply_compaction, grown
from .fold import changed, moved
from .goal_entries import GoalJudged
from .goal_record import GoalsRecord, apply_to_goals
from .limit_record import apply_limits
from .log import Log
from .permission_entries import AllowanceForgotten, AllowanceGiven
from .queue import apply_to_queue
from .queue_record import QueueRecord
from .revert_entries import RevertAsked
from .revert_record import RevertRecord, apply_to_reverts
from .run_record import OF_RUNS, RunRecord, apply_to_run
from .turn_record import (
    OF_TURNS,
    TURN_ENDS,
    TurnRecord,
    apply_to_turn,
    lose_calls,
    move_calls,
    move_turn,
)

REMEMBERED_TURNS = 50
_CHILD_HALTS = (e.ChildInterrupted, e.ChildEnded)


@dataclass(slots=True)
class SessionRecord:
    """A whole session. `epoch` rises with every turn and every stop.

    `cancelled` is the epoch of the newest stop that reached a relation (`self`, `goal`, those of
    children): what was ordered before it does not begin any more. `overtaken` numbers what one client
    said before the newest stop.
    `cancels` maps the newest clients' own keys to the receipts that their interrupts got, and
    `interrupts` the newest receipts to what became of them. `busy_mode`, `is_auto_queue`, `routes` and
    `chosen_model` are what a person chose here; empty or none, if nobody did. `allowed` are tool
    and pattern of what is not asked about any more. `usage` is what its own model calls took, `below`
    what those of its children did, as far as they have told; `seconds` is how long its turns ran.
    `spoken` counts all messages of the conversation, ever; `lost` are tokens that were sent for answers
    which never came, as estimated; `grants` is how often a person granted as much again. `fill` is what
    the newest answer says of the window, of so many messages as were `spoken` then. `run` is there in a
    session whose turn is a workflow. `agent_session` is the id that the agent has for it,
    where that is another program.
    """

    id: str = ""
    name: str = ""
    folder: str = ""
    forked_from: str = ""
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
    cancelled: Mapping[str, int] = field(default_factory=dict[str, int])
    overtaken: int = 0
    receipts: int = 0
    cancels: Mapping[str, str] = field(default_factory=dict[str, str])
    interrupts: Mapping[str, CancelRecord] = field(default_factory=dict[str, CancelRecord])
    busy_mode: str = ""
    is_auto_queue: bool | None = None
    routes: RoutesChoice | None = None
    chosen_model: str = ""
    allowed: tuple[tuple[str, str], ...] = ()
    finalize_cause: str = ""
    agent_session: str = ""
    reverts: Mapping[str, RevertRecord] = field(default_factory=dict[str, RevertRecord])
    reverts_made: int = 0
    usage: Usage = field(default_factory=Usage)
    below: Usage = field(default_factory=Usage)
    lost: int = 0
    grants: int = 0
    seconds: float = 0.0
    turns: Mapping[str, TurnRecord] = field(default_factory=dict[str, TurnRecord])
    queue: QueueRecord = field(default_factory=QueueRecord)
    children: Mapping[str, ChildRecord] = field(default_factory=dict[str, ChildRecord])
    children_made: int = 0
    goals: GoalsRecord = field(default_factory=GoalsRecord)
    run: RunRecord | None = None
    seeded: int = 0
    spoken: int = 0
    fill: Fill = field(default_factory=Fill)
    compactions: int = 0
    conversation: Log[ChatMessage] = field(default_factory=Log[ChatMessage])
    sources: Log[int] = field(default_factory=Log[int])

    @property
    def whole_usage(self) -> Usage:
        """What was used here and beneath."""
        return self.usage + self.below

    @property
    def is_quiet(self) -> bool:
        """Whether nothing runs, here or beneath, and nothing that waits will run by itself."""
        if self.state in ("suspended", "finalized"):
            return True
        works = any(one.is_at_work for one in self.children.values())
        goes_on = self.goals.is_pursued and not self.queue.waiting()
        return self.state == "idle" and not works and not goes_on and not self.queue.will_run()

    @property
    def unfinished(self) -> TurnRecord | None:
        """The newest turn, if it or anything that it started may still be alive."""
        turn = self.turns.get(self.turn)
        return turn if turn is not None and not turn.is_over else None

    @property
    def running(self) -> TurnRecord | None:
        """The newest turn, if it has not ended."""
        turn = self.turns.get(self.turn)
        return turn if turn is not None and turn.state not in TURN_ENDS else None


def messages_of(entry: e.Entry) -> tuple[ChatMessage, ...]:
    """Return what an entry holds of the conversation."""
    return getattr(entry, "messages", ())


def apply(record: SessionRecord, entry: e.Entry, seq: int, time: float) -> None:
    """Fold one entry into the record: assign its fields, and change nothing that they refer to.

    So a shallow copy made before is the version before. Raises `StoreDamaged` if a machine refuses
    the entry; the record is then of no more use, the copy is.
    """
    if seq != record.seq + 1:
        raise StoreDamaged(f"entry {seq} follows entry {record.seq}: the journal has a gap")
    record.seq = seq
    record.updated = time
    if isinstance(entry, OF_RUNS) and record.run is not None:
        record.run = apply_to_run(record.run, entry, time)
        return
    state = record.state
    if not isinstance(entry, OF_TURNS):
        _apply_to_parts(record, entry, time)
        _apply_to_session(record, entry, time)
    _apply_to_named_turn(record, entry, time)
    if record.state != state:
        record.since = time
    said = messages_of(entry)
    if said or isinstance(entry, Compacted):
        record.conversation = grown(record.conversation, entry)
        record.spoken += 0 if isinstance(entry, Compacted) else len(said)
        record.sources = record.sources.extended((seq,))


def _apply_to_parts(record: SessionRecord, entry: e.Entry, time: float) -> None:
    """Fold what concerns the queue, children, reverts, goals, limits, and a run as a whole."""
    record.queue = apply_to_queue(record.queue, entry, time)
    if isinstance(entry, _CHILD_HALTS):
        record.below += entry.usage - record.children[entry.child].usage
    record.children = apply_to_children(record.children, entry, time)
    record.reverts = apply_to_reverts(record.reverts, entry)
    record.goals = apply_to_goals(record.goals, entry, time)
    record.reverts_made += isinstance(entry, RevertAsked)
    apply_compaction(record, entry, time)
    apply_limits(record, entry)
    if record.run is not None:
        record.run = apply_to_run(record.run, entry, time)


def _apply_to_session(record: SessionRecord, entry: e.Entry, time: float) -> None:
    match entry:
        case e.ToolEnded() | e.Queued():  # the most frequent ones: only parts of it follow them
            pass
        case e.Answered() if entry.turn in record.turns:
            record.usage += entry.usage
            if entry.usage.input:
                record.fill = Fill(entry.usage.tokens, record.spoken + 1)
        case e.SessionOpened():
            record.id, record.folder = entry.session, entry.folder
            record.agent, record.model = entry.agent, entry.model
            record.system, record.tools = entry.system, entry.tools
            record.parent, record.created, record.since = entry.parent, time, time
            record.seeded, record.forked_from = len(entry.messages), entry.forked_from
            record.run = RunRecord(entry.workflow) if entry.workflow is not None else None
        case e.SessionRenamed():
            record.name = entry.name
        case e.SessionResumed():
            record.overtaken = 0
            record.state = moved(SESSION, record.state, "resume")
        case e.SessionLeaving():
            record.state = moved(SESSION, record.state, "suspend")
            raise_epoch(record, entry)
        case e.SessionSuspended() | e.SessionFinalized():
            record.state = moved(SESSION, record.state, "settle")
        case e.SessionFinalizing():
            record.finalize_cause = entry.cause
            record.state = moved(SESSION, record.state, "finalize")
            raise_epoch(record, entry)
        case e.Recovered():
            _recover(record, entry, time)
        case e.TurnStarted():
            _start_turn(record, entry, time)
        case e.PolicyChanged():
            record.busy_mode = entry.busy_mode or record.busy_mode
            if entry.is_auto_queue is not None:
                record.is_auto_queue = entry.is_auto_queue
            record.routes = entry.routes or record.routes
            record.chosen_model = entry.model or record.chosen_model
            record.model = entry.model or record.model
        case AllowanceGiven(tool, pattern) | AllowanceForgotten(tool, pattern):
            others = tuple(one for one in record.allowed if one != (tool, pattern))
            is_given = isinstance(entry, AllowanceGiven)
            record.allowed = (*others, (tool, pattern)) if is_given else others
        case e.InterruptPlanned():
            take_cancel(record, entry, time)
        case e.InterruptRequested():
            take_cancel(record, entry, time)
            if entry.turn:
                record.state = moved(SESSION, record.state, "interrupt")
        case e.StopNoted():
            raise_epoch(record, entry)
        case e.Stopped(turn=""):
            follow_cancels(record, "", (), entry)
        case e.InterruptCalledOff():
            cancel = move_cancel(record.interrupts[entry.receipt], "call_off")
            record.interrupts = {**record.interrupts, cancel.id: cancel}
        case e.TurnEnded() | e.Interrupted() | e.Stopped():
            _end_turn(record, entry, time)
        case e.LateResult():
            record.usage += entry.usage
        case GoalJudged():
            record.usage += entry.usage
        case AgentSessionKnown(session):
            record.agent_session = session
        case e.ChildStarted():
            _start_child(record, entry)
        case e.ChildCancelled():
            _cancel_child(record, entry)
        case e.ChildInterrupted() | e.ChildEnded():
            tell_of_dead_child(record, entry)
        case _:
            pass


def _apply_to_named_turn(record: SessionRecord, entry: e.Entry, time: float) -> None:
    turn = record.turns.get(getattr(entry, "turn", ""))
    if turn is not None:
        after = apply_to_turn(turn, entry, time)
        if after is not turn:
            _put_turn(record, after)


def _put_turn(record: SessionRecord, turn: TurnRecord) -> None:
    record.turns = {**record.turns, turn.id: turn}


def _start_turn(record: SessionRecord, entry: e.TurnStarted, time: float) -> None:
    record.state = moved(SESSION, record.state, "turn_started")
    record.epoch, record.turn = entry.epoch, entry.turn
    record.turns_made += 1
    turns = {name: changed(turn, calls={}) for name, turn in record.turns.items() if turn.calls}
    turns = {**record.turns, **turns}
    turns[entry.turn] = TurnRecord(
        entry.turn,
        entry.item,
        entry.number,
        started=time,
        since=time,
        resumes=entry.resumes,
        epoch=entry.epoch,
        lineage=entry.lineage,
    )
    while len(turns) > REMEMBERED_TURNS:
        del turns[next(iter(turns))]
    record.turns = turns


def _end_turn(
    record: SessionRecord, entry: e.TurnEnded | e.Interrupted | e.Stopped, time: float
) -> None:
    turn = record.turns[entry.turn]
    if isinstance(entry, e.Interrupted):
        _interrupt_turn(record, turn, entry, time)
        return
    follow_cancels(record, turn.id, (), entry)
    if isinstance(entry, e.Stopped):
        _put_turn(record, changed(turn, is_over=True))
        record.state = moved(SESSION, record.state, "stopped")
        return
    record.seconds += max(0.0, time - turn.started)
    state = turn.state
    if state not in TURN_ENDS:  # its actor may have died, in any state
        state = moved(TURN, state, "finish" if entry.status == "completed" else "fail")
    ends = {"is_over": True, "ended": time, "since": time, "reason": entry.reason}
    _put_turn(record, lose_calls(changed(turn, state=state, **ends)))
    record.state = moved(SESSION, record.state, "turn_ended")


def _interrupt_turn(
    record: SessionRecord, turn: TurnRecord, entry: e.Interrupted, time: float
) -> None:
    record.seconds += max(0.0, time - turn.started)
    ends: dict[str, Any] = {
        "is_over": False,
        "ended": time,
        "since": time,
        "cause": entry.cause,
        "sent": 0,
    }
    turn = move_calls(move_turn(turn, "interrupt", time, **ends), "stop")
    _put_turn(record, turn)
    told = [call.id for call in turn.calls.values() if call.state == "stopping"]
    follow_cancels(record, turn.id, told, entry)


def _start_child(record: SessionRecord, entry: e.ChildStarted) -> None:
    """Count a child; one that was ordered before a stop that reaches it is cancelled from the start."""
    record.children_made += 1
    stopped = record.cancelled.get(entry.relation, 0)
    if entry.epoch < stopped:
        child = changed(record.children[entry.child], cancelled=stopped)
        record.children = {**record.children, child.name: child}


def _cancel_child(record: SessionRecord, entry: e.ChildCancelled) -> None:
    """Mark a child that is stopped by its name: what it was ordered before does not go on."""
    tell_of_child(record, entry)
    child = record.children[entry.child]
    if child.cancelled <= child.epoch:
        record.epoch += 1
        child = changed(child, cancelled=record.epoch, cancelled_cause=entry.cause)
        record.children = {**record.children, child.name: child}


def _recover(record: SessionRecord, entry: e.Recovered, time: float) -> None:
    turn = record.running
    if turn is not None:
        ends: dict[str, Any] = {"cause": "crash", "ended": time, "since": time}
        _put_turn(record, move_turn(turn, "interrupt", time, **ends))
        record.seconds += max(0.0, entry.last_active - turn.started)
    newest = record.turns.get(record.turn)
    if newest is not None:
        _put_turn(record, lose_calls(changed(newest, is_over=True, sent=0)))
    finish_cancels(record)
    record.overtaken = 0
    record.epoch += 1
    record.cancelled = dict.fromkeys(Relation, record.epoch)
    record.state = moved(SESSION, record.state, "recover")
