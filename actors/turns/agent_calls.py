"""What a turn does with the reports and questions of an agent that is another program.

They come while the turn's call `agent` runs, and end with it. The agent's own tools are under the rules
of the session as far as the agent asks before it uses them.
"""

from __future__ import annotations

from typing import Any

from ...journal import entries as e
from ...journal.agent_entries import AgentSessionKnown, CallReported
from ...machines.agent_call import (
    AGENT_TOOL,
    AgentBound,
    AgentCalled,
    AgentCallEnded,
    AgentSaid,
    AnswerAgent,
)
from ...machines.conversation import ToolRequest
from ...machines.facts import Noticed, TextStreamed
from ...machines.messages import Answer
from ...machines.results import ToolFinished
from .entry import asked, denial, intended
from .tool_calls import ToolCalls

__all__ = ["AgentCalls"]

PATIENCE = "takes nothing in while it works: it is told when its answer is there, in the same turn."


class AgentCalls(ToolCalls):
    """The part of a turn that follows an agent's own calls: `inner`, and of these `wanted`."""

    def on_start(self) -> None:
        """Begin with none."""
        self._inner: dict[str, ToolRequest] = {}
        self._wanted: dict[str, ToolRequest] = {}

    @property
    def _agent_works(self) -> bool:
        return any(one.tool == AGENT_TOOL for one in self._loop.open.values())

    def _agent_told(self, message: AgentBound | AgentSaid | AgentCalled | AgentCallEnded) -> None:
        """Take in what it says; what comes after the call's end is nobody's any more."""
        if message.call not in self._loop.open:
            return
        match message:
            case AgentBound(session=session):
                self._decide([AgentSessionKnown(session)])
            case AgentSaid(text=text):
                self._environment.ears.pass_on(TextStreamed(self.turn, text))
            case AgentCalled() if self.state == "acting":
                self._agent_called(message.request, message.call, message.asks)
            case AgentCallEnded(inner=inner, status=status):
                request = self._inner.pop(inner, None)
                if request is not None:
                    self._decide([self._ended(request, status)])
            case _:
                pass

    def _agent_called(self, request: ToolRequest, within: str, asks: bool) -> None:
        call, tool, arguments = request.call, request.tool, request.arguments
        told = CallReported(self.turn, self.step, within, call, tool, arguments)
        begun = intended(self.turn, self.step, request, False)
        if not asks:
            self._inner[call] = request
            self._decide([told, begun])
            return
        permit = self._environment.toolbook.permit(request)
        match permit.do:
            case "allow":
                self._inner[call] = request
                self._decide([told, begun], [self._word(request, True)])
            case "ask" if self._environment.policy.can_ask:
                question = f"q-{self._environment.path}{call}"
                self._wanted[question] = request
                self._decide([told, asked(self.turn, question, request, permit)])
            case _:
                why = denial(permit.do, permit.rule)
                self._decide(
                    [told, self._not_run(request, "denied", why)], [self._word(request, False)]
                )

    def _question_answered(self, message: Answer) -> dict[str, Any]:
        request = self._wanted.get(message.question)
        if request is None or self._loop.cancel is not None:
            return super()._question_answered(message)
        given = self._always(message, request)
        if isinstance(given, str):
            return {"ok": False, "reason": given}
        del self._wanted[message.question]
        answered = e.QuestionAnswered(self.turn, message.question, message.choice)
        is_allowed = message.choice in ("allow", "always")
        if is_allowed:
            self._inner[request.call] = request
            begun: e.Entry = intended(self.turn, self.step, request, False)
        else:
            begun = self._not_run(request, "denied", "the user said no")
        self._decide([answered, *given, begun], [self._word(request, is_allowed)])
        return {"ok": True}

    def _withdraw_wanted(self) -> list[e.Entry]:
        """Take back what the agent asks: the turn ends."""
        gone: list[e.Entry] = []
        for question, request in self._wanted.items():
            gone.append(e.QuestionAnswered(self.turn, question, "withdrawn"))
            gone.append(self._not_run(request, "skipped", "the turn was interrupted"))
        self._wanted.clear()
        return gone

    def _end_inner(self, message: ToolFinished) -> list[e.Entry]:
        """End what the agent had not said the end of, with the agent's own call."""
        status = message.status if message.status != "timed_out" else "killed"
        ended = [self._ended(one, status) for one in self._inner.values()]
        self._inner.clear()
        return [*self._withdraw_wanted(), *ended]

    def _tell_patience(self) -> None:
        """Say that a steer waits for the end of the agent's answer."""
        if self._agent_works:
            self._environment.ears.pass_on(Noticed(f"{self._environment.agent} {PATIENCE}"))

    def _ended(self, request: ToolRequest, status: str) -> e.ToolEnded:
        return e.ToolEnded(self.turn, request.call, request.tool, status)

    def _not_run(self, request: ToolRequest, status: str, why: str) -> e.ToolRefused:
        return e.ToolRefused(self.turn, request.call, request.tool, status, why)

    def _word(self, request: ToolRequest, is_allowed: bool) -> AnswerAgent:
        return AnswerAgent(self.turn, self.epoch, request.call, is_allowed)
