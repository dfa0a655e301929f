"""One message of a session's queue, as data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..machines.attachment import Attachment

__all__ = ["ItemRecord"]


@dataclass(frozen=True, slots=True)
class ItemRecord:
    """One message; `progress` is {done, total, unit}.

    `turn` is the last turn that ran it, or took it in at `step`; `why` says what it became, where
    that is not plain; `taken` is when it was last read as what it is. `for_children` maps the
    children that a steer was handed on to to where each took it in: empty while it has not, `-` when
    it can't. `child` is whose answer it is, and `answer` that, once it is there; `wants` is what
    becomes of it then: steer, keep, or nothing. A steer that the model handed back names the item
    that it became (`deferred_to`), and that one the steer (`deferred_from`). `attached` is kept until the
    conversation has it. `purpose` is empty for a message, `compaction` for an order to sum up, `again`
    where a failed run is tried again. `goal` is the goal whose next turn it begins: a message that
    nobody said. `past_hold`: it came after the queue was held, and runs in spite of that.
    """

    id: str
    number: int
    text: str
    state: str = "pending"
    said_as: str = "turn"
    user: str = ""
    client_id: str = ""
    is_next: bool = False
    for_turn: str = ""
    for_children: Mapping[str, str] = field(default_factory=dict[str, str])
    child: str = ""
    answer: str = ""
    wants: str = ""
    turn: str = ""
    step: int = 0
    why: str = ""
    created: float = 0.0
    taken: float = 0.0
    progress: Mapping[str, Any] | None = None
    deferred_to: str = ""
    deferred_from: str = ""
    attached: tuple[Attachment, ...] = ()
    purpose: str = ""
    goal: str = ""
    past_hold: bool = False

    @property
    def is_steer(self) -> bool:
        """Whether it waits for a boundary, here or of a child."""
        return bool(self.for_turn or self.for_children)
