"""The turn actor: the agent loop, as decisions.

Model call, tool calls, boundary, model call, … Nothing here waits: the model streams and tools run in
the ports, and what they return comes back as messages that carry this turn's epoch. At each boundary
the queue is asked for steers before the model is called again; the queue's answer is the next step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pykka import ActorRef

from ..journal import entries as e
from ..machines.conversation import ChatMessage, ToolRequest, Usage
from ..machines.effects import CallModel, CancelModel, Effect, RunTool, StopTool
from ..machines.facts import Noticed, TextStreamed
from ..machines.messages import (
    Answer,
    CutAnswer,
    Decided,
    Inspect,
    InterruptTurn,
    SteersTaken,
    TakeSteers,
)
from ..machines.participation import CallOff, HandBack
from ..machines.results import ModelAnswered, ModelFailed, ModelNoticed, ModelText, ToolFinished
from ..machines.step import Refusal, step
from ..machines.turn import TURN
from .acting import Acting
from .actor import Actor
from .intake import HAND_BACK
from .turn_entry import intended, planned, refused, requested, tool_ended

if TYPE_CHECKING:
    from .environment import Environment
    from .system import ActorSystem

__all__ = ["Turn"]

INTERRUPTED = "[Interrupted by the user.]"
SKIPPED = "[Not run: the turn was interrupted before this call could start.]"
GO_ON = "[The new message was taken back. Go on where you were cut off.]"
NO_ANSWER = "[No answer: the model call failed.]"


class Turn(Actor):
    """One turn. `conversation` is what the model has seen, oldest first, and only grows."""

    def __init__(
        self,
        system: ActorSystem,
        turn: str,
        epoch: int,
        conversation: tuple[ChatMessage, ...],
        session: ActorRef[Any],
        queue: ActorRef[Any],
        environment: Environment,
    ) -> None:
        super().__init__(system)
        self.turn, self.epoch = turn, epoch
        self.state: str = TURN.initial
        self.step = 0
        self._conversation = list(conversation)
        self._session, self._queue = session, queue
        self._environment = environment
        self._loop = Acting()

    def on_start(self) -> None:
        """Begin at a boundary."""
        self._ask_for_steers(is_closing=False)

    def on_receive(self, message: Any) -> Any:
        """Decide what a result, a steer or an interrupt means for the loop."""
        match message:
            case SteersTaken():
                self._steers_taken(message)
            case ModelText():
                self._stream(message)
            case ModelNoticed(text=text):
                self._environment.ears.pass_on(Noticed(text))
            case ModelAnswered():
                self._answered(message)
            case ModelFailed():
                self._model_failed(message)
            case ToolFinished():
                self._tool_finished(message)
            case Answer():
                return self._question_answered(message)
            case InterruptTurn():
                self._interrupt(message)
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

    def _ask_for_steers(self, is_closing: bool) -> None:
        self._queue.tell(TakeSteers(self.turn, self.step + 1, is_closing, self.actor_ref))

    def _steers_taken(self, message: SteersTaken) -> None:
        if self.state != "boundary":
            return
        loop = self._loop
        self._conversation.extend(message.messages)
        loop.taken.update(message.items)
        if loop.cut_for in loop.taken:
            loop.cut_for = ""
        was_cut, loop.was_cut = loop.was_cut and not message.messages, False
        if loop.cancel is not None:
            self._cut(loop.cancel)
            return
        spent = {"steps_spent"} if self.step >= self._environment.max_steps else set[str]()
        if (message.is_closing or (was_cut and spent)) and not message.messages:
            self._finish("finish", "completed")
            return
        if self._move("proceed", spent) == "failed":
            limit = f"the limit of {self._environment.max_steps} model calls a turn is reached"
            self._finish("", "failed", limit, "raise agents.NAME.max_steps, or say go on")
            return
        self.step += 1
        said = (ChatMessage("user", GO_ON),) if was_cut else ()
        call = CallModel(self.turn, self.epoch, self.step, (*self._conversation, *said))
        self._decide([e.ModelCalled(self.turn, self.step, said)], [call])

    def _stream(self, message: ModelText) -> None:
        if self.state == "calling" and message.step == self.step:
            self._loop.partial.append(message.delta)
            self._environment.ears.pass_on(TextStreamed(self.turn, message.delta))
            self._cut_answer_if_wanted()

    def _offer_cut(self, item: str) -> None:
        """Remember a steer for which the answer that streams is to be cut off, if it is not in yet."""
        if item not in self._loop.taken:
            self._loop.cut_for = item
            self._cut_answer_if_wanted()

    def _cut_answer_if_wanted(self) -> None:
        """End the stream for a steer, once something came that the conversation can keep."""
        loop, text = self._loop, "".join(self._loop.partial)
        if self.state != "calling" or not loop.cut_for or not text.strip():
            return
        self._move("cut")
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
        said = ChatMessage("assistant", message.text, message.tool_calls)
        self._decide([e.Answered(self.turn, self.step, message.usage, (said,))])
        if self._move("answer", {"has_calls"} if message.tool_calls else set()) == "acting":
            self._loop.todo.extend(message.tool_calls)
            self._start_calls()
        else:
            self._ask_for_steers(is_closing=True)

    def _model_failed(self, message: ModelFailed) -> None:
        if self.state != "calling" or message.step != self.step:
            return
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
        messages = (ChatMessage("assistant", said or f"[{reason}]"),) if reason else ()
        self._decide([*before, e.TurnEnded(self.turn, status, reason, hint, messages)])
        self.stop()

    # Tool calls -----------------------------------------------------------------------------------

    def _start_calls(self) -> None:
        """Start the next call, or as many as may run side by side because they change nothing."""
        loop, book = self._loop, self._environment.toolbook
        while loop.todo and not loop.open:
            group = [loop.todo.popleft()]
            if not book.is_mutating(group[0].tool):
                while loop.todo and not book.is_mutating(loop.todo[0].tool):
                    group.append(loop.todo.popleft())
            for request in group:
                self._begin(request)
        if not loop.open:
            self._move("calls_done")
            self._ask_for_steers(is_closing=False)

    def _begin(self, request: ToolRequest) -> None:
        book = self._environment.toolbook
        fault = request.fault or book.fault(request)
        if fault:
            self._refuse(request, "failed", fault)
            return
        if request.tool == HAND_BACK:
            self._hand_back(request)
            return
        permit = book.permit(request)
        match permit.do:
            case "allow":
                self._intend(request, permit.may_leave_folder)
            case "ask" if self._environment.policy.can_ask:
                self._ask(request)
            case "ask":
                why = f"it needs permission ({permit.rule}) and nobody can be asked"
                self._refuse(request, "denied", why)
            case "deny":
                self._refuse(request, "denied", f"a rule forbids it: {permit.rule}")

    def _intend(self, request: ToolRequest, may_leave_folder: bool = False) -> None:
        self._loop.open[request.call] = request
        is_idempotent = self._environment.toolbook.is_idempotent(request.tool)
        run = RunTool(
            self.turn, self.epoch, request.call, request.tool, request.arguments, may_leave_folder
        )
        self._decide([intended(self.turn, self.step, request, is_idempotent)], [run])

    def _hand_back(self, request: ToolRequest) -> None:
        """Let the queue carry the call out: what waits is its to decide; needs no permission."""
        self._loop.open[request.call] = request
        self._decide([intended(self.turn, self.step, request, False)])
        given = request.arguments
        words, why = given.get("message") or "", given.get("why") or ""
        at = self.turn, self.epoch, self.step, request.call
        self._queue.tell(HandBack(*at, words, why, self.actor_ref))

    def _ask(self, request: ToolRequest) -> None:
        question = f"q-{request.call}"
        self._loop.open[request.call] = request
        self._loop.questions[question] = request
        self._decide(
            [e.QuestionAsked(self.turn, request.call, question, request.tool, request.arguments)]
        )

    def _question_answered(self, message: Answer) -> dict[str, Any]:
        if self._loop.cancel is not None:
            return {"ok": False, "reason": "the turn is being stopped"}
        request = self._loop.questions.pop(message.question, None)
        if request is None:
            return {"ok": False, "reason": f"no question `{message.question}` is open"}
        if message.choice == "always":
            self._environment.toolbook.always_allow(request)
        self._decide([e.QuestionAnswered(self.turn, message.question, message.choice)])
        del self._loop.open[request.call]
        if message.choice in ("allow", "always"):
            self._intend(request, may_leave_folder=True)
        else:
            why = f"the user said no{': ' + message.reason if message.reason else ''}"
            self._refuse(request, "denied", why)
            self._start_calls()
        return {"ok": True}

    def _refuse(self, request: ToolRequest, status: str, reason: str) -> None:
        text = f"[{request.tool} was not run: {reason}]"
        self._decide([refused(self.turn, request, status, reason, text)])

    def _tool_finished(self, message: ToolFinished) -> None:
        request = self._loop.open.pop(message.call, None)
        if request is None:
            self._late(f"tool {message.call}")
            return
        entries: list[e.Entry] = []
        if message.progress is not None and self.state == "acting":
            entries.append(e.ProgressMade(self.turn, *message.progress))
            done, total, unit, _ = message.progress
            self._loop.checkpoint = {"done": done, "total": total, "unit": unit}
        entries.append(tool_ended(self.turn, request, message))
        if self.state == "interrupted":
            self._loop.killed += message.killed
            self._loop.survivors += message.survivors
            if not self._loop.open:
                entries.append(self._stopped(ChatMessage("assistant", INTERRUPTED)))
        self._decide(entries)
        if self.state == "interrupted":
            self._stop_if_dead()
        elif self._loop.cancel is not None:
            if not self._loop.running():
                self._cut(self._loop.cancel)
        elif not self._loop.open:
            self._start_calls()

    # The end by cancel ----------------------------------------------------------------------------

    def _interrupt(self, message: InterruptTurn) -> None:
        if isinstance(step(TURN, self.state, "interrupt"), Refusal):
            return
        loop = self._loop
        if self.state == "boundary":  # steers may be entering just now; the answer is on its way
            if loop.cancel is None or not loop.cancel.text:  # one that says nothing needs no answer
                loop.cancel = message
        elif message.is_patient and loop.cancel is None and loop.running():
            self._plan_cut(message)
        else:
            self._cut(message)

    def _plan_cut(self, message: InterruptTurn) -> None:
        """Answer the order now, and end when the tools that run have."""
        self._loop.cancel = replace(message, client_id="", text="")  # its receipt is written
        self._decide([planned(self.turn, message, self._loop.running())])

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
        skipped = self._skipped()
        self._move("interrupt")
        words = self._last_words(bool(skipped))
        ended = e.Interrupted(self.turn, message.cause, loop.checkpoint, words)
        stopped = [] if loop.open else [self._stopped()]
        stops = [StopTool(self.turn, self.epoch, call) for call in loop.open]
        self._decide(
            [requested(self.turn, message), *withdrawn, *skipped, ended, *stopped],
            urgent=[CancelModel(self.turn), *stops],
        )
        self._stop_if_dead()

    def _skipped(self) -> list[e.ToolRefused]:
        """Take back the calls that have not started, and give each its result."""
        loop = self._loop
        skipped = [*loop.questions.values(), *loop.todo]
        for request in loop.questions.values():
            del loop.open[request.call]
        loop.questions.clear()
        loop.todo.clear()
        return [
            refused(self.turn, one, "skipped", "the turn was interrupted", SKIPPED)
            for one in skipped
        ]

    def _last_words(self, is_after_result: bool) -> tuple[ChatMessage, ...]:
        """What the conversation says of the cut, so that user and assistant keep alternating.

        While calls run their results come first, and the last word with the last of them.
        """
        has_said = self._conversation[-1].role == "assistant" and not is_after_result
        if self._loop.open or has_said:
            return ()
        text = "".join(self._loop.partial)
        return (ChatMessage("assistant", f"{text}\n{INTERRUPTED}" if text else INTERRUPTED),)

    def _stopped(self, *said: ChatMessage) -> e.Stopped:
        """Say that everything is dead."""
        return e.Stopped(self.turn, self._loop.killed, self._loop.survivors, said)

    def _stop_if_dead(self) -> None:
        if not self._loop.open:
            self.stop()

    # Small things ---------------------------------------------------------------------------------

    def _move(self, event: str, facts: set[str] | None = None) -> str:
        moved = step(TURN, self.state, event, facts or frozenset())
        assert not isinstance(moved, Refusal), moved
        self.state = moved.state
        return self.state

    def _late(self, what: str, usage: Usage | None = None) -> None:
        self._decide([e.LateResult(self.turn, what, usage or Usage())])

    def _decide(
        self,
        entries: Sequence[e.Entry],
        effects: Sequence[Effect] = (),
        urgent: Sequence[Effect] = (),
    ) -> None:
        for entry in entries:
            self._conversation.extend(getattr(entry, "messages", ()))
        self._session.tell(Decided(self.name, tuple(entries), tuple(effects), tuple(urgent)))
