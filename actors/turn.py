"""The turn actor: the agent loop, as decisions.

Model call, tool calls, boundary, model call, … Nothing here waits: the model streams and tools run in
the ports, and what they return comes back as messages that carry this turn's epoch. At each boundary
the queue is asked for steers before the model is called again; the queue's answer is the next step.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from pykka import ActorRef

from ..journal import entries as e
from ..machines.conversation import ChatMessage, ToolRequest, Usage
from ..machines.effects import CallModel, CancelModel, Effect, RunTool, StopTool
from ..machines.facts import Noticed, TextStreamed
from ..machines.messages import (
    Answer,
    Decided,
    Inspect,
    InterruptTurn,
    ModelAnswered,
    ModelFailed,
    ModelNoticed,
    ModelText,
    SteersTaken,
    TakeSteers,
    ToolFinished,
)
from ..machines.step import Refusal, step
from ..machines.turn import TURN
from .actor import Actor

if TYPE_CHECKING:
    from .environment import Environment
    from .system import ActorSystem

__all__ = ["Turn"]

INTERRUPTED = "[Interrupted by the user.]"
SKIPPED = "[Not run: the turn was interrupted before this call could start.]"
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
        self.state = TURN.initial
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
        self._conversation.extend(message.messages)
        if message.is_closing and not message.messages:
            self._end("finish", "completed")
            return
        spent = {"steps_spent"} if self.step >= self._environment.max_steps else set[str]()
        self._move("proceed", spent)
        if self.state == "failed":
            limit = f"the limit of {self._environment.max_steps} model calls a turn is reached"
            self._end("", "failed", limit, "raise agents.NAME.max_steps, or say go on")
            return
        self.step += 1
        call = CallModel(self.turn, self.epoch, self.step, tuple(self._conversation))
        self._decide([e.ModelCalled(self.turn, self.step)], [call])

    def _stream(self, message: ModelText) -> None:
        if self.state == "calling" and message.step == self.step:
            self._loop.partial.append(message.delta)
            self._environment.ears.pass_on(TextStreamed(self.turn, message.delta))

    def _answered(self, message: ModelAnswered) -> None:
        if self.state != "calling" or message.step != self.step:
            self._late("model", message.usage)
            return
        self._loop.partial.clear()
        said = ChatMessage("assistant", message.text, message.tool_calls)
        self._say(e.Answered(self.turn, self.step, message.usage, (said,)))
        self._move("answer", {"has_calls"} if message.tool_calls else set())
        if self.state == "acting":
            self._loop.todo.extend(message.tool_calls)
            self._start_calls()
        else:
            self._ask_for_steers(is_closing=True)

    def _model_failed(self, message: ModelFailed) -> None:
        if self.state != "calling" or message.step != self.step:
            return
        self._move("model_failed")
        self._decide([e.ModelCallFailed(self.turn, self.step, message.reason, message.hint)])
        text = "".join(self._loop.partial)
        said = f"{text}\n{NO_ANSWER}" if text else NO_ANSWER
        self._end("", "failed", message.reason, message.hint, said)

    def _end(
        self, event: str, status: str, reason: str = "", hint: str = "", said: str = ""
    ) -> None:
        if event:
            self._move(event)
        messages = (ChatMessage("assistant", said or f"[{reason}]"),) if reason else ()
        self._decide([e.TurnEnded(self.turn, status, reason, hint, messages)])
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
        entry = e.ToolIntended(
            self.turn,
            self.step,
            request.call,
            request.tool,
            request.arguments,
            self._environment.toolbook.is_idempotent(request.tool),
        )
        run = RunTool(
            self.turn, self.epoch, request.call, request.tool, request.arguments, may_leave_folder
        )
        self._decide([entry], [run])

    def _ask(self, request: ToolRequest) -> None:
        question = f"q-{request.call}"
        self._loop.open[request.call] = request
        self._loop.questions[question] = request
        self._decide(
            [
                e.QuestionAsked(
                    self.turn, request.call, question, request.tool, request.arguments
                )
            ]
        )

    def _question_answered(self, message: Answer) -> dict[str, Any]:
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
        text = SKIPPED if status == "skipped" else f"[{request.tool} was not run: {reason}]"
        said = ChatMessage("tool", text, call=request.call, wire_id=request.wire_id)
        entry = e.ToolRefused(self.turn, request.call, request.tool, status, reason, (said,))
        self._say(entry)

    def _tool_finished(self, message: ToolFinished) -> None:
        request = self._loop.open.pop(message.call, None)
        if request is None:
            self._late(f"tool {message.call}")
            return
        said = ChatMessage("tool", message.text, call=request.call, wire_id=request.wire_id)
        if message.progress is not None and self.state == "acting":
            self._decide([e.ProgressMade(self.turn, *message.progress)])
            done, total, unit, _ = message.progress
            self._loop.checkpoint = {"done": done, "total": total, "unit": unit}
        self._say(
            e.ToolEnded(
                self.turn,
                request.call,
                request.tool,
                message.status,
                message.exit_code,
                message.bytes,
                message.killed,
                message.survivors,
                message.spilled,
                (said,),
            )
        )
        if self.state == "interrupted":
            self._loop.killed += message.killed
            self._loop.survivors += message.survivors
            self._stopped()
        elif not self._loop.open:
            self._start_calls()

    # The end by cancel ----------------------------------------------------------------------------

    def _interrupt(self, message: InterruptTurn) -> None:
        was = self.state
        if isinstance(step(TURN, was, "interrupt"), Refusal):
            return
        entries: list[e.Entry] = [
            e.InterruptRequested(
                message.receipt,
                self.turn,
                message.cause,
                message.user,
                message.client_id,
                message.matched,
                message.rule,
                message.text,
            )
        ]
        entries += [e.QuestionAnswered(self.turn, one, "withdrawn") for one in self._loop.questions]
        self._decide(entries)
        self._skip_what_has_not_started()
        self._move("interrupt")
        running = list(self._loop.open)
        ended = e.Interrupted(self.turn, message.cause, self._loop.checkpoint, self._last_words(was))
        urgent: list[Effect] = [CancelModel(self.turn)]
        urgent += [StopTool(self.turn, self.epoch, call) for call in running]
        self._decide([ended], urgent=urgent)
        self._stopped()

    def _skip_what_has_not_started(self) -> None:
        loop = self._loop
        asked = list(loop.questions.values())
        loop.questions.clear()
        for request in asked:
            del loop.open[request.call]
        for request in (*asked, *loop.todo):
            self._refuse(request, "skipped", "the turn was interrupted")
        loop.todo.clear()

    def _last_words(self, was: str) -> tuple[ChatMessage, ...]:
        """What the conversation says of the cut, so that user and assistant keep alternating."""
        if was == "acting" and self._loop.open:
            return ()
        if was == "boundary" and self._conversation and self._conversation[-1].role == "assistant":
            return ()
        text = "".join(self._loop.partial)
        return (ChatMessage("assistant", f"{text}\n{INTERRUPTED}" if text else INTERRUPTED),)

    def _stopped(self) -> None:
        """Say that everything is dead, once it is."""
        loop = self._loop
        if loop.open or loop.is_over:
            return
        loop.is_over = True
        last = self._conversation[-1] if self._conversation else None
        said = (
            (ChatMessage("assistant", INTERRUPTED),) if last and last.role == "tool" else ()
        )
        self._decide([e.Stopped(self.turn, loop.killed, loop.survivors, said)])
        self.stop()

    # Small things ---------------------------------------------------------------------------------

    def _move(self, event: str, facts: set[str] | None = None) -> None:
        moved = step(TURN, self.state, event, facts or frozenset())
        assert not isinstance(moved, Refusal), moved
        self.state = moved.state

    def _late(self, what: str, usage: Usage | None = None) -> None:
        self._decide([e.LateResult(self.turn, what, usage or Usage())])

    def _say(self, entry: e.Entry) -> None:
        self._decide([entry])

    def _decide(
        self,
        entries: list[e.Entry],
        effects: list[Effect] | None = None,
        urgent: list[Effect] | None = None,
    ) -> None:
        for entry in entries:
            self._conversation.extend(getattr(entry, "messages", ()))
        self._session.tell(
            Decided(self.name, tuple(entries), tuple(effects or ()), tuple(urgent or ()))
        )


class Acting:
    """What a turn has in hand: calls to start, calls that run, questions, the streamed text."""

    __slots__ = (
        "checkpoint",
        "is_over",
        "killed",
        "open",
        "partial",
        "questions",
        "survivors",
        "todo",
    )

    def __init__(self) -> None:
        self.todo: deque[ToolRequest] = deque()
        self.open: dict[str, ToolRequest] = {}
        self.questions: dict[str, ToolRequest] = {}
        self.partial: list[str] = []
        self.checkpoint: dict[str, Any] | None = None
        self.killed: tuple[int, ...] = ()
        self.survivors: tuple[int, ...] = ()
        self.is_over = False
