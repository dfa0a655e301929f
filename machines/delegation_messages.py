"""Messages and effects of delegation, between a session, its child supervisor and its children.

The child supervisor is the one authority on a session's children, as the queue is on messages. A
child is a session; what it does is reported through its journal, once that is durable.
"""

from typing import Any, ClassVar, Literal

from msgspec import field

from .conversation import ChatMessage, Usage
from .messages import Lane, Message
from .said import Said
from .value import Value

ReportKind = Literal["ended", "stopped", "closed", "steered", "missed"]


# Effects: what is asked for once it is durable ----------------------------------------------------


class Delegate(Message):
    """A tool call of turn `turn` gives a task to a child; its result is the call's.

    `epoch` is the session's when that was decided: the turn may have gone on after a stop of children.
    `ancestors` are the epochs of the session's ancestors under which the turn began, nearest first.
    """

    lane: ClassVar[Lane] = Lane.SYSTEM
    turn: str
    epoch: int
    call: str
    arguments: dict[str, Any]
    ancestors: tuple[int, ...] = ()


class Dismiss(Message):
    """A tool call of turn `turn` ends a child, named as in `EndChild`; it has its result at once."""

    lane: ClassVar[Lane] = Lane.SYSTEM
    turn: str
    epoch: int
    call: str
    arguments: dict[str, Any]


class StopChild(Message):
    """End the child that this tool call waits for; the call's result still comes."""

    lane: ClassVar[Lane] = Lane.SYSTEM
    turn: str
    epoch: int
    call: str


class OpenChild(Value):
    """Open a child's session: `seed` is what it has seen before its first word, `task` what that is.

    Answered with `ChildOpened` or `ChildLost`. `number` tells an answer to it from a late one to an
    earlier order: it is that of the newest entry when this was decided.
    """

    number: int
    name: str
    session: str
    agent: str
    relation: str
    seed: tuple[ChatMessage, ...] = ()
    task: str = ""


class CloseChild(Value):
    """Close a child's session, and release its lease."""

    session: str


class PassSteer(Message):
    """Hand a steer on to the children named; each takes it in at its own next boundary.

    `beneath`: it is for a child of theirs, named as in `EndChild`.
    """

    lane: ClassVar[Lane] = Lane.SYSTEM
    item: str
    names: tuple[str, ...]
    said: Said
    beneath: str = ""


class SetTimer(Value):
    """Send the actor that asked a `TimerFired` with this name, so many seconds later."""

    name: str
    seconds: float
    epoch: int = 0


# To the child supervisor ---------------------------------------------------------------------------


class ResumeChildren(Message):
    """Turn `turn` goes on where `earlier` were interrupted, newest first: so do the children of those.

    Both empty: those go on for which no turn waits. `epoch` is the session's when that was decided.
    """

    lane: ClassVar[Lane] = Lane.SYSTEM
    earlier: tuple[str, ...]
    turn: str
    epoch: int


class EndChild(Message):
    """A person ends one child: at once, or after it has summed up what it has (`is_gentle`).

    `child` is its name, or the names that lead to a child of a child, with `/` between them.
    """

    lane: ClassVar[Lane] = Lane.CONTROL
    child: str
    is_gentle: bool = False
    user: str = ""


class SideTalk(Message):
    """A question beside the main turn, answered by a session of its own that only reads."""

    lane: ClassVar[Lane] = Lane.CONTROL
    is_external: ClassVar[bool] = True
    said: Said


class Recall(Message):
    """Take back the steer with this key, if it still waits."""

    lane: ClassVar[Lane] = Lane.CONTROL
    key: str


# To the queue -------------------------------------------------------------------------------------


class Offer(Message):
    """Give a result a place in the queue where it waits until a person decides about it."""

    lane: ClassVar[Lane] = Lane.SYSTEM
    said: Said
    child: str


class AnswerOffer(Message):
    """The answer to a side talk is there; it goes where the person wanted it in the meantime."""

    lane: ClassVar[Lane] = Lane.SYSTEM
    item: str
    text: str
    turn: str = ""


# From the ports, and from the children ------------------------------------------------------------


class ChildOpened(Message):
    """A child's session is open: `start` starts its actor, `entry` is the first of a new journal.

    For a session that was opened before: `has_task` says whether its task reached it, `is_over`
    whether it has ended permanently, `last` its last report, if it has nothing more to do.
    """

    lane: ClassVar[Lane] = Lane.SYSTEM
    number: int
    name: str
    session: str
    start: Any
    entry: Any = None
    has_task: bool = False
    is_over: bool = False
    last: "ChildReport | None" = None


class ChildLost(Message):
    """A child's session could not be opened."""

    lane: ClassVar[Lane] = Lane.SYSTEM
    number: int
    name: str
    reason: str
    hint: str = ""


class ChildReport(Message):
    """A child's report, durable in its journal.

    ended: it has nothing more to do; `status` is completed or failed, and `text` its last word.
    stopped: it was interrupted and everything it started is dead; `order` is the parent's epoch of the
    stop that it obeyed, 0 if that came from elsewhere. closed: it is suspended or final. steered,
    missed: the steer with `key` entered at (turn, step), or can't.
    """

    lane: ClassVar[Lane] = Lane.SYSTEM
    name: str
    kind: ReportKind
    status: str = ""
    text: str = ""
    reason: str = ""
    key: str = ""
    turn: str = ""
    step: int = 0
    steps: int = 0
    usage: Usage = field(default_factory=Usage)
    killed: tuple[int, ...] = ()
    survivors: tuple[int, ...] = ()
    order: int = 0
