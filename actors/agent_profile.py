"""An agent's profile: its configuration, read and checked, with its model built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import field

from ..journal.entries import SessionOpened, WorkflowCopy
from ..machines.conversation import ChatMessage
from ..machines.policy import (
    CompactionPolicy,
    DelegationPolicy,
    GoalPolicy,
    Limits,
    Policy,
    Price,
    ResultLimits,
)
from ..machines.progress import ProgressPolicy
from ..machines.routes import STEERSMAN, Routes
from ..machines.value import Value
from ..ports.judging import JudgeSeat
from ..ports.templates import Skill
from ..ports.tools.permission import Permissions
from ..ports.tools.tool import Tool
from ..workflows.flow.spec import WorkflowSpec

if TYPE_CHECKING:
    from ..ports.tools.mcp_offer import McpServers


class AgentProfile(Value):
    """The agent of a session: its model (built), its instructions, its tools and limits.

    `routes` are the routing tables that its session goes by. `judge` returns the judge of its goals,
    and may block. `own_tools` are tools that only this agent has; their names are in `tools`, too.
    `server_tools` are patterns of tools of MCP servers, and `servers` those of this session, started.
    `skills` are those that it was told of, as they were then.
    Of a run there is no model, but the `workflow`, the values of its variables, and the agents that
    work, and judge, where a step names none. `asked_model` was asked for in place of the agent's own;
    `model_name` is what the configuration calls that, where it names one. `is_refit`: instructions and
    tools take the place of those in the session's record, which are for another kind of model.
    """

    name: str
    model: Any
    system: str
    tools: tuple[str, ...]
    max_steps: int = 500
    permissions: Permissions = field(default_factory=Permissions)
    policy: Policy = field(default_factory=Policy)
    delegation: DelegationPolicy = field(default_factory=DelegationPolicy)
    compaction: CompactionPolicy = field(default_factory=CompactionPolicy)
    progress: ProgressPolicy = field(default_factory=ProgressPolicy)
    limits: Limits = field(default_factory=Limits)
    result_limits: ResultLimits = field(default_factory=ResultLimits)
    price: Price | None = None
    routes: Routes = STEERSMAN
    goals: GoalPolicy = field(default_factory=GoalPolicy)
    judge: Callable[[], JudgeSeat] | None = None
    workflow: WorkflowSpec | None = None
    variables: Mapping[str, Any] = field(default_factory=dict[str, Any])
    helpers: tuple[str, str] = ("assistant", "judge")
    own_tools: tuple[Tool, ...] = ()
    server_tools: tuple[str, ...] = ()
    servers: McpServers | None = None
    skills: tuple[Skill, ...] = ()
    asked_model: str = ""
    model_name: str = ""
    is_refit: bool = False

    def opening(
        self, session: str, folder: str, parent: str = "", seen: tuple[ChatMessage, ...] = ()
    ) -> SessionOpened:
        """Return the first entry of a session of this agent."""
        return SessionOpened(
            session=session,
            folder=folder,
            agent=self.name,
            model=self.model.name if self.model else "",
            system=self.system,
            tools=self.tools,
            parent=parent,
            messages=seen,
            workflow=self._copy(),
            asked_model=self.asked_model,
            model_name=self.model_name,
        )

    def _copy(self) -> WorkflowCopy | None:
        """Return what the journal keeps of a run's workflow, which never needs the file again."""
        spec = self.workflow
        if spec is None:
            return None
        return WorkflowCopy(
            name=spec.name,
            file=spec.file,
            folder=spec.folder,
            source=spec.source,
            variables=dict(self.variables),
        )
