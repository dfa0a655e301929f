"""What people said, chose and ordered in a recorded session, given again as the messages that it was."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...journal import entries as e
from ...journal.recovery import FOUND
from ...machines import protocol as m
from ...machines.disposition import Intent
from ..typed_text import TYPES
from .kinds import INPUTS

if TYPE_CHECKING:
    from .player import Player

_WAYS = ("turn", "queue", "steer", "interrupt")
_NEAR = 60
"""Entries after a stop among which is what had come of the answer that it cut off."""


class Inputs:
    """Gives a replay what came from people, one entry of the record after the other."""

    def __init__(self, player: Player) -> None:
        self._player = player

    def give(self, entry: e.Entry) -> bool:
        """Send what an entry of the record came of; whether that was from outside."""
        if not isinstance(entry, INPUTS):
            return False
        match entry:
            case e.QuestionAnswered():
                return self._answer(entry)
            case e.Queued() if entry.item_kind is m.ItemKind.SUMMARY:
                self._say(m.Compact(wish=entry.said.text, user=entry.said.user))
            case e.Queued() if entry.goal or entry.child:
                return False
            case e.Queued() if entry.routed.said_as in _WAYS and entry.routed.rule:
                self._best(self._messages(entry.said, entry.routed, 0, entry.position), entry)
            case e.InterruptRequested() | e.InterruptPlanned() | e.StopNoted():
                self._stop(entry, entry.order)
            case e.RevertAsked():
                self._revert(entry)
            case e.SessionLeaving():
                self._say(m.Suspend(cause=entry.cause))
            case e.SessionFinalizing():
                self._say(m.Finalize(cause=entry.cause))
            case e.GoalSet():
                self._say(self._goal(entry))
            case e.GoalPaused():
                self._say(m.ChangeGoal(op="pause"))
            case e.GoalResumed():
                self._say(m.ChangeGoal(op="resume"))
            case e.GoalCleared():
                self._say(m.ChangeGoal(op="clear"))
            case _:
                self._say(m.NoteEntry(entry=entry))
        return True

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
            is_message = isinstance(entry, e.Queued) and entry.item_kind is m.ItemKind.MESSAGE
            if is_message and entry.routed.said_as in _WAYS and not entry.goal:
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

    def _say(self, message: m.Message) -> None:
        self._stream_before_stop()
        self._player.tell(message)

    def _best(self, messages: Iterator[m.Message], entry: e.Entry) -> None:
        """Send the message that leads to what the record has; else what it reads like."""
        found, most = None, 0
        for message in messages:
            found = found or message
            fits = self._player.fit(message)
            if fits > most:
                found, most = message, fits
                break
        assert found is not None
        self._say(found)

    def _messages(
        self, said: m.Said, routed: m.Routed, utterance: int, position: int | None = None
    ) -> Iterator[m.UserMessage]:
        """Give the messages that somebody may have sent, the likeliest first."""
        read = self._player.classify(said.text)
        intents = dict.fromkeys((read.intent, *Intent))
        intents.pop(Intent.COMMAND, None)
        for place in dict.fromkeys((None, position)):
            for number in dict.fromkeys((utterance, 1)):
                for intent in intents:
                    kind: Any = TYPES.get(intent, "normal")
                    for revert in ("", "turn", "last") if intent is Intent.REVERT else ("",):
                        yield m.UserMessage(
                            type=kind,
                            said=said,
                            intent=intent,
                            matched=routed.matched,
                            then=said.text if intent is Intent.INTERRUPT_MORE else "",
                            queue_position=place,
                            utterance=number,
                            revert=revert,
                        )

    def _stop(self, entry: e.Entry, order: m.StopOrder) -> None:
        """Send a stop: a message that says so, or one that takes the place of the turn, or a key."""
        said = order.said
        if order.is_replaced:
            said = next(
                (
                    other.said
                    for other in self._near()
                    if isinstance(other, e.Queued) and other.routed.said_as == "interrupt"
                ),
                said,
            )
        if said.text and order.routed.rule:
            self._best(self._messages(said, order.routed, order.utterance), entry)
        else:
            self._say(m.Interrupt(order=order, turn=getattr(entry, "turn", "")))

    def _revert(self, entry: e.RevertAsked) -> None:
        for other in self._near():
            if isinstance(other, e.InterruptRequested | e.InterruptPlanned | e.StopNoted):
                if other.order.said.text and other.order.is_revert:
                    order = other.order
                    found = self._messages(order.said, order.routed, order.utterance)
                    self._best(found, entry)
                    return
        self._say(
            m.Revert(
                scope=entry.scope,
                since=entry.since,
                paths=entry.paths,
                force=entry.force,
                is_dry_run=entry.is_dry_run,
                user=entry.user,
            )
        )

    def _goal(self, entry: e.GoalSet) -> m.SetGoal:
        first = (
            other.said.text
            for other in self._near()
            if isinstance(other, e.Queued) and other.goal == entry.goal
        )
        prompt = next(first, "")
        return m.SetGoal(
            text=entry.text,
            gates=entry.gates,
            max_turns=entry.max_turns,
            max_tokens=entry.max_tokens,
            max_minutes=None if entry.max_seconds is None else entry.max_seconds / 60,
            prompt="" if prompt == entry.text else prompt,
            is_next=entry.is_next,
            user=entry.user,
        )

    # Answers --------------------------------------------------------------------------------------

    def _answer(self, entry: e.QuestionAnswered) -> bool:
        if entry.choice == "withdrawn":
            return False
        changed = self._player.changes.answers.get(entry.question, "")
        if changed:
            self._player.skip()
            self._say(m.Answer(question=entry.question, choice=changed, user=entry.user))
            return True
        reason = self._reason(entry)
        answer = m.Answer(
            question=entry.question, choice=entry.choice, reason=reason, user=entry.user
        )
        self._say(answer)
        return True

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
