"""What is journalled of a session's life: opened, left, taken up again, over."""

from dataclasses import dataclass

from ..machines.conversation import ChatMessage
from .entry import Entry
from .run_entries import WorkflowCopy

__all__ = [
    "Recovered",
    "SessionFinalized",
    "SessionFinalizing",
    "SessionLeaving",
    "SessionOpened",
    "SessionRenamed",
    "SessionResumed",
    "SessionSuspended",
]


@dataclass(frozen=True, slots=True)
class SessionOpened(Entry):
    """The first entry of every journal: what the model sees of it never changes after this.

    `messages` is what it has seen before its first word: a side talk its parent's conversation, a fork
    that of the session that it was `forked_from` (its id, and the entry). `workflow`: what the session
    runs, if it is a run.
    """

    session: str
    folder: str
    agent: str
    model: str
    system: str
    tools: tuple[str, ...] = ()
    user: str = ""
    parent: str = ""
    messages: tuple[ChatMessage, ...] = ()
    forked_from: str = ""
    workflow: WorkflowCopy | None = None


@dataclass(frozen=True, slots=True)
class SessionRenamed(Entry):
    """A person called the session something; empty: nothing any more."""

    name: str


@dataclass(frozen=True, slots=True)
class SessionResumed(Entry):
    """Somebody is there again."""


@dataclass(frozen=True, slots=True)
class SessionLeaving(Entry):
    """The program is being left; what runs is being stopped first, as far as `reaches` goes."""

    cause: str = "exit"
    reaches: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SessionSuspended(Entry):
    """The program was left; everything is kept."""

    cause: str = "exit"


@dataclass(frozen=True, slots=True)
class SessionFinalizing(Entry):
    """The session was told to end for good; what `reaches` names is being stopped first."""

    cause: str
    reaches: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SessionFinalized(Entry):
    """The session is over for good; `finalize` is a stable id for hooks."""

    finalize: str
    cause: str


@dataclass(frozen=True, slots=True)
class Recovered(Entry):
    """A process that owned the session died; what it left was put in order, and nothing runs.

    `messages` are results for the calls whose outcome is unknown. `last_active` is seconds since
    the epoch; `items` counts what waits or was interrupted.
    """

    cause: str
    items: int
    last_active: float
    messages: tuple[ChatMessage, ...] = ()
