"""What is journalled of limits: that one was reached, and that a person granted more."""

from dataclasses import dataclass

from .entry import Entry


@dataclass(frozen=True, slots=True)
class LimitReached(Entry):
    """A model call was not made because of a limit; `what` says which, and how much is used."""

    turn: str
    what: str


@dataclass(frozen=True, slots=True)
class LimitsGranted(Entry):
    """A person grants this session as much again; what was used stays counted."""

    user: str = ""
