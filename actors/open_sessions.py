"""The sessions that a program owns: claimed, started, taken up again after a fault, let go.

The program and the simulator run all of this; threads, writer, clock and ports are handed in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace
from pykka import ActorRef

from ..journal import entries as e
from ..journal.record import SessionRecord
from ..journal.recovery import load_record
from ..journal.store import Lease, SessionRow, Store
from ..machines import protocol as m
from ..machines.errors import StoreBusy, UnknownSession, UsageError
from .agent_profile import AgentProfile
from .child_report import ChildReporter, last_report
from .commits import Commits
from .environment import Environment, Observer
from .gate import Ancestors
from .kernel.mailbox import reply, tell
from .kernel.supervisor import ChildSpec, Root
from .kernel.system import ActorSystem
from .ledger import Ledger
from .offline import OfflineSession
from .session import Session


class OwnedSession(Struct, kw_only=True):
    """A session that a program owns; `parent` is the id of its parent, empty without one."""

    id: str
    lease: Lease
    ledger: Ledger
    parent: str = ""
    ref: ActorRef[Any] | None = None
    kind: type[Session | OfflineSession] = Session

    @property
    def environment(self) -> Environment:
        """The surroundings of its actors."""
        return self.ledger.environment

    @property
    def record(self) -> SessionRecord:
        """The session's state, with everything that was decided until now."""
        return self.ledger.record

    async def aclose(self) -> None:
        """End whatever its ports still do."""
        raise NotImplementedError


Owned = TypeVar("Owned", bound=OwnedSession)
Observers = Callable[[str], tuple[Observer, ...]]
"""Returns what follows a session from its start, by its id."""


class SessionMaker(Protocol[Owned]):
    """How a program makes the sessions that it owns: their ports, their tools, what follows them."""

    def build(
        self,
        lease: Lease,
        record: SessionRecord,
        folder: Path,
        profile: AgentProfile,
        observers: tuple[Observer, ...],
    ) -> Owned:
        """Give a claimed session its surroundings."""
        ...

    def outcomes(self, live: Owned) -> Mapping[str, str]:
        """Ask the tools what became of the calls that ran when the owner died; blocks.

        Those whose tools cannot tell are left out.
        """
        ...

    def ledger(self, session: str, record: SessionRecord, environment: Environment) -> Ledger:
        """Make the ledger of a session that is taken up."""
        ...

    def profile_of(self, order: m.OpenChild, parent: Owned) -> AgentProfile:
        """Say what a child is. Raises `SteersmanError`."""
        ...

    def observers_of(self, session: str, parent: str) -> tuple[Observer, ...]:
        """Return what follows a child from its start."""
        ...

    def share(self, child: Owned, parent: Owned, order: m.OpenChild) -> None:
        """Give a child what it has of its parent beside routes, limits and place."""
        ...

    async def part_with(self, live: Owned, release: Callable[[], None]) -> None:
        """Release a session once the pass of the dispatcher is over; `release` blocks."""
        ...


class OpenSessions(Generic[Owned]):
    """One program's sessions, `by_id`; those that it begins have their files in `place`.

    `flush` blocks until everything that was submitted is written. Methods block, but the coroutines.
    """

    def __init__(
        self,
        store: Store,
        system: ActorSystem,
        commits: Commits,
        maker: SessionMaker[Owned],
        *,
        by_id: dict[str, Owned],
        flush: Callable[[], None],
        node: str,
        place: str,
    ) -> None:
        self.by_id = by_id
        self.root: ActorRef[Any] = Root.start(system)
        self._store, self._system, self._commits = store, system, commits
        self._maker, self._flush = maker, flush
        self._node, self._place = node, place
        self._listeners: dict[str, ActorRef[Any]] = {}

    # Sessions that are no children ----------------------------------------------------------------

    def begin(
        self,
        session: str,
        folder: Path,
        profile: AgentProfile,
        observers: Observers,
        parent: str = "",
    ) -> ChildSpec:
        """Begin a session; the root starts what is returned. Raises `StoreError`."""
        self._create(SessionRow(session=session, folder=str(folder)), profile.name)
        record = SessionRecord(id=session)
        live = self._build(self._lease(session), record, folder, profile, observers(session))
        opened = profile.opening(session, str(folder), parent)
        return ChildSpec(name=session, start=self._starter(live, opened), restart="permanent")

    def take_up(
        self,
        session: str,
        profile_of: Callable[[SessionRecord], AgentProfile],
        observers: Observers,
        *,
        is_offline: bool = False,
    ) -> ChildSpec:
        """Take up a session again; the root starts what is returned.

        `is_offline`: only its queue is changed; it is not taken up at all. Raises `UnknownSession`,
        `StoreBusy` when another live process owns it, or `UsageError` when its folder is gone.
        """
        refuse_elsewhere(self._store.row(session), self._place)
        lease = self._lease(session)
        with ExitStack() as undoing:
            undoing.callback(self._store.release, lease)
            record = load_record(self._store, session)
            if is_offline and not record.seq:  # who began it died before that was written
                raise UnknownSession(f"session `{session}` never began", "begin another one")
            if not (is_offline or record.parent):
                _refuse_lost(record)
            profile = profile_of(record)
            live = self._build(lease, record, Path(record.folder), profile, observers(session))
            undoing.callback(self.by_id.pop, session)  # a signal may end the wait for the tools
            if not is_offline:
                live.environment.outcomes = self._maker.outcomes(live)
            undoing.pop_all()
        live.kind = OfflineSession if is_offline else live.kind
        live.environment.is_offline = is_offline
        return ChildSpec(name=session, start=self._starter(live), restart="permanent")

    def _create(self, row: SessionRow, agent: str) -> None:
        row = replace(row, agent=agent, created=self._system.now())
        self._store.create(row if row.parent else replace(row, place=self._place))

    def _lease(self, session: str) -> Lease:
        """Claim a session for this process. Raises `UnknownSession` or `StoreBusy`."""
        if session in self.by_id:
            raise StoreBusy(f"session `{session}` is open in this program already")
        claimed = self._commits.claimed.pop(session, None)
        lease = claimed or self._store.claim(session, self._node)
        if lease is None:
            raise StoreBusy(
                f"another program has session `{session}` open",
                f"`steersman attach {session}` joins it, `steersman send {session} TEXT` sends a message",
            )
        return lease

    def _build(
        self,
        lease: Lease,
        record: SessionRecord,
        folder: Path,
        profile: AgentProfile,
        observers: tuple[Observer, ...],
    ) -> Owned:
        """Give a claimed session its surroundings; its actor is not started yet."""
        live = self._maker.build(lease, record, folder, profile, observers)
        if profile.workflow is not None:
            from .run import Run  # templates take their time to import

            live.environment.turn_type = Run
        self.by_id[live.id] = live
        self._own(live)
        return live

    def _starter(
        self, live: Owned, opened: e.SessionOpened | None = None
    ) -> Callable[[], ActorRef[Any]]:
        """Return what starts a session's actor; from the second time on from its journal.

        It gets its first message in the same step, as long as that is not durable: a signal may end
        the caller's wait at any moment, and an actor without it would not take one that ends it either.
        """
        is_first = True

        def start() -> ActorRef[Any]:
            nonlocal is_first
            if not is_first:
                self._reload(live)
            live.ref = live.kind.start(self._system, live.ledger)
            if opened is not None and not live.record.seq:
                live.ref.tell(m.OpenSession(entry=opened))
            is_first = False
            return live.ref

        return start

    def _reload(self, live: Owned) -> None:
        """A session actor ended: its state is what the journal holds, never the old one's memory."""
        self._commits.flush()
        self._flush()
        record = load_record(self._store, live.id)
        record.id = live.id
        live.ledger = self._maker.ledger(live.id, record, live.environment)
        self._own(live)

    def _own(self, live: Owned) -> None:
        """Send the outcome of commits to the actor that the session has at that moment."""
        self._commits.own(live.lease, lambda message: reply(live.ref, message), live.record.seq)

    # Children -------------------------------------------------------------------------------------

    def open_child(
        self, above: str, order: m.OpenChild, supervisor: ActorRef[Any]
    ) -> m.ChildOpened:
        """Open the session of a child of `above`, new or known, for its child supervisor.

        What comes back is all that is needed to start the child's actor. Raises `SteersmanError`.
        """
        parent = self.by_id[above]
        profile = self._maker.profile_of(order, parent)
        live = self.by_id.get(order.session)
        self._listeners[order.session] = supervisor
        if live is None:
            live = self._claim(order, parent, profile)
        else:
            self._reload(live)
        record = live.record
        opened = profile.opening(order.session, parent.record.folder, parent.id, order.seed)
        return m.ChildOpened(
            number=order.number,
            name=order.name,
            session=order.session,
            start=self._starter(live),
            entry=None if record.seq else m.OpenSession(entry=opened),
            has_task="task" in record.queue.clients or bool(record.goals.goals),
            is_over=record.state == "finalized",
            last=last_report(order.name, record) if record.seq else None,
        )

    def _claim(self, order: m.OpenChild, parent: Owned, profile: AgentProfile) -> Owned:
        """Claim a child's session, which is made if there is none, and give it its surroundings."""
        session, folder = order.session, parent.record.folder
        try:
            lease = self._lease(session)
        except UnknownSession:
            row = SessionRow(session=session, folder=folder, parent=parent.id)
            self._create(row, order.agent)
            lease = self._lease(session)
        record = load_record(self._store, session)
        record.id = session

        def report(said: m.ChildReport) -> None:
            tell(self._listeners[session], said)  # maybe a later incarnation

        reporter = ChildReporter(order.name, report)
        observers = (*self._maker.observers_of(session, parent.id), reporter)
        live = self._build(lease, record, Path(folder), profile, observers)
        live.environment.outcomes = self._maker.outcomes(live)
        live.parent = parent.id
        _inherit(live, parent, order)
        self._maker.share(live, parent, order)
        return live

    async def close_child(self, session: str) -> None:
        """Let go of a child's session; one that is gone already is no matter."""
        if (live := self.by_id.get(session)) is not None:
            await self.let_go(live)

    # The end --------------------------------------------------------------------------------------

    def family(self, session: str) -> list[Owned]:
        """Return a session and all its open descendants, parents first."""
        found = [self.by_id[session]] if session in self.by_id else []
        for live in found:
            found += [other for other in list(self.by_id.values()) if other.parent == live.id]
        return found

    async def let_go(self, live: Owned) -> None:
        """Release a session and all its descendants, on the loop. Idempotent.

        No thread waits for the loop meanwhile: many that end at once would need all there are.
        """
        for member in reversed(self.family(live.id)):
            if self.by_id.pop(member.id, None) is not None:
                await member.aclose()
                await self._maker.part_with(member, partial(self._release, member))
                self._retire(member)

    def _release(self, live: Owned) -> None:
        self._flush()  # the pass that answered last is over now: all it decided is here
        self._commits.disown(live.id)
        self._store.release(live.lease)

    def _retire(self, live: Owned) -> None:
        """Let the actors of a session that is not owned any more go; a child's go with its parent's."""
        if not live.parent and live.ref is not None:
            self.root.tell(m.Retire(name=live.id, urn=live.ref.actor_urn))

    async def abandon(self, reason: str, hint: str) -> list[Lease]:
        """Give up every session, and return the leases once every tool is proven dead.

        Another process may own them by now: nothing more is written until `Commits.unfence`, and the
        store is not asked.
        """
        self._commits.fence(reason, hint)
        given = list(self.by_id.values())
        self.by_id.clear()
        endings = (live.aclose() for live in reversed(given))
        await asyncio.gather(*endings, return_exceptions=True)
        for live in given:
            self._commits.disown(live.id)
            self._retire(live)
        claimed = self._commits.claimed
        leases = [*(live.lease for live in given), *claimed.values()]
        claimed.clear()
        return leases


def _inherit(live: OwnedSession, parent: OwnedSession, order: m.OpenChild) -> None:
    """Give a child its parent's settings: routes, limits, whether a person is asked."""
    own, above = live.environment, parent.environment
    delegation = own.delegation if own.workflow is not None else above.delegation
    own.delegation = replace(delegation, depth=above.delegation.depth + 1)
    own.path = (*above.path, order.name)
    own.account.share(above.account, f"agents.{order.agent}.limits")
    own.dispositions, own.deliveries = above.dispositions, above.deliveries
    own.returns = above.returns
    own.ancestors = Ancestors(lambda: parent.ledger, order.name, live.id, above.ancestors)
    own.amend(can_ask=above.policy.can_ask)


def refuse_elsewhere(row: SessionRow, place: str) -> None:
    """Raise `UsageError` for a session whose files are at another place than this one."""
    if row.place not in ("", place):
        raise UsageError(
            f"session `{row.session}` has its files at `{row.place}`, and this is `{place}`",
            f"`steersman send {row.session} TEXT` has it run there, `steersman sessions show "
            f"{row.session}` reads it; it is resumed and its files are given back only there",
        )


def _refuse_lost(record: SessionRecord) -> None:
    """Raise `UsageError` for a session whose folder is gone: its work would go to a new, empty one."""
    if not Path(record.folder).is_dir():
        raise UsageError(
            f"the folder of session `{record.id}` is gone: `{record.folder}`",
            f"move it back, or make it; `steersman sessions show {record.id}` shows the conversation",
        )
