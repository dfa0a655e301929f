"""One message to a session from another process, whether or not a process has the session open.

A live owner receives the message through its control socket. Without an owner, this process owns the
session's queue for the message, without resuming the session. The owner may change meanwhile: a message
that was not accepted is sent again under the same client id, so that no message is delivered twice.
A message waits its turn, however many come at once: only an owner that cannot answer ends that.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..journal.lock import Owner
from ..journal.store import Store
from ..machines.errors import StoreBusy, UnknownSession
from ..ports.process.ancestry import is_stopped
from ..workflows.paths import Paths
from .events.contract import Event, ReceiptEvent, is_receipt
from .remote import Remote

if TYPE_CHECKING:
    from .commands.command import CommandCall
    from .conversation import Conversation


PATIENCE = 30.0
"""Seconds that one owner may take to open its socket, or to release the session."""
LIMIT = 180.0
"""Seconds for all attempts, while owners answer, or follow one another."""
PAUSE = 0.02


class OneShotClient:
    """Sends one message or command to one session of a home, as `user`, and returns the receipt."""

    def __init__(
        self,
        paths: Paths,
        environ: Mapping[str, str],
        store: Store,
        session: str,
        user: str = "",
    ) -> None:
        self._paths = paths
        self._environ = environ
        self._store = store
        self._session = session
        self._user = user
        self._key = f"k-{secrets.token_hex(8)}"

    def say(self, text: str, explicit: str = "auto", *, is_plain: bool = False) -> ReceiptEvent:
        """Send a message; return the `accepted`, `rejected` or `result` event.

        `is_plain`: a slash at its beginning has no meaning. Raises `StoreBusy` if a live owner does not
        answer.
        """
        params = {"text": text, "as": explicit, "plain": is_plain}

        def say(here: Conversation) -> None:
            method = here.send_message if is_plain else here.say
            method(text, explicit, self._key, self._user)

        return self._do("say", params, say)

    def run(self, call: CommandCall) -> ReceiptEvent:
        """Carry out a command; return its `result` event. Raises as `say` does."""
        params = {"name": call.command.name, "arguments": dict(call.arguments)}
        return self._do("command", params, lambda here: here.run(call, self._key, self._user))

    def _do(
        self, method: str, params: dict[str, Any], do: Callable[[Conversation], object]
    ) -> ReceiptEvent:
        """Call a method of the live owner's socket, or without an owner do the same here."""
        node, limit = "", time.monotonic() + LIMIT
        deadline = limit
        while True:
            owner = self._store.owner(self._session)
            if owner is None:  # the next owner gets its full time
                node, deadline = "", limit
            elif owner.node != node:
                node, deadline = owner.node, min(limit, time.monotonic() + PATIENCE)
            try:
                if owner is not None:
                    return self._call_owner(owner, method, params)
                if not self._store.is_owned(self._session):
                    return self._do_here(do)
            except (_Unreachable, UnknownSession) as fault:
                is_gone = owner is None and isinstance(fault, UnknownSession)
                if is_gone or time.monotonic() > deadline:
                    raise fault.__cause__ or fault from None
            time.sleep(PAUSE)

    def _call_owner(self, owner: Owner, method: str, params: dict[str, Any]) -> ReceiptEvent:
        if owner.is_here and is_stopped(owner.pid):
            raise StoreBusy(
                f"{owner.process} has session `{self._session}` open and was stopped by a signal",
                f"`kill -CONT {owner.pid}` lets it go on; `kill {owner.pid}` ends it",
            )
        try:
            with closing(Remote.connect(self._paths.state, self._session, owner, LIMIT)) as remote:
                sender = {"client_id": self._key, "user": self._user}
                receipt: ReceiptEvent = remote.call(method, **params, **sender)
                return receipt
        except StoreBusy as busy:
            raise _Unreachable from busy

    def _do_here(self, do: Callable[[Conversation], object]) -> ReceiptEvent:
        """Own the session's queue until the receipt arrives."""
        from ..workflows.config import load
        from .host import Host
        from .launch_options import LaunchOptions

        folder = Path(self._store.load(self._session).row.folder)
        config = load(self._paths, folder, self._environ)
        host = Host(self._paths, config, self._environ, LaunchOptions())
        with closing(host):
            receipt = _Receipt(self._key)
            host.event_bus.subscribe(receipt.hear)
            try:
                conversation = host.tend(self._session)
            except StoreBusy as busy:
                raise _Unreachable from busy  # another process was faster
            do(conversation)
            return receipt.wait()


class _Unreachable(Exception):
    """The owner is starting, or is closing: try again."""


class _Receipt:
    """Waits for the receipt of one client id."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._has_arrived = threading.Event()
        self._event: ReceiptEvent | None = None

    def hear(self, event: Event) -> None:
        """Receive an event; must not block."""
        if is_receipt(event, self._key):
            self._event = event
            self._has_arrived.set()

    def wait(self, seconds: float = LIMIT) -> ReceiptEvent:
        """Return the receipt. Raises `StoreBusy` if none arrives."""
        if not self._has_arrived.wait(seconds) or self._event is None:
            raise StoreBusy("the session did not answer", "try again")
        return self._event
