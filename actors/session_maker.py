"""How the program makes the sessions that it owns: models, tools, processes, their folders."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ..journal.record import SessionRecord
from ..journal.recovery import running_calls
from ..journal.store import Lease
from ..machines import protocol as m
from ..machines.conversation import Usage
from ..machines.delivery import Relation
from ..machines.errors import UsageError
from ..machines.policy import Account, Limits
from ..machines.steps import WORKFLOW
from ..machines.value import Value
from ..ports.external_agent import AgentSpec, ExternalAgent
from ..ports.instructions import instructions_of
from ..ports.process.process import Processes
from ..ports.tools.environment import clean_environment
from ..ports.tools.permission import Permissions, Rule
from ..ports.tools.sandbox import Sandbox, SandboxPolicy
from ..ports.tools.toolbox import Toolbox
from ..ports.workspace import Checkpoints, ChildWorkspace
from ..workflows.home_place import Storage
from ..workflows.paths import login_name
from ..workflows.registry import EXTENSIONS
from ..workflows.tools import TOOLS, kind_of
from .agent_profile import AgentProfile
from .commits import Commits
from .decisions.queries import DELEGATE, DISMISS
from .environment import Environment, Journal, Observer
from .ledger import Ledger
from .live_session import LiveSession
from .termination import Termination
from .tool_policy import Claims, SessionChoices, SessionToolPolicy
from .work.executor import ChildOpener, EffectExecutor
from .work.resources import SessionResources

LOOKS = tuple(name for name in TOOLS.built_in if kind_of(name) in ("read", "search"))
"""The tools of a side talk; everything else of its parent's tools is denied to it."""


def _no_profile(agent: str, parent: SessionRecord) -> AgentProfile:
    raise UsageError(f"there is no agent `{agent}`", "this program was not told of any")


def _no_workflow(name: str, above: AgentProfile, said: str) -> AgentProfile:
    raise UsageError(f"there is no workflow `{name}`", "this program was not told of any")


def _unobserved(session: str, parent: str) -> tuple[Observer, ...]:
    return ()


class ChildSetup(Struct, kw_only=True):
    """How the program sets up the sessions that a session starts; without it there are none.

    `profile_of` takes an agent's name and its parent's record, `workflow_of` a workflow's, whose run
    includes it and what was said; `observers_of` a session and its parent.
    """

    profile_of: Callable[[str, SessionRecord], AgentProfile] = _no_profile
    workflow_of: Callable[[str, AgentProfile, str], AgentProfile] = _no_workflow
    observers_of: Callable[[str, str], tuple[Observer, ...]] = _unobserved


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
            system=profile.system if profile.is_refit else record.system or profile.system,
            tools=toolbox.listed(profile.tools),
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
            told=profile.skills,
        )

    def _model_and_tools(
        self, profile: AgentProfile, folder: Path, known: str
    ) -> tuple[Any, Toolbox]:
        """Return model and tools; an agent that is another program is both.

        `known` is that agent's own id of the session.
        """
        if not isinstance(profile.model, AgentSpec):
            return profile.model, self.toolbox.including(*profile.own_tools)
        agent: ExternalAgent = EXTENSIONS.load("external agent")(
            profile.model, self.processes, folder, known
        )
        return agent, self.toolbox.including(agent)


class LiveSessionMaker:
    """Makes the sessions of a program; `sessions` opens their children, and is set when it is there."""

    sessions: ChildOpener

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        commits: Commits,
        shared: SharedResources,
        now: Callable[[], float],
    ) -> None:
        self.shared = shared
        self.child_setup = ChildSetup()
        self._loop, self._commits, self._now = loop, commits, now

    def build(
        self,
        lease: Lease,
        record: SessionRecord,
        folder: Path,
        profile: AgentProfile,
        observers: tuple[Observer, ...],
    ) -> LiveSession:
        """Give a claimed session models, tools and processes."""
        session = lease.session
        resources = self.shared.resources(session, record, folder, profile)
        executor = EffectExecutor(self._loop, resources, self.sessions)
        termination = Termination()
        book = self.shared.tool_policy(session, lambda: live.record, resources, profile)
        environment = environment_of(
            profile, record, self._commits, executor, (*observers, termination), book
        )
        live = LiveSession(
            id=session,
            lease=lease,
            ledger=self.ledger(session, record, environment),
            executor=executor,
            termination=termination,
            profile=profile,
            tool_policy=book,
        )
        return live

    def outcomes(self, live: LiveSession) -> Mapping[str, str]:
        """Ask the tools what became of the calls that ran when the owner died."""
        calls = running_calls(live.record)
        if not calls:
            return {}
        asked = asyncio.run_coroutine_threadsafe(live.executor.look_up(calls), self._loop)
        return asked.result()

    def ledger(self, session: str, record: SessionRecord, environment: Environment) -> Ledger:
        """Make the ledger of a session that is taken up."""
        return Ledger(record, environment, self._now)

    def observers_of(self, session: str, parent: str) -> tuple[Observer, ...]:
        """Return what follows a child from its start."""
        return self.child_setup.observers_of(session, parent)

    async def part_with(self, live: LiveSession, release: Callable[[], None]) -> None:
        """Release a session in a thread; the pass of the dispatcher is over by then."""
        await asyncio.to_thread(release)

    def profile_of(self, order: m.OpenChild, parent: LiveSession) -> AgentProfile:
        """Say what the child is: an agent of its own, or its parent with tools that only read."""
        if order.relation == Relation.SIDE_TALK:
            rules = [*(Rule(name, "*", "allow") for name in LOOKS), Rule("*", "*", "deny")]
            return replace(parent.profile, permissions=Permissions(rules))
        above = parent.environment.delegation
        if order.agent.startswith(WORKFLOW):
            name = order.agent.removeprefix(WORKFLOW)
            return self.child_setup.workflow_of(name, parent.profile, order.task)
        profile = self.child_setup.profile_of(order.agent, parent.record)
        if profile.tools:  # what people wrote for agents here is for those that they call, too
            told = instructions_of(parent.record.system)
            profile = replace(profile, system=profile.system + told)
        if above.depth + 1 >= above.max_depth:
            tools = tuple(tool for tool in profile.tools if tool not in (DELEGATE, DISMISS))
            profile = replace(profile, tools=tools)
        return profile

    def share(self, child: LiveSession, parent: LiveSession, order: m.OpenChild) -> None:
        """Give a child its parent's allowances; its changes count as those of the turn that delegated."""
        child.tool_policy.choices.above = parent.tool_policy.choices
        own, above = child.executor.resources, parent.executor.resources
        own.answer_file = above.spill_folder / f"{child.id}.txt"
        own.answer_limit = above.limits.of(DELEGATE)
        if above.workspace is None:
            return

        def turn() -> str:
            known = parent.record.children.get(order.name)
            return (known.turn if known is not None else "") or parent.record.turn

        own.workspace = ChildWorkspace(above.workspace, child.id, turn)


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
