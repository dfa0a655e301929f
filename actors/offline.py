"""A session of which only the queue is there: for changes from outside while no process has it open.

It journals what changes the queue and nothing else: that a session was cut off, and how, stays as it
is for the process that opens the session next. Nothing ever starts here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ..journal import entries as e
from ..journal.queue_record import ItemRecord
from ..journal.recovery import closing_messages
from ..machines import protocol as m
from ..machines.disposition import Intent, Situation
from .decisions import queueing, reverting, routing
from .decisions.decision import Decision, answer, refusal
from .decisions.handlers import handler_of
from .decisions.queries import inspect_queue, known, not_open
from .inspection import describe_session, inspect_session
from .ledger import Ledger, Member
from .outcome_waiters import OutcomeWaiters

if TYPE_CHECKING:
    from .kernel.system import ActorSystem


class OfflineSession(Member):
    """Keeps a session's queue; every message waits, whatever its disposition."""

    role = "session"

    def __init__(self, system: ActorSystem, ledger: Ledger) -> None:
        super().__init__(system, ledger)
        self.waiters = OutcomeWaiters()

    def on_start(self) -> None:
        """Leave the work of a dead owner as it is."""
        self.enlist()

    def on_receive(self, message: Any) -> Any:
        """Change the queue, or say that the session is not open."""
        match message:
            case m.Wake():
                self.awake()
            case m.Committed(seq=seq):
                self.ledger.committed(seq)
            case m.StoreBroke():
                self.ledger.break_off(message)
            case m.RestoreCounted() | m.RestoreEnded():
                self.decide(reverting.restored(self.record, message, self.environment))
                self.waiters.answer(self.record)
            case m.NoteEntry(entry=entry):
                self.decide(Decision(entries=(entry,)))
            case m.Describe():
                return describe_session(self.record, self.environment)
            case m.Inspect(is_of_queue=False):
                return inspect_session(self, self.record, {})
            case _ if self.ledger.broken:
                return self._turn_away(message, self.ledger.broken)
            case _ if self.record.state in ("finalizing", "finalized"):
                return self._turn_away(message, "session_finalized", m.FINALIZED, m.ANOTHER_CHAT)
            case _:
                return self._obey(message)
        return None

    def _obey(self, message: Any) -> Any:
        """Carry a message out as its row says for a session that no program runs, or refuse it."""
        record, environment = self.record, self.environment
        handler = handler_of(message)
        match message:
            case m.UserMessage():
                return self._keep(message)
            case m.QueueChange() if message.op != "steer":
                return self._change(message)
            case m.Inspect():
                return inspect_queue(record)
            case m.RevertOutcome(id=name):
                return self.waiters.outcome(self, record, name)
            case _ if handler is not None and handler.offline is not None:
                return self.decide(handler.offline(record, message, environment))
            case _:
                return refusal(self._not_open).reply

    @property
    def _not_open(self) -> str:
        return not_open(self.record)

    def _turn_away(self, message: Any, reason: str, why: str = "", hint: str = "") -> Any:
        if isinstance(message, m.UserMessage):
            return self.decide(routing.rejection(reason, message.said, hint))
        return refusal(why or reason).reply

    def _keep(self, message: m.UserMessage) -> Any:
        before = known(self.record, message.said.client_id)
        if before is not None:
            return self.decide(Decision(facts=(before,), reply=answer()))
        environment = self.environment
        waiting = m.UserMessage(
            type=message.type,
            said=message.said,
            intent=Intent.EXPLICIT_QUEUE,
            queue_position=message.queue_position,
        )
        row, said = routing.looked_up(
            environment.dispositions, waiting, Situation.HELD, environment.policy
        )
        order = routing.enqueue(said, row, "queue")
        self._take_in(queueing.enqueue(self.record, order, environment))
        return answer()

    def _take_in(self, decision: Decision) -> Any:
        reply = self.decide(decision)
        self.settle(queueing.due)
        return reply

    def _change(self, message: m.QueueChange) -> Any:
        """Change the queue; to take back what ran when its owner died is to end that, first."""
        cut_off = self._cut_off()
        if cut_off is not None and self._is_taken_back(cut_off, message):
            why, hint = "its program died, then it was removed", "send it again"
            if message.moved_to:
                why, hint = f"{e.MOVED}{message.moved_to}", ""
            said = closing_messages(self.record)
            over = e.TurnEnded(
                turn=cut_off.turn, status="failed", reason=why, hint=hint, messages=said
            )
            self.decide(Decision(entries=(over,)))
            if message.op == "withdraw":
                return answer(withdrawn=[cut_off.number], text=cut_off.text)
        record = replace(self.record, queue=self.record.queue.unedited())
        return self._take_in(queueing.change(record, message))

    def _is_taken_back(self, item: ItemRecord, message: m.QueueChange) -> bool:
        last = self.record.queue.live()[-1].number
        is_meant = (message.number or last) == item.number
        return message.op in ("clear", "discard") or (message.op == "withdraw" and is_meant)

    def _cut_off(self) -> ItemRecord | None:
        return next((item for item in self.record.queue.special() if item.state == "running"), None)
