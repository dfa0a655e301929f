"""The mailbox of a process: messages that other processes posted to the sessions that are open here.

A message is a request of the control socket, `{method, params, user}`, durable before its sender goes on.
It comes through the session's own door, like what a person types there. The decision about it consumes it
in the same transaction, so that after a crash of this process it is delivered again exactly if nothing
was decided about it. Then its sender gets the answer.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Generator
from concurrent.futures import Future, wait
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from ..actors.runtime import POSTED
from ..journal.store import Lease, Posted
from ..machines import protocol as m
from ..machines.errors import StoreError, UnknownSession
from .control import Requests, error_of
from .remote import NO_ANSWER

if TYPE_CHECKING:
    from .host.host import Host


LOGGER = logging.getLogger("steersman")
LOOK = 60.0
"""Seconds after which the mailboxes are read although nothing rang."""
LEAVE_TIMEOUT = 10.0
"""Seconds that the answers to messages may take when their session is left."""
PAUSE = 1.0
"""Seconds between two attempts to read them where the store fails."""
KEPT = ("session_suspended", "store_failed")
"""Reasons of a rejection after which a message stays for the session's next owner."""


class MailReader:
    """Delivers the messages to the sessions of one host, on its runtime's loop.

    Messages of a session are carried out one after another, but those that stop something at once.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._taken: set[int] = set()
        self._going: dict[Future[None], str] = {}
        self._ending: set[str] = set()
        self._mutex = threading.Lock()
        self._turns = WeakValueDictionary[str, asyncio.Lock]()
        self._is_over = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to wait for messages, in a thread of its own. Idempotent."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="mail-reader", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Read nothing more, and wait for the answers to what was read. Idempotent.

        The thread ends when the store closes.
        """
        self._is_over.set()
        with self._mutex:
            going = tuple(self._going)
        wait(going, LEAVE_TIMEOUT)

    @contextmanager
    def ending(self, session: str) -> Generator[None]:
        """Read nothing more for a session that is left inside, once what was read is answered."""
        with self._mutex:
            self._ending.add(session)
            going = [delivery for delivery, about in self._going.items() if about == session]
        try:
            wait(going, LEAVE_TIMEOUT)
            yield
        finally:
            with self._mutex:
                self._ending.discard(session)

    def forget(self) -> None:
        """Read every message again that is unread: its session was given up."""
        with self._mutex:
            self._taken.clear()

    def read(self, session: str) -> list[Future[None]]:
        """Deliver what waits for a session that is open here; each future ends with its answer.

        A session that is just being opened is read when it is.
        """
        runtime, deliveries = self._host.runtime, list[Future[None]]()
        if session not in self._host.conversations and not self._is_child(session):
            return deliveries
        with self._mutex:
            if self._is_over.is_set() or session in self._ending:
                return deliveries
            for posted in self._host.store.unconsumed(session):
                if posted.id not in self._taken:
                    self._taken.add(posted.id)
                    work = self._deliver(posted)
                    delivery = asyncio.run_coroutine_threadsafe(work, runtime.loop)
                    self._going[delivery] = session
                    deliveries.append(delivery)
        for delivery in deliveries:
            delivery.add_done_callback(lambda ended: self._going.pop(ended, None))
        return deliveries

    def _run(self) -> None:
        node = self._host.runtime.node
        while not self._is_over.is_set():
            try:
                for session in self._host.store.wait(node, LOOK):
                    self.read(session)
                self._host.endpoint.woken()
            except StoreError as fault:
                LOGGER.warning("the mailboxes cannot be read: %s", fault)
                self._is_over.wait(PAUSE)

    async def _deliver(self, posted: Posted) -> None:
        """Carry a message out when those before it are, and answer it, or leave it unread."""
        turn = asyncio.Lock()
        if not self._is_urgent(posted):
            turn = self._turns.setdefault(posted.session, turn)
        async with turn:
            await self._decide(posted)

    async def _decide(self, posted: Posted) -> None:
        commits = self._host.runtime.commits
        lease = commits.hand_out(posted.session, posted.id)
        if lease is None:
            self._taken.discard(posted.id)
            return
        POSTED.set(posted.id)
        work = asyncio.create_task(self._carried_out(posted))
        POSTED.set(0)
        found: Any = (await asyncio.gather(work, return_exceptions=True))[0]
        commits.take_back(posted.session, posted.id)
        if not await asyncio.to_thread(self._answer, lease, posted, found):
            self._taken.discard(posted.id)

    async def _carried_out(self, posted: Posted) -> Any:
        request = posted.message
        params = {
            **_object(request.get("params")),
            "session": posted.session,
            "client_id": posted.client_id,
            "user": request.get("user") or "",
        }
        with closing(Requests(self._host)) as requests:
            return await requests.call(str(request.get("method")), params)

    def _answer_of(self, posted: Posted, found: Any) -> dict[str, Any] | None:
        """Return the answer to a message by what came of it; none: it stays for the next owner.

        One that failed by a mistake of this program is answered as well: it would fail again.
        """
        if isinstance(found, BaseException):
            error = error_of(found)
            is_gone = isinstance(found, UnknownSession) and not self._is_child(posted.session)
            return None if is_gone or error["code"] == NO_ANSWER else {"error": error}
        if _object(found).get("type") == "rejected":
            runtime = self._host.runtime
            is_usable = runtime.is_open(posted.session) and not runtime.is_broken(posted.session)
            if found["reason"] in KEPT or not is_usable:  # only as it ends or fails here
                return None
        return {"result": found}

    def _answer(self, lease: Lease, posted: Posted, found: Any) -> bool:
        """Answer a message once what was decided about it is durable; False if it stays unread.

        A session that was left because of the message is claimed again for the answer.
        """
        store = self._host.store
        try:
            if (answer := self._answer_of(posted, found)) is None:
                return False
            self._host.runtime.settle()
            if store.answer(lease, posted.id, answer):
                return True
            again = store.claim(posted.session, lease.node)
            if again is None:
                return False
            try:
                return store.answer(again, posted.id, answer)
            finally:
                store.release(again)
        except StoreError as fault:
            LOGGER.warning("message %d cannot be answered: %s", posted.id, fault)
            return False

    def _is_urgent(self, posted: Posted) -> bool:
        """Whether a message stops something, by its lane or by the words of its session."""
        found = self._host.conversations.get(posted.session)
        if posted.lane <= m.Lane.CONTROL or found is None:
            return True
        text = str(_object(posted.message.get("params")).get("text") or "")
        return posted.message.get("method") == "say" and found.texts.is_urgent(text)

    def _is_child(self, session: str) -> bool:
        """Whether a session is a subagent's, to which its parent passes messages."""
        return bool(self._host.store.row(session).parent)


def _object(data: Any) -> dict[str, Any]:
    return data if isinstance(data, dict) else {}  # pyright: ignore[reportUnknownVariableType]
