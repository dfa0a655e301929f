"""What must not wait behind what, in any mailbox: the lanes, said again in terms of messages."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from ..actors.actor import Actor
from ..machines.delegation_messages import (
    ChildOpened,
    ChildReport,
    Delegate,
    EndChild,
    PassSteer,
    StopChild,
)
from ..machines.goal_messages import ConditionMet, GateEnded, JudgeAnswered
from ..machines.internal_messages import (
    Committed,
    Down,
    Enqueue,
    Kill,
    RecoverRecord,
    StoreBroke,
    Wake,
)
from ..machines.messages import (
    Compact,
    Finalize,
    Interrupt,
    Lane,
    Revert,
    Suspend,
    UserMessage,
)
from ..machines.port_results import (
    ModelAnswered,
    ModelFailed,
    ModelNoticed,
    ModelText,
    RestoreEnded,
    Summarised,
    ToolFinished,
)

LANES: dict[type[Any], Lane] = {
    **dict.fromkeys((RecoverRecord, Committed, StoreBroke, Down, Kill, Wake, Enqueue), Lane.SYSTEM),
    **dict.fromkeys((Delegate, StopChild, PassSteer, ChildOpened, ChildReport), Lane.SYSTEM),
    **dict.fromkeys((Interrupt, Finalize, Suspend, Revert, EndChild), Lane.CONTROL),
    **dict.fromkeys((ModelText, ModelNoticed, ModelAnswered, ModelFailed, Summarised), Lane.DATA),
    **dict.fromkeys((ToolFinished, RestoreEnded, Compact), Lane.DATA),
    **dict.fromkeys((GateEnded, JudgeAnswered, ConditionMet), Lane.DATA),
}
"""The lane that a message needs; of a message that is not here nothing is promised."""


def lane_that_it_needs(message: Any) -> Lane | None:
    """Return the lane in which a message must travel, if it matters."""
    if isinstance(message, UserMessage):
        return Lane.DATA if message.type == "normal" else Lane.CONTROL
    return LANES.get(type(message))  # pyright: ignore[reportUnknownArgumentType]


class LaneWatch:
    """Raises `AssertionError` when a message is taken before one that must not wait behind it.

    `used` counts the messages taken in each lane while others waited, `overtook` those that were taken
    before an older one of a lower lane.
    """

    def __init__(self) -> None:
        self.used = Counter[str]()
        self.overtook = Counter[tuple[str, str]]()

    def __call__(self, owner: Actor, message: Any, waiting: Sequence[Any]) -> None:
        """Compare what was taken with what waits."""
        taken = lane_that_it_needs(message)
        if taken is None:
            return
        self.used[taken.name] += 1
        for other in waiting:
            lane = lane_that_it_needs(other)
            if lane is not None and lane < taken:
                kinds = f"{type(message).__name__} before {type(other).__name__}"
                raise AssertionError(f"`{owner.name}` takes {kinds}")
            if lane is not None and lane > taken:
                self.overtook[taken.name, lane.name] += 1
