"""Translates the entries of a session's journal into the events of the contract.

An entry is translated when it is folded, with the record as it is then; its events are published when
it is durable. Transient events, which are not journalled, are published at once, with `seq` null.

Each family of entries has a function that handles every entry of it but those that say themselves that
they have no event (`NoEvent`), so that the type checker names the function that forgot a new entry.
Goals and runs also have events of their own for entries of other families: see `of_goal` and `of_run`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, assert_never

from ...actors.decisions.queries import replaced_first
from ...actors.environment import Publication
from ...journal import entries as e
from ...journal.child_record import ChildRecord
from ...journal.queue_record import ItemRecord, QueueRecord
from ...journal.record import SessionRecord
from ...journal.revert_record import beside
from ...journal.turn_facts import TurnFacts, written
from ...journal.turn_record import CallRecord
from ...machines import protocol as m
from ...machines.conversation import Usage
from ...machines.delivery import Cause
from ...machines.form import FORM
from ..wording.acknowledgement import accepted
from ..wording.formats import iso, one_line, resumable_line
from . import compaction
from . import contract as c
from .child import of_child, steered
from .goal import of_goal
from .run import of_run

TASK = 60
"""Columns of a subagent's task in a notice."""
WHOLE_QUEUE = 50
"""Messages up to which each event has the whole queue."""


def item_view(item: ItemRecord, *, is_held: bool) -> c.QueueItem:
    """Return a queue item for programs: an offered one with its answer, a steer with its children."""
    view = c.QueueItem(
        id=item.id,
        number=item.number,
        state=item.state,
        text=item.text,
        progress=_progress(item.progress),
        user=item.said.user,
    )
    if item.state == "offered" and item.answer:
        view["answer"] = item.answer
    if item.state == "offered" and not item.answer and item.wants:
        view["wants"] = item.wants
    if item.is_stopped:
        view["stopped"] = True
    if item.state == "pending" and item.for_turn:
        view["turn"] = item.for_turn
    if item.for_children:
        view["children"] = list(item.for_children)
    if item.goal:
        view["goal"] = item.goal
    if item.state == "interrupted" and item.is_next:
        view["next"] = True
    if is_held:
        view["held"] = True
    if item.editor:
        view["edited"] = True
    if item.is_reverted and item.state in ("interrupted", "superseded"):
        view["reverted"] = True
    return view


def _is_held(queue: QueueRecord, item: ItemRecord) -> bool:
    """Whether a message waits for a person's word; a steer does when its turn was stopped."""
    if item.state != "pending" or not item.is_steer:
        return queue.holds(item)
    begun = queue.special()
    cut_off = (*(one for one in begun if one.state == "interrupted"), *queue.superseded())
    if any(one.turn == item.for_turn for one in cut_off if one.turn):
        return True
    return queue.state == "held" and all(one.state != "running" for one in begun)


def queue_view(
    queue: QueueRecord, turn: str, helpers: Sequence[ChildRecord], *, is_all: bool = False
) -> c.QueueView:
    """Return a queue as programs see it: the live items, in order; `is_all`: what is set aside, too.

    `turn` is the session's newest, `helpers` are the subagents that work beside its turns.
    """
    shown = [*queue.live(), *(queue.aside() if is_all else ())]
    items = [item_view(item, is_held=_is_held(queue, item)) for item in shown]
    view = c.QueueView(state=queue.state, items=items)
    if (again := replaced_first(queue, turn)) is not None:
        view["again"] = again.number
    if stopped := [child.name for child in helpers if child.state == "interrupted"]:
        view["children"] = stopped
    return view


def queue_of(record: SessionRecord, *, is_all: bool = False) -> c.QueueView:
    """Return the queue of a session as programs see it."""
    helpers = beside(record.children, record.reverts)
    return queue_view(record.queue, record.turn, helpers, is_all=is_all)


def calls_in(record: SessionRecord, *states: str) -> list[c.ToolCallView]:
    """List the tool calls of the newest turn that are in one of these states.

    Those whose subagent goes on with them are left out.
    """
    children = record.children.values()
    theirs = {of.call for of in children if of.goes_on}
    return _calls(record, lambda call: call.state in states and call.id not in theirs)


def _calls(record: SessionRecord, is_meant: Callable[[CallRecord], bool]) -> list[c.ToolCallView]:
    turn = record.turns.get(record.turn)
    return [
        c.ToolCallView(call=call.id, tool=call.tool, arguments=call.arguments)
        for call in (turn.calls.values() if turn else ())
        if is_meant(call)
    ]


def usage_view(usage: Usage) -> c.Tokens:
    """Return the tokens of a usage as programs see them."""
    return c.Tokens(
        input=usage.input,
        output=usage.output,
        cache_read=usage.cache_read,
        cache_write=usage.cache_write,
        reasoning=usage.reasoning,
        cost=round(usage.cost, 6),
    )


def _progress(progress: Mapping[str, Any] | None) -> c.Progress | None:
    if progress is None:
        return None
    return c.Progress(done=progress["done"], total=progress["total"], unit=progress["unit"])


class EventPublisher:
    """Publishes one session's entries as events; `publish` must not block."""

    def __init__(
        self,
        session: str,
        publish: Callable[[c.Event], None],
        now: Callable[[], float],
        parent: str = "",
    ) -> None:
        self.publish = publish
        self._session = session
        self._parent = parent
        self._now = now

    def observe_entry(
        self, entry: e.Entry, seq: int, time: float, record: SessionRecord
    ) -> Publication | None:
        """Translate an entry, with the record as it is with this entry folded."""
        events = translate(entry, record, self._stamp(seq, time))

        def publish() -> None:
            for event in events:
                self.publish(event)

        return publish if events else None

    def observe_fact(self, fact: m.Fact) -> None:
        """Publish a transient event."""
        self.publish(_of_fact(fact, self.stamp()))

    def stamp(self) -> c.Stamp:
        """Return the first fields of an event that is not journalled, such as a command's result."""
        return self._stamp(None, self._now())

    def notice(self, text: str, client_id: str = "") -> None:
        """Publish a notice; `client_id` is the key of a line that it repeats."""
        event = c.notice(self.stamp(), text)
        if client_id:
            event["client_id"] = client_id
        self.publish(event)

    def error(self, code: str, text: str, hint: str, client_id: str | None = None) -> None:
        """Publish an error; `client_id` is the key of the line that it is about."""
        event = c.ErrorEvent(type="error", **self.stamp(), code=code, text=text, hint=hint)
        if client_id is not None:
            event["client_id"] = client_id
        self.publish(event)

    def replaced(self, by: str) -> None:
        """Publish that the program goes on in another session."""
        self.publish(c.SessionReplacedEvent(type="session_replaced", **self.stamp(), by=by))

    def rejected(self, reason: str, text: str, client_id: str, hint: str) -> None:
        """Publish that a message was not accepted, with its text."""
        self.publish(self.rejection(reason, text, client_id, hint))

    def rejection(self, reason: str, text: str, client_id: str, hint: str) -> c.RejectedEvent:
        """Return the event that says that a message was not accepted."""
        return c.RejectedEvent(
            type="rejected",
            **self.stamp(),
            reason=reason,
            text=text,
            client_id=client_id or None,
            hint=hint,
        )

    def _stamp(self, seq: int | None, time: float) -> c.Stamp:
        stamp = c.Stamp(seq=seq, time=iso(time), session=self._session)
        if self._parent:
            stamp["parent"] = self._parent
        return stamp


def translate(entry: e.Entry, record: SessionRecord, at: c.Stamp) -> list[c.Event]:
    """Return the events of one entry, in order; many entries have one, some none."""
    events: list[c.Event]
    match entry:
        case e.TurnEntry():
            events = _of_turn(entry, record, at)
        case e.QueueEntry():
            events = _of_queue(entry, record, at)
        case e.SessionEntry():
            events = _of_session(entry, record, at)
        case e.ChildEntry():
            events = of_child(entry, record, at)
        case e.RevertEntry():
            events = compaction.of_revert(entry, record, at)
        case e.GoalEntry() | e.RunEntry():
            events = []  # `of_goal` and `of_run` have them
        case _:
            assert_never(entry)
    events += of_goal(entry, record.goals, at)
    if record.run is not None:
        events += of_run(entry, record, record.run, at)
    if (changed := queue_event(entry, record, at)) is not None:
        events.append(changed)
    return events


def queue_event(
    entry: e.Entry, record: SessionRecord, at: c.Stamp, longest: int = WHOLE_QUEUE
) -> c.QueueEvent | None:
    """Return the event of a queue that an entry has changed: the whole up to the `longest`."""
    queue, names = record.queue, _concerned(entry, record)
    if names is None:
        return None
    if names == "all" or len(queue.order) <= longest:
        return whole_queue(queue, record.turn, beside(record.children, record.reverts), at)
    places = {name: queue.place(name) for name in names if queue.is_live(name)}
    items = [queue.items[name] for name in sorted(places, key=lambda name: places[name])]
    changed = [
        c.ChangedItem(**item_view(item, is_held=_is_held(queue, item)), place=places[item.id])
        for item in items
    ]
    removed = [name for name in names if name not in places]
    return c.QueueEvent(
        type="queue",
        **at,
        state=queue.state,
        count=len(queue.order),
        changed=changed,
        removed=removed,
    )


def whole_queue(
    queue: QueueRecord, turn: str, helpers: Sequence[ChildRecord], at: c.Stamp
) -> c.QueueEvent:
    """Return the event of a queue with all its messages, and how much beside them can go on."""
    view = queue_view(queue, turn, helpers)
    event = c.QueueEvent(type="queue", **at, count=len(queue.order), **view)
    resumable = sum(not item.for_turn for item in queue.aside()) + len(view.get("children", ()))
    if resumable:
        event["resumable"] = resumable
    return event


def _concerned(entry: e.Entry, record: SessionRecord) -> list[str] | Literal["all"] | None:
    """Name the items that an entry changed, removed or put back; none if it concerns no queue."""
    match entry:
        case e.Steered():
            return list(entry.items)
        case e.Deferred():
            return [entry.new_item]
        case e.TurnStarted():
            return [entry.item, *_steers_for(entry.turn, record)]
        case e.TurnEnded():
            return [record.turns[entry.turn].item]
        case e.Interrupted():
            return [record.turns[entry.turn].item, *_steers_for(entry.turn, record)]
        case e.ChildInterrupted() | e.ChildResumed():
            return [item.id for item in record.queue.special() if item.child == entry.child]
        case e.Withdrawn() | e.Requeued():
            item = record.queue.items.get(entry.item)
            if item is None:  # it is forgotten already, and so is the turn that it had
                return "all"
            return [entry.item, *(_steers_for(item.turn, record) if item.turn else ())]
        case e.QueueHeld() | e.QueueReleased() | e.Recovered():
            return "all"
        case e.SessionResumed() if record.queue.aside():
            return "all"
        case e.Reverted() if any(
            child.state == "interrupted" for child in record.children.values()
        ):
            return "all"  # one whose turn's files were taken back does not go on, or does again
        case e.QueueEntry():
            return [entry.item]
        case _:
            return None


def _steers_for(turn: str, record: SessionRecord) -> list[str]:
    """Name the steers that wait for a turn, also where they were put aside with it."""
    return [item.id for item in record.queue.apart() if item.for_turn == turn]


def _of_session(entry: e.AnySessionEntry, record: SessionRecord, at: c.Stamp) -> list[c.Event]:
    match entry:
        case e.SessionOpened():
            return [_started(record, at, is_resumed=False)]
        case e.SessionResumed():
            return _resumed(record, at)
        case e.PolicyChanged():
            return _mode(entry.mode, at)
        case e.SessionSuspended():
            return [c.SessionSuspendedEvent(type="session_suspended", **at)]
        case e.SessionFinalized():
            name, cause = entry.finalize, entry.cause
            return [c.SessionFinalizedEvent(type="session_finalized", **at, id=name, cause=cause)]
        case e.Recovered():
            return _recovered(entry, record, at)
        case e.LimitsGranted():
            return [compaction.of_limits(entry, at)]
        case e.InterruptPlanned() | e.InterruptRequested():
            return _of_stop(entry, at)
        case e.InterruptCalledOff():
            return [c.notice(at, "The stop is cancelled: the turn continues.")]
        case e.NoEvent():
            return []
        case _:
            assert_never(entry)


def _of_queue(entry: e.AnyQueueEntry, record: SessionRecord, at: c.Stamp) -> list[c.Event]:
    match entry:
        case e.Queued(item_kind=m.ItemKind.MESSAGE):
            interrupts = entry.routed.said_as == "interrupt"
            running = [item for item in record.queue.special() if item.state == "running"]
            replaced = running[0] if running and interrupts else None
            event = accepted(
                at,
                id=entry.item,
                number=entry.number,
                position=entry.position,
                said=entry.said,
                routed=entry.routed,
                children=entry.for_children,
                replaces=replaced,
                steers=record.queue.steers_for(replaced.turn) if replaced is not None else (),
            )
            return [event, *compaction.attachment_events(entry.said.attached, at)]
        case e.Edited():
            return compaction.attachment_events(entry.said.attached, at)
        case e.Requeued() | e.Deferred():
            waits = entry.new_item if isinstance(entry, e.Deferred) else entry.item
            name, why, number = entry.item, entry.why, record.queue.items[waits].number
            return [
                c.RequeuedEvent(type="requeued", **at, id=name, why=why, item=waits, number=number)
            ]
        case e.Steered():
            return [steered(record.queue, item, entry.turn, entry.step, at) for item in entry.items]
        case e.Offered() | e.SteerArrived():
            return of_child(entry, record, at)
        case e.Queued() | e.NoEvent():  # queued by a child or for a goal: no message of a person
            return []
        case _:
            assert_never(entry)


def _of_turn(entry: e.AnyTurnEntry, record: SessionRecord, at: c.Stamp) -> list[c.Event]:
    match entry:
        case e.TurnStarted():
            return [
                c.TurnStartedEvent(
                    type="turn_started", **at, turn=entry.turn, item=entry.item, number=entry.number
                )
            ]
        case e.ModelCallFailed():
            return [_failure(entry, "model_failed", at)]
        case e.TurnEnded():
            ended = _turn_ended(entry.turn, entry.status, record, at)
            is_told = record.turns[entry.turn].is_spent or record.run is not None
            is_told = is_told or entry.status != "failed"
            return [ended] if is_told else [_failure(entry, "turn_failed", at), ended]
        case e.Interrupted():
            interrupted = c.InterruptedEvent(
                type="interrupted",
                **at,
                turn=entry.turn,
                cause=entry.cause,
                checkpoint=_progress(entry.checkpoint),
            )
            its = [item.number for item in record.queue.superseded() if item.turn == entry.turn]
            if its:
                interrupted["replaced"] = its[0]
            return [interrupted, _turn_ended(entry.turn, "interrupted", record, at)]
        case e.Stopped():
            return [
                c.StoppedEvent(
                    type="stopped",
                    **at,
                    turn=entry.turn or None,
                    killed=list(entry.killed),
                    survivors=list(entry.survivors),
                )
            ]
        case e.ProgressMade():
            return [
                c.ProgressEvent(
                    type="progress",
                    **at,
                    turn=entry.turn,
                    done=entry.done,
                    total=entry.total,
                    unit=entry.unit,
                )
            ]
        case e.QuestionAsked():
            return [question_asked(entry, at)]
        case e.QuestionAnswered():
            answered = c.AnsweredEvent(
                type="answered", **at, id=entry.question, turn=entry.turn, choice=entry.choice
            )
            if entry.user:
                answered["user"] = entry.user
            if entry.rule:
                answered["rule"] = entry.rule
            return [answered]
        case e.ToolIntended():
            return [tool_started(entry, at)]
        case e.ToolEnded():
            return [call_ended(entry, at)]
        case e.ToolRefused():
            refused, turn = call_ended(entry, at), record.turns.get(entry.turn)
            if turn is not None and entry.call in turn.calls:
                refused["arguments"] = turn.calls[entry.call].arguments
            return [refused]
        case e.LimitReached():
            return [compaction.of_limits(entry, at)]
        case e.ModelAwaited():
            return [compaction.of_provider(entry, at)]
        case e.NoProgress():
            return compaction.of_no_progress(entry, at)
        case e.ClaimDoubted():
            text = f"The answer does not fit the facts, {entry.fact}: the model was told."
            return [c.notice(at, text)]
        case e.CompactionBegun() | e.Compacted():
            return compaction.of_compaction(entry, at)
        case e.Answered() | e.AnswerCut():
            return [*answer_event(entry, at)]
        case e.NoEvent():
            return []
        case _:
            assert_never(entry)


def answer_event(entry: e.Answered | e.AnswerCut, at: c.Stamp) -> list[c.AnswerEvent]:
    """Return the event with the whole text of an answer; none of one that only calls tools."""
    text = "".join(said.text for said in entry.messages if said.role == "assistant")
    if not text:
        return []
    return [c.AnswerEvent(type="answer", **at, turn=entry.turn, step=entry.step, text=text)]


def question_asked(entry: e.QuestionAsked, at: c.Stamp) -> c.PermissionQuestionEvent:
    """Return the event of a question about a tool call."""
    kind: Literal["permission", "hold", "form"] = "hold" if entry.is_hold else "permission"
    options: tuple[str, ...] = m.CHOICES_OF_HOLD if entry.is_hold else m.CHOICES
    if entry.tool == FORM:
        kind, options = "form", m.CHOICES_OF_FORM
    return c.PermissionQuestionEvent(
        type="question",
        **at,
        id=entry.question,
        kind=kind,
        tool=entry.tool,
        arguments=entry.arguments,
        options=[*options],
        rule=entry.rule or None,
        source=entry.source or None,
        outside=entry.is_outside,
        why=entry.why or None,
    )


def tool_started(entry: e.ToolIntended, at: c.Stamp) -> c.ToolStartedEvent:
    """Return the event of a tool call that begins."""
    return c.ToolStartedEvent(
        type="tool_started",
        **at,
        turn=entry.turn,
        call=entry.call,
        tool=entry.tool,
        arguments=entry.arguments,
    )


def call_ended(entry: e.ToolEnded | e.ToolRefused, at: c.Stamp) -> c.ToolEndedEvent:
    """Return the event of a tool call that has ended, or was refused."""
    lines, output = compaction.output_of(entry)
    end = entry.end if isinstance(entry, e.ToolEnded) else m.CallEnd(status="failed")
    ended = c.ToolEndedEvent(
        type="tool_ended",
        **at,
        turn=entry.turn,
        call=entry.call,
        tool=entry.tool,
        status=end.status,
        exit_code=end.exit_code,
        bytes=end.bytes,
        lines=lines,
        output=output,
    )
    if isinstance(entry, e.ToolRefused):
        ended["status"] = entry.status
        ended["reason"] = entry.reason
        if entry.is_unanswered:
            ended["unanswered"] = True
    return ended


def _mode(mode: str, at: c.Stamp) -> list[c.Event]:
    """Tell of the permission mode, if one was chosen."""
    return [c.ModeEvent(type="mode", **at, mode=mode)] if mode else []


def _started(record: SessionRecord, at: c.Stamp, *, is_resumed: bool) -> c.SessionStartedEvent:
    return c.SessionStartedEvent(
        type="session_started", **at, resumed=is_resumed, folder=record.folder
    )


def _resumed(record: SessionRecord, at: c.Stamp, *recovered: c.RecoveredEvent) -> list[c.Event]:
    """Return the events of a session's next start: what waits for nothing and can go on is named last."""
    aside = [
        c.notice(at, resumable_line(item_view(item, is_held=False)))
        for item in record.queue.aside()
        if item.state != "pending"
    ]
    helpers = beside(record.children, record.reverts)
    aside += [c.notice(at, _child_goes_on(child)) for child in helpers]
    return [_started(record, at, is_resumed=True), *_mode(record.mode, at), *recovered, *aside]


def _child_goes_on(child: ChildRecord) -> str:
    task = one_line(child.task, TASK)
    return f"Subagent {child.name} [INTERRUPTED]: {task} (`/queue resume` goes on with it)"


def _recovered(entry: e.Recovered, record: SessionRecord, at: c.Stamp) -> list[c.Event]:
    if not record.queue.order:
        return _resumed(record, at)
    recovered = c.RecoveredEvent(
        type="recovered",
        **at,
        cause=entry.cause,
        items=queue_of(record)["items"],
        last_active=iso(entry.last_active),
        unknown=calls_in(record, "unknown"),
        found=_calls(record, lambda call: call.id in entry.found),
    )
    return _resumed(record, at, recovered)


def _of_stop(entry: e.InterruptPlanned | e.InterruptRequested, at: c.Stamp) -> list[c.Event]:
    """Return the events of a stop: the message that ordered it, the stop, and the children it spares."""
    events: list[c.Event] = []
    if entry.order.said.text:
        said, routed = entry.order.said, entry.order.routed
        events.append(accepted(at, id=entry.receipt, said=said, routed=routed))
    if isinstance(entry, e.InterruptPlanned):
        events.append(c.notice(at, f"Stopping after {', '.join(entry.tools)}"))
    else:
        turn, cause = entry.turn or None, entry.cause
        interrupting = c.InterruptingEvent(type="interrupting", **at, turn=turn, cause=cause)
        if entry.order.said.user:
            interrupting["user"] = entry.order.said.user
        if entry.spares:
            interrupting["spared"] = list(entry.spares)
        events.append(interrupting)
    if entry.spares:
        are = "goes" if len(entry.spares) == 1 else "go"
        text = f"{', '.join(entry.spares)} {are} on in the background; the next stop ends that."
        events.append(c.notice(at, text))
    return events


def _failure(entry: e.ModelCallFailed | e.TurnEnded, code: str, at: c.Stamp) -> c.ErrorEvent:
    """Say why a turn failed: each has one such event, which every interface shows."""
    return c.ErrorEvent(type="error", **at, code=code, text=entry.reason, hint=entry.hint)


def _turn_ended(turn: str, status: str, record: SessionRecord, at: c.Stamp) -> c.TurnEndedEvent:
    known = record.turns[turn]
    seconds = round(known.ended - known.started, 3)
    event = c.TurnEndedEvent(
        type="turn_ended",
        **at,
        turn=turn,
        item=known.item,
        status=status,
        usage=c.TurnUsage(**usage_view(known.usage), seconds=seconds),
    )
    calls = known.calls.values()
    facts = known.facts.amid(call.tool for call in calls if call.state in ("running", "stopping"))
    if facts.calls:
        event["facts"] = _facts(facts)
    if known.reason or known.cause == Cause.NO_PROGRESS:
        event["reason"] = known.reason or known.cause
    item = record.queue.items.get(record.queue.unanswered)
    if item is not None and item.turn == turn:
        event["resumable"] = item.number
    return event


def _facts(facts: TurnFacts) -> c.FactsView:
    files = [
        c.FileFacts(path=file.path, added=file.added, removed=file.removed, new=file.is_new)
        for file in facts.files.values()
    ]
    return c.FactsView(
        changed=files,
        all=not facts.is_blind,
        command=facts.command or None,
        exit_code=facts.exit_code,
        text=written(facts),
    )


def _of_fact(fact: m.Fact, at: c.Stamp) -> c.Event:
    match fact:
        case m.TextStreamed(turn=turn, delta=delta):
            return c.TextEvent(type="text", **at, turn=turn, delta=delta)
        case m.ThoughtStreamed(turn=turn, delta=delta):
            return c.ThinkingEvent(type="thinking", **at, turn=turn, delta=delta)
        case m.WindowFilled(turn=turn, tokens=tokens, size=size):
            return c.WindowEvent(type="window", **at, turn=turn, tokens=tokens, size=size)
        case m.OutputShown(turn=turn, call=call, text=text):
            return c.OutputEvent(type="output", **at, turn=turn, call=call, text=text)
        case m.Notice(text=text, seconds=seconds):
            notice = c.notice(at, text)
            if seconds:
                notice["seconds"] = seconds
            if fact.ends_answer:
                notice["ends_answer"] = True
            return notice
        case m.MessageRejected(reason=reason, said=said):
            key = said.client_id or None
            rejected = c.RejectedEvent(
                type="rejected", **at, reason=reason, text=said.text, client_id=key
            )
            if fact.hint:
                rejected["hint"] = fact.hint
            return rejected
        case m.StoreLost(code=code, text=text, hint=hint):
            return c.ErrorEvent(type="error", **at, code=code, text=text, hint=hint)
        case m.MessageKnown():
            said = m.Said(text="", client_id=fact.client_id)
            return accepted(at, id=fact.id, said=said, routed=fact.routed, number=fact.number)
        case _:
            assert_never(fact)
