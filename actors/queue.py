"""The queue actor: the one authority on what waits, and on what runs next.

What a person says is taken in as it is routed, by the session (`decisions/queueing.py` decides that,
too): nothing said later comes before it, and no actor that fails can lose it on the way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..machines import protocol as m
from .actor import Actor
from .decisions import queueing
from .decisions.decision import Decision
from .ledger import Ledger, LedgerHandle

if TYPE_CHECKING:
    from .system import ActorSystem


class Queue(Actor):
    """One session's queue: the actor that decides about the items of the record."""

    def __init__(self, system: ActorSystem, ledger: Ledger) -> None:
        super().__init__(system)
        self.ledger = LedgerHandle(ledger, self, "queue")

    def on_start(self) -> None:
        """Do what became due in the meantime; a turn that waits for an answer asks again."""
        self.ledger.enlist()
        self.ledger.settle(queueing.due)
        self.ledger.tell("turn", m.Wake())

    def on_receive(self, message: Any) -> Any:
        """Decide; then start the next turn, if one may begin, and whatever else is due."""
        match message:
            case m.Wake():
                self.ledger.awake()
                reply = None
            case m.Inspect():
                queue = self.ledger.record.queue
                reply = {"state": queue.state, "waiting": queue.waiting_count}
            case _:
                decision = self._decision(message)
                if decision is None:
                    return super().on_receive(message)
                reply = self.ledger.decide(decision)
        self.ledger.settle(queueing.due)
        return reply

    def _decision(self, message: Any) -> Decision | None:
        record, environment = self.ledger.record, self.ledger.environment
        match message:
            case m.Enqueue():
                return queueing.enqueue(record, message, environment)
            case m.Offer():
                return queueing.offer(record, message)
            case m.AnswerOffer():
                return queueing.offer_answer(record, message)
            case m.TakeSteers():
                return queueing.take_steers(record, message)
            case m.HandBack():
                return queueing.give_back(record, message)
            case _:
                return None
