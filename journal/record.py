"""The state of a session as data, and the fold that makes it from the journal.

`apply` is the only thing that changes a record. It is pure apart from the record it is given: the
same entries give the same record, in the live program, in recovery and when somebody asks how things
were last Tuesday. Every change of state goes through a machine; an entry that a machine refuses is a
fault of the program and raises `StoreDamaged`, never a silent repair.
"""

from dataclasses import dataclass, field

from ..machines.call import CALL
from ..machines.context import Fill
from ..machines.conversation import ChatMessage, Usage
from ..machines.errors import StoreDamaged
from ..machines.interrupt import INTERRUPT
from ..machines.policy import RoutesChoice
from ..machines.session import SESSION
from ..machines.turn import TURN
from . import entries as e
from .agent_entries import AgentSessionKnown
from .cancel_record import CANCEL_ENDS, CancelRecord, follow_cancels, take_cancel, tell_of_child
from .child_record import ChildRecord, apply_to_children
from .compaction_entries import Compacted
from .compaction_record import apply_compaction, grow
from .fold import move
from .goal_entries import GoalJudged
from .goal_record import GoalsRecord, apply_to_goals
from .limit_record import apply_limits
from .permission_entries import AllowanceForgotten, AllowanceGiven
from .queue import ItemRecord, QueueRecord, apply_to_queue
from .revert_entries import RevertAsked
from .revert_record import RevertRecord, apply_to_reverts
from .run_record import RunRecord, apply_to_run
from .turn_record import CALL_ENDS, TURN_ENDS, TurnRecord, apply_to_turn, lose_calls

__all__ = [
    "CancelRecord",
    "ChildRecord",
    "ItemRecord",
    "QueueRecord",
    "SessionRecord",
    "apply",
    "apply_to_children",
    "apply_to_queue",
    "messages_of",
]

REMEMBERED_TURNS = 50


@dataclass(slots=True)
class SessionRecord:
    """A whole session. `epoch` rises with every turn and every cancel.

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
    receipts: int = 0
    cancels: dict[str, str] = field(default_factory=dict[str, str])
    interrupts: dict[str, CancelRecord] = field(default_factory=dict[str, CancelRecord])
    busy_mode: str = ""
    is_auto_queue: bool | None = None
    routes: RoutesChoice | None = None
    chosen_model: str = ""
    allowed: tuple[tuple[str, str], ...] = ()
    finalize_cause: str = ""
    agent_session: str = ""
    reverts: dict[str, RevertRecord] = field(default_factory=dict[str, RevertRecord])
    reverts_made: int = 0
    usage: Usage = field(default_factory=Usage)
    below: Usage = field(default_factory=Usage)
    lost: int = 0
    grants: int = 0
    seconds: float = 0.0
    turns: dict[str, TurnRecord] = field(default_factory=dict[str, TurnRecord])
    queue: QueueRecord = field(default_factory=QueueRecord)
    children: dict[str, ChildRecord] = field(default_factory=dict[str, ChildRecord])
    children_made: int = 0
    goals: GoalsRecord = field(default_factory=GoalsRecord)
    run: RunRecord | None = None
    seeded: int = 0
    spoken: int = 0
    fill: Fill = field(default_factory=Fill)
    compactions: int = 0
    conversation: list[ChatMessage] = field(default_factory=list[ChatMessage])
    sources: list[int] = field(default_factory=list[int])

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
    """Fold one entry into the record, in place. Raises `StoreDamaged` if a machine refuses it."""
    if seq != record.seq + 1:
        raise StoreDamaged(f"entry {seq} follows entry {record.seq}: the journal has a gap")
    record.seq = seq
    record.updated = time
    state = record.state
    apply_to_queue(record.queue, entry, time)
    if isinstance(entry, e.ChildInterrupted | e.ChildEnded):
        record.below += entry.usage - record.children[entry.child].usage
    apply_to_children(record.children, entry, time)
    apply_to_reverts(record.reverts, entry)
    apply_to_goals(record.goals, entry, time)
    record.reverts_made += isinstance(entry, RevertAsked)
    apply_compaction(record, entry, time)
    apply_limits(record, entry)
    if record.run is not None:
        apply_to_run(record.run, entry, time)
    _apply_to_session(record, entry, time)
    if record.state != state:
        record.since = time
    if grow(record.conversation, entry):
        record.spoken += 0 if isinstance(entry, Compacted) else len(messages_of(entry))
        record.sources.append(seq)


def _apply_to_session(record: SessionRecord, entry: e.Entry, time: float) -> None:
    match entry:
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
            move(SESSION, record, "resume")
        case e.SessionLeaving():
            move(SESSION, record, "suspend")
        case e.SessionSuspended() | e.SessionFinalized():
            move(SESSION, record, "settle")
        case e.SessionFinalizing():
            record.finalize_cause = entry.cause
            move(SESSION, record, "finalize")
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
        case e.InterruptPlanned() | e.InterruptRequested():
            take_cancel(record, entry, time)
        case e.Stopped(turn=""):
            follow_cancels(record, "", [], entry)
        case e.InterruptCalledOff():
            move(INTERRUPT, record.interrupts[entry.receipt], "call_off")
        case e.TurnEnded() | e.Interrupted() | e.Stopped():
            _end_turn(record, entry, time)
        case e.LateResult():
            record.usage += entry.usage
        case GoalJudged():
            record.usage += entry.usage
        case AgentSessionKnown(session):
            record.agent_session = session
        case e.ChildStarted():
            record.children_made += 1
        case e.ChildCancelled():
            tell_of_child(record, entry)
        case e.Answered() if entry.turn in record.turns:
            record.usage += entry.usage
            if entry.usage.input:
                record.fill = Fill(entry.usage.tokens, record.spoken + 1)
        case _:
            pass
    turn = record.turns.get(getattr(entry, "turn", ""))
    if turn is not None:
        apply_to_turn(turn, entry, time)


def _start_turn(record: SessionRecord, entry: e.TurnStarted, time: float) -> None:
    if record.state == "idle":
        move(SESSION, record, "start")
    move(SESSION, record, "turn_started")
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
    turn.is_over = not isinstance(entry, e.Interrupted)
    if not isinstance(entry, e.Interrupted):
        follow_cancels(record, turn.id, [], entry)
    if isinstance(entry, e.Stopped):
        move(SESSION, record, "stopped")
        return
    turn.ended = turn.since = time
    record.seconds += max(0.0, time - turn.started)
    if isinstance(entry, e.Interrupted):
        move(TURN, turn, "interrupt")
        turn.cause = entry.cause
        for call in turn.calls.values():
            if call.state not in CALL_ENDS:
                move(CALL, call, "stop")
        told = [one.id for one in turn.calls.values() if one.state == "stopping"]
        follow_cancels(record, turn.id, told, entry)
        move(SESSION, record, "interrupted")
        return
    turn.reason = entry.reason
    if turn.state not in TURN_ENDS:  # its actor may have died, in any state
        move(TURN, turn, "finish" if entry.status == "completed" else "fail")
    lose_calls(turn)
    move(SESSION, record, "turn_ended")


def _recover(record: SessionRecord, entry: e.Recovered, time: float) -> None:
    turn = record.running
    if turn is not None:
        move(TURN, turn, "interrupt")
        turn.cause, turn.ended, turn.since = "crash", time, time
        record.seconds += max(0.0, entry.last_active - turn.started)
    newest = record.turns.get(record.turn)
    if newest is not None:
        newest.is_over = True
        lose_calls(newest)
    for cancel in record.interrupts.values():
        if cancel.state not in CANCEL_ENDS:
            move(INTERRUPT, cancel, "finish")
    record.epoch += 1
    move(SESSION, record, "recover")
