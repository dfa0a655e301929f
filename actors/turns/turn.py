"""The turn actor: the agent loop, as decisions.

Model call, tool calls, boundary, model call, … Nothing here waits: the model streams and tools run in
the ports, and what they return comes back as messages that carry this turn's epoch. At each boundary
the queue is asked for steers before the model is called again; the queue's answer is the next step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...journal import entries as e
from ...machines.agent_call import AgentBound, AgentCalled, AgentCallEnded, AgentSaid
from ...machines.context import Fill
from ...machines.conversation import ChatMessage, Usage
from ...machines.delegation import ChildReturned
from ...machines.effects import CallModel, CancelModel, Effect
from ...machines.facts import Noticed, OutputShown, TextStreamed, ThoughtStreamed
from ...machines.messages import Answer
from ...machines.orders import CutAnswer, Inspect, InterruptTurn, SteersTaken
from ...machines.participation import CallOff
from ...machines.results import (
    ModelAnswered,
    ModelFailed,
    ModelNoticed,
    ModelText,
    ModelThought,
    Summarised,
    ToolFinished,
    ToolPrinted,
)
from ...machines.step import Refusal, step
from ...machines.turn import TURN
from .agent_calls import AgentCalls
from .effect import stop_effect
from .entry import (
    INTERRUPTED,
    goes_on,
    last_words,
    planned,
    requested,
    skipped,
    tool_ended,
)
from .spending import Spending

__all__ = ["Turn"]

GO_ON = "[The new message was taken back. Go on where you were cut off.]"
CUT_SHORT = "The answer was cut short at the limit of tokens: say `continue`, or raise max_tokens."
NO_ANSWER = "[No answer: the model call failed.]"


class Turn(Spending, AgentCalls):
    """One turn: the loop around its tool calls."""

    def on_start(self) -> None:
        """Begin at a boundary."""
        super().on_start()
        self._ask_for_steers(is_closing=False)

    def on_receive(self, message: Any) -> Any:
        """Decide what a result, a steer or an interrupt means for the loop."""
        match message:
            case SteersTaken():
                self._steers_taken(message)
            case ModelText():
                self._stream(message)
            case ModelThought():
                if self.state == "calling" and message.step == self.step:
                    self._pass_on(ThoughtStreamed(self.turn, message.delta))
            case ToolPrinted(call=call, text=text):
                if call in self._loop.open:
                    self._pass_on(OutputShown(self.turn, call, text))
            case ModelNoticed(text=text, seconds=seconds):
                self._pass_on(Noticed(text, seconds))
            case ModelAnswered():
                self._answered(message)
            case ModelFailed():
                self._model_failed(message)
            case Summarised():
                self._summarised(message)
            case ToolFinished():
                self._tool_finished(message)
            case AgentBound() | AgentSaid() | AgentCalled() | AgentCallEnded():
                self._agent_told(message)
            case Answer():
                return self._question_answered(message)
            case InterruptTurn():
                self._interrupt(message)
            case ChildReturned():
                self._child_returned(message)
            case CallOff(receipt):
                self._call_off(receipt)
            case CutAnswer(item):
                self._offer_cut(item)
            case Inspect():
                return {"state": self.state, "step": self.step, "open": sorted(self._loop.open)}
            case _:
                return super().on_receive(message)
        return None

    # The loop -------------------------------------------------------------------------------------

    def _steers_taken(self, message: SteersTaken) -> None:
        loop = self._loop
        asks_again, loop.is_asking, loop.asks_again = loop.asks_again, False, False
        if self.state != "boundary" or self._is_spent:
            return
        self._conversation.extend(message.messages)
        was_cut = loop.take(message.items) and not message.messages
        if loop.cancel is not None:
            self._cut(loop.cancel)
            return
        spent = {"steps_spent"} if self.step >= self._environment.max_steps else set[str]()
        if (message.is_closing or (was_cut and spent)) and not message.messages:
            self._finish("finish", "completed")
            return
        if loop.is_waiting and not message.messages:
            if asks_again or not loop.awaited:
                self._ask_for_steers(is_closing=not loop.awaited)
            return
        loop.is_waiting = False
        if not spent and self._makes_room():
            loop.was_cut = was_cut
            return
        if not spent and not self._may_call(self._filled):
            return
        if self._move("proceed", spent) == "failed":
            limit = f"the limit of {self._environment.max_steps} model calls a turn is reached"
            self._finish("", "failed", limit, "raise agents.NAME.max_steps, or say go on")
            return
        self.step += 1
        said = (ChatMessage("user", GO_ON),) if was_cut else ()
        messages = (*self._conversation, *said)
        call = CallModel(self.turn, self.epoch, self.step, messages, self._most())
        self._decide([e.ModelCalled(self.turn, self.step, said, self._reserved)], [call])

    def _stream(self, message: ModelText) -> None:
        if self.state == "calling" and message.step == self.step:
            self._loop.partial.append(message.delta)
            self._pass_on(TextStreamed(self.turn, message.delta))
            self._cut_answer_if_wanted()

    def _offer_cut(self, item: str) -> None:
        """Remember a steer for which the answer is to be cut off, if it is not in yet."""
        if item not in self._loop.taken:
            self._loop.cut_for = item
            self._tell_patience()
            self._cut_answer_if_wanted()

    def _cut_answer_if_wanted(self) -> None:
        """End the stream for a steer, once something came that the conversation can keep."""
        loop, text = self._loop, "".join(self._loop.partial)
        if self.state != "calling" or not loop.cut_for or not text.strip():
            return
        self._move("cut")
        self._settle_call(None)
        loop.partial.clear()
        loop.cut_for, loop.was_cut = "", True
        cut = e.AnswerCut(self.turn, self.step, (ChatMessage("assistant", text),))
        self._decide([cut], urgent=[CancelModel(self.turn)])
        self._ask_for_steers(is_closing=False)

    def _answered(self, message: ModelAnswered) -> None:
        if self.state != "calling" or message.step != self.step:
            self._late("model", message.usage)
            return
        self._loop.partial.clear()
        self._loop.cut_for = ""
        self._environment.learn_window(message.window)
        self._settle_call(message.usage)
        said = ChatMessage("assistant", message.text, message.tool_calls, thoughts=message.thoughts)
        if message.stop_reason == "length" and not message.tool_calls:
            self._pass_on(Noticed(CUT_SHORT))
        if message.usage.input:
            self._fill = Fill(message.usage.tokens, len(self._conversation) + 1)
        self._decide([e.Answered(self.turn, self.step, message.usage, (said,))])
        if self._move("answer", {"has_calls"} if message.tool_calls else set()) == "acting":
            self._loop.todo.extend(message.tool_calls)
            self._start_calls()
        else:
            self._loop.is_waiting = bool(self._loop.awaited)
            self._ask_for_steers(is_closing=not self._loop.awaited)

    def _model_failed(self, message: ModelFailed) -> None:
        if self.state != "calling" or message.step != self.step:
            return
        self._environment.learn_window(message.window)
        if self._overflows(message):
            return
        self._settle_call(Usage())
        self._move("model_failed")
        text = "".join(self._loop.partial)
        said = f"{text}\n{NO_ANSWER}" if text else NO_ANSWER
        failed = e.ModelCallFailed(self.turn, self.step, message.reason, message.hint)
        self._finish("", "failed", message.reason, message.hint, said, (failed,))

    def _finish(
        self,
        event: str,
        status: str,
        reason: str = "",
        hint: str = "",
        said: str = "",
        before: tuple[e.Entry, ...] = (),
    ) -> None:
        if event:
            self._move(event)
        owes_word = bool(reason) and not self._purpose.kind
        messages = (ChatMessage("assistant", said or f"[{reason}]"),) if owes_word else ()
        self._decide([*before, e.TurnEnded(self.turn, status, reason, hint, messages)])
        self.stop()

    # Results --------------------------------------------------------------------------------------

    def _tool_finished(self, message: ToolFinished) -> None:
        request = self._loop.open.pop(message.call, None)
        if request is None:
            self._late(f"tool {message.call}")
            return
        entries = self._end_inner(message)
        if message.progress is not None and self.state == "acting":
            entries.append(e.ProgressMade(self.turn, *message.progress))
            done, total, unit, _ = message.progress
            self._loop.checkpoint = {"done": done, "total": total, "unit": unit}
        entries.append(tool_ended(self.turn, request, message))
        if self.state == "interrupted":
            self._bury(entries, message.killed, message.survivors)
            return
        self._decide(entries)
        if self._loop.cancel is not None:
            if not self._loop.running():
                self._cut(self._loop.cancel)
        elif not self._loop.open:
            self._start_calls()

    # Children -------------------------------------------------------------------------------------

    def _child_returned(self, message: ChildReturned) -> None:
        """Count a child which the turn waits for, apart from its calls."""
        loop = self._loop
        loop.awaited.discard(message.name)
        if message.name in loop.companions:
            loop.companions.discard(message.name)
            if self.state == "interrupted":
                self._bury([], message.killed, message.survivors)
        elif loop.is_asking:
            loop.asks_again = True
        elif loop.is_waiting and self.state == "boundary":
            self._ask_for_steers(is_closing=False)

    # The end by cancel ----------------------------------------------------------------------------

    def _interrupt(self, message: InterruptTurn) -> None:
        loop = self._loop
        if isinstance(step(TURN, self.state, "interrupt"), Refusal):
            return
        loop.companions.update(message.companions)
        if loop.is_asking and not self._is_spent:  # steers are entering just now
            if loop.cancel is None or not loop.cancel.text:  # one that says nothing needs no answer
                loop.cancel = message
        elif self._must_wait(message):
            self._plan_cut(message)
        else:
            self._cut(message)

    def _must_wait(self, message: InterruptTurn) -> bool:
        """Whether an order takes effect only when what runs has ended."""
        loop = self._loop
        is_child_spared = message.is_talk and loop.delegates(message.spares)
        return is_child_spared or bool(
            message.is_patient and loop.cancel is None and loop.running()
        )

    def _plan_cut(self, message: InterruptTurn) -> None:
        """Answer the order now, and end when the tools that run have."""
        spared = goes_on(self.turn, self._loop.spare(message.spares))
        self._decide([planned(self.turn, message, self._loop.running()), *spared])
        self._loop.cancel = replace(message, client_id="", text="")  # its receipt is written
        if not self._loop.running():
            self._cut(self._loop.cancel)

    def _call_off(self, receipt: str) -> None:
        """Go on after all, unless the order has taken effect in the meantime."""
        cancel = self._loop.cancel
        if self.state == "acting" and cancel is not None and cancel.receipt == receipt:
            self._loop.cancel = None
            self._decide([e.InterruptCalledOff(receipt, self.turn)])

    def _cut(self, message: InterruptTurn) -> None:
        """End here, in one commit; what runs is told to stop, and its results are awaited."""
        loop = self._loop
        withdrawn = [e.QuestionAnswered(self.turn, one, "withdrawn") for one in loop.questions]
        results = [*goes_on(self.turn, loop.spare(message.spares)), *skipped(self.turn, loop)]
        self._move("interrupt")
        self._settle_call(None)
        words = last_words(self._conversation, loop, bool(results))
        loop.owes_word = bool(loop.open)
        ended = e.Interrupted(self.turn, message.cause, loop.checkpoint, words)
        stops = [stop_effect(self.turn, self.epoch, *one) for one in loop.calls()]
        entries: list[e.Entry] = [
            requested(self.turn, message),
            *withdrawn,
            *self._withdraw_wanted(),
            *results,
            ended,
        ]
        self._bury(entries, urgent=[CancelModel(self.turn), *stops])

    def _bury(
        self,
        entries: list[e.Entry],
        killed: tuple[int, ...] = (),
        survivors: tuple[int, ...] = (),
        urgent: Sequence[Effect] = (),
    ) -> None:
        """Say what is dead, and when everything is, that too, and end."""
        loop = self._loop
        loop.killed += killed
        loop.survivors += survivors
        if loop.is_dead:
            said = (ChatMessage("assistant", INTERRUPTED),) if loop.owes_word else ()
            entries.append(e.Stopped(self.turn, loop.killed, loop.survivors, said))
        self._decide(entries, urgent=urgent)
        if loop.is_dead:
            self.stop()
