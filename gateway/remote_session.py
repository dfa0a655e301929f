"""A session that this process does not run: whatever has it open, or nobody.

A request goes by the control socket of the session's owner, if the owner is given and near. Else it is
posted to the session's mailbox, where it is durable, and the session's owner answers it. If no process
owns the session, a node of its place takes it, also one that is away for a moment; where none has joined
and its files are on this machine, this process owns its queue for the message, without resuming the
session. A message that no process can answer now stays in the mailbox for the session's next owner, and
its sender learns that.
"""

from __future__ import annotations

import secrets
import shlex
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ..journal.lock import Owner, host_name
from ..journal.store import SessionRow, Store
from ..machines import protocol as m
from ..machines.errors import StoreBusy
from ..ports.process.ancestry import is_stopped
from ..workflows.home_folder import home_folder
from .events.contract import Event, ReceiptEvent, Stamp, is_receipt
from .home.home import open_store
from .remote import ControlConnection, result_of
from .wording.acknowledgement import accepted
from .wording.formats import iso

if TYPE_CHECKING:
    from .commands.command import CommandCall
    from .reach import SessionReach


OWNER_TIMEOUT = 30.0
"""Seconds that one owner may take to answer, or to release the session."""
LIMIT = 180.0
"""Seconds for the answer, while owners follow one another."""
LOOK = 0.2
"""Seconds between two looks at who owns the session."""
KEPT = "The message is kept, and is read then."


class Unanswered(StoreBusy):
    """A message that stays in the mailbox for now; its text says why, its hint what gets it read."""


class RemoteSession:
    """One session of a home, to which `user` speaks; belongs to one thread at a time.

    With `owner` it is by that process's socket, if that is near: then an answer comes as fast as it can,
    and `close` closes the connection. Else it is by the mailbox.
    """

    def __init__(
        self, reach: SessionReach, session: str, owner: Owner | None, user: str, timeout: float
    ) -> None:
        """`timeout` is in seconds, for each answer by the socket."""
        self.session = session
        self.waits_because = ""
        self._reach, self._store, self._user = reach, reach.store, user
        self.owner = owner
        self._is_near = owner is not None and reach.is_near(owner)
        self._timeout = timeout
        self._connection: ControlConnection | None = None

    def say(
        self, text: str, explicit: str = "auto", *, is_plain: bool = False, key: str = ""
    ) -> ReceiptEvent:
        """Send a message; return the `accepted`, `rejected` or `result` event.

        `is_plain`: a slash at its beginning has no meaning; `key` is its client id. One that stays in
        the mailbox is accepted as `posted`, and `waits_because` says why.
        """
        key = key or _new_key()
        try:
            receipt: ReceiptEvent = self.call(
                "say", **{"text": text, "as": explicit, "plain": is_plain, "client_id": key}
            )
        except Unanswered as waiting:
            self.waits_because = f"{waiting.message}. {waiting.hint}"
            at = Stamp(seq=None, time=iso(time.time()), session=self.session)
            said = m.Said(text=text, client_id=key, user=self._user)
            return accepted(at, id=key, said=said, routed=m.Routed(said_as="posted"))
        return receipt

    def run(self, call: CommandCall) -> ReceiptEvent:
        """Carry out a command; return its `result` event. Raises as `call`."""
        receipt: ReceiptEvent = self.call(
            "command", name=call.command.name, arguments=dict(call.arguments)
        )
        return receipt

    def call(self, method: str, **params: Any) -> Any:
        """Carry out a method of the control socket; return its result.

        Raises `SteersmanError`: `OwnerGone`, or `Unanswered` for what stays in the mailbox.
        """
        if self._is_near and self.owner is not None:
            if self._connection is None:
                self._connection = ControlConnection.connect(
                    self._reach.paths.state, self.session, self.owner, self._timeout
                )
            return self._connection.request(method, {"session": self.session, **params})
        match method:
            case "inspect":
                from .views.dump import dump_session
                from .wording.redaction import redactor_of

                row = self._store.row(self.session)
                return redactor_of(self._reach.environ, row.folder).data(
                    dump_session(self._store, row)
                )
            case "edit":  # lasts as long as a connection, which is none here
                return {"ok": True}
            case "sessions" | "resumable":  # of another machine's files
                return []
            case _:
                return self._post(method, params)

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._connection is not None:
            self._connection.close()

    def _post(self, method: str, params: dict[str, Any]) -> Any:
        """Post a request, and return the answer to it."""
        user = str(params.pop("user", "")) or self._user
        key = str(params.pop("client_id", "")) or _new_key()
        request = {"method": method, "params": params, "user": user}
        with closing(open_store(self._reach.paths)) as store:  # the other one may only read
            row = store.row(self.session)
            posted = store.post(self.session, _lane(method, params), request, key)
            answer = self._answer(store, row, posted)
            return self._journalled(store, row.seq, key) if answer is None else result_of(answer)

    def _answer(self, store: Store, row: SessionRow, posted: int) -> dict[str, Any] | None:
        """Wait for the answer to a message, and take it in where no process does.

        None if a process decided about the message, and ended before it could answer.
        """
        node, limit = "", time.monotonic() + LIMIT
        deadline = time.monotonic() + OWNER_TIMEOUT
        while True:
            owner = self._store.owner(self.session)
            now = time.monotonic()
            if owner is None and _has_node(store, row):
                if node:  # its owner has gone: a node gets its full time
                    node, deadline = "", min(limit, now + OWNER_TIMEOUT)
            elif owner is None:
                node, deadline = "", limit
                if not self._is_here(row):
                    raise _unanswered(row, None, has_node=False)
                self._take_in(row)
            elif owner.node != node:
                node, deadline = owner.node, min(limit, now + OWNER_TIMEOUT)
            is_late = now > deadline or (owner is not None and _is_stopped(owner))
            answer = store.reply(posted, 0.0 if is_late else LOOK)
            if answer is not None:
                return answer
            is_read = posted not in {mail.id for mail in store.unconsumed(self.session)}
            if is_read and not store.is_owned(self.session):
                return store.reply(posted, 0.0)  # decided by a process that has ended since
            if is_late:
                raise _unanswered(row, owner)

    def _journalled(self, store: Store, after: int, key: str) -> ReceiptEvent:
        """Return the receipt from the journal after an entry. Raises `StoreBusy` if there is none."""
        from .follow import pages

        for _, page in pages(store, self.session, after):
            for event in page:
                if is_receipt(found := cast("Event", event.data), key):
                    return found
        raise StoreBusy(
            f"session `{self.session}` has decided, and its process ended before it answered",
            "`steersman queue list` and `steersman inspect` show what became of it",
        )

    def _is_here(self, row: SessionRow) -> bool:
        """Whether the files of a session are on this machine."""
        if row.place in ("", host_name()):
            return True
        from ..workflows.config import load

        return row.place == load(self._reach.paths, home_folder(), self._reach.environ).node.place

    def _take_in(self, row: SessionRow) -> None:
        """Own the session's queue until what is in its mailbox is decided; another may be faster."""
        from ..workflows.config import load
        from .host.host import Host
        from .launch_options import LaunchOptions

        paths, environ = self._reach.paths, self._reach.environ
        config = load(paths, Path(row.folder), environ)
        with closing(Host(paths, config, environ, LaunchOptions())) as host:
            try:
                host.take_in(row.session)
            except StoreBusy:
                return


def _new_key() -> str:
    return f"k-{secrets.token_hex(8)}"


def _lane(method: str, params: Mapping[str, Any]) -> m.Lane:
    """Return the lane of a request: talk, and what keeps the order of talk, waits its turn."""
    is_urgent = True
    if method == "say":
        is_urgent = params.get("as") == "interrupt"
    elif method == "command":
        from .commands.registry import command_named

        is_urgent = command_named(str(params["name"])).is_urgent
    return m.Lane.CONTROL if is_urgent else m.Lane.DATA


def _unanswered(row: SessionRow, owner: Owner | None, *, has_node: bool = True) -> Unanswered:
    """Say why a message stays in the mailbox, and what gets it read."""
    if not has_node:
        return Unanswered(
            f"session `{row.session}` has its files at `{row.place}`, where no node runs",
            f"`steersman node --place {shlex.quote(row.place)}` there takes it. {KEPT}",
        )
    if owner is None:
        why = f"no node of `{row.place}` has taken session `{row.session}` yet"
        return Unanswered(why, f"`steersman chat --resume {row.session}` takes it here. {KEPT}")
    if _is_stopped(owner):
        return Unanswered(
            f"{owner.process} has session `{row.session}` open and was stopped by a signal",
            f"`kill -CONT {owner.pid}` lets it go on, `kill {owner.pid}` ends it. {KEPT}",
        )
    return Unanswered(
        f"{owner.process} has session `{row.session}` open and does not answer",
        f"It may be very busy. {KEPT}",
    )


def _has_node(store: Store, row: SessionRow) -> bool:
    """Whether a node has joined that takes a session of this place; it may be away for a moment.

    What a sender decides must not depend on that moment: a message that it took in itself would wait for
    a person.
    """
    return any(
        node.sessions < node.capacity and node.state == "active" and node.place == row.place
        for node in store.nodes.rows()
    )


def _is_stopped(owner: Owner) -> bool:
    """Whether the owner is a process of this host that a signal has stopped."""
    return owner.is_here and is_stopped(owner.pid)
