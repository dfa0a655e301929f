"""One thing said to a session from another process, whoever has the session open.

A live owner is told through its control socket. Where nobody is, this process owns the session's
queue for a moment, without taking the session up. Owners come and go meanwhile: what was not taken
in is tried again, under the same client id, so that nothing is said twice.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from ..journal.lock import Owner
from ..journal.sqlite import SqliteStore
from ..machines.errors import StoreBusy, UnknownSession
from ..workflows.paths import Paths
from .remote import Remote

if TYPE_CHECKING:
    from .events.contract import Event


PATIENCE = 5.0
"""Seconds that one owner may take to open its socket, or to let go."""
LIMIT = 60.0
"""Seconds after which owners that come and go are given up on."""
PAUSE = 0.02


class Errand:
    """Says one thing to one session of a home, as `user`, and brings back the receipt."""

    def __init__(
        self,
        paths: Paths,
        environ: Mapping[str, str],
        store: SqliteStore,
        session: str,
        user: str = "",
    ) -> None:
        self._paths = paths
        self._environ = environ
        self._store = store
        self._session = session
        self._user = user
        self._key = f"k-{secrets.token_hex(8)}"

    def say(self, text: str, explicit: str = "auto") -> Event:
        """Say it; return the `accepted`, `rejected` or `result` event.

        Raises `StoreBusy` when a live owner does not answer.
        """
        node, limit = "", time.monotonic() + LIMIT
        deadline = limit
        while True:
            owner = self._store.owner(self._session)
            if owner is not None and owner.node != node:
                node, deadline = owner.node, min(limit, time.monotonic() + PATIENCE)
            try:
                if owner is not None:
                    return self._tell(owner, text, explicit)
                if not self._store.is_owned(self._session):
                    return self._keep(text, explicit)
            except (_Unreachable, UnknownSession) as fault:
                is_gone = owner is None and isinstance(fault, UnknownSession)
                if is_gone or time.monotonic() > deadline:
                    raise fault.__cause__ or fault from None
            time.sleep(PAUSE)

    def _tell(self, owner: Owner, text: str, explicit: str) -> Event:
        try:
            remote = Remote.connect(self._paths.state, self._session, owner)
        except StoreBusy as busy:
            raise _Unreachable from busy
        with closing(remote):
            said = {"text": text, "as": explicit, "client_id": self._key, "user": self._user}
            receipt: Event = remote.call("say", **said)
            return receipt

    def _keep(self, text: str, explicit: str) -> Event:
        """Own the queue for a moment, and say it there."""
        from ..workflows.config import load
        from .host import Host
        from .wish import Wish

        folder = Path(self._store.load(self._session).row.folder)
        config = load(self._paths, folder, self._environ)
        host = Host(self._paths, config, self._environ, Wish())
        with closing(host):
            receipt = _Receipt(self._key)
            host.hub.subscribe(receipt.hear)
            try:
                conversation = host.tend(self._session)
            except StoreBusy as busy:
                raise _Unreachable from busy  # somebody was faster
            conversation.say(text, explicit, self._key, self._user)
            return receipt.wait()


class _Unreachable(Exception):
    """An owner came, or goes: look again."""


class _Receipt:
    """Waits for what a session answers to one client id."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._came = threading.Event()
        self._event: Event = {}

    def hear(self, event: Event) -> None:
        """Take note of an event; must not block."""
        is_receipt = event["type"] in ("accepted", "rejected", "result")
        if is_receipt and event.get("client_id") == self._key and event.get("as") != "command":
            self._event = event
            self._came.set()

    def wait(self, seconds: float = 15.0) -> Event:
        """Return the receipt. Raises `StoreBusy` when none comes."""
        if not self._came.wait(seconds):
            raise StoreBusy("the session did not answer", "try again")
        return self._event
