"""A store behind a connection that loses answers: before a write, after it, or while it still runs.

What is lost while it runs is written only when the store is used the next time after it was asked, as by
a server process that outlives its connection.
"""

from collections.abc import Sequence

from ..journal.memory import MemoryStore
from ..journal.store import Commit, Position, Posted
from ..machines.errors import ConnectionLost
from .schedule import Dice


class LossyStore:
    """What a writer needs of a store; some of its commits lose their answers.

    `losses` is how often, from 0 to 1; at 0 no dice are thrown. `lost` counts them by their kind.
    """

    def __init__(self, store: MemoryStore, dice: Dice, losses: float) -> None:
        self._store, self._dice, self._losses = store, dice, losses
        self._late: list[Commit] = []
        self.lost = {"before": 0, "after": 0, "late": 0}

    def position(self, session: str) -> Position:
        """Read where a journal stands."""
        return self._store.position(session)

    def unconsumed(self, session: str) -> tuple[Posted, ...]:
        """Read the inbox."""
        return self._store.unconsumed(session)

    def commit(self, commits: Sequence[Commit]) -> list[bool]:
        """Commit, and perhaps lose the answer. Raises `ConnectionLost`."""
        late, self._late = self._late, []
        if late:
            self._store.commit(late)
        if not self._losses or self._dice.random() >= self._losses:
            return self._store.commit(commits)
        kind = self._dice.choice(("before", "after", "late"))
        self.lost[kind] += 1
        if kind == "after":
            self._store.commit(commits)
        elif kind == "late" and not late:
            self._late = list(commits)
        raise ConnectionLost(f"the answer was lost {kind} the write")
