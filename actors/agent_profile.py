"""What an agent is, once its configuration has been read and its model built."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..machines.limits import Limits
from ..machines.metering import Price
from ..machines.policy import CompactionPolicy, DelegationPolicy, GoalPolicy, Policy
from ..machines.routes import STEERSMAN, Routes
from ..ports.judging import JudgeSeat
from ..ports.tools.permission import Permissions

__all__ = ["AgentProfile"]


@dataclass(frozen=True, slots=True)
class AgentProfile:
    """What a session's agent is: its model (built), its instructions, its tools and limits.

    `routes` are the routing tables that its session goes by. `judge` gives whoever judges its goals,
    and may block.
    """

    name: str
    model: Any
    system: str
    tools: tuple[str, ...]
    max_steps: int = 50
    permissions: Permissions = field(default_factory=Permissions)
    policy: Policy = field(default_factory=Policy)
    delegation: DelegationPolicy = field(default_factory=DelegationPolicy)
    compaction: CompactionPolicy = field(default_factory=CompactionPolicy)
    limits: Limits = field(default_factory=Limits)
    price: Price | None = None
    routes: Routes = STEERSMAN
    goals: GoalPolicy = field(default_factory=GoalPolicy)
    judge: Callable[[], JudgeSeat] | None = None
