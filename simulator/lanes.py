"""What must not wait behind what, in any mailbox: the lanes, said again in terms of messages."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from ..actors.kernel.actor import Actor
from ..machines import protocol as m

LANES: dict[type[Any], m.Lane] = {
    **dict.fromkeys(
        (m.RecoverRecord, m.Committed, m.StoreBroke, m.Down, m.Kill, m.Wake, m.Enqueue),
        m.Lane.SYSTEM,
    ),
    **dict.fromkeys(
        (m.Delegate, m.StopChild, m.PassSteer, m.ChildOpened, m.ChildReport), m.Lane.SYSTEM
    ),
    **dict.fromkeys((m.Interrupt, m.Finalize, m.Suspend, m.Revert, m.EndChild), m.Lane.CONTROL),
    **dict.fromkeys(
        (m.ModelText, m.ModelNoticed, m.ModelAnswered, m.ModelFailed, m.Summarised), m.Lane.DATA
    ),
    **dict.fromkeys((m.ToolFinished, m.RestoreEnded, m.Compact), m.Lane.DATA),
    **dict.fromkeys((m.GateEnded, m.JudgeAnswered, m.ConditionMet), m.Lane.DATA),
}
"""The lane that a message needs; of a message that is not here nothing is promised."""


def lane_that_it_needs(message: Any) -> m.Lane | None:
    """Return the lane in which a message must travel, if it matters."""
    if isinstance(message, m.UserMessage):
        return m.Lane.DATA if message.type == "normal" else m.Lane.CONTROL
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
