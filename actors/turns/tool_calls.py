"""What a turn does with the tool calls of one answer: permission, intent, run, result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pykka import ActorRef

from ...journal import entries as e
from ...journal.compaction_record import grow
from ...journal.permission_entries import AllowanceGiven
from ...machines.conversation import ChatMessage, ToolRequest, Usage
from ...machines.effects import Effect
from ...machines.facts import Fact
from ...machines.messages import Answer
from ...machines.orders import Decided, TakeSteers
from ...machines.step import Refusal, step
from ...machines.turn import TURN
from ..actor import Actor
from ..intake import HAND_BACK, handing_back
from .acting import Acting
from .effect import start_effect
from .entry import asked, denial, intended, refused
from .purpose import Purpose

if TYPE_CHECKING:
    from ..environment import Environment, Permit
    from ..system import ActorSystem

__all__ = ["ToolCalls"]


class ToolCalls(Actor):
    """The half of a turn that deals with tools; `Turn` is the loop around it.

    `conversation` is what the model has seen, oldest first, and only grows, but where it is summed up.
    Calls that change nothing run side by side, all others one after another, each journalled before it
    starts.
    """

    def __init__(
        self,
        system: ActorSystem,
        turn: str,
        epoch: int,
        conversation: tuple[ChatMessage, ...],
        session: ActorRef[Any],
        queue: ActorRef[Any],
        environment: Environment,
        awaited: tuple[str, ...] = (),
        purpose: Purpose | None = None,
    ) -> None:
        super().__init__(system)
        self.turn, self.epoch = turn, epoch
        self.state: str = TURN.initial
        self.step: int = 0
        self._conversation = list(conversation)
        self._session, self._queue, self._environment = session, queue, environment
        self._loop = Acting(awaited)
        self._purpose = purpose or Purpose()
        self._fill = self._purpose.fill

    # Calls ----------------------------------------------------------------------------------------

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
        if request.tool == HAND_BACK and permit.do != "deny":
            self._loop.open[request.call] = request
            self._decide([intended(self.turn, self.step, request, False)])
            order = handing_back(self.turn, self.epoch, self.step, request, self.actor_ref)
            self._queue.tell(order)  # what waits is the queue's to decide; nobody need be asked
            return
        match permit.do:
            case "allow":
                self._intend(request, permit.may_leave_folder)
            case "ask" if self._environment.policy.can_ask:
                self._ask(request, permit)
            case _:
                self._refuse(request, "denied", denial(permit.do, permit.rule))

    def _intend(self, request: ToolRequest, may_leave_folder: bool = False) -> None:
        self._loop.open[request.call] = request
        is_idempotent = self._environment.toolbook.is_idempotent(request.tool)
        run = start_effect(self.turn, self.epoch, request, may_leave_folder)
        self._decide([intended(self.turn, self.step, request, is_idempotent)], [run])

    def _ask(self, request: ToolRequest, permit: Permit) -> None:
        question = f"q-{self._environment.path}{request.call}"
        self._loop.open[request.call] = request
        self._loop.questions[question] = request
        if permit.may_leave_folder:
            self._loop.outside.add(question)
        self._decide([asked(self.turn, question, request, permit)])

    def _question_answered(self, message: Answer) -> dict[str, Any]:
        if self._loop.cancel is not None:
            return {"ok": False, "reason": "the turn is being stopped"}
        request = self._loop.questions.get(message.question)
        if request is None:
            return {"ok": False, "reason": f"no question `{message.question}` is open"}
        given = self._always(message, request)
        if isinstance(given, str):
            return {"ok": False, "reason": given}
        del self._loop.questions[message.question], self._loop.open[request.call]
        self._decide([e.QuestionAnswered(self.turn, message.question, message.choice), *given])
        if message.choice in ("allow", "always"):
            self._intend(request, message.question in self._loop.outside)
        else:
            why = f"the user said no{': ' + message.reason if message.reason else ''}"
            self._refuse(request, "denied", why)
            self._start_calls()
        return {"ok": True}

    def _always(self, message: Answer, request: ToolRequest) -> list[e.Entry] | str:
        """Remember what is allowed from now on, or say why that does not fit."""
        if message.choice != "always":
            return []
        found = self._environment.toolbook.allowance(request, message.reason)
        if isinstance(found, str):
            return found
        self._environment.toolbook.allow(*found)
        return [AllowanceGiven(*found)]

    def _refuse(self, request: ToolRequest, status: str, reason: str) -> None:
        text = f"[{request.tool} was not run: {reason}]"
        self._decide([refused(self.turn, request, status, reason, text)])

    # Small things ---------------------------------------------------------------------------------

    def _ask_for_steers(self, is_closing: bool) -> None:
        self._loop.is_asking = True
        self._queue.tell(TakeSteers(self.turn, self.step + 1, is_closing, self.actor_ref))

    def _pass_on(self, fact: Fact) -> None:
        self._environment.ears.pass_on(fact)

    def _move(self, event: str, facts: set[str] | frozenset[str] = frozenset()) -> str:
        moved = step(TURN, self.state, event, facts)
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
            grow(self._conversation, entry)
        self._session.tell(Decided(self.name, tuple(entries), tuple(effects), tuple(urgent)))
