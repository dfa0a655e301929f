"""The seam to a session's folder: look before and after a call, give files back, say what changed.

What is asked happens in the order in which it is asked, and off the loop; so whoever waits for `begin`
waits for the look after the call before, too, and nobody else does.
"""

from typing import Protocol

from ...journal.workspace.plan import Outcome, RevertOrder
from ...journal.workspace.workspace import FileChange


class WorkspacePort(Protocol):
    """One session's folder; see `journal.workspace` for what the words mean."""

    async def begin(self, turn: str, call: str, tool: str, path: str | None) -> list[str]:
        """Look before a call; returns what a person should be told. `path` none: it may be any."""
        ...

    def end(self, call: str) -> None:
        """Look, soon, at what a call has changed."""
        ...

    async def count(self, order: RevertOrder) -> int:
        """Return how many files an order is about, once no call runs any more."""
        ...

    async def revert(self, order: RevertOrder) -> Outcome:
        """Give files back. Raises `RestoreFailed`; then nothing has changed."""
        ...

    async def diff(self, turns: tuple[str, ...]) -> list[FileChange]:
        """Say what turns changed."""
        ...

    async def changed(self, turn: str, calls: str = "") -> tuple[int, bool]:
        """Count the files that calls of a turn left changed, and say whether that is known of all.

        `calls`: only of calls whose names begin so.
        """
        ...

    async def changed_files(self, turns: tuple[str, ...]) -> list[str]:
        """Name the files that turns changed, and that are not as they were before."""
        ...

    async def aclose(self) -> None:
        """Wait for the last look."""
        ...
