"""The asks that wait for an outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..journal.record import SessionRecord
from .decisions.reverting import answer_of
from .kernel.actor import LATER

if TYPE_CHECKING:
    from .kernel.actor import Actor


class OutcomeWaiters:
    """The asks for the outcome of a revert, by its id."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[Any]] = {}

    def outcome(self, actor: Actor, record: SessionRecord, name: str) -> Any:
        """Answer with the outcome of a revert, now or once it is over; return this from the handler."""
        known = record.reverts.get(name)
        if known is None or not known.is_open:
            return answer_of(known)
        if actor.envelope is not None and actor.envelope.reply_to is not None:
            self._waiting.setdefault(name, []).append(actor.envelope.reply_to)
        return LATER

    def answer(self, record: SessionRecord) -> None:
        """Answer those whose revert is over."""
        for name in list(self._waiting):
            known = record.reverts.get(name)
            if known is None or not known.is_open:
                for asker in self._waiting.pop(name):
                    asker.set(answer_of(known))
