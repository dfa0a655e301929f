"""Opens the sessions of a session's children: where the child supervisor's orders meet store and models.

They are opened in threads, since claiming a session and building a model block. What comes back
is all that the child supervisor needs to start the child's actor.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace
from pykka import ActorRef

from ..journal.recovery import load_record
from ..journal.store import Lease, SessionRow
from ..machines import protocol as m
from ..machines.delivery import Relation
from ..machines.errors import UnknownSession
from ..machines.steps import WORKFLOW
from ..ports.instructions import instructions_of
from ..ports.tools.permission import Permissions, Rule
from ..ports.workspace import ChildWorkspace
from ..workflows.tools import TOOLS, kind_of
from .child_report import ChildReporter, last_report
from .decisions.queries import DELEGATE, DISMISS
from .gate import Ancestors
from .leaving import let_go
from .mailbox import tell

if TYPE_CHECKING:
    from .agent_profile import AgentProfile
    from .environment import Observer
    from .live_session import LiveSession
    from .runtime import Runtime


LOOKS = tuple(name for name in TOOLS.built_in if kind_of(name) in ("read", "search"))
"""The tools of a side talk; everything else of its parent's tools is denied to it."""


class ChildSessions:
    """The children of one live session; `_listeners` are the child supervisors that follow each."""

    def __init__(self, runtime: Runtime, parent: str) -> None:
        self._runtime = runtime
        self._parent = parent
        self._listeners: dict[str, ActorRef[Any]] = {}

    def open(self, order: m.OpenChild, supervisor: ActorRef[Any]) -> m.ChildOpened:
        """Open a child's session, new or known. Raises `SteersmanError`."""
        runtime = self._runtime
        parent = runtime.sessions[self._parent]
        profile = self._profile(order, parent)
        live = runtime.sessions.get(order.session)
        self._listeners[order.session] = supervisor
        if live is None:
            live = self._claim(order, parent, profile)
        else:
            runtime.reload(live)
        record = live.record
        folder = parent.record.folder
        opened = profile.opening(order.session, folder, parent.id, order.seed)
        return m.ChildOpened(
            number=order.number,
            name=order.name,
            session=order.session,
            start=runtime.starter(live),
            entry=None if record.seq else m.OpenSession(entry=opened),
            has_task="task" in record.queue.clients or bool(record.goals.goals),
            is_over=record.state == "finalized",
            last=last_report(order.name, record) if record.seq else None,
        )

    async def close(self, session: str) -> None:
        """Let go of a child's session; one that is gone already is no matter."""
        live = self._runtime.sessions.get(session)
        if live is not None:
            await let_go(self._runtime, live)

    def _claim(self, order: m.OpenChild, parent: LiveSession, profile: AgentProfile) -> LiveSession:
        runtime = self._runtime
        folder = Path(parent.record.folder)

        def report(said: m.ChildReport) -> None:
            tell(self._listeners[order.session], said)  # maybe a later incarnation

        def observers(session: str) -> tuple[Observer, ...]:
            above = runtime.child_setup.observers_of(session, parent.id)
            return (*above, ChildReporter(order.name, report))

        lease = self._lease(order, folder)
        record = load_record(runtime.store, order.session)
        record.id = order.session
        live = runtime.build(lease, record, folder, profile, observers)
        live.parent = parent.id
        own, above = live.executor.resources, parent.executor.resources
        own.answer_file = above.spill_folder / f"{live.id}.txt"
        own.answer_limit = above.limits.of(DELEGATE)
        self._share_folder(live, parent, order.name)
        _inherit(live, parent, order)
        return live

    def _lease(self, order: m.OpenChild, folder: Path) -> Lease:
        """Claim the child's session, which is made if there is none."""
        runtime = self._runtime
        try:
            return runtime.lease(order.session)
        except UnknownSession:
            runtime.store.create(
                SessionRow(
                    session=order.session,
                    folder=str(folder),
                    agent=order.agent,
                    created=runtime.system.now(),
                    parent=self._parent,
                )
            )
            return runtime.lease(order.session)

    def _share_folder(self, live: LiveSession, parent: LiveSession, name: str) -> None:
        """Enter the child's changes as those of its parent's turn that delegated to it."""

        def turn() -> str:
            child = parent.record.children.get(name)
            return (child.turn if child is not None else "") or parent.record.turn

        above = parent.executor.resources.workspace
        if above is not None:
            live.executor.resources.workspace = ChildWorkspace(above, live.id, turn)

    def _profile(self, order: m.OpenChild, parent: LiveSession) -> AgentProfile:
        """Say what the child is: an agent of its own, or its parent with tools that only read."""
        if order.relation == Relation.SIDE_TALK:
            rules = [*(Rule(name, "*", "allow") for name in LOOKS), Rule("*", "*", "deny")]
            return replace(parent.profile, permissions=Permissions(rules))
        above = parent.environment.delegation
        if order.agent.startswith(WORKFLOW):
            name = order.agent.removeprefix(WORKFLOW)
            return self._runtime.child_setup.workflow_of(name, parent.profile, order.task)
        profile = self._runtime.child_setup.profile_of(order.agent, parent.record)
        if profile.tools:  # what people wrote for agents here is for those that they call, too
            told = instructions_of(parent.record.system)
            profile = replace(profile, system=profile.system + told)
        if above.depth + 1 >= above.max_depth:
            tools = tuple(tool for tool in profile.tools if tool not in (DELEGATE, DISMISS))
            profile = replace(profile, tools=tools)
        return profile


def _inherit(live: LiveSession, parent: LiveSession, order: m.OpenChild) -> None:
    """Give a child its parent's settings: routes, limits, allowances, whether a person is asked."""
    own, above = live.environment, parent.environment
    delegation = own.delegation if live.profile.workflow is not None else above.delegation
    own.delegation = replace(delegation, depth=above.delegation.depth + 1)
    own.path = (*above.path, order.name)
    own.account.share(above.account, f"agents.{order.agent}.limits")
    own.dispositions, own.deliveries = above.dispositions, above.deliveries
    own.returns = above.returns
    own.ancestors = Ancestors(lambda: parent.ledger, order.name, live.id, above.ancestors)
    own.amend(can_ask=above.policy.can_ask)
    live.tool_policy.choices.above = parent.tool_policy.choices
