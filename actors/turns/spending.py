"""What a turn may use: a call is reserved before it is made, and settled when it is over."""

from __future__ import annotations

from ...journal.limit_entries import LimitReached
from ...machines.conversation import Usage
from ...machines.limits import ANSWER
from ...machines.messages import Interrupt
from .compacting import Compacting

__all__ = ["Spending"]

CAPPED = 8_192
"""Tokens: an answer may be as long as it likes while more than this is left."""
MORE = "`/limits more` grants as much again; `/queue resume` goes on"


class Spending(Compacting):
    """The part of a turn that keeps to limits. `_is_spent`: it waits to be stopped for one."""

    _is_spent = False
    _reserved = 0

    def _may_call(self, tokens: int) -> bool:
        """Reserve a call that takes so many tokens; if a limit forbids it, stop, and say so."""
        account, price = self._environment.account, self._environment.price
        wanted = Usage(input=tokens, output=ANSWER)
        wanted = Usage(tokens, ANSWER, cost=price.cost(wanted) if price else 0.0)
        refusal = account.refusal(wanted, self.system.now())
        if refusal:
            self._stop_for(refusal)
            return False
        account.reserve(self._call_name, wanted)
        self._reserved = tokens
        return True

    def _most(self) -> int | None:
        """Say how long the answer may get; none: as long as it likes."""
        left = self._environment.account.room()
        return None if left < 0 or left > CAPPED else left + ANSWER

    def _settle_call(self, usage: Usage | None) -> None:
        """Count what a call took; of one that was cut off, what was sent."""
        if self._call_name in self._environment.account.reserved:
            sent = Usage(input=self._reserved)
            self._environment.account.settle(self._call_name, usage or sent)

    @property
    def _call_name(self) -> str:
        return f"{self._environment.path}{self.turn}"

    def _stop_for(self, what: str) -> None:
        """Stop: a person's session is interrupted and holds what waits, a child tells its parent."""
        reached = LimitReached(self.turn, what)
        if self._environment.delegation.depth:
            self._finish("fail", "failed", f"a limit is reached, {what}", "", before=(reached,))
            return
        self._is_spent = True
        self._decide([reached])
        self._session.tell(Interrupt("budget"))
