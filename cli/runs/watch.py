"""Follows a run from its events until it has ended, and stops it when a signal says so."""

from __future__ import annotations

import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from ...gateway.conversation import Conversation
from ...gateway.events.contract import Event
from ...machines.errors import SteersmanError
from ...machines.messages import Interrupt
from ..leaving import Leaving, leave_through
from ..settling import Settling

LONG, SHORT = 5.0, 0.5
"""Seconds between two looks at a run that goes on, whose record is large, and at one that has ended."""
_CODES = {"succeeded": 0, "failed": 1, "interrupted": 130}


class RunWatch:
    """One run: `ended` is its last event, none while it goes on. `on_stop` is told of a first stop."""

    def __init__(self) -> None:
        self.settling = Settling()
        self.settling.pause = LONG
        self.ended: Event | None = None
        self.conversation: Conversation | None = None
        self.on_stop: Callable[[], None] = lambda: None
        self._is_stopping = False

    def hear(self, event: Event) -> None:
        """Take note of an event; loop's thread."""
        self.settling.hear(event)
        if event["type"] == "run_ended" and "parent" not in event:
            self.ended = event
            self.settling.pause = SHORT
        elif event["type"] == "run_started" and "parent" not in event:
            self.ended = None
            self.settling.pause = LONG

    def wait(self, conversation: Conversation) -> None:
        """Block until the run has ended and nothing of it is left."""
        self.settling.wait(conversation)

    def stop(self) -> None:
        """Interrupt the run, as a first Ctrl-C does."""
        conversation = self.conversation
        if conversation is None:
            return
        said = conversation.runtime.next_said()
        conversation.runtime.tell(conversation.session, Interrupt("stop", said=said))
        if not self._is_stopping:
            self._is_stopping = True
            self.on_stop()

    @contextmanager
    def stopping_on_interrupt(self) -> Generator[None]:
        """Let a first Ctrl-C interrupt the run instead of leaving at once."""

        def way(leaving: Leaving) -> bool:
            if leaving.exit_code != 128 + signal.SIGINT or self.conversation is None:
                return False
            self.stop()
            return True

        with leave_through(way):
            yield

    @property
    def exit_code(self) -> int:
        """0: every step came to a good end; 1: one failed; 130: interrupted."""
        if self.settling.is_broken or self.ended is None:
            return 1
        return _CODES[self.ended["status"]]


def changes_of(conversation: Conversation) -> list[str]:
    """Name the files that a run has changed, over all its turns, but not what it keeps for itself."""
    live = conversation.runtime.sessions.get(conversation.session)
    workspace = live.performer.scene.workspace if live is not None else None
    if live is None or workspace is None:
        return []
    turns = tuple(f"t{number}" for number in range(1, live.record.turns_made + 1))
    try:
        found: list[str] = conversation.runtime.run(_changed(workspace, turns))
    except (OSError, SteersmanError):
        return []  # what cannot be looked at is told where it is reverted
    return [one for one in found if not _is_own(one, conversation.session)]


def _is_own(path: str, run: str) -> bool:
    """Whether a file lies in a folder of `.steersman` that bears the run's id."""
    home, _, rest = path.partition("/")
    return home == ".steersman" and run in rest.partition("/")[0]


async def _changed(workspace: Any, turns: tuple[str, ...]) -> list[str]:
    files: list[str] = await workspace.changed_files(turns)
    return files
