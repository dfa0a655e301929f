"""What people said, chose and ordered in a recorded session, given again as the messages that it was."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING, Any

from ...journal import entries as e
from ...journal.recovery import FOUND
from ...machines import protocol as m
from ...machines.classification import TYPES
from ...machines.delivery import Cause
from ...machines.disposition import Intent
from .script import INPUTS

if TYPE_CHECKING:
    from .player import Player

_WAYS = ("turn", "queue", "steer", "interrupt")
_OWN = (Cause.BUDGET, Cause.NO_PROGRESS, Cause.TIMEOUT, Cause.FINALIZE, Cause.TURN_ENDED)
"""Why the runtime itself stops a turn."""
_NEAR = 60
"""Entries after a stop among which is what had come of the answer that it cut off."""


class Inputs:
    """Gives a replay what came from people, one entry of the record after the other."""

    def __init__(self, player: Player) -> None:
        self._player = player

    def give(self, entry: e.Entry, *, is_early: bool = False) -> bool:
        """Send what an entry of the record came of; whether that was from outside.

        `is_early`: the runtime still has something to do. Then it is sent only if it would be decided as
        recorded.
        """
        if not isinstance(entry, INPUTS):
            return False
        first: m.Message | None = None
        for message in self._candidates(entry):
            if self._player.fit(message):
                return self._say(message)
            first = first or message
        return False if first is None or is_early else self._say(first)

    def _candidates(self, entry: e.Entry) -> Iterator[m.Message]:
        """Give the messages that somebody may have sent, the likeliest first."""
        match entry:
            case e.QuestionAnswered():
                yield from self._answers(entry)
            case e.Queued(routed=m.Routed(rule="taken-back")) | e.InterruptCalledOff():
                yield m.TakeBack()
            case e.Queued() if entry.item_kind is m.ItemKind.SUMMARY:
                yield m.Compact(wish=entry.said.text, user=entry.said.user)
            case e.Queued() if entry.goal or entry.child:
                return
            case e.Queued() if entry.routed.said_as in _WAYS and entry.routed.rule:
                yield from self._messages(entry.said, entry.routed, 0, entry.position)
            case e.InterruptRequested() | e.InterruptPlanned() | e.StopNoted():
                if entry.order.cause not in _OWN:
                    yield from self._stops(entry, entry.order)
            case e.RevertAsked():
                yield from self._reverts(entry)
            case e.SessionLeaving(cause="fork" | "import" | "replay"):
                yield m.NoteEntry(entry=entry)  # no program had it open
            case e.SessionLeaving():
                yield m.Suspend(cause=entry.cause)
            case e.SessionFinalizing():
                yield m.Finalize(cause=entry.cause)
            case e.GoalSet():
                yield from self._goals(entry)
            case e.GoalPaused():
                if entry.reason == "user":
                    yield m.ChangeGoal(op="pause")
            case e.GoalResumed() | e.GoalBegun():
                yield m.ChangeGoal(op="resume")
            case e.GoalCleared(cause="replaced"):
                for other in self._near():
                    if isinstance(other, e.GoalSet):
                        yield from self._goals(other)
            case e.GoalCleared():
                yield m.ChangeGoal(op="clear")
            case _:
                yield from self._changes(entry)

    def _changes(self, entry: e.Entry) -> Iterator[m.Message]:
        """Give the changes of the queue that lead to an entry; at last have it noted as it is."""
        items = self._player.record.queue.items
        item = items.get(getattr(entry, "item", ""))
        number = item.number if item is not None else None
        match entry:
            case e.Requeued():
                if entry.why == "taken back":
                    yield m.TakeBack()
                return
            case e.Withdrawn():
                if item is not None and item.goal:
                    for other in self._near():
                        if not isinstance(other, e.Withdrawn):
                            yield from self._candidates(other)
                            break
                # taken back one by one, a steer might run in between
                yield m.QueueChange(op="clear", moved_to=entry.moved_to)
                yield m.QueueChange(op="withdraw", number=number)
            case e.EditBegun():
                yield m.QueueChange(op="begin_edit", number=number, editor=entry.editor)
            case e.EditEnded() if item is not None:
                yield m.QueueChange(op="end_edit", number=number, editor=item.editor)
            case e.Edited():
                editor, words = item.editor if item is not None else "", entry.said
                yield m.QueueChange(
                    op="edit", number=number, said=words, editor=editor, user=entry.user
                )
            case e.Moved():
                for position in range(1, len(items) + 1):
                    yield m.QueueChange(op="move", number=number, position=position)
            case e.SteerAddressed():
                yield m.QueueChange(op="steer", number=number)
            case e.QueueHeld():
                yield m.QueueChange(op="hold")
            case e.QueueReleased():
                yield m.ResumeQueue()
                for name in entry.items:
                    yield m.ResumeQueue(number=items[name].number)
                yield m.QueueChange(op="release")
            case _:
                pass
        yield m.NoteEntry(entry=entry)

    def said_now(self, said: m.Said) -> m.UserMessage:
        """Return a message that is said where the record is over, as a person types it."""
        text = said.text
        found = self._player.classify(text)
        kind: Any = TYPES.get(found.intent, "normal")
        then = text if found.says_more else ""
        return m.UserMessage(
            type=kind, said=said, intent=found.intent, matched=found.matched, then=then
        )

    def said_later(self) -> Iterator[m.Said]:
        """Give the messages of the record that are still to be said, for turns of their own."""
        for entry in self._player.ahead():
            if not isinstance(entry, e.Queued) or entry.item_kind is not m.ItemKind.MESSAGE:
                continue
            if entry.routed.said_as in _WAYS and not entry.goal:
                yield entry.said

    def outcomes(self, entry: e.Entry) -> dict[str, str]:
        """Return what tools told, after a crash, of the calls that ran then."""
        if not isinstance(entry, e.Recovered):
            return {}
        before, _, after = FOUND.partition("{outcome}")
        return {
            said.call: said.text.removeprefix(before).removesuffix(after)
            for said in entry.messages
            if said.call in entry.found
        }

    # Messages -------------------------------------------------------------------------------------

    def _say(self, message: m.Message) -> bool:
        self._stream_before_stop()
        self._player.tell(message)
        return True

    def _messages(
        self, said: m.Said, routed: m.Routed, utterance: int, position: int | None = None
    ) -> Iterator[m.UserMessage]:
        read = self._player.classify(said.text)
        intents = dict.fromkeys((read.intent, *Intent))
        intents.pop(Intent.COMMAND, None)
        for place in dict.fromkeys((None, position)):
            for number in dict.fromkeys((utterance, 1)):
                for intent in intents:
                    kind: Any = TYPES.get(intent, "normal")
                    reverts: tuple[Any, ...] = ("",)
                    if intent is Intent.REVERT:
                        reverts = ("", "turn", "last")
                    goes_on = kind == "interrupt" and intent is not Intent.INTERRUPT_BARE
                    for revert, then in product(reverts, (said.text, "") if goes_on else ("",)):
                        yield m.UserMessage(
                            type=kind,
                            said=said,
                            intent=intent,
                            matched=routed.matched,
                            then=then,
                            queue_position=place,
                            utterance=number,
                            revert=revert,
                        )

    def _stops(self, entry: e.Entry, order: m.StopOrder) -> Iterator[m.Message]:
        """Give a message that says so, or one that takes the place of the turn, or a key."""
        said, position = order.said, None
        if order.is_replaced:
            for other in self._near():
                if isinstance(other, e.Queued) and other.routed.said_as == "interrupt":
                    said, position = other.said, other.position
                    break
        if said.text and order.routed.rule:
            yield from self._messages(said, order.routed, order.utterance, position)
        else:
            yield m.Interrupt(order=order, turn=getattr(entry, "turn", ""))

    def _reverts(self, entry: e.RevertAsked) -> Iterator[m.Message]:
        for other in self._near():
            if isinstance(other, e.InterruptRequested | e.InterruptPlanned | e.StopNoted):
                if other.order.said.text and other.order.is_revert:
                    order = other.order
                    yield from self._messages(order.said, order.routed, order.utterance)
                    return
        yield m.Revert(
            scope=entry.scope,
            since=entry.since,
            paths=entry.paths,
            force=entry.force,
            is_dry_run=entry.is_dry_run,
            user=entry.user,
        )

    def _goals(self, entry: e.GoalSet) -> Iterator[m.SetGoal]:
        prompts = (
            other.said.text
            for other in self._near()
            if isinstance(other, e.Queued) and other.goal == entry.goal
        )
        prompt = next(prompts, "")
        for is_next in dict.fromkeys((entry.is_next, True)):
            yield m.SetGoal(
                text=entry.text,
                gates=entry.gates,
                max_turns=entry.max_turns,
                max_tokens=entry.max_tokens,
                max_minutes=None if entry.max_seconds is None else entry.max_seconds / 60,
                prompt="" if prompt == entry.text else prompt,
                is_next=is_next,
                user=entry.user,
            )

    # Answers --------------------------------------------------------------------------------------

    def _answers(self, entry: e.QuestionAnswered) -> Iterator[m.Message]:
        if entry.choice == "withdrawn":
            return
        changed = self._player.changes.answers.get(entry.question, "")
        if changed:
            self._player.skip()
            yield m.Answer(question=entry.question, choice=changed, user=entry.user)
            return
        reason = self._reason(entry)
        yield m.Answer(
            question=entry.question,
            choice=entry.choice,
            reason=reason,
            user=entry.user,
            rule=entry.rule,
        )

    def _reason(self, entry: e.QuestionAnswered) -> str:
        """Return what was said with an answer, from what followed it."""
        for other in list(self._near())[1:3]:
            match other:
                case e.ToolRefused(reason=reason) if entry.choice in ("deny", "answer"):
                    return reason.partition(": ")[2]
                case e.ToolIntended(is_changed=True) if entry.choice == "change":
                    return json.dumps(other.arguments)
                case e.AllowanceGiven() if entry.choice == "always":
                    return self._player.ports.pattern_of(entry.question, other)
                case _:
                    continue
        return ""

    # Streams --------------------------------------------------------------------------------------

    def _near(self) -> Iterator[e.Entry]:
        for number, entry in enumerate(self._player.ahead()):
            if number == _NEAR:
                return
            yield entry

    def _stream_before_stop(self) -> None:
        """Let come what had come of an answer before a stop cut it off."""
        player = self._player
        if not player.ports.is_asking:
            return
        for entry in self._near():
            if isinstance(entry, e.Interrupted) and entry.turn == player.record.turn:
                for said in entry.messages:
                    text = said.text.removesuffix(said.note).removesuffix("\n") if said.note else ""
                    player.ports.stream(entry.turn, text)
                return
            if isinstance(entry, e.Answered | e.ModelCallFailed | e.TurnStarted):
                return
