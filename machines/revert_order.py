"""What people may ask for when they want files as they were: messages to a session."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from .messages import Lane, Message

__all__ = ["Revert", "RevertOutcome"]


@dataclass(frozen=True, slots=True)
class Revert(Message):
    """A person wants files as they were; a running turn is stopped first.

    `scope`: the newest turn that changed files (or those since turn `since`), its last change, or
    the last revert itself (`undo`, of `paths` if any are named).
    """

    lane: ClassVar[Lane] = Lane.CONTROL
    scope: Literal["turn", "last", "undo"] = "turn"
    since: str = ""
    paths: tuple[str, ...] = ()
    force: bool = False
    is_dry_run: bool = False


@dataclass(frozen=True, slots=True)
class RevertOutcome(Message):
    """What became of revert `id`? Answered when that is known."""

    id: str
