"""The state of a session as data, and the fold that makes it from the journal.

`apply` is the only thing that changes a record, whose parts are immutable. It is pure apart from the
record it is given: the same entries give the same record, in the live program, in recovery and in a
look at an earlier state. Every change of state goes through a machine; an entry that
a machine refuses raises `StoreDamaged`: the ledger then refuses the decision that it is part of, and a
journal that has such an entry is damaged.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, assert_never

from msgspec import Struct, field
from msgspec.structs import replace

from ..machines import protocol as m
from ..machines.context import Fill
from ..machines.conversation import ChatMessage, Usage
from ..machines.delivery import Cause, Relation
from ..machines.errors import StoreDamaged
from ..machines.lifecycles import INTERRUPT, SESSION, TURN
from ..machines.pattern import lazy_pattern
from ..machines.policy import RoutesChoice
from ..machines.value import Value
from . import entries as e
from .child_record import ChildRecord, apply_to_children
from .fold import EntryKinds, moved, remembered
from .goal_record import GoalsRecord, apply_to_goals
from .log import Log
from .queue_record import QueueRecord, apply_to_queue
from .revert_record import RevertRecord, apply_to_reverts, taken_back
from .run_record import RunRecord, apply_to_run
from .turn_facts import TurnFacts
from .turn_record import TURN_ENDS, TurnRecord, apply_to_turn, lose_calls, move_calls, move_turn

T = TypeVar("T")
REMEMBERED_TURNS = 50
REMEMBERED_STOPS = 50
STOP_ENDS = INTERRUPT.final

Stop = (
    e.InterruptPlanned | e.InterruptRequested | e.StopNoted | e.SessionLeaving | e.SessionFinalizing
)
"""The entries that stop work."""
_ORDERED = e.InterruptPlanned | e.InterruptRequested | e.StopNoted


class StopRecord(Value):
    """The outcome of a stop: the receipt of the client that asked for it."""

    id: str
    """Its name: `i1`, `i2`, …"""
    turn: str
    """The turn that it stops; empty where none ran."""
    order: m.StopOrder
    """Who ordered it, and why."""
    state: str = "stopping"
    """A state of the interrupt machine."""
    taken: float = 0.0
    """When it was accepted, in seconds since 1970."""
    told: tuple[str, ...] = field(default_factory=tuple[str, ...])
    """The tool calls and children that were asked to stop."""
    killed: tuple[int, ...] = ()
    """Process ids of what died."""
    survivors: tuple[int, ...] = ()
    """Process ids of what could not be killed."""
    epoch: int = 0
    """The epoch to which it raised the session."""
    reaches: tuple[str, ...] = ()
    """The relations that it reaches, by the delivery table."""
    spares: tuple[str, ...] = ()
    """The children that go on all the same."""
    checkpoint: Mapping[str, Any] | None = None
    """How far the turn was: {done, total, unit}, or none."""
    kept: tuple[str, ...] = field(default_factory=tuple[str, ...])
    """The items that were there when the turn had ended."""


TITLE = 60
"""Characters of a title, at most."""


_PLACE = lazy_pattern(r"https?://[^/@]+/|[.~]{0,2}/")
_QUERY = lazy_pattern(r"[?#]")


def title_of(text: str) -> str:
    """Return the first words of a message on one line, as the title of its session.

    Only whole words: half a key would not be recognized as a secret where the title is shown. Of an
    address or a path that is too long, whole parts.
    """
    words, size = list[str](), 0
    for word in text[: 8 * TITLE].split():
        size += len(word) + 1
        if size > TITLE:
            begin = word if not words and _PLACE.match(word) else ""
            parts = _QUERY.split(begin, maxsplit=1)[0][:TITLE].rpartition("/")
            return " ".join([*words, f"{parts[0]}{parts[1]}…"])
        words.append(word)
    return " ".join(words)


class SessionRecord(Struct, kw_only=True):
    """A whole session, as its journal tells it."""

    id: str = ""
    """Its id."""
    name: str = ""
    """What a person called it."""
    title: str = ""
    """The first words of the first message."""
    folder: str = ""
    """The folder in which it works."""
    forked_from: str = ""
    """The session that it is a fork of, with the entry."""
    imported_from: str = ""
    """The file that it came from."""
    agent: str = ""
    """The agent's name."""
    model: str = ""
    """The model that answers now."""
    system: str = ""
    """The instructions that the model sees."""
    tools: tuple[str, ...] = ()
    """The names of the tools that it sees."""
    parent: str = ""
    """The session that it is a child of."""
    state: str = "idle"
    """A state of the session machine."""
    since: float = 0.0
    """When it came into that state, in seconds since 1970."""
    seq: int = 0
    """The number of its newest entry."""
    created: float = 0.0
    """When it was opened."""
    updated: float = 0.0
    """When its newest entry was made."""
    active: float = 0.0
    """When its newest entry was made that only a program which has it open makes."""
    epoch: int = 0
    """Rises with every turn and every stop."""
    turn: str = ""
    """Its newest turn."""
    turns_made: int = 0
    """The number of its newest turn."""
    turns_before: int = 0
    """How many turns there were in the session that it was forked from: its own are behind them."""
    stopped: Mapping[str, int] = field(default_factory=dict[str, int])
    """By relation, the epoch of its newest stop: what was ordered before does not begin."""
    overtaken: int = 0
    """What one client said, numbered, before the newest stop."""
    receipts: int = 0
    """How many stops it has had."""
    stop_keys: Mapping[str, str] = field(default_factory=dict[str, str])
    """The newest clients' own keys, with the receipts that their stops got."""
    stops: Mapping[str, StopRecord] = field(default_factory=dict[str, StopRecord])
    """The newest receipts, by name."""
    busy_mode: str = ""
    """The busy mode that a person chose; empty: the configured one."""
    is_auto_queue: bool | None = None
    """Whether messages wait; none: as configured."""
    routes: RoutesChoice | None = None
    """The routing table that a person chose."""
    asked_model: str = ""
    """The model that was asked for at its start, for all its agents."""
    chosen_model: str = ""
    """The model that a person chose since."""
    model_name: str = ""
    """What the configuration called the agent's own model at its start; empty: it named none."""
    mode: str = ""
    """The permission mode that a person chose."""
    storages: tuple[str, ...] = ()
    """Where its turns had their copies of files, the newest last; empty: only one place is possible."""
    allowed: tuple[tuple[str, str], ...] = ()
    """Tool and pattern of what is not asked about any more."""
    holds: tuple[tuple[str, str], ...] = ()
    """Tool and pattern of the calls that wait for a person."""
    finalize_cause: str = ""
    """Why it is ended permanently."""
    agent_session: str = ""
    """The id that an agent that is another program has for it."""
    reverts: Mapping[str, RevertRecord] = field(default_factory=dict[str, RevertRecord])
    """Its newest reverts, by name."""
    reverts_made: int = 0
    """How many reverts it has had."""
    usage: Usage = field(default_factory=Usage)
    """What its own model calls took."""
    below: Usage = field(default_factory=Usage)
    """What those of its children took, as far as they have reported it."""
    lost: int = 0
    """Tokens that were sent for answers which never came, as estimated."""
    grants: int = 0
    """How often a person granted its limits once more."""
    seconds: float = 0.0
    """How long its turns ran."""
    turns: Mapping[str, TurnRecord] = field(default_factory=dict[str, TurnRecord])
    """Its newest turns, by name."""
    queue: QueueRecord = field(default_factory=QueueRecord)
    """Its queue."""
    children: Mapping[str, ChildRecord] = field(default_factory=dict[str, ChildRecord])
    """Its newest children, by name."""
    children_made: int = 0
    """How many children it has had."""
    goals: GoalsRecord = field(default_factory=GoalsRecord)
    """Its goals."""
    run: RunRecord | None = None
    """The workflow's run, in a session whose turn is one."""
    seeded: int = 0
    """Messages of its conversation that it had before its first word."""
    spoken: int = 0
    """Messages of the conversation, ever."""
    fill: Fill = field(default_factory=Fill)
    """What the newest answer says of the window, at so many messages as were `spoken` then."""
    conversation: Log[ChatMessage] = field(default_factory=Log[ChatMessage])
    """What the model sees; empty where only the rest was read."""
    origins: Log[int] = field(default_factory=Log[int])
    """For each message of the conversation, the number of the entry that holds it."""

    @property
    def whole_usage(self) -> Usage:
        """The usage of the session and its children."""
        return self.usage + self.below

    @property
    def wanted_model(self) -> str:
        """The model that people want in place of the agent's own; empty: that."""
        return self.chosen_model or self.asked_model

    @property
    def is_quiet(self) -> bool:
        """Whether nothing runs in it or its children, no revert is left, and no item will run."""
        if self.state in ("suspended", "finalized"):
            return True
        works = any(child.is_at_work for child in self.children.values())
        works |= any(revert.is_open for revert in self.reverts.values())
        goes_on = self.goals.is_pursued and not self.queue.waiting_count
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

    @property
    def asked(self) -> tuple[str, ...]:
        """The questions of the running turn and of the run that wait for a person."""
        turn, of_run = self.running, tuple(self.run.questions) if self.run is not None else ()
        if turn is None:
            return of_run
        paused = (turn.question,) if turn.state == "paused" else ()
        calls = turn.calls.values()
        return (*of_run, *paused, *(call.question for call in calls if call.state == "asking"))

    @property
    def asking(self) -> int:
        """How many they are."""
        return len(self.asked)


def messages_of(entry: e.Entry) -> tuple[ChatMessage, ...]:
    """Return what an entry holds of the conversation."""
    return getattr(entry, "messages", ())


def grown(known: Log[T], entry: e.Entry, more: Sequence[T]) -> Log[T]:
    """Return a conversation, or what is known of each of its messages, with `more` from an entry."""
    if isinstance(entry, e.Compacted):
        return Log((*more, *known[entry.dropped :]))
    return known.extended(more)


def forget_conversation(record: SessionRecord) -> None:
    """Keep only how many messages there were, for a reader who goes through a long journal."""
    record.conversation, record.origins = Log(), Log()


def without_conversation(record: SessionRecord) -> SessionRecord:
    """Return a copy of a record that has everything but the conversation."""
    return replace(record, conversation=Log(), origins=Log())


_WORK = (e.RunEntry, e.TurnEntry, e.ChildEntry)
_ENDS = (e.TurnEnded, e.ChildEnded)  # also of work that a person discards while no program is there
_OF_LOST_CHILD = EntryKinds[e.ChildInterrupted | e.ChildEnded](e.ChildInterrupted | e.ChildEnded)


def _is_look(record: SessionRecord, entry: e.Entry) -> bool:
    """Whether an entry is of a revert that only looks: nobody has worked in the session by that."""
    if not isinstance(entry, e.RevertEntry):
        return False
    known = record.reverts.get(entry.id)
    asked = known.asked if known is not None else entry
    return isinstance(asked, e.RevertAsked) and asked.is_dry_run


def apply(record: SessionRecord, entry: e.Entry, seq: int, time: float) -> None:
    """Fold one entry into the record: assign its fields, and change nothing that they refer to.

    So a shallow copy made before is the version before. Raises `StoreDamaged` if a machine refuses
    the entry; the record is then of no more use, the copy is.
    """
    if seq != record.seq + 1:
        raise StoreDamaged(f"entry {seq} follows entry {record.seq}: the journal has a gap")
    record.seq = seq
    record.updated = record.updated if _is_look(record, entry) else time
    if isinstance(entry, _WORK) and not isinstance(entry, _ENDS):
        record.active = time
    if record.run is not None:
        record.run = apply_to_run(record.run, entry, time)
    if isinstance(entry, e.RunEntry):
        return  # most of a large run's journal, and folded nowhere else
    state = record.state
    record.queue = apply_to_queue(record.queue, entry, time)
    if _OF_LOST_CHILD.include(entry):
        record.below += entry.usage - record.children[entry.child].usage
    record.children = apply_to_children(record.children, entry, time)
    record.reverts = apply_to_reverts(record.reverts, entry)
    record.goals = apply_to_goals(record.goals, entry, time)
    _apply_to_session(record, entry, time)
    turn = record.turns.get(getattr(entry, "turn", ""))
    if turn is not None:
        _put_turn(record, apply_to_turn(turn, entry, time))
    if record.state != state:
        record.since = time
    said = messages_of(entry)
    if said or isinstance(entry, e.Compacted):
        record.conversation = grown(record.conversation, entry, said)
        record.origins = grown(record.origins, entry, [seq] * len(said))
        record.spoken += 0 if isinstance(entry, e.Compacted) else len(said)


_OfTurn = (
    e.TurnStarted
    | e.Answered
    | e.AnswerCut
    | e.Compacted
    | e.TurnEnded
    | e.Interrupted
    | e.Stopped
    | e.LateResult
)
_Folded = (
    e.AnySessionEntry
    | _OfTurn
    | e.Queued
    | e.ChildStarted
    | e.ChildCancelled
    | e.ChildInterrupted
    | e.ChildEnded
    | e.GoalJudged
    | e.GoalSet
    | e.RevertAsked
)
_FOLDED = EntryKinds[_Folded](_Folded)


def _apply_to_session(record: SessionRecord, entry: e.Entry, time: float) -> None:
    if not _FOLDED.include(entry):
        return
    match entry:
        case e.SessionOpened():
            record.id, record.folder = entry.session, entry.folder
            record.agent, record.model = entry.agent, entry.model
            record.asked_model, record.model_name = entry.asked_model, entry.model_name
            record.system, record.tools = entry.system, entry.tools
            record.parent, record.created, record.since = entry.parent, time, time
            record.imported_from = entry.imported_from
            record.seeded, record.forked_from = len(entry.messages), entry.forked_from
            record.turns_made = record.turns_before = entry.turns
            record.run = RunRecord(workflow=entry.workflow) if entry.workflow is not None else None
        case e.SessionRenamed():
            record.name = entry.name
        case e.SessionResumed():
            record.overtaken = 0
            record.state = moved(SESSION, record.state, "resume")
        case e.SessionLeaving():
            record.state = moved(SESSION, record.state, "suspend")
            _raise_epoch(record, entry)
        case e.SessionSuspended() | e.SessionFinalized():
            record.state = moved(SESSION, record.state, "settle")
        case e.SessionFinalizing():
            record.finalize_cause = entry.cause
            record.state = moved(SESSION, record.state, "finalize")
            _raise_epoch(record, entry)
        case e.Recovered():
            _recover(record, entry, time)
        case e.PolicyChanged():
            record.busy_mode = entry.busy_mode or record.busy_mode
            if entry.is_auto_queue is not None:
                record.is_auto_queue = entry.is_auto_queue
            record.routes = entry.routes or record.routes
            record.chosen_model = entry.model or record.chosen_model
            record.model = entry.label or entry.model or record.model
            record.system = entry.system or record.system
            record.tools = record.tools if entry.tools is None else entry.tools
            record.mode = entry.mode or record.mode
            record.holds = record.holds if entry.holds is None else entry.holds
        case e.AllowanceGiven() | e.AllowanceForgotten():
            allowance = (entry.tool, entry.pattern)
            others = tuple(known for known in record.allowed if known != allowance)
            is_given = isinstance(entry, e.AllowanceGiven)
            record.allowed = (*others, allowance) if is_given else others
        case e.LimitsGranted():
            record.grants += 1
        case e.AgentSessionKnown():
            record.agent_session = entry.session
        case e.HookRan():
            pass  # for people that ask for the outcome; it changes no state
        case e.InterruptPlanned():
            _take_stop(record, entry, time)
        case e.InterruptRequested():
            _take_stop(record, entry, time)
            if entry.turn:
                record.state = moved(SESSION, record.state, "interrupt")
        case e.InterruptCalledOff():
            stop = _move_stop(record.stops[entry.receipt], "call_off")
            record.stops = {**record.stops, stop.id: stop}
        case e.StopNoted():
            _raise_epoch(record, entry)
        case e.TurnEntry():
            _apply_turn(record, entry, time)
        case e.Queued():
            if entry.item_kind in (m.ItemKind.MESSAGE, m.ItemKind.GOAL):
                record.title = record.title or title_of(entry.said.text)
        case e.GoalSet():
            record.title = record.title or title_of(entry.text)
        case e.ChildStarted():
            _start_child(record, entry)
        case e.ChildCancelled():
            _cancel_child(record, entry)
        case e.ChildInterrupted() | e.ChildEnded():
            _tell_of_dead_child(record, entry)
        case e.GoalJudged():
            record.usage += entry.usage
        case e.RevertAsked():
            record.reverts_made += 1
        case _:
            assert_never(entry)


def _apply_turn(record: SessionRecord, entry: _OfTurn, time: float) -> None:
    """Fold what a turn does to its session: its start and end, what it used, what it summed up."""
    match entry:
        case e.TurnStarted():
            _start_turn(record, entry, time)
        case e.Answered():
            if entry.turn in record.turns:
                record.usage += entry.usage
                if entry.usage.input:
                    record.fill = Fill(tokens=entry.usage.tokens, messages=record.spoken + 1)
        case e.AnswerCut():
            _count_lost(record, entry.turn)
        case e.Compacted():
            record.usage += entry.usage
            record.fill = Fill()
            record.seeded = len(entry.messages) + max(0, record.seeded - entry.dropped)
        case e.TurnEnded() | e.Interrupted():
            _end_turn(record, entry, time)
        case e.Stopped():
            if entry.turn:
                _end_turn(record, entry, time)
            else:
                _follow_stops(record, "", (), entry)
        case e.LateResult():
            record.usage += entry.usage
        case _:
            assert_never(entry)


def _count_lost(record: SessionRecord, turn: str) -> None:
    """Count what was sent and is not answered; the turn itself forgets it."""
    if turn in record.turns:
        record.lost += record.turns[turn].sent


def _put_turn(record: SessionRecord, turn: TurnRecord) -> None:
    if record.turns.get(turn.id) is not turn:
        record.turns = {**record.turns, turn.id: turn}


def _start_turn(record: SessionRecord, entry: e.TurnStarted, time: float) -> None:
    record.state = moved(SESSION, record.state, "turn_started")
    record.epoch, record.turn = entry.epoch, entry.turn
    record.turns_made += 1
    if entry.storage:
        others = (name for name in record.storages if name != entry.storage)
        record.storages = (*others, entry.storage)
    turns = {name: replace(turn, calls={}) for name, turn in record.turns.items() if turn.calls}
    turns = {**record.turns, **turns}
    turns[entry.turn] = TurnRecord(
        id=entry.turn,
        item=entry.item,
        number=entry.number,
        started=time,
        since=time,
        resumes=entry.resumes,
        epoch=entry.epoch,
        ancestors=entry.ancestors,
        facts=_facts_before(record, entry.resumes),
    )
    while len(turns) > REMEMBERED_TURNS:
        del turns[next(iter(turns))]
    record.turns = turns


def _facts_before(record: SessionRecord, resumed: str) -> TurnFacts:
    """Return what is known of the turn that one goes on from: both are one piece of work."""
    if resumed not in record.turns:
        return TurnFacts()
    return record.turns[resumed].facts.resumed(taken_back(record.reverts, resumed))


def _end_turn(
    record: SessionRecord, entry: e.TurnEnded | e.Interrupted | e.Stopped, time: float
) -> None:
    turn = record.turns[entry.turn]
    if isinstance(entry, e.Interrupted):
        _interrupt_turn(record, turn, entry, time)
        return
    _follow_stops(record, turn.id, (), entry)
    if isinstance(entry, e.Stopped):
        _put_turn(record, replace(turn, is_over=True))
        record.state = moved(SESSION, record.state, "stopped")
        return
    record.seconds += max(0.0, time - turn.started)
    state = turn.state
    if state not in TURN_ENDS:  # its actor may have died, in any state
        state = moved(TURN, state, "finish" if entry.status == "completed" else "fail")
    ends = {"is_over": True, "ended": time, "since": time, "reason": entry.reason}
    _put_turn(record, lose_calls(replace(turn, state=state, **ends)))
    record.state = moved(SESSION, record.state, "turn_ended")


def _interrupt_turn(
    record: SessionRecord, turn: TurnRecord, entry: e.Interrupted, time: float
) -> None:
    record.lost += turn.sent
    record.seconds += max(0.0, time - turn.started)
    ends: dict[str, Any] = {
        "is_over": False,
        "ended": time,
        "since": time,
        "cause": entry.cause,
        "sent": 0,
        "until": 0.0,
    }
    turn = move_calls(move_turn(turn, "interrupt", time, **ends), "stop")
    _put_turn(record, turn)
    told = [call.id for call in turn.calls.values() if call.state == "stopping"]
    _follow_stops(record, turn.id, told, entry)


def _start_child(record: SessionRecord, entry: e.ChildStarted) -> None:
    """Count a child; one that was ordered before a stop that reaches it is cancelled from the start."""
    record.children_made += 1
    stopped = record.stopped.get(entry.relation, 0)
    if entry.epoch < stopped:
        by = next((stop for stop in record.stops.values() if stop.epoch == stopped), None)
        child = replace(
            record.children[entry.child],
            stopped=stopped,
            stopped_by=by.id if by is not None else "",
            stop_cause=by.order.cause if by is not None else Cause.PARENT,
        )
        record.children = {**record.children, child.name: child}


def _cancel_child(record: SessionRecord, entry: e.ChildCancelled) -> None:
    """Mark a child that is stopped by its name: what it was ordered before does not go on."""
    _tell_of_child(record, entry)
    child = record.children[entry.child]
    if child.stopped <= child.epoch or (child.is_patient and not entry.receipt):
        record.epoch += 1
        child = replace(child, stopped=record.epoch, stop_cause=entry.cause, is_patient=False)
        record.children = {**record.children, child.name: child}


def _recover(record: SessionRecord, entry: e.Recovered, time: float) -> None:
    _count_lost(record, record.turn)
    turn = record.running
    if turn is not None:
        ended = max(turn.started, entry.last_active)
        ends: dict[str, Any] = {"cause": "crash", "ended": ended, "since": time}
        _put_turn(record, move_turn(turn, "interrupt", time, **ends))
        record.seconds += ended - turn.started
    newest = record.turns.get(record.turn)
    if newest is not None:
        _put_turn(record, lose_calls(replace(newest, is_over=True, sent=0), entry.found))
    _finish_stops(record)
    record.overtaken = 0
    record.epoch += 1
    record.stopped = dict.fromkeys(Relation, record.epoch)
    record.state = moved(SESSION, record.state, "recover")


# Receipts of stops -------------------------------------------------------------------------------


def _take_stop(
    record: SessionRecord, entry: e.InterruptPlanned | e.InterruptRequested, time: float
) -> None:
    """Write the receipt; one that was planned has it already."""
    is_planned = isinstance(entry, e.InterruptPlanned)
    _raise_epoch(record, entry, entry.receipt)
    known = record.stops.get(entry.receipt)
    if known is not None:
        effective = {"epoch": record.epoch, "reaches": (*known.reaches, *entry.reaches)}
        known = _move_stop(known, "take_effect", **effective)
        record.stops = {**record.stops, known.id: known}
        return
    record.receipts += 1
    if key := entry.order.said.client_id:
        record.stop_keys = remembered(record.stop_keys, key, entry.receipt)
    stop = StopRecord(
        id=entry.receipt,
        turn=entry.turn,
        order=entry.order,
        state=INTERRUPT.initial
        if is_planned
        else moved(INTERRUPT, INTERRUPT.initial, "take_effect"),
        taken=time,
        epoch=record.epoch,
        reaches=entry.reaches,
        spares=entry.spares,
    )
    receipts = {
        name: _move_stop(earlier, "overtake") if earlier.state == "planned" else earlier
        for name, earlier in record.stops.items()
    }
    receipts[stop.id] = stop
    while len(receipts) > REMEMBERED_STOPS:
        del receipts[next(iter(receipts))]
    record.stops = receipts


def _raise_epoch(record: SessionRecord, entry: Stop, receipt: str = "") -> None:
    """Mark the relations that a stop reaches: no effect ordered before it begins any more."""
    record.epoch += 1
    record.stopped = {**record.stopped, **dict.fromkeys(entry.reaches, record.epoch)}
    if isinstance(entry, _ORDERED):
        record.overtaken = max(record.overtaken, entry.order.utterance)
    spared = getattr(entry, "spares", ())
    reached = {
        name: _reach_child(record, child, entry, receipt)
        for name, child in record.children.items()
        if child.is_at_work and child.relation in entry.reaches and name not in spared
    }
    if reached:
        record.children = {**record.children, **reached}


def _reach_child(
    record: SessionRecord, child: ChildRecord, entry: Stop, receipt: str
) -> ChildRecord:
    """Mark a child that a stop reaches; one that was marked before only if this one is now.

    What dies with it is on the newest receipt that is not overtaken.
    """
    is_patient = child.relation in getattr(entry, "patient", ())
    if child.stopped <= child.epoch or (child.is_patient and not is_patient):
        return replace(
            child,
            stopped=record.epoch,
            stopped_by=receipt,
            stop_cause=entry.cause,
            is_patient=is_patient,
        )
    by = record.stops.get(child.stopped_by)
    if receipt and by is not None and by.state == "planned" and by.id != receipt:
        return replace(child, stopped_by=receipt)
    return child


def _move_stop(stop: StopRecord, event: str, **changes: Any) -> StopRecord:
    """Return a receipt after an event. Raises `StoreDamaged` when its machine refuses."""
    return replace(stop, state=moved(INTERRUPT, stop.state, event), **changes)


def _follow_stops(
    record: SessionRecord,
    turn: str,
    stopping: Sequence[str],
    entry: e.TurnEnded | e.Interrupted | e.Stopped,
) -> None:
    """Add to the receipts of a turn what its end shows; `stopping` are the calls that were stopped."""
    followed: dict[str, StopRecord] = {}
    for name, stop in record.stops.items():
        if stop.turn != turn or stop.state in STOP_ENDS:
            continue
        if isinstance(entry, e.Stopped) and entry.receipt not in ("", name):
            continue
        match entry:
            case e.TurnEnded():
                followed[name] = _move_stop(stop, "overtake")
            case e.Interrupted():
                followed[name] = replace(
                    stop,
                    checkpoint=entry.checkpoint,
                    kept=tuple(record.queue.order),
                    told=(*stop.told, *stopping),
                )
            case e.Stopped():
                ends = {"killed": entry.killed, "survivors": entry.survivors}
                followed[name] = _move_stop(stop, "finish", **ends)
    if followed:
        record.stops = {**record.stops, **followed}


def _finish_stops(record: SessionRecord) -> None:
    """End the receipts of a session whose owner has died: nothing that it ran is left."""
    record.stops = {
        name: stop if stop.state in STOP_ENDS else _move_stop(stop, "finish")
        for name, stop in record.stops.items()
    }


def _tell_of_dead_child(record: SessionRecord, entry: e.ChildInterrupted | e.ChildEnded) -> None:
    """Add to a receipt what was killed with a child that the stop reached.

    One that another stop has overtaken counts, too: what it killed is told at the end of the turn.
    """
    child = record.children[entry.child]
    stop = record.stops.get(child.stopped_by)
    if stop is None or stop.state == "stopped" or not (entry.killed or entry.survivors):
        return
    killed, survivors = (*stop.killed, *entry.killed), (*stop.survivors, *entry.survivors)
    stop = replace(stop, killed=killed, survivors=survivors)
    record.stops = {**record.stops, stop.id: stop}


def _tell_of_child(record: SessionRecord, entry: e.ChildCancelled) -> None:
    """Add to a receipt a child that was asked to end."""
    stop = record.stops.get(entry.receipt)
    if stop is not None:
        stop = replace(stop, told=(*stop.told, entry.child))
        record.stops = {**record.stops, stop.id: stop}
