"""All machines by name, from the largest part of a session to the smallest."""

from collections.abc import Mapping

from .lifecycles import (
    CALL,
    CHILD,
    GOAL,
    INTERRUPT,
    ITEM,
    JUDGE,
    QUEUE,
    RESTORE,
    REVERT,
    RUN,
    SESSION,
    SUBAGENT,
    TURN,
)
from .machine import Machine
from .steps import STEP, WORK

OF_A_SESSION = (SESSION, QUEUE, ITEM, TURN, CALL, INTERRUPT, GOAL, JUDGE)

MACHINES: Mapping[str, Machine] = {
    machine.name: machine
    for machine in (*OF_A_SESSION, SUBAGENT, CHILD, RUN, STEP, WORK, REVERT, RESTORE)
}
