"""A session that a program of another machine runs, as the home has it: its journal and its mailbox."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from ..journal.lock import Owner
from ..journal.store import SessionRow, Store
from ..machines import protocol as m
from ..workflows.paths import Paths
from .event_feed import Pages
from .home.home import open_store
from .one_shot_client import OneShotClient
from .remote import Remote, SessionLink, is_near
from .wording.redaction import redactor_of

if TYPE_CHECKING:
    from .events.contract import Event

LOOK = 0.3
"""Seconds between two looks into the journal."""


def link_to(paths: Paths, environ: Mapping[str, str], session: str, owner: Owner) -> SessionLink:
    """Connect to a session's owner: by its socket, or where that is not near by the home itself."""
    if is_near(paths.state, owner):
        return Remote.connect(paths.state, session, owner)
    return MailboxLink(paths, environ, session)


class MailboxLink:
    """Stands where a `Remote` stands, for an owner whose control socket is on another machine.

    Requests are posted to the session's mailbox, so they survive the owner. Events are read from the
    journal: what is in none (text while it streams, output of tools, what subagents do) does not come.
    """

    is_live = False
    over = ("session_finalized",)

    def __init__(self, paths: Paths, environ: Mapping[str, str], session: str) -> None:
        self.session = session
        self._paths, self._environ = paths, environ
        self._store: Store = open_store(paths, read_only=True)
        self._is_closed = threading.Event()

    def call(self, method: str, **params: Any) -> Any:
        """Have the session's owner carry a method out. Raises as `OneShotClient.request`."""
        match method:
            case "inspect":
                return self._stored()
            case "edit":  # lasts as long as a connection, which is none here
                return {"ok": True}
            case "sessions" | "resumable":  # of another machine's files
                return []
            case _:
                user, key = str(params.pop("user", "")), str(params.pop("client_id", ""))
                client = OneShotClient(
                    self._paths, self._environ, self._store, self.session, user, key
                )
                return client.request(method, _lane(method, params), **params)

    def events(self) -> tuple[int, Iterator[Event]]:
        """Return the newest entry, and the events of the journal after it, until the link is closed."""
        newest = self._store.position(self.session).seq
        return newest, self._events(newest)

    def _events(self, after: int) -> Iterator[Event]:
        pages = Pages(self._store, self.session, after)
        while not self._is_closed.is_set():
            for event in pages.next():
                yield cast("Event", event.data)
            self._is_closed.wait(LOOK)

    def close(self) -> None:
        """End the events, and close the store; a reader in another thread returns."""
        self._is_closed.set()
        self._store.close()

    def _stored(self) -> dict[str, Any]:
        from .views.dump import dump_session

        row: SessionRow = self._store.row(self.session)
        data: dict[str, Any] = redactor_of(self._environ, row.folder).data(
            dump_session(self._store, row)
        )
        return data


def _lane(method: str, params: Mapping[str, Any]) -> m.Lane:
    """Return the lane of a request: talk, and what keeps the order of talk, waits its turn."""
    from .commands.registry import NAMES

    match method:
        case "say":
            return m.Lane.CONTROL if params.get("as") == "interrupt" else m.Lane.DATA
        case "command":
            return m.Lane.CONTROL if NAMES[str(params["name"])].is_urgent else m.Lane.DATA
        case _:
            return m.Lane.CONTROL
