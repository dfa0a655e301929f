"""Who changes which file: no two sessions of a program write to the same one at a time.

A claim begins with a call that changes a file and ends with its turn. Whoever comes second is told, and
does not wait: two that waited for each other would do so for ever. A session that waits for another
one changes nothing meanwhile, so its claims do not bind those that work for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Protocol

from ..journal.child_record import ChildRecord
from ..journal.record import SessionRecord
from ..machines.delivery import Relation

__all__ = ["Claimant", "Claims"]


class Claimant(Protocol):
    """A session as far as claims go; `parent` is whose child it is, empty for nobody's."""

    @property
    def record(self) -> SessionRecord:
        """Its state now."""
        ...

    @property
    def parent(self) -> str:
        """The session above it."""
        ...


class Claims:
    """The files claimed by the running turns of `sessions`, by session; for the actors' thread."""

    def __init__(self, sessions: Mapping[str, Claimant]) -> None:
        self._sessions = sessions
        self._held: dict[str, tuple[str, set[Path]]] = {}

    def of(self, session: str) -> Callable[[Path], str]:
        """Return what claims files for one session."""
        return partial(self.fault, session)

    def fault(self, session: str, path: Path) -> str:
        """Claim a resolved path for a session's turn; or say who has it, and claim nothing."""
        free = {session, *self._waiting_for(session)}
        for other in list(self._held):
            if self._is_over(other):
                del self._held[other]
            elif other not in free and path in self._held[other][1]:
                return (
                    f"{self._who(other)} is changing that file, until its turn ends: do something else "
                    "meanwhile and try again later, or say in your answer what you would change"
                )
        claimant = self._sessions.get(session)
        if claimant is not None:
            mine = self._held.setdefault(session, (claimant.record.turn, set()))
            mine[1].add(path)
        return ""

    def _is_over(self, session: str) -> bool:
        """Whether the turn that claimed has ended, with everything that it started."""
        claimant = self._sessions.get(session)
        turn = claimant.record.unfinished if claimant is not None else None
        return turn is None or turn.id != self._held[session][0]

    def _waiting_for(self, session: str) -> Iterator[str]:
        """Name the sessions above this one that wait for it."""
        while (child := self._as_child(session)) is not None:
            if child.relation != Relation.FOREGROUND_CHILD or not child.is_at_work:
                return
            session = self._sessions[session].parent
            yield session

    def _as_child(self, session: str) -> ChildRecord | None:
        """Return a session as its parent knows it."""
        claimant = self._sessions.get(session)
        parent = self._sessions.get(claimant.parent) if claimant is not None else None
        children = parent.record.children.values() if parent is not None else ()
        return next((one for one in children if one.session == session), None)

    def _who(self, session: str) -> str:
        child = self._as_child(session)
        return f"subagent `{child.name}`" if child is not None else f"session `{session}`"
