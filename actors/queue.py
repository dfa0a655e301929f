"""The queue actor: the one authority on what waits, and on what runs next.

What a person says is taken in as it is routed, by the session (`decisions/queueing.py` decides that,
too): nothing said later comes before it, and no actor that fails can lose it on the way.
"""

from __future__ import annotations

from typing import Any

from ..machines import protocol as m
from .decisions import queueing, turning
from .decisions.decision import Decision
from .decisions.queries import inspect_queue
from .ledger import Member


class Queue(Member):
    """One session's queue: the actor that decides about the items of the record."""

    role = "queue"

    def on_start(self) -> None:
        """Do what became due in the meantime; a turn that waits for an answer asks again."""
        self.enlist()
        self.settle(queueing.due)
        self.ledger.tell("turn", m.Wake())
        self._look_after_provider()

    def on_receive(self, message: Any) -> Any:
        """Decide; then start the next turn, if one may begin, and whatever else is due."""
        match message:
            case m.Wake():
                self.awake()
                reply = None
            case m.Inspect():
                reply = inspect_queue(self.record)
            case m.TimerFired():
                self._look_after_provider()
                reply = None
            case _:
                decision = self._decision(message)
                if decision is None:
                    return super().on_receive(message)
                reply = self.decide(decision)
        self.settle(queueing.due)
        return reply

    def _look_after_provider(self) -> None:
        """Go on with a turn that waited for its provider when the program died, in time."""
        left = turning.left_after_crash(self.record, self.system.now())
        if left is None or self.environment.is_offline:
            return
        if left:
            self.decide(Decision(effects=(turning.look_later(left),)))
        else:
            self.ledger.tell("session", m.ResumeQueue())

    def _decision(self, message: Any) -> Decision | None:
        record, environment = self.record, self.environment
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
