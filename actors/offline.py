"""A session of which only the queue is there: for changes from outside while nobody has it open.

It journals what changes the queue and nothing else: that a session was cut off, and how, stays as it
is for whoever takes the session up next. Nothing ever starts here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykka import ActorRef

from ..journal import entries as e
from ..journal.queue import ItemRecord
from ..journal.recovery import closing_messages
from ..machines.delegation import SideTalk
from ..machines.disposition import Intent, Situation
from ..machines.messages import (
    Allow,
    Interrupt,
    PolicyChange,
    QueueChange,
    QueueImport,
    Rename,
    UserMessage,
)
from ..machines.orders import Committed, Down, Inspect, NoteEntry, StoreBroke, Wake
from ..machines.pursuit import ChangeGoal, SetGoal
from ..machines.results import RestoreCounted, RestoreEnded
from ..machines.revert_order import Revert, RevertOutcome
from .actor import Forward
from .askers import Askers
from .decisions import goals, reverting, routing
from .decisions.decision import Decision, answer, refusal
from .decisions.standing import known
from .inspection import inspect_session
from .ledger import Ledger, LedgerHandle
from .mailbox import tell
from .queue import Queue
from .supervisor import ChildSpec, Supervisor

if TYPE_CHECKING:
    from .system import ActorSystem

__all__ = ["OfflineSession"]


class OfflineSession(Supervisor):
    """Keeps a session's queue; everything that was said waits, whatever it says."""

    def __init__(self, system: ActorSystem, ledger: Ledger) -> None:
        super().__init__(system)
        self.ledger = LedgerHandle(ledger, self, "session")
        self.askers = Askers()

    def on_start(self) -> None:
        """Start the queue alone: what a dead owner left stays as it was left."""
        self.ledger.enlist()

        def start() -> ActorRef[Any]:
            return Queue.start(self.system, self.ledger.whole)

        self.start_child(ChildSpec("queue", start))

    def on_receive(self, message: Any) -> Any:
        """Change the queue, or say that the session is not open."""
        match message:
            case Wake():
                self.ledger.awake()
            case Committed(seq):
                self.ledger.whole.committed(seq)
            case StoreBroke():
                self.ledger.whole.break_off(message)
            case Down():
                self.handle_down(message)
            case RestoreCounted() | RestoreEnded():
                self.ledger.decide(reverting.restored(self.ledger.record, message))
                self.askers.answer(self.ledger.record)
            case NoteEntry(entry):
                self.ledger.decide(Decision(entries=(entry,)))
            case Inspect(is_of_queue=False):
                return inspect_session(self.ledger.whole, self.mailbox, self.children)
            case _ if self.ledger.broken:
                return self._turn_away(message, self.ledger.broken)
            case _ if self.ledger.record.state in ("finalizing", "finalized"):
                return self._turn_away(message, "session_finalized")
            case _:
                return self._obey(message)
        return None

    def _obey(self, message: Any) -> Any:
        match message:
            case UserMessage():
                return self._keep(message)
            case SideTalk():
                reason = self._not_open
                return self.ledger.decide(
                    routing.rejection(reason, message.text, message.client_id)
                )
            case Interrupt():
                return answer(interrupted=None, reason="nothing runs")
            case QueueChange("withdraw" | "clear"):
                return self._withdraw(message)
            case QueueChange("steer"):
                return refusal(self._not_open).reply
            case QueueChange() | QueueImport() | Inspect():
                return Forward(self.children["queue"].ref)
            case ChangeGoal(op="resume") if self.ledger.record.goals.is_pursued:
                return refusal(self._not_open).reply
            case Revert():
                return self.ledger.decide(reverting.offline(self.ledger.record, message))
            case RevertOutcome(name):
                return self.askers.outcome(self, self.ledger.record, name)
            case SetGoal() | ChangeGoal():
                policy = self.ledger.environment.goals
                return self.ledger.decide(goals.offline(self.ledger.record, message, policy))
            case PolicyChange() | Rename() | Allow():
                return self.ledger.decide(routing.preference(message, self.ledger.environment))
            case _:
                return refusal(self._not_open).reply

    @property
    def _not_open(self) -> str:
        return goals.NOT_OPEN.format(self.ledger.record.id)

    def _turn_away(self, message: Any, reason: str) -> Any:
        if isinstance(message, UserMessage):
            return self.ledger.decide(routing.rejection(reason, message.content, message.client_id))
        return refusal(reason).reply

    def _keep(self, message: UserMessage) -> Any:
        before = known(self.ledger.record, message.client_id)
        if before is not None:
            return self.ledger.decide(Decision(facts=(before,), reply=answer()))
        environment = self.ledger.environment
        waiting = UserMessage(
            message.type,
            message.content,
            Intent.EXPLICIT_QUEUE,
            queue_position=message.queue_position,
            user=message.user,
            client_id=message.client_id,
            attached=message.attached,
        )
        row, said = routing.looked_up(
            environment.dispositions, waiting, Situation.BUSY, environment.policy
        )
        tell(self.children["queue"].ref, routing.enqueue(self.ledger.record, said, row, "queue"))
        return answer()

    def _withdraw(self, message: QueueChange) -> Any:
        """Let the queue take back; what ran when its owner died is ended first, here."""
        queue = self.children["queue"].ref
        cut_off = self._cut_off()
        if cut_off is None:
            return Forward(queue)
        live = self.ledger.record.queue.live()
        number = message.number or live[-1].number
        if message.op == "withdraw" and number != cut_off.number:
            return Forward(queue)
        reason, messages = (
            "its program died, then it was taken back",
            closing_messages(self.ledger.record),
        )
        over = e.TurnEnded(cut_off.turn, "failed", reason, "say it again", messages)
        self.ledger.decide(Decision(entries=(over,)))
        if message.op == "clear":
            return Forward(queue)
        return answer(withdrawn=[cut_off.number], text=cut_off.text)

    def _cut_off(self) -> ItemRecord | None:
        return next(
            (item for item in self.ledger.record.queue.live() if item.state == "running"), None
        )
