"""The decisions of a turn: the steps of the agent loop, and how it ends."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...journal import entries as e
from ...journal.child_record import ChildRecord, at_work
from ...journal.record import SessionRecord, StopRecord
from ...journal.turn_facts import contradicted
from ...journal.turn_record import CALL_ENDS, CONTINUE, CallRecord, TurnRecord
from ...machines import protocol as m
from ...machines.context import Fill
from ...machines.conversation import ChatMessage, Usage, cut_short
from ...machines.delivery import ENDS, Cause, Relation, deliver
from ...machines.policy import ANSWER
from ...machines.value import Value
from . import intake, stopping
from .decision import NOTHING, Decision
from .queries import DELEGATE, DISMISS

if TYPE_CHECKING:
    from ..environment import Environment


GO_ON = "[The new message was taken back. Go on where you were cut off.]"
FACTS = (
    "[Facts] {fact}. If something is left to do, do it now; else say in one sentence how it stands."
)
CUT_SHORT = "The answer was cut short at the limit of tokens: say `continue`, or raise max_tokens."
INTERRUPTED = "[Interrupted by the user.]"
INTERRUPTED_BY: Mapping[str, str] = {
    Cause.BUDGET: "[Interrupted: a limit was reached.]",
    Cause.NO_PROGRESS: "[Interrupted: there was no progress.]",
    Cause.PROVIDER_LIMIT: "[Interrupted: the model's provider took no more calls.]",
    Cause.TIMEOUT: "[Interrupted: the time was up.]",
    Cause.PARENT: "[Interrupted by the agent that delegated this.]",
    Cause.PARENT_BOUNDARY: "[Interrupted by the agent that delegated this.]",
    Cause.SIGNAL: "[Interrupted: the program was ended.]",
}
"""The last word of a turn that was cut short by something else than its user, by the cause."""
SKIPPED = "[Not run: the turn was interrupted before this call could start.]"
WHY_SKIPPED = "the turn was interrupted"
IN_BACKGROUND = "[It goes on in the background; its result comes as a message.]"
CHANGED = "[A person has changed the arguments of this call to {arguments}]\n"
PROVIDER = "provider"
"""The timer of a turn that waits for its model's provider."""
LOOK = 60.0
"""Seconds of one such timer, at most: a machine that was asleep notices by then."""
CAPPED = 8_192
"""Tokens: an answer may be as long as it likes while more than this is left."""


class Ending(Value):
    """How a turn ends: `said` is its last word to the model, else the reason.

    `cause` is what the routing table is asked about for what goes on beside it. `is_unanswered`: the
    model gave no answer, and would give none to what waits.
    """

    status: str = "completed"
    reason: str = ""
    hint: str = ""
    said: ChatMessage | None = None
    cause: Cause = Cause.TURN_ENDED
    is_unanswered: bool = False


# The loop -----------------------------------------------------------------------------------------


def awaited(record: SessionRecord, turn: str) -> list[ChildRecord]:
    """Return the children that the turn waits for at its last boundary, apart from its calls.

    They were resumed together with it; one that has ended is waited for until its result is here.
    """
    found: list[ChildRecord] = []
    for child in record.children.values():
        if child.turn != turn or child.call or child.relation != Relation.FOREGROUND_CHILD:
            continue
        is_coming = child.goes == "boundary" and not child.is_returned
        if child.is_at_work or (child.state != "interrupted" and is_coming):
            found.append(child)
    return found


def call_model(record: SessionRecord, tokens: int, most: int | None) -> Decision:
    """Ask the model with the whole conversation; `tokens` is what that takes, as estimated."""
    turn = record.turns[record.turn]
    said = (ChatMessage(role="user", text=GO_ON),) if turn.was_cut else ()
    messages = (*record.conversation, *said) if said else record.conversation
    number = turn.step + 1
    call = m.CallModel(
        turn=turn.id,
        epoch=turn.epoch,
        step=number,
        messages=messages,
        max_tokens=most,
        unusable=_unusable(record),
    )
    return Decision(
        entries=(e.ModelCalled(turn=turn.id, step=number, messages=said, tokens=tokens),),
        early=(call,),
    )


def _unusable(record: SessionRecord) -> tuple[str, ...]:
    """Name the tools that are about something of which there is nothing now."""
    is_usable = {
        intake.HAND_BACK: intake.can_hand_back(record.queue, record.turn),
        DISMISS: any(at_work(record.children)),
    }
    return tuple(name for name in is_usable if not is_usable[name])


def doubted(record: SessionRecord) -> Decision:
    """Tell the model once which facts of the turn its last answer contradicts, if it does."""
    turn = record.turns[record.turn]
    fact = contradicted(turn.facts, record.conversation[-1:])
    if not fact:
        return NOTHING
    said = ChatMessage(role="user", text=FACTS.format(fact=fact))
    return Decision(entries=(e.ClaimDoubted(turn=turn.id, fact=fact, messages=(said,)),))


def is_spent(turn: TurnRecord, environment: Environment) -> bool:
    """Whether a turn has made all the model calls that it may."""
    return turn.step >= turn.granted + environment.max_steps


def spent(environment: Environment) -> str:
    """Name the limit of a turn that has made all its model calls."""
    return f"{environment.max_steps} model calls in a turn"


def at_limit(turn: TurnRecord, what: str, hint: str = "") -> tuple[Ending, e.Entry]:
    """Return how a turn ends at a limit that `what` names, and the entry that says so."""
    reason = f"a limit is reached, {what}"
    ending = Ending(status="failed", reason=reason, hint=hint, cause=Cause.BUDGET)
    return ending, e.LimitReached(turn=turn.id, what=what, hint=hint)


def paused(turn: TurnRecord, environment: Environment) -> Decision:
    """Ask a person whether a turn may make as many model calls again."""
    limit = environment.max_steps
    asked = e.QuestionAsked(
        turn=turn.id,
        call="",
        question=m.question_id(environment.path, f"{turn.id}.s{turn.step}"),
        tool=CONTINUE,
        arguments={"model_calls": limit},
        rule=f"max_steps = {limit}",
    )
    return Decision(entries=(asked,))


def most_tokens(left: int) -> int | None:
    """Say how long the answer may get when so many tokens are left; none: as long as it likes."""
    return None if left < 0 or left > CAPPED else left + ANSWER


def answered(turn: TurnRecord, message: m.ModelAnswered) -> Decision:
    """Take in the model's whole answer."""
    said = ChatMessage(
        role="assistant",
        text=message.text,
        tool_calls=message.tool_calls,
        thoughts=message.thoughts,
    )
    is_cut = message.stop_reason == "length" and not message.tool_calls
    return Decision(
        entries=(e.Answered(turn=turn.id, step=turn.step, usage=message.usage, messages=(said,)),),
        facts=(m.Notice(text=CUT_SHORT, ends_answer=True),) if is_cut else (),
    )


def model_failed(turn: TurnRecord, message: m.ModelFailed) -> Decision:
    """Note that the model gave no answer."""
    failed = e.ModelCallFailed(
        turn=turn.id, step=turn.step, reason=message.reason, hint=message.hint
    )
    return Decision(entries=(failed,))


def can_wait(message: m.ModelFailed, environment: Environment) -> bool:
    """Whether the provider said when it takes calls again, and that is soon enough to wait for."""
    return 0 < message.again <= environment.account.patience


def ends_at_provider_limit(environment: Environment) -> bool:
    """Whether the table has a turn end at a provider's limit, so that it is resumed by a person."""
    row = deliver(environment.deliveries, Cause.PROVIDER_LIMIT, Relation.SELF)
    return row.action in ENDS


def awaits_provider(turn: TurnRecord, message: m.ModelFailed, now: float) -> Decision:
    """Wait for the end of a provider's limit."""
    until = round(now + message.again, 3)
    waits = e.ModelAwaited(turn=turn.id, step=turn.step, until=until, reason=message.reason)
    return Decision(entries=(waits,), effects=(look_later(until - now),))


def again(turn: TurnRecord, now: float) -> Decision:
    """Ask the model again if the time has come; else look again later, as the machine may sleep."""
    if turn.state != "waiting":
        return NOTHING
    if left := _left(turn, now):
        return Decision(effects=(look_later(left),))
    return Decision(entries=(e.ModelAskedAgain(turn=turn.id),))


def _left(turn: TurnRecord, now: float) -> float:
    """Return the seconds until a provider takes calls again; 0 also where the clock was set back.

    No more can be left than the whole wait was.
    """
    left = turn.until - now
    return left if 0 < left <= turn.wait else 0.0


def left_after_crash(record: SessionRecord, now: float) -> float | None:
    """Return after how many seconds a turn goes on that waited when the program died; none if none does.

    A child goes on with the turn of its parent.
    """
    turn = record.turns.get(record.turn)
    if turn is None or record.parent or record.state != "idle" or turn.cause != "crash":
        return None
    item = record.queue.items.get(turn.item)
    is_there = item is not None and item.state == "interrupted"
    return _left(turn, now) if is_there and turn.until else None


def look_later(seconds: float) -> m.SetTimer:
    """Have an actor look again whether a provider's limit has ended."""
    return m.SetTimer(timer=m.Timer(kind=PROVIDER), seconds=min(max(seconds, 0.0), LOOK))


def refused_call(message: m.ModelFailed) -> Ending:
    """Return how a turn ends whose provider takes no call, where it may not wait."""
    cause = Cause.PROVIDER_LIMIT
    return Ending(status="failed", reason=message.reason, hint=message.hint, cause=cause)


def unanswered(message: m.ModelFailed, said: ChatMessage) -> Ending:
    """Return how a turn ends whose model gave no answer."""
    return Ending(
        status="failed",
        reason=message.reason,
        hint=message.hint,
        said=said,
        is_unanswered=True,
    )


def answer_grew(turn: TurnRecord, text: str) -> Decision:
    """Keep what has come of an answer; `text` is all of it."""
    return Decision(
        entries=(e.AnswerGrew(turn=turn.id, step=turn.step, text=text[len(turn.said) :]),)
    )


def cut_for_steer(turn: TurnRecord, text: str) -> Decision:
    """End the stream for a steer; the part of the answer so far stays in the conversation."""
    cut = e.AnswerCut(
        turn=turn.id, step=turn.step, messages=(ChatMessage(role="assistant", text=text),)
    )
    return Decision(entries=(cut,), urgent=(m.CancelModel(turn=turn.id),))


def fill_of(record: SessionRecord) -> Fill:
    """Return how much of the conversation a server has counted, as it stands now."""
    fill = record.fill
    if not fill.messages:
        return fill
    since = record.spoken - fill.messages
    return Fill(tokens=fill.tokens, messages=max(0, len(record.conversation) - since))


def ended(
    record: SessionRecord, ending: Ending, environment: Environment, *before: e.Entry
) -> Decision:
    """End the turn without a stop."""
    turn = record.turns[record.turn]
    owes_word = bool(ending.reason) and record.queue.items[turn.item].kind not in m.SILENT
    said = ending.said or ChatMessage(role="assistant", text=f"[{ending.reason}]")
    messages = (said,) if owes_word else ()
    over = e.TurnEnded(
        turn=turn.id,
        status=ending.status,
        reason=ending.reason,
        hint=ending.hint,
        is_unanswered=ending.is_unanswered and _is_a_persons(record, turn),
        messages=messages,
    )
    follows = stopping.ended_turn(record, environment, ending.cause)
    held = _held_unanswered(record) if ending.is_unanswered else ()
    return Decision(entries=(*before, over, *held, *follows))


def _is_a_persons(record: SessionRecord, turn: TurnRecord) -> bool:
    """Whether a person can have a turn go on: it is not that of a goal, a run or another session."""
    item = record.queue.items[turn.item]
    is_message = item.kind is m.ItemKind.MESSAGE and not item.goal
    return is_message and record.run is None and not record.parent


def _held_unanswered(record: SessionRecord) -> tuple[e.Entry, ...]:
    """Hold what people have said that waits behind a turn whose model gave no answer.

    A steer of that turn, or what is to run next, asks the model once more before that. A session that
    works for another one goes on: nobody else would have it go on.
    """
    if record.parent:
        return ()
    waits = [item for item in record.queue.pending() if not record.queue.holds(item)]
    if any(item.is_steer or item.is_next for item in waits):
        return ()
    is_said = any(item.kind is m.ItemKind.MESSAGE and not item.goal for item in waits)
    return (e.QueueHeld(why="model"),) if is_said else ()


def late(turn: str, what: str, usage: Usage | None = None) -> Decision:
    """Note a result that the turn does not wait for any more."""
    return Decision(entries=(e.LateResult(turn=turn, what=what, usage=usage or Usage()),))


# Results of tools ---------------------------------------------------------------------------------


def tool_ended(record: SessionRecord, finished: m.ToolFinished) -> Decision:
    """Take in a call's result, and with it the end of what an agent had not said the end of."""
    turn = record.turns[finished.turn]
    call = turn.calls[finished.call]
    result = finished.result
    status = result.status if result.status != "timed_out" else "killed"
    entries: list[e.Entry] = []
    for inner in turn.calls.values():
        if inner.within == call.id and inner.state not in CALL_ENDS:
            entries += _ended_inner(turn.id, inner, status)
    if result.progress is not None and turn.state == "acting":
        done, total, unit, note = result.progress
        entries.append(e.ProgressMade(turn=turn.id, done=done, total=total, unit=unit, note=note))
    given = json.dumps(call.arguments, ensure_ascii=False) if call.is_changed else ""
    said = ChatMessage(
        role="tool",
        text=CHANGED.format(arguments=given) * bool(given) + result.text,
        call=call.id,
        pictures=result.pictures,
    )
    entries.append(
        e.ToolEnded(turn=turn.id, call=call.id, tool=call.tool, end=result.end, messages=(said,))
    )
    return Decision(entries=tuple(entries))


def progressed(turn: str, message: m.ToolProgressed) -> Decision:
    """Note how far a running tool says that it is."""
    done, total = message.done, message.total
    entry = e.ProgressMade(turn=turn, done=done, total=total, unit=message.unit, note=message.note)
    return Decision(entries=(entry,))


def refused(turn: str, call: CallRecord, status: str, reason: str, text: str = "") -> e.ToolRefused:
    """Tell that a call never started; `text` is what the model reads."""
    said = text or f"[{call.tool} was not run: {reason}]"
    message = ChatMessage(role="tool", text=said, call=call.id)
    return e.ToolRefused(
        turn=turn, call=call.id, tool=call.tool, status=status, reason=reason, messages=(message,)
    )


def detached(record: SessionRecord) -> Decision:
    """End the calls whose children go on in the background."""
    turn = record.turns[record.turn]
    gone = {child.detached_from for child in record.children.values() if child.detached_from}
    calls = [
        call for call in turn.calls.values() if call.id in gone and call.state not in CALL_ENDS
    ]
    return Decision(
        entries=tuple(
            e.ToolEnded(
                turn=turn.id,
                call=call.id,
                tool=call.tool,
                end=m.CallEnd(status="ok"),
                messages=(ChatMessage(role="tool", text=IN_BACKGROUND, call=call.id),),
            )
            for call in calls
        )
    )


# The end by a stop --------------------------------------------------------------------------------


def cut_off(record: SessionRecord, partial: str, environment: Environment) -> Decision:
    """End the turn here, in one commit; what runs is stopped, and its results are awaited.

    `partial` is what has come of an answer that streams.
    """
    turn = record.turns[record.turn]
    stop = stop_of(record)
    before: tuple[e.Entry, ...] = ()
    cause = stop.order.cause if stop is not None else "stop"
    is_replaced = stop is not None and stop.order.is_replaced
    planned = stopping.planned_stop(record)
    if planned is not None and record.state == "busy":
        before, cause = (stopping.take_effect(planned, environment),), planned.order.cause
        is_replaced = planned.order.is_replaced
    if turn.question:
        withdrawn = e.QuestionAnswered(turn=turn.id, question=turn.question, choice="withdrawn")
        before = (*before, withdrawn)
    waiting = [call for call in turn.calls.values() if call.state in ("requested", "asking")]
    open_calls = [call for call in turn.calls.values() if call.state == "running"]
    own = [call for call in open_calls if not call.within]
    results: list[e.Entry] = []
    for call in waiting:
        if call.state == "asking":
            results.append(
                e.QuestionAnswered(turn=turn.id, question=call.question, choice="withdrawn")
            )
        results.append(_skipped(turn.id, call))
    has_results = any(not call.within for call in waiting)
    words = _last_words(record, partial, cause, bool(own), has_results)
    item = record.queue.items.get(turn.item)
    is_replaced = is_replaced and item is not None and not item.goal
    over = e.Interrupted(
        turn=turn.id,
        cause=cause,
        checkpoint=item.progress if item else None,
        messages=words,
        is_replaced=is_replaced,
    )
    held = stopping.holds_after(record, cause, environment)
    begun = {child.call for child in record.children.values()}  # whom the stop has reached itself
    stops = tuple(_stop_effect(turn, call) for call in own if call.id not in begun)
    return Decision(
        entries=(*before, *results, over, *held), urgent=(m.CancelModel(turn=turn.id), *stops)
    )


def stop_of(record: SessionRecord) -> StopRecord | None:
    """Return the stop that has taken effect on the newest turn; none if there is none."""
    found = [
        stop
        for stop in record.stops.values()
        if stop.turn == record.turn and stop.state == "stopping"
    ]
    return found[-1] if found else None


def _skipped(turn: str, call: CallRecord) -> e.ToolRefused:
    if call.within:  # it is the agent's own, and no part of the conversation
        return e.ToolRefused(
            turn=turn, call=call.id, tool=call.tool, status="skipped", reason=WHY_SKIPPED
        )
    return refused(turn, call, "skipped", WHY_SKIPPED, SKIPPED)


def _last_words(
    record: SessionRecord, partial: str, cause: str, has_open: bool, has_results: bool
) -> tuple[ChatMessage, ...]:
    """Return the messages that note a cut, so that user and assistant keep alternating.

    While calls run their results come first, and the last word with the last of them.
    """
    has_said = record.conversation[-1].role == "assistant" and not has_results
    if has_open or has_said:
        return ()
    return (cut_short(partial, INTERRUPTED_BY.get(cause, INTERRUPTED)),)


def _stop_effect(turn: TurnRecord, call: CallRecord) -> m.StopTool | m.StopChild:
    """Ask for a call to be stopped; its result still comes."""
    is_of_child = call.tool in (DELEGATE, DISMISS)
    return (m.StopChild if is_of_child else m.StopTool)(
        turn=turn.id, epoch=turn.epoch, call=call.id
    )


def is_dead(record: SessionRecord) -> bool:
    """Whether everything that an interrupted turn started, and its stop reached, is dead."""
    turn = record.turns[record.turn]
    if any(call.state not in CALL_ENDS for call in turn.calls.values()):
        return False
    stops = [stop for stop in record.stops.values() if stop.turn == turn.id]
    return not any(stopping.has_reached(record, stop) for stop in stops)


def buried(record: SessionRecord) -> Decision:
    """Say that everything is dead, as soon as that is so."""
    if not is_dead(record):
        return NOTHING
    turn = record.turns[record.turn]
    stop = stop_of(record)
    killed, survivors = stopping.died_of(record, turn.id)
    for end in (call.end for call in turn.calls.values() if call.end is not None):
        killed += tuple(pid for pid in end.killed if pid not in killed)
        survivors += tuple(pid for pid in end.survivors if pid not in survivors)
    owes_word = record.conversation[-1].role == "tool"
    cause = stop.order.cause if stop is not None else ""
    said = (cut_short("", INTERRUPTED_BY.get(cause, INTERRUPTED)),) if owes_word else ()
    order = stop.order.epoch if stop is not None else 0
    return Decision(
        entries=(
            e.Stopped(turn=turn.id, killed=killed, survivors=survivors, messages=said, order=order),
        )
    )


def _ended_inner(turn: str, call: CallRecord, status: m.ToolStatus) -> list[e.Entry]:
    """End a call of an agent's own with the agent's call."""
    if call.state in ("running", "stopping"):
        return [e.ToolEnded(turn=turn, call=call.id, tool=call.tool, end=m.CallEnd(status=status))]
    asked: list[e.Entry] = []
    if call.state == "asking":
        asked.append(e.QuestionAnswered(turn=turn, question=call.question, choice="withdrawn"))
    return [
        *asked,
        e.ToolRefused(
            turn=turn, call=call.id, tool=call.tool, status="skipped", reason=WHY_SKIPPED
        ),
    ]
