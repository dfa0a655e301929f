"""The runtime: one asyncio loop in a thread of its own, the dispatcher on it, the journal beside it.

This is where the pure parts meet the world. Everything here may be called from any other thread; the
loop's thread runs the actors and all I/O tasks, and nothing in it blocks.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import secrets
import time
from collections.abc import Callable, Coroutine, Sequence
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace
from pykka import ActorDeadError, ActorRef

from ..journal.lock import host_name
from ..journal.queue_record import QueueRecord
from ..journal.record import SessionRecord
from ..journal.store import Lease, Store
from ..journal.writer import Result, Writer
from ..machines import protocol as m
from ..machines.errors import StoreError, UnknownSession
from ..machines.protocol import mailed
from ..machines.routes import Routes
from ..ports.placement import Placement
from ..ports.process.host import ProcessHost
from ..ports.process.process import Processes
from ..ports.tools.sandbox import OFF, SandboxPolicy
from ..ports.tools.tool import Tool
from ..ports.tools.toolbox import Toolbox
from ..ports.workspace import WorkspacePort
from ..workflows.home_place import Storage
from ..workflows.settings import ToolDeclaration
from .agent_profile import AgentProfile
from .commits import Commits, Token
from .environment import Observer
from .inspection import SessionDescription
from .kernel.dispatcher import LoopDispatcher, LoopStopped, LoopThread
from .kernel.system import ActorSystem, DeadLetter
from .live_session import LiveSession
from .offline import OfflineSession
from .open_sessions import OpenSessions
from .session_maker import LiveSessionMaker, SharedResources
from .tool_policy import Claims

if TYPE_CHECKING:
    from ..ports.tools.mcp_offer import McpServers

T = TypeVar("T")
REPLY_TIMEOUT = 60.0
"""Seconds after which a session that does not reply, or does not end, is given up: a busy machine
needs far less, and a second Ctrl-C does not wait."""
_SAID = itertools.count(1)
"""Numbers the messages of this program."""
POSTED = ContextVar("posted", default=0)
"""The message of a session's mailbox that this thread or task carries out; 0 if it does none."""


class Runtime:
    """Owns a home's sessions in this process; those that it begins have their files in `place`.

    `placing` makes the placement of remote steps, which run here without one.
    """

    def __init__(
        self,
        store: Store,
        *,
        grace: float = 0.2,
        output_limit: int = 1 << 20,
        storage: Storage,
        visible: tuple[str, ...] = (),
        sandbox: SandboxPolicy = OFF,
        fetch: tuple[str, ...] = (),
        declared: Sequence[ToolDeclaration] = (),
        place: str = "",
        skills: Path | None = None,
        placing: Callable[[Processes], Placement] | None = None,
    ) -> None:
        self.store = store
        self.node = f"n{os.getpid()}-{secrets.token_hex(4)}"
        self._thread = LoopThread()
        dispatcher = LoopDispatcher(self.loop)
        self.system = ActorSystem(dispatcher, time.time)
        self.writer: Writer[Token] = Writer(store, self._deliver)
        self.commits = Commits(self.writer.submit)
        self.sessions: dict[str, LiveSession] = {}
        processes = ProcessHost()
        toolbox = Toolbox(
            processes,
            grace=grace,
            output_limit=output_limit,
            declared=declared,
            placement=placing(processes) if placing is not None else None,
            sandbox=sandbox.told,
            fetch=fetch,
        )
        self.shared = SharedResources(
            processes=processes,
            toolbox=toolbox,
            claims=Claims(self.sessions),
            storage=storage,
            visible=visible,
            sandbox=sandbox,
            place=place or host_name(),
            skills=skills,
        )
        maker = LiveSessionMaker(self.loop, self.commits, self.shared, time.time)
        self.child_setup = maker.child_setup
        self._open = maker.sessions = OpenSessions(
            store,
            self.system,
            self.commits,
            maker,
            by_id=self.sessions,
            flush=self.writer.flush,
            node=self.node,
            place=self.shared.place,
        )
        dispatcher.after_pass.append(self.commits.flush)

    # Sessions -------------------------------------------------------------------------------------

    def open_new(
        self,
        folder: Path,
        profile: AgentProfile,
        observers: Callable[[str], tuple[Observer, ...]],
        parent: str = "",
        session: str = "",
    ) -> str:
        """Begin a session in `folder`; return its id. Raises `StoreError` when it cannot be written.

        `session` is the id that it gets, of `new_session_id`; if left out, one is made.
        """
        session = session or new_session_id()
        self._open.root.ask(self._open.begin(session, folder, profile, observers, parent))
        return session

    def open_existing(
        self,
        session: str,
        profile_of: Callable[[SessionRecord], AgentProfile],
        observers: Callable[[str], tuple[Observer, ...]],
        *,
        is_offline: bool = False,
    ) -> SessionRecord:
        """Take up a session again; nothing in it runs until a message comes.

        `is_offline`: only its queue is changed; it is not taken up at all. Returns a copy of the
        record. Raises `UnknownSession`, or `StoreBusy` when another live process owns it.
        """
        spec = self._open.take_up(session, profile_of, observers, is_offline=is_offline)
        record = self.sessions[session].record
        self._open.root.ask(spec)
        return replace(record)

    # Talking to a session -------------------------------------------------------------------------

    def ask(self, session: str, message: Any, timeout: float = REPLY_TIMEOUT) -> Any:
        """Send a message and return the actor's reply; not for the loop's own thread."""
        ref = self._ref(session)
        try:
            return ref.ask(mailed(message, POSTED.get()), timeout=timeout)
        except ActorDeadError as error:
            raise _not_open(session) from error

    def tell(self, session: str, message: Any) -> None:
        """Send a message. Raises `AdmissionRefused` when its mailbox is full."""
        ref = self._ref(session)
        try:
            ref.tell(mailed(message, POSTED.get()))
        except ActorDeadError as error:
            raise _not_open(session) from error

    def recover(self, session: str) -> None:
        """Recover a session whose journal could not be written, from its durable entries.

        Not for the loop's own thread. Raises `StoreError` while the store still fails.
        """
        live = self.sessions.get(session)
        if live is None or not live.ledger.broken or live.ledger.is_lost:
            return
        self.settle()
        self.writer.resume()
        self.ask(session, m.RecoverRecord())

    def _ref(self, session: str) -> ActorRef[Any]:
        live = self.sessions.get(session)
        if live is None or live.ref is None:
            raise _not_open(session)
        return live.ref

    def next_utterance(self) -> int:
        """Number messages in the order of their arrival: a cancel overtakes those before it."""
        return next(_SAID)

    def is_open(self, session: str) -> bool:
        """Whether a session lives in this process."""
        return session in self.sessions

    def dead_letters(self, session: str) -> list[DeadLetter]:
        """Return the messages that an actor of the session failed to take."""
        letters = tuple(self.system.dead_letters)
        return [letter for letter in letters if letter.path.split("/")[0] == session]

    def describe(self, session: str) -> SessionDescription:
        """Ask a live session for what a client may know of it beside its record."""
        found: SessionDescription = self.ask(session, m.Describe())
        return found

    def queue_of(self, session: str) -> QueueRecord | None:
        """Return the queue of a session that is no child; none of others. On the loop's thread."""
        live = self.sessions.get(session)
        return None if live is None or live.parent else live.record.queue

    def is_quiet(self, session: str) -> bool:
        """Whether nothing runs in a session, or will automatically. On the loop's thread."""
        live = self.sessions.get(session)
        return live is not None and live.record.is_quiet

    def is_run(self, session: str) -> bool:
        """Whether an open session is a run of a workflow."""
        live = self.sessions.get(session)
        return live is not None and live.record.run is not None

    def is_broken(self, session: str) -> bool:
        """Whether a session's journal could not be written, so that it is at a standstill."""
        live = self.sessions.get(session)
        return live is not None and bool(live.ledger.broken)

    def pids(self, session: str) -> dict[str, int]:
        """Return the process ids of a session's tools that run, by call."""
        live = self.sessions.get(session)
        return live.executor.pids if live is not None else {}

    def workspace(self, session: str) -> WorkspacePort | None:
        """Return what keeps the files that a session changed; its methods run on the loop."""
        live = self.sessions.get(session)
        return live.executor.resources.workspace if live is not None else None

    def servers(self, session: str) -> McpServers | None:
        """Return a session's MCP servers, whose methods run on the loop; none if it has none."""
        live = self.sessions.get(session)
        return live.executor.resources.servers if live is not None else None

    def change_model(self, session: str, profile: AgentProfile) -> None:
        """Let another model, with all that depends on it, answer from the next call on."""
        if (live := self.sessions.get(session)) is not None:
            self.run(live.change_model(profile))

    def adopt_tools(
        self, session: str, names: tuple[str, ...], own_tools: tuple[Tool, ...]
    ) -> None:
        """Let a session's agent have other tools from its next step on; on the loop's thread."""
        if (live := self.sessions.get(session)) is not None:
            live.change_tools(self.shared.toolbox.including(*own_tools), names, own_tools)

    def stop_asking(self, session: str) -> None:
        """Deny, from now on, what a session and its children would ask a person."""
        for live in self._open.family(session):
            amend = partial(live.environment.amend, can_ask=False)
            self.loop.call_soon_threadsafe(amend)

    def reroute(self, session: str, routes: Routes) -> None:
        """Let a session and its children go by other routing tables from now on."""
        live = self.sessions.get(session)
        if live is None:
            return
        self.run(live.environment.adopt(routes))
        for child in [other.id for other in self.sessions.values() if other.parent == session]:
            self.reroute(child, routes)

    def inspect(self, session: str, *, is_last: bool = False) -> dict[str, Any]:
        """Return a live session's state as plain data; `is_last`: after all messages to it."""
        data: dict[str, Any] = self.ask(session, m.Inspect(is_last=is_last))
        return data

    def leave(self, session: str, cause: str = "exit", timeout: float = REPLY_TIMEOUT) -> None:
        """Suspend a session: stop what runs, keep everything, give the lease back.

        Raises `StoreError` if that takes longer than `timeout` seconds. Not for the loop's own thread.
        """
        self._end(session, m.Suspend(cause=cause), ("suspended", "finalized"), timeout)

    def finalize(self, session: str, cause: str = "user", timeout: float = REPLY_TIMEOUT) -> None:
        """End a session permanently. Raises as `leave`."""
        self._end(session, m.Finalize(cause=cause), ("finalized",), timeout)

    def _end(self, session: str, order: Any, states: tuple[str, ...], timeout: float) -> None:
        """Let a session go, once `order` has ended it, unless it is in one of `states`."""
        live = self.sessions.get(session)
        if live is None or live.ref is None:
            return
        try:
            self._end_live(live, order, states, timeout)
        except (UnknownSession, LoopStopped):
            if self.sessions.get(session) is live:
                raise  # else another thread has left it meanwhile

    def _end_live(
        self, live: LiveSession, order: Any, states: tuple[str, ...], timeout: float
    ) -> None:
        session = live.id
        is_over = live.kind is OfflineSession
        if is_over:
            self.inspect(session, is_last=True)
            self.publish_all(session)
        else:
            is_over = self.inspect(session).get("state", "idle") in states
            if not is_over:
                self.ask(session, order, timeout)
                is_over = live.termination.wait(timeout)
            self.inspect(session, is_last=True)  # earlier senders have their answers
            self.writer.flush()
        self.run(self._open.let_go(live))
        if not is_over:
            raise StoreError(
                f"session `{session}` did not end within {timeout:g} seconds",
                "nothing acknowledged is lost; the next start treats it as after a crash",
            )

    def abandon(self, reason: str, hint: str) -> list[Lease]:
        """Give up every session, and return the leases once every tool is proven dead.

        For a program that was cut off from the store of its home, so that another one may take them
        over. Nothing more is written until `own_again`. Not for the loop's own thread.
        """
        return self.run(self._open.abandon(reason, hint), timeout=None)

    def own_again(self) -> None:
        """Write again, in sessions that are claimed from now on."""
        self.loop.call_soon_threadsafe(self.commits.unfence)

    def settle(self) -> None:
        """Block until everything decided so far is durable; not for the loop's own thread."""
        self.run(asyncio.sleep(0))  # whatever the loop is at, it hands on first
        self.writer.flush()

    def publish_all(self, session: str) -> None:
        """Block until every event of what a session decided so far has been published.

        The record is ahead of the events, which wait for the commit: the record of a session can be quiet
        before the end of its work is published. Not for the loop's own thread. Raises `UnknownSession`.
        """
        self.settle()
        self.run(asyncio.sleep(0))  # the loop has handed on what is durable
        self.inspect(session)  # the session has taken that in
        self.run(asyncio.sleep(0))  # and the loop has published it

    def leave_all(self) -> None:
        """Suspend every session; children go with their parents."""
        for live in list(self.sessions.values()):
            if not live.parent:
                self.leave(live.id)

    # The loop -------------------------------------------------------------------------------------

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop on which actors and ports live."""
        return self._thread.loop

    def run(self, work: Coroutine[Any, Any, T], timeout: float | None = 30.0) -> T:
        """Run a coroutine on the loop and wait for it; not for the loop's own thread."""
        return self._thread.run(work, timeout)

    def close(self) -> None:
        """Leave every session, end every process, make everything durable. Idempotent."""
        if not self._thread.is_running:
            return
        self.leave_all()
        if self.shared.toolbox.placement is not None:
            self.run(self.shared.toolbox.placement.aclose())
        self.run(self.shared.processes.aclose())
        self.writer.close()
        self.store.close()
        self._thread.stop()

    def _deliver(self, results: list[tuple[Token, Result]]) -> None:
        def answer() -> None:
            for token, result in results:
                self.commits.answered(token, result)

        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(answer)


def _not_open(session: str) -> UnknownSession:
    """Say that a session takes no messages here: it was never open, is leaving, or has left."""
    return UnknownSession(f"session `{session}` is not open here", "`steersman sessions list`")


def new_session_id() -> str:
    """Return a new session id: random from its first letter, so that a short prefix names it."""
    return secrets.token_hex(4)
