"""What is journalled when older turns are summed up to make room in the model's window."""

from dataclasses import dataclass, field

from ..machines.conversation import ChatMessage, Usage
from .entry import Entry


@dataclass(frozen=True, slots=True)
class CompactionBegun(Entry):
    """A summary is about to be asked for.

    `why` is asked (by a person), full, or refused (the server found the conversation too long).
    `tokens` is how many it takes of the window's `window`, 0 where that is not known. `dropped` oldest
    messages are to be summed up; `refusal` is what the server said.
    """

    turn: str
    step: int
    why: str
    tokens: int = 0
    window: int = 0
    dropped: int = 0
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class Compacted(Entry):
    """From here on the model sees `messages` instead of the `dropped` oldest ones.

    The originals stay in the entries that hold them. `how` is summary or pruned (the oldest results
    of tools were left out; `reason` says why there is no summary). `before` and `after` are tokens.
    """

    turn: str
    step: int
    dropped: int
    how: str
    summary: str = ""
    reason: str = ""
    before: int = 0
    after: int = 0
    left_out: int = 0
    usage: Usage = field(default_factory=Usage)
    messages: tuple[ChatMessage, ...] = ()
