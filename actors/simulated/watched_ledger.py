"""A ledger that notes, of each effect, which entries must be durable before it may begin."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pykka import ActorRef

from ...journal.record import SessionRecord
from ...machines.delegation import Delegate, Dismiss, PassSteer, StopChild
from ...machines.effects import CancelModel, Effect, StopTool
from ...machines.pursuit import StopJudging
from ...machines.step import Refusal
from ...machines.workflow_order import LookAfter
from ..ledger import Ledger
from .happening import Sent

if TYPE_CHECKING:
    from ..decisions.decision import Decision, Role
    from ..environment import Environment

__all__ = ["URGENT", "WatchedLedger"]

URGENT = (CancelModel, StopTool, StopChild, StopJudging, LookAfter)
"""Effects that only stop something, and wait for no commit."""


class WatchedLedger(Ledger):
    """`note` takes the effects that are messages; those for the ports are noted there."""

    def __init__(
        self,
        record: SessionRecord,
        environment: Environment,
        now: Callable[[], float],
        note: Callable[[Any], None],
    ) -> None:
        super().__init__(record, environment, now)
        self._decided: dict[int, tuple[Effect, int]] = {}
        self._note = note

    def decide(self, role: Role, decision: Decision) -> Refusal | None:
        """Note after which entry the decision's effects may begin; it is not read off the outbox."""
        last = self.record.seq + len(decision.entries)
        for effect in decision.effects:
            self._decided[id(effect)] = effect, last
        return super().decide(role, decision)

    def decided(self, effect: Effect) -> int | None:
        """Return the newest entry of the decision that asks for an effect."""
        if isinstance(effect, URGENT):
            return 0
        known = self._decided.get(id(effect))
        return known[1] if known is not None else None

    def _perform(self, effect: Effect, reply_to: ActorRef[Any] | None) -> None:
        if isinstance(effect, Delegate | Dismiss | StopChild | PassSteer):
            self._note(Sent(effect, self.decided(effect)))
        super()._perform(effect, reply_to)
