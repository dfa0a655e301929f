"""Messages of people and other programs to a session: frozen values, each with its lane."""

from enum import IntEnum
from typing import Any, ClassVar, Literal

from .policy import RoutesChoice
from .said import Said, StopOrder
from .value import Value

# The base of all messages between actors, and the lanes they travel in ----------------------------
# Lanes are served SYSTEM, then CONTROL, then DATA; within a lane each sender's messages stay in order.
# SYSTEM is the runtime's own traffic (a child is down, journal entries that were decided, commits that
# are durable); CONTROL is what must not wait behind work (interrupt, steer, timer); DATA is everything
# else. Only messages from outside (`is_external`) are counted against a mailbox's bound.


class Lane(IntEnum):
    """Service order of a mailbox, first to last."""

    SYSTEM = 0
    CONTROL = 1
    DATA = 2


class Message(Value):
    """Base of all messages; a subclass that says nothing travels in DATA, from inside."""

    lane: ClassVar[Lane] = Lane.DATA
    is_external: ClassVar[bool] = False


class UserMessage(Message):
    """A person's message, classified before it is posted; one type from every surface.

    `intent` and `matched` are the classification, `queue_position` where to put it (none: last).
    `then` is what of an interrupting message is left to run next, empty if nothing. `utterance` rises
    with each message of one client: a cancel overtakes those before it. `to` names the
    child that a steer is for, or `parent`; `revert` is what to restore once the turn has stopped.
    """

    type: Literal["normal", "steer", "interrupt"]
    said: Said
    intent: str
    matched: str = ""
    then: str = ""
    queue_position: int | None = None
    utterance: int = 0
    to: str = ""
    revert: Literal["", "turn", "last"] = ""

    @property
    def lane(self) -> Lane:  # type: ignore[override]
        """CONTROL for whatever stops or steers, so that it never waits behind data."""
        return Lane.DATA if self.type == "normal" else Lane.CONTROL

    @property
    def is_external(self) -> bool:  # type: ignore[override]
        """Counted against the bound, apart from interrupts, which are never refused."""
        return self.type != "interrupt"


class Interrupt(Message):
    """A stop by command, key or signal, by a limit or the parent.

    `turn` none addresses whatever turn runs; a turn's id addresses that one and no other.
    """

    lane: ClassVar[Lane] = Lane.CONTROL
    order: StopOrder
    turn: str = ""


CHOICES = ("allow", "always", "deny")
"""The answers to a tool call's question."""


class Answer(Message):
    """A person's answer to a question.

    To a tool call's question `choice` is allow, always or deny; `reason` is why not, or with `always`
    the pattern that is allowed from now on, empty for this call. To a step's question it is one of the
    step's options, by text or number, or free text; `deny` with a reason: no person answers.
    """

    lane: ClassVar[Lane] = Lane.CONTROL
    question: str
    choice: str
    reason: str = ""


class Allow(Message):
    """A person lets calls of `tool` that match `pattern` run unasked; without `is_given` no more."""

    lane: ClassVar[Lane] = Lane.CONTROL
    tool: str
    pattern: str
    is_given: bool = True


class QueueChange(Message):
    """A change of the queue that a person asked for: `op` with its number, new words or position.

    `position` counts from 1 among what waits or was interrupted. `to`: the child to steer, `parent`,
    or empty for what is at work; the session finds out `for_children`. `editor` is the client in which
    a person begins to edit message `number`, or stops; without a number all that it edits.
    """

    lane: ClassVar[Lane] = Lane.CONTROL
    op: Literal[
        "withdraw",
        "clear",
        "hold",
        "release",
        "edit",
        "begin_edit",
        "end_edit",
        "move",
        "steer",
        "keep",
    ]
    number: int | None = None
    said: Said | None = None
    position: int = 1
    to: str = ""
    for_children: tuple[str, ...] = ()
    editor: str = ""


class ImportedItem(Value):
    """A message of another session's queue or of a file; `progress` is {done, total, unit} or none.

    `is_steer`: it waited for a turn that is not here; it comes back as a message of its own.
    """

    said: Said
    is_interrupted: bool = False
    progress: dict[str, Any] | None = None
    is_steer: bool = False


class QueueImport(Message):
    """Take in all of these, in order, or none; held where nothing runs.

    `may_overfill`: what was saved once may come back, however many may wait now.
    """

    lane: ClassVar[Lane] = Lane.CONTROL
    items: tuple[ImportedItem, ...]
    may_overfill: bool = False


class PolicyChange(Message):
    """A person chooses how this session takes messages, its model and its permission mode.

    What is empty stays.
    """

    lane: ClassVar[Lane] = Lane.CONTROL
    busy_mode: Literal["", "interrupt", "steer", "queue"] = ""
    is_auto_queue: bool | None = None
    routes: RoutesChoice | None = None
    model: str = ""
    mode: Literal["", "ask", "edits", "plan", "all"] = ""


class Rename(Message):
    """A person calls this session something; an empty name takes its name away."""

    lane: ClassVar[Lane] = Lane.CONTROL
    name: str = ""


class TakeBack(Message):
    """The newest message was not meant as it was read: let it wait in the queue instead."""

    lane: ClassVar[Lane] = Lane.CONTROL


class ResumeQueue(Message):
    """Run what was interrupted, from its checkpoint, then what waits.

    `children`: those beside the turns that go on, too; the session finds them out. `is_beside_goal`: a
    goal goes on automatically, so nothing is to be done unless a message waits that is none of its own.
    """

    lane: ClassVar[Lane] = Lane.CONTROL
    number: int | None = None
    children: tuple[str, ...] = ()
    is_beside_goal: bool = False


class Suspend(Message):
    """Leave: interrupt what runs, keep everything, answer when it is durable."""

    lane: ClassVar[Lane] = Lane.CONTROL
    cause: str = "exit"


class Finalize(Message):
    """End the session permanently; happens once."""

    lane: ClassVar[Lane] = Lane.CONTROL
    cause: str = "user"


class Compact(Message):
    """Sum up the conversation so far, as soon as no turn runs; `wish` says what matters.

    Answered with {ok, runs} or {ok: False, reason}.
    """

    wish: str = ""
    user: str = ""


class GrantLimits(Message):
    """Let this session use as much again as its limits say."""

    user: str = ""


# Reverts ------------------------------------------------------------------------------------------


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


class RevertOutcome(Message):
    """Ask for the outcome of revert `id`. Answered when that is known."""

    id: str
