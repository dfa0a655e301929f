"""A node: takes sessions of a home that need an owner, as many families as it may, and gives them back.

It proves to the store that it lives, every third of `lease`. A node that could not do so for `fence`
seconds is cut off: it ends its tools, gives its sessions up and writes nothing, before others may take
the sessions over, at `lease`. The deadline of the process that forks its tools moves with each proof, so
that the tools end also where a signal has stopped the node itself. When the store answers again, the
node joins again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from ...actors.runtime import Runtime
from ...journal.lock import host_name
from ...journal.store import Lease, SessionRow
from ...machines.errors import SteersmanError, StoreBusy, StoreError
from ...ports.process.wire import deadline_clock
from ...workflows.home_place import HomeSettings
from ..client import SessionClient
from ..hosts import Hosts
from .host import Host

LOGGER = logging.getLogger("steersman")
IDLE = 60.0
"""Seconds without work after which a session is given back."""
LOOK = 0.5
"""Seconds between two looks for sessions whose owner has died; mail is heard of at once."""
AT_ONCE = 50
"""Families that are claimed in one transaction."""
AGAIN = 1.0
"""Seconds before the next attempt where the store fails."""
LATE = "it could not prove in time that it lives"


class NodeHeartbeat:
    """Proves that the hosts of a program live, and calls `on_fence` with why that could not be proved.

    `on_return` is called after that, when the store answers again. Both are called in its own threads.
    """

    def __init__(
        self,
        hosts: Hosts,
        home: HomeSettings,
        on_fence: Callable[[str], None],
        on_return: Callable[[], None],
    ) -> None:
        self._hosts = hosts
        self._between, self._fence = home.lease / 3, home.fence  # seconds
        self._on_fence, self._on_return = on_fence, on_return
        self._proved = deadline_clock()
        self._is_over = threading.Event()
        self._turn = threading.Lock()
        self.is_fenced = False

    def start(self) -> None:
        """Begin to beat, and to look whether that is acknowledged."""
        self._proved = deadline_clock()
        for work, name in ((self._beat, "node-beat"), (self._guard, "node-guard")):
            threading.Thread(target=work, name=name, daemon=True).start()

    def close(self) -> None:
        """Stop; commands have no deadline any more. Idempotent."""
        with self._turn:  # what a beat is answered while the node leaves means nothing
            self._is_over.set()
        for host in self._hosts.hosts():
            _set_deadline(host.runtime, None)

    def _beat(self) -> None:
        while not self._is_over.is_set():
            began = deadline_clock()
            with suppress(StoreError):  # the guard counts the seconds
                beats = [host.store.nodes.beat(host.runtime.node) for host in self._hosts.hosts()]
                self._answered(began, is_alive=all(beats))
            self._is_over.wait(self._between)

    def _answered(self, began: float, *, is_alive: bool) -> None:
        """Note that the store has answered: that this node lives, or that others took it for dead."""
        with self._turn:
            if self._is_over.is_set():
                return
            if not is_alive:
                self._end_all("other processes took it for dead")
            elif deadline_clock() - self._proved > self._fence:
                self._end_all(LATE)
            self._proved = began
            if self.is_fenced:
                self._on_return()
                self.is_fenced = False
            for host in self._hosts.hosts():
                _set_deadline(host.runtime, began + self._fence)

    def _end_all(self, why: str) -> None:
        if not self.is_fenced:
            self.is_fenced = True
            self._on_fence(why)

    def _guard(self) -> None:
        """Fence the node when its time is over: the thread that beats may wait for the store."""
        while not self._is_over.is_set():
            left = self._proved + self._fence - deadline_clock()
            if left > 0:
                self._is_over.wait(left)
                continue
            with self._turn:
                if deadline_clock() - self._proved > self._fence:
                    self._end_all(LATE)
            self._is_over.wait(self._between)


def _set_deadline(runtime: Runtime, deadline: float | None) -> None:
    with suppress(RuntimeError):  # its loop has ended, with all commands
        runtime.loop.call_soon_threadsafe(runtime.shared.processes.set_deadline, deadline)


class Node:
    """Runs sessions of a home in `hosts`; `main` is the host whose id is the node's, and configures it.

    `on_end` is called when the node has drained because a person asked for it. `report` gets a line
    when the node is cut off, and when it is back.
    """

    def __init__(
        self,
        hosts: Hosts,
        main: Host,
        on_end: Callable[[], object],
        report: Callable[[str], None],
    ) -> None:
        self._hosts, self._main, self._on_end = hosts, main, on_end
        self._report = report
        self._heartbeat = NodeHeartbeat(hosts, main.config.home, self._fence, self._return)
        self._families: dict[str, float] = {}  # by root: since when there is nothing to do
        self._given_up: list[Lease] = []
        self._woken = threading.Event()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="node-claims", daemon=True)

    @property
    def name(self) -> str:
        """Its id in the store."""
        return self._main.runtime.node

    @property
    def place(self) -> str:
        """The place whose sessions it takes."""
        return self._main.config.node.place or host_name()

    def start(self) -> None:
        """Join, and begin to take sessions. Raises `StoreError`."""
        for host in self._hosts.hosts():
            self._join(host)
        self._main.endpoint.listen()
        self._hosts.on_host = self._join
        self._main.endpoint.woken = self._woken.set
        self._heartbeat.start()
        self._thread.start()

    def end(self) -> None:
        """Take nothing more, suspend the sessions, give them back, and leave. Idempotent."""
        self.close()
        self._hosts.suspend()
        self.leave()

    def close(self) -> None:
        """Take nothing more. Idempotent."""
        self._is_over.set()
        self._woken.set()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join()

    def leave(self) -> None:
        """Say that the node is gone, whose sessions are given back by then. Idempotent."""
        self._heartbeat.close()
        with suppress(StoreError):
            for host in self._hosts.hosts():
                host.store.nodes.leave(host.runtime.node)

    def evict(self, session: str) -> None:
        """Give a session and its family back: what runs is interrupted, everything is kept."""
        found = self._hosts.find(session)
        if found is not None:
            self._give_back(found)

    def _join(self, host: Host) -> None:
        """Let a host be known as part of this node; only the main one takes sessions."""
        capacity = host.config.node.capacity if host is self._main else 0
        host.store.nodes.join(host.runtime.node, self.place, capacity)
        host.endpoint.evicting = self.evict

    # Taking and giving back -----------------------------------------------------------------------

    def _run(self) -> None:
        while not self._is_over.is_set():
            self._woken.clear()
            try:
                self._look()
                pause = LOOK
            except StoreError as fault:
                LOGGER.warning("node %s cannot look for sessions: %s", self.name, fault)
                pause = AGAIN
            self._woken.wait(pause)

    @property
    def is_fenced(self) -> bool:
        """Whether it runs nothing, because it could not prove that it lives."""
        return self._heartbeat.is_fenced

    def _look(self) -> None:
        if self._heartbeat.is_fenced:
            return
        nodes, capacity = self._main.store.nodes, self._main.config.node.capacity
        states = {row.node: row.state for row in nodes.rows()}
        is_draining = states.get(self.name) == "draining"  # a person has asked for it
        if is_draining and not any(host.conversations for host in self._hosts.hosts()):
            self._is_over.set()
            self._on_end()
        self._take_again()
        self._release_idle(is_draining=is_draining)
        while not (is_draining or self._is_over.is_set() or self._heartbeat.is_fenced):
            room = min(AT_ONCE, capacity - len(self._families))
            leases = nodes.claim_many(self.name, self.place, room) if room > 0 else []
            if not leases:
                return
            self._take(leases)

    def _take_again(self) -> None:
        """Take up the sessions that were given up when the node was cut off, and are free still."""
        while self._given_up:
            row = self._main.store.row(self._given_up.pop().session)
            if not row.parent and not self._main.store.is_owned(row.session):
                self._take_up(row, ())

    def _take(self, leases: Sequence[Lease]) -> None:
        """Take up the families of which these leases are."""
        rows = [(self._main.store.row(lease.session), lease) for lease in leases]
        families: dict[str, list[Lease]] = {}
        for row, lease in rows:
            families.setdefault(row.root or row.session, []).append(lease)
        found = {row.session: row for row, _ in rows}
        for root, family in families.items():
            if root in found and not self._is_over.is_set():
                self._take_up(found[root], family)
            else:
                self._main.store.nodes.release_many(family)

    def _take_up(self, row: SessionRow, family: Sequence[Lease]) -> None:
        """Resume a session; where that cannot be done, what was said to it is queued."""
        claimed = self._main.runtime.commits.claimed
        claimed.update({lease.session: lease for lease in family})
        try:
            is_run, hosts = bool(row.workflow), self._hosts
            host = hosts.of_run(row.session) if is_run else hosts.of_folder(Path(row.folder))
            if host is not self._main:
                self._drop_claims(family)
            host.resume(row.session, hears_mail=True)
            self._families[row.session] = time.monotonic()
        except StoreBusy:
            self._drop_claims(family)  # another process was faster
        except SteersmanError as fault:
            LOGGER.warning("session %s cannot be taken up: %s", row.session, fault)
            with suppress(SteersmanError):
                self._main.take_in(row.session)
            self._drop_claims(family)

    def _drop_claims(self, family: Sequence[Lease]) -> None:
        """Release what was claimed of a family and is not open."""
        claimed = self._main.runtime.commits.claimed
        left = [lease for lease in family if claimed.pop(lease.session, None) is not None]
        if left:
            self._main.store.nodes.release_many(left)

    def _release_idle(self, *, is_draining: bool) -> None:
        """Give back the sessions without work and without a follower for a while."""
        now = time.monotonic()
        for host in self._hosts.hosts():
            for session, conversation in tuple(host.conversations.items()):
                if host.open_conversation(session) is None:
                    self._families.pop(session, None)
                    host.conversations.pop(session, None)
                elif host.endpoint.is_followed(session) or not conversation.is_quiet():
                    self._families |= {session: now} if session in self._families else {}
                elif is_draining or now - self._families.get(session, now) > IDLE:
                    self._give_back(conversation)

    def _give_back(self, conversation: SessionClient) -> None:
        session = conversation.session
        store = self._main.store
        self._hosts.leave(conversation)
        self._families.pop(session, None)
        claimed = self._main.runtime.commits.claimed
        rest = [lease for lease in claimed.values() if store.row(lease.session).root == session]
        self._drop_claims(rest)

    # Cut off --------------------------------------------------------------------------------------

    def _fence(self, why: str) -> None:
        """End all tools and give all sessions up: others may have them soon."""
        for host in self._hosts.hosts():
            reason = f"node {self.name} is fenced: {why}"
            self._given_up += host.abandon(reason, "another node takes the session over")
        self._report(f"node {self.name} is fenced: {why}; its tools are ended")
        self._families.clear()

    def _return(self) -> None:
        """Join again: the store answers, and what it has is true."""
        self._main.store.nodes.release_many(self._given_up)
        for host in self._hosts.hosts():
            host.runtime.own_again()
            self._join(host)
        self._report(f"node {self.name} has joined again")
        self._woken.set()
