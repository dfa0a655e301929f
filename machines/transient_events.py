"""Events that are shown but not journalled: nothing is lost when a client misses one."""

from .said import Routed, Said
from .value import Value

FULL_QUEUE = (
    "at most {} may wait (`auto_queue.max_queue_size`): `/queue pop N` or `/queue clear` makes room, "
    "`/queue steer N` hands one to the running turn"
)
"""Why a full queue rejects a message, given its limit, and what can be done."""
ANOTHER_CHAT = "`steersman chat` begins another session"
"""What can be done in place of a message to a finalized session."""
FINALIZED = f"the session is finalized; {ANOTHER_CHAT}"
"""Why a finalized session carries out no order."""
NOT_OPEN = "the session is not open: `steersman chat --resume {}` resumes it"
"""Why a session that no program runs carries out no order, given its id."""
ANOTHER_RUN = "`steersman run` starts a new run, `steersman sessions show {}` shows this one"
"""What can be done in place of a message to a run that has succeeded, given its session."""


class TextStreamed(Value):
    """A piece of the model's answer."""

    turn: str
    delta: str


class ThoughtStreamed(Value):
    """A piece of what the model thinks before it answers; no part of the conversation."""

    turn: str
    delta: str


class WindowFilled(Value):
    """An answer came: it and the conversation before it take `tokens` of the model's window of `size`."""

    turn: str
    tokens: int
    size: int


class Notice(Value):
    """A line for people; `seconds` until what it reports is over, 0 where that is not known.

    `ends_answer`: it is about the whole answer, which is complete.
    """

    text: str
    seconds: float = 0.0
    ends_answer: bool = False


class OutputShown(Value):
    """The last lines that a command has printed so far; its result has the whole."""

    turn: str
    call: str
    text: str


class MessageRejected(Value):
    """A message was not taken in; it goes back to the sender. `hint` is what can be done."""

    reason: str
    said: Said
    hint: str = ""


class MessageKnown(Value):
    """A message with this key came before: `id` is the item or receipt it got then."""

    id: str
    number: int | None
    client_id: str
    routed: Routed


class StoreLost(Value):
    """The journal cannot be written any more: nothing is accepted from here on."""

    code: str
    text: str
    hint: str


Fact = (
    TextStreamed
    | ThoughtStreamed
    | WindowFilled
    | Notice
    | OutputShown
    | MessageRejected
    | MessageKnown
    | StoreLost
)
