"""A session that this process owns, and the surroundings that its actors are given."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from pykka import ActorRef

from ..journal.record import SessionRecord
from ..journal.store import Lease
from ..machines.conversation import Usage
from ..machines.policy import Account, Limits
from ..machines.value import Value
from ..ports.agents.external import AgentSpec, ExternalAgent
from ..ports.process.process import Processes
from ..ports.tools.environment import clean_environment
from ..ports.tools.sandbox import Sandbox, SandboxPolicy
from ..ports.tools.tool import Tool
from ..ports.tools.toolbox import Toolbox
from ..ports.workspace import Checkpoints
from ..workflows.home_place import Storage
from ..workflows.paths import login_name
from .agent_profile import AgentProfile
from .environment import Environment, Journal, Observer
from .ledger import Ledger
from .offline import OfflineSession
from .session import Session
from .termination import Termination
from .tool_policy import Claims, SessionChoices, SessionToolPolicy
from .work.executor import EffectExecutor
from .work.resources import SessionResources

# A session's account, as its journal has it -------------------------------------------------------


def account_of(record: SessionRecord, limits: Limits) -> Account:
    """Open the account of a session that is taken up, with all that it and its children have used."""
    used = record.whole_usage + Usage(input=record.lost)
    return Account(
        name="limits", limits=limits, used=used, seconds=record.seconds, shares=1 + record.grants
    )


# Resources of a process's sessions: models, tools, processes, their folders -----------------------


class SharedResources(Value):
    """The resources that all sessions share. Long output and copies of files go to `storage`.

    `visible` are the names of variables of the environment that commands see beside the usual ones.
    `place` is where their files are.
    `skills` is the folder of the person's own skills.
    """

    processes: Processes
    toolbox: Toolbox
    claims: Claims
    storage: Storage
    visible: tuple[str, ...]
    sandbox: SandboxPolicy
    place: str
    skills: Path | None = None

    def resources(
        self, session: str, record: SessionRecord, folder: Path, profile: AgentProfile
    ) -> SessionResources:
        """Say where the effects of a session take place."""
        model, toolbox = self._model_and_tools(profile, folder, record.agent_session)
        return SessionResources(
            session=session,
            model=model,
            system=record.system or profile.system,
            tools=toolbox.schemas(profile.tools),
            toolbox=toolbox,
            folder=folder,
            spill_folder=self.storage.outputs / session,
            environment=clean_environment(os.environ, self.visible),
            workspace=Checkpoints(self.storage.copies, folder, session),
            storage=self.storage.name,
            hidden=profile.permissions.hidden(),
            sandbox=Sandbox(
                self.sandbox, folder, self.storage.outputs / session / "tmp", os.environ
            ),
            judge=profile.judge,
            servers=profile.servers,
            limits=profile.result_limits,
        )

    def tool_policy(
        self,
        session: str,
        record: Callable[[], SessionRecord],
        resources: SessionResources,
        profile: AgentProfile,
    ) -> SessionToolPolicy:
        """Say what a session may do with its tools; `record` gives its state of that moment."""
        return SessionToolPolicy(
            toolbox=resources.toolbox,
            names=profile.tools,
            permissions=profile.permissions,
            folder=resources.folder,
            outputs=resources.spill_folder.resolve(),
            claim=self.claims.of(session),
            choices=SessionChoices(record, profile.policy.mode),
            skills=self.skills.resolve() if self.skills is not None else None,
        )

    def _model_and_tools(
        self, profile: AgentProfile, folder: Path, known: str
    ) -> tuple[Any, Toolbox]:
        """Return model and tools; an agent that is another program is both.

        `known` is that agent's own id of the session.
        """
        if not isinstance(profile.model, AgentSpec):
            return profile.model, self.toolbox.including(*profile.own_tools)
        agent = ExternalAgent(profile.model, self.processes, folder, known)
        return agent, self.toolbox.including(agent)


class LiveSession(Struct, kw_only=True):
    """A session that this process owns; `parent` is the id of its parent, empty without one."""

    id: str
    lease: Lease
    ledger: Ledger
    environment: Environment
    executor: EffectExecutor
    termination: Termination
    profile: AgentProfile
    tool_policy: SessionToolPolicy
    parent: str = ""
    ref: ActorRef[Any] | None = None
    kind: type[Session | OfflineSession] = Session

    @property
    def record(self) -> SessionRecord:
        """The session's state, with everything that was decided until now."""
        return self.ledger.record

    async def change_model(self, profile: AgentProfile) -> None:
        """Take the model over from `profile`, with all that depends on it; on the actors' own loop.

        A call that is on its way ends with the model that it was begun with.
        """
        self.executor.change_model(profile.model, profile.judge)
        environment = self.environment
        environment.price, environment.goals = profile.price, profile.goals
        overhead = self.executor.resources.overhead
        environment.compaction = replace(profile.compaction, overhead=overhead)
        self.profile = replace(
            self.profile,
            model=profile.model,
            judge=profile.judge,
            price=profile.price,
            goals=profile.goals,
            compaction=profile.compaction,
        )

    def change_tools(
        self, toolbox: Toolbox, names: tuple[str, ...], own_tools: tuple[Tool, ...]
    ) -> None:
        """Let the agent have these tools, from its next step on; on the actors' own loop.

        A call that is on its way ends with the tool that it was begun with.
        """
        self.executor.change_tools(toolbox, names)
        self.tool_policy.change_tools(toolbox, names)
        overhead = self.executor.resources.overhead
        compaction = replace(self.environment.compaction, overhead=overhead)
        self.environment.compaction = compaction
        self.profile = replace(self.profile, tools=names, own_tools=own_tools)


def environment_of(
    profile: AgentProfile,
    record: SessionRecord,
    journal: Journal,
    executor: EffectExecutor,
    observers: tuple[Observer, ...],
    tool_policy: SessionToolPolicy,
) -> Environment:
    """Return the surroundings of a session whose agent is `profile`."""
    return Environment(
        journal=journal,
        perform=executor,
        observers=observers,
        tool_policy=tool_policy,
        policy=profile.policy,
        max_steps=profile.max_steps,
        dispositions=profile.routes.dispositions,
        deliveries=profile.routes.deliveries,
        delegation=profile.delegation,
        compaction=replace(profile.compaction, overhead=executor.resources.overhead),
        progress=profile.progress,
        account=account_of(record, profile.limits),
        price=profile.price,
        result_limits=profile.result_limits,
        outputs=str(executor.resources.spill_folder),
        storage=executor.resources.storage,
        goals=profile.goals,
        agent=profile.name,
        owner=login_name(),
        workflow=profile.workflow,
        helpers=profile.helpers,
        soon=executor.soon,
    )
