"""The folder of a child's session: its root's, so that what children change is the root's turn's."""

from __future__ import annotations

from collections.abc import Callable

from ...journal.workspace.plan import Outcome, RevertOrder
from ...journal.workspace.restore import RestoreFailed
from ...journal.workspace.workspace import FileChange
from .workspace import WorkspacePort


class ChildWorkspace:
    """Enters a child's calls with those of the session above it; see the protocol `WorkspacePort`.

    `turn_of` says which turn of the session above the child works for now: a child that is resumed
    may work for another. Beneath a child the same holds, so that all is the turn of the root.
    """

    def __init__(self, above: WorkspacePort, session: str, turn_of: Callable[[], str]) -> None:
        self._above = above
        self._session = session
        self._turn_of = turn_of

    async def begin(self, turn: str, call: str, tool: str, path: str | None) -> list[str]:
        """Look before a call."""
        return await self._above.begin(self._turn_of(), self._name(call), tool, path)

    def end(self, call: str) -> None:
        """Look, soon, at what a call has changed."""
        self._above.end(self._name(call))

    def _name(self, call: str) -> str:
        """Tell apart the calls of sessions, each of which counts from one."""
        return f"{self._session}:{call}"

    async def count(self, order: RevertOrder) -> int:
        """Return how many files an order is about: none, they are the parent's."""
        return 0

    async def revert(self, order: RevertOrder) -> Outcome:
        """Refuse: which files belong to a child alone, nobody can tell. Raises `RestoreFailed`."""
        raise RestoreFailed("what a subagent changed belongs to its parent's turn: revert there")

    async def diff(self, turns: tuple[str, ...]) -> list[FileChange]:
        """Say what turns changed: nothing that is not the parent's."""
        return []

    async def changed(self, turn: str, calls: str = "") -> tuple[int, bool]:
        """Count the files that calls of a turn left changed: among those of the turn above."""
        return await self._above.changed(self._turn_of(), self._name(calls or f"{turn}."))

    async def changed_files(self, turns: tuple[str, ...]) -> list[str]:
        """Name the files that turns changed: none that are not the parent's."""
        return []

    async def aclose(self) -> None:
        """Leave the folder to the session that has it."""
