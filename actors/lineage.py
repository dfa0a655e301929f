"""The sessions above one, as the gate in front of its effects sees them at this moment.

Every stop raises the epoch of the session it is given to, and marks with it each child that it reaches.
What a child does carries the epochs of the orders that gave it life, one for each ancestor. An order
that is older than a newer stop is void, whatever its receiver has been told in the meantime: a message
that is late can delay the news of a stop, never its effect.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..journal.child_record import ChildRecord

if TYPE_CHECKING:
    from .ledger import Ledger

__all__ = ["ROOT", "Lineage"]

OVER = ("suspended", "finalized")


class Lineage:
    """The ancestors of child session `session`; `parent` returns the ledger of the session above.

    A lineage without a parent is that of a session that is nobody's child.
    """

    __slots__ = ("_above", "_name", "_parent", "_session")

    def __init__(
        self,
        parent: Callable[[], Ledger | None] | None = None,
        name: str = "",
        session: str = "",
        above: Lineage | None = None,
    ) -> None:
        self._parent, self._name, self._session, self._above = parent, name, session, above

    def mandate(self) -> tuple[int, ...]:
        """Return the epochs of the newest orders that gave life, nearest ancestor first."""
        child = self._as_child()
        return (child.epoch, *child.above) if child is not None else ()

    def is_cancelled(self, born: tuple[int, ...]) -> bool:
        """Whether a stop of an ancestor is newer than the orders with these epochs."""
        if self._parent is None:
            return False
        child = self._as_child()
        if child is None or not born or born[0] < child.cancelled:
            return True
        return self._above is not None and self._above.is_cancelled(born[1:])

    def may_start(self) -> bool:
        """Whether the session may begin something on its own now."""
        return not self.is_cancelled(self.mandate())

    def _as_child(self) -> ChildRecord | None:
        """Return the session as its parent knows it; none if either is over, or it is not known."""
        ledger = self._parent() if self._parent is not None else None
        if ledger is None or ledger.broken or ledger.record.state in OVER:
            return None
        child = ledger.record.children.get(self._name)
        is_its = child is not None and child.session == self._session and child.is_at_work
        return child if is_its else None


ROOT = Lineage()
"""The lineage of a session that is nobody's child."""
