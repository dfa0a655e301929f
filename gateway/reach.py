"""Where the sessions of a home run, and how they are reached from this program.

A session is open in this process; in another one of this host, which is reached by its control socket; in
one of another host, which is reached through the mailbox; or nowhere: the mailbox keeps what is said.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..journal.folder import PrivateFolder
from ..journal.lock import Lock, Owner
from ..journal.store import Store
from ..machines.errors import SteersmanError, UsageError
from ..workflows.paths import Paths, make_private, write_private
from .remote import ANSWER_TIMEOUT, SOCKETS, ControlConnection

if TYPE_CHECKING:
    from .follow import Feed
    from .host.host import Host
    from .host.router import EventBus
    from .remote_session import RemoteSession


SERVING = "serve"
"""The name of the lock, and of the file with the address."""
OPENING = 120.0
"""Seconds that the opening of a session may take: its model may have to be loaded."""


class SessionReach:
    """Finds the sessions of a home; any thread.

    `host_of` returns the host of this program in which a session lives, also as a subagent, and `nodes`
    names the nodes that this program is. `event_bus` has the events of all its hosts: the first one of a
    session that is opened here wakes its readers.
    """

    def __init__(
        self,
        paths: Paths,
        environ: Mapping[str, str],
        store: Store,
        host_of: Callable[[str], Host | None] = lambda _: None,
        nodes: Callable[[], Collection[str]] = lambda: (),
        event_bus: EventBus | None = None,
    ) -> None:
        self.paths, self.environ, self.store = paths, environ, store
        self.host_of, self._nodes, self._event_bus = host_of, nodes, event_bus

    def owner(self, session: str) -> Owner | None:
        """Return the other process that has a session open; none if it is open here, or nowhere."""
        owner = self.store.owner(session)
        return owner if owner is not None and owner.node not in self._nodes() else None

    def is_near(self, owner: Owner) -> bool:
        """Whether a process is reached by its socket: it is on this host, with the same state folder.

        A host may have nodes of several accounts or containers; they reach each other as from other
        machines: only the home itself leads there.
        """
        return owner.is_here and (self.paths.state / SOCKETS / f"{owner.node}.sock").exists()

    def remote(
        self,
        session: str,
        owner: Owner | None = None,
        user: str = "",
        timeout: float = ANSWER_TIMEOUT,
    ) -> RemoteSession:
        """Return a session of another process, or of nobody; see `RemoteSession`."""
        from .remote_session import RemoteSession

        return RemoteSession(self, session, owner, user, timeout)

    def follow(self, session: str, owner: Owner | None, feed: Feed) -> Callable[[], None]:
        """Bring the live events of a session to a feed; return what ends that.

        From a process that is not near, and from nowhere, none come: the journal tells.
        """
        host = self.host_of(session) if owner is None else None
        if host is not None:
            publisher = host.runtime.loop
            return host.event_bus.follow(
                session, lambda event: feed.hear(event, publisher), feed.begin
            )
        if owner is None:
            bus = self._event_bus
            return bus.subscribe(lambda _: feed.end(), session) if bus is not None else _nothing
        return self._follow_there(session, owner, feed) if self.is_near(owner) else _nothing

    def _follow_there(self, session: str, owner: Owner, feed: Feed) -> Callable[[], None]:
        with ExitStack() as undoing:
            try:
                connection = ControlConnection.connect(self.paths.state, session, owner)
                undoing.callback(connection.close)
                feed.known, events = connection.events()
            except SteersmanError:
                feed.end()
                return _nothing
            undoing.pop_all()

        def listen() -> None:
            with suppress(SteersmanError, OSError, ValueError):  # it went, or we did
                for whole in events:
                    feed.take(whole)
            feed.end()

        threading.Thread(target=listen, name="follow", daemon=True).start()
        return connection.close


def _nothing() -> None:
    return


# The program that serves a home -------------------------------------------------------------------

# It can open sessions for other programs. It holds a lock in the state folder for as long as it lives, in
# which it stands with its control socket.


@contextmanager
def alone(folder: Path, name: str, owner: Owner, does: str, hint: str) -> Generator[None]:
    """Be the one program that holds a lock. Raises `UsageError` if another one `does` that."""
    with closing(PrivateFolder.open(make_private(folder), create=True)) as place:
        lock = Lock(place, name)
        if not lock.take():
            other = lock.owner()
            who = other.process if other is not None else "another process"
            raise UsageError(f"{who} {does} already", hint)
        try:
            lock.sign(owner)
            yield
        finally:
            lock.release()


def server_of(state: Path) -> Owner | None:
    """Return the program that serves a home; none if none does."""
    if not (state / f"{SERVING}.lock").exists():
        return None
    with closing(PrivateFolder.open(state, create=False)) as folder:
        return Lock(folder, SERVING).owner()


def open_there(state: Path, owner: Owner, **params: Any) -> tuple[str, list[str]]:
    """Have the program that serves a home open a session; return its id, and what to tell of it.

    Raises `SteersmanError`.
    """
    with closing(ControlConnection.connect(state, "", owner, OPENING)) as connection:
        opened = connection.request("begin", params)
        return str(opened["session"]), [str(notice) for notice in opened["notices"]]


def write_address(state: Path, address: str) -> None:
    """Write down where the home is served."""
    write_private(state / f"{SERVING}.json", json.dumps({"address": address}).encode())


def address_of(state: Path) -> str:
    """Return the address of the program that serves a home; empty if it is not known."""
    try:
        return str(json.loads((state / f"{SERVING}.json").read_bytes())["address"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""
