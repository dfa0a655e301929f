"""What clients of the network may do with the sessions of a home, wherever those are open.

A session that is open here is asked directly, one of another process through its control socket. One
that is not open anywhere is resumed by a message to it, and only read otherwise.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager, closing, suppress
from datetime import datetime
from functools import partial
from typing import Any, TypeAlias, TypeVar, cast
from weakref import WeakValueDictionary

from starlette.responses import PlainTextResponse

from ...journal.store import SessionRow
from ...machines.errors import SteersmanError, StoreBusy, UnknownSession, UsageError
from ...ports.models.choice import known_names
from ...ports.models.provider import model_configs
from ...workflows.config import load
from ...workflows.home_folder import expanded
from ...workflows.plugins import AGENTS
from ...workflows.schedules import SystemZone
from ..chat.platform_parts import BackgroundTasks
from ..control import Requests
from ..events.contract import Event, Stamp
from ..follow import Batch, Follower, pages
from ..home.trash import Trash
from ..hosts import Hosts
from ..reach import SessionReach
from ..remote import ANSWER_TIMEOUT
from ..remote_session import RemoteSession
from ..session_info import SessionInfo, described, listed
from ..views.comparison import all_steps, compared, facts_rows
from ..views.dump import Dump, dump_session
from ..views.moment import seq_of
from ..views.saved_queues import stored_queue, told_saved
from ..views.schedule_view import schedules_now
from ..views.sequence import last_turn
from ..views.story import StoryView, story_of
from ..wording.formats import iso
from ..wording.redaction import Redactor
from .answers import ComparedSessions, ScheduleList, SessionChoices, SessionPage, SessionQueue
from .requests import Sessions

T = TypeVar("T")
AT_A_TIME = 4
"""Requests to one other process at a time."""
HOLD = 30.0
"""Seconds for which a message is held after its editor was heard of."""
MOST = 1_000
"""Messages that are held at a time."""

Key = tuple[str, str]
"""A session, and who edits in it."""
Holder: TypeAlias = Requests | RemoteSession
"""Carries out requests for one session; what one edits by it is held until it is closed."""


# Edits --------------------------------------------------------------------------------------------


class Edits:
    """The messages that people edit, which are held meanwhile; on the loop of the server.

    A terminal holds such a message for as long as it is connected. A request of HTTP is over at once, so
    here it is held for some seconds, which the client renews; where it goes away, the message is let go.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._held: dict[Key, tuple[Holder, asyncio.TimerHandle]] = {}
        self._order = WeakValueDictionary[Key, asyncio.Lock]()
        self._ending = BackgroundTasks()

    async def begin(self, session: str, number: int, editor: str) -> dict[str, Any]:
        """Hold a message, or hold it on; return `{ok, reason}`. Raises `SteersmanError`."""
        session = (await asyncio.to_thread(self._desk.row, session)).session
        key = (session, editor)
        async with self._order.setdefault(key, asyncio.Lock()):
            holder = self._taken(key)
            answer: dict[str, Any] = {"ok": False}
            try:
                if holder is not None:
                    with suppress(SteersmanError):  # its session is open elsewhere now, or nowhere
                        answer = await self._desk.ask(holder, session, "edit", {"number": number})
                if holder is None or not answer["ok"]:
                    await self._close(holder)
                    if len(self._held) >= MOST:
                        raise UsageError("too many messages are being edited", "finish some")
                    holder = await self._desk.client_of(session)
                    if holder is None:  # nothing in it starts
                        return {"ok": True}
                    answer = await self._desk.ask(holder, session, "edit", {"number": number})
            finally:
                if not answer["ok"]:
                    await self._close(holder)
            if answer["ok"] and holder is not None:
                loop = asyncio.get_running_loop()
                timer = loop.call_later(HOLD, lambda: self._ending.start(self._end(key)))
                self._held[key] = (holder, timer)
        return answer

    @asynccontextmanager
    async def client(self, session: str, editor: str) -> AsyncGenerator[Holder | None]:
        """Yield the client in which an editor edits a message of a session; none if it edits none."""
        key = (session, editor)
        if key not in self._held:
            yield None
            return
        async with self._order.setdefault(key, asyncio.Lock()):
            yield self._held[key][0] if key in self._held else None

    async def end(self, session: str, editor: str) -> None:
        """End the edit of a message in a session. Idempotent."""
        session = (await asyncio.to_thread(self._desk.row, session)).session
        await self._end((session, editor))

    async def _end(self, key: Key) -> None:
        async with self._order.setdefault(key, asyncio.Lock()):
            await self._close(self._taken(key))

    async def aclose(self) -> None:
        """Let go of everything."""
        for key in tuple(self._held):
            await self._end(key)

    def _taken(self, key: Key) -> Holder | None:
        holder, timer = self._held.pop(key, (None, None))
        if timer is not None:
            timer.cancel()
        return holder

    async def _close(self, holder: Holder | None) -> None:
        if holder is not None:
            await asyncio.to_thread(holder.close)


# The sessions of a home ---------------------------------------------------------------------------


class Desk:
    """The sessions of a home for the clients of one server. Methods raise `SteersmanError`.

    Those that are not asynchronous block, and are for a thread.
    """

    def __init__(self, hosts: Hosts) -> None:
        self._hosts = hosts
        self._turns = WeakValueDictionary[str, asyncio.Semaphore]()
        self.edits = Edits(self)
        self._reach = SessionReach(
            hosts.paths,
            os.environ,
            hosts.store,
            hosts.with_live,
            lambda: hosts.nodes,
            hosts.event_bus,
        )

    def row(self, session: str) -> SessionRow:
        """Find a session. Raises `UnknownSession`."""
        try:
            return self._hosts.row(session)
        except UsageError as error:  # it fits several
            raise UnknownSession(error.message, error.hint) from None

    def list_sessions(self, query: Sessions) -> SessionPage:
        """List the sessions of the home, the newest first.

        It is a page of them, without those of subagents.
        """
        is_whole = query.find or query.folder or query.state or query.after
        most = 0 if is_whole else query.limit + 1
        known = (info for info in listed(self._hosts.store, self._is_here, most) if info.seq)
        fitting = sorted((info for info in known if _fits(info, query)), key=_place, reverse=True)
        shown, more = fitting[: query.limit], fitting[query.limit :]
        cursor = "{:d}_{!r}_{}".format(*_place(shown[-1])) if more else None
        return SessionPage(sessions=shown, next=cursor)

    def _is_here(self, session: str) -> bool:
        return self._hosts.host_of(session) is not None

    def choices(self, folder: str) -> SessionChoices:
        """Return what a new session in a folder can be of: the agents and models that are configured."""
        config = load(self._hosts.paths, expanded(folder or "~"), os.environ)
        models = model_configs(config.models)
        names = dict.fromkeys((*config.agents, *AGENTS.by_name))
        names.pop(config.goals.judge, None)
        return SessionChoices(
            agent=config.default_agent,
            agents=list(names),
            models=[name for name in known_names(models) if not name.endswith(":MODEL")],
        )

    def schedules(self) -> ScheduleList:
        """List the schedules: when each happens next, what came of it last, and what it said."""
        paths, store = self._hosts.paths, self._hosts.store
        found = schedules_now(paths, os.environ, store, time.time(), SystemZone())
        return ScheduleList(schedules=Redactor(os.environ).data(found))

    def show_session(self, session: str) -> SessionInfo:
        """Describe a session.

        It may be a subagent's.
        """
        return described(self._hosts.store, self.row(session).session, self._is_here)

    def open(self, params: dict[str, Any]) -> SessionInfo:
        """Begin a session, or take one up; see `Hosts.open_for`."""
        return self.show_session(self._hosts.open_for(params)["session"])

    async def call(
        self, session: str, method: str, params: dict[str, Any], editor: str = ""
    ) -> Any:
        """Carry out a method of the control socket for a session, which is taken up if need be.

        `editor` is who asks; a message that it edits is its own to change.
        """
        row = await asyncio.to_thread(self.row, session)
        async with self.edits.client(row.session, editor) as client:
            if client is not None:
                with suppress(UnknownSession):  # it was taken up elsewhere
                    return await self.ask(client, row.session, method, params)
        for _ in range(2):
            with suppress(UnknownSession):  # its owner has just left
                if (client := await self.client_of(row.session)) is not None:
                    with closing(client):
                        return await self.ask(client, row.session, method, params)
                await asyncio.to_thread(self._hosts.resume, row.session)
        raise StoreBusy(f"session `{row.session}` changes its owner just now", "try again")

    async def client_of(self, session: str) -> Holder | None:
        """Return what carries out requests for a session; none where no program has it open."""
        if (host := self._hosts.host_of(session)) is not None:
            return Requests(host)
        owner = await asyncio.to_thread(self._reach.owner, session)
        return self._reach.remote(session, owner) if owner is not None else None

    async def ask(self, client: Holder, session: str, method: str, params: dict[str, Any]) -> Any:
        """Have a client carry a method out; a process that does not answer takes few of the threads."""
        if isinstance(client, Requests):
            return await client.call(method, {"session": session, **params})
        owner = client.owner
        assert owner is not None
        turn = self._turns.setdefault(owner.node, asyncio.Semaphore(AT_A_TIME))
        try:
            await asyncio.wait_for(turn.acquire(), ANSWER_TIMEOUT)
        except TimeoutError:
            raise StoreBusy(
                f"{owner.process} does not answer", "wait a moment and try again, or end it"
            ) from None
        try:
            return await asyncio.to_thread(partial(client.call, method, **params))
        finally:
            turn.release()

    async def queue(self, session: str) -> SessionQueue:
        """Return the queue."""
        return await self._look(session, "queue", self._stored_queue)

    async def inspect(self, session: str, at: str) -> Dump:
        """Return the state of every part, now or at a moment.

        `at` is an entry's number or a time, as of `inspect --at`; empty: now.
        """
        if not at:
            return await self._look(session, "inspect", self._dump)
        row = await asyncio.to_thread(self.row, session)
        return await asyncio.to_thread(self._dump, row, at)

    async def _look(self, session: str, method: str, stored: Callable[[SessionRow], T]) -> T:
        row = await asyncio.to_thread(self.row, session)
        client = await self.client_of(row.session)
        if client is None:
            return await asyncio.to_thread(stored, row)
        with closing(client):
            found: T = await self.ask(client, row.session, method, {})
            return found

    def _stored_queue(self, row: SessionRow) -> SessionQueue:
        return cast("SessionQueue", stored_queue(self._hosts.store, row))

    def _dump(self, row: SessionRow, at: str = "") -> Dump:
        store = self._hosts.store
        seq = seq_of(store, row.session, row.seq, at, datetime.now().astimezone()) if at else None
        data: Dump = Redactor(os.environ).data(dump_session(store, row, seq))
        return data

    def sequence(self, session: str, at: int) -> PlainTextResponse:
        """Return the messages of the last turn up to an entry, as Mermaid text."""
        row = self.row(session)
        seq = min(at, row.seq) if at else row.seq
        drawn = last_turn(self._hosts.store, row.session, seq, Redactor(os.environ))
        return PlainTextResponse(drawn)

    def why(self, session: str, message: str) -> StoryView:
        """Return the history of a message, by its number, id or client id, and where it stands."""
        row, store, redactor = self.row(session), self._hosts.store, Redactor(os.environ)
        is_owned = store.is_owned(row.session)
        story, _ = story_of(store, row, message, redactor, is_owned=is_owned)
        data: StoryView = redactor.data(story)
        return data

    def compare(self, session: str, other: str) -> ComparedSessions:
        """Return where two sessions part, all their steps, and what each came to."""
        rows = self.row(session), self.row(other)
        store, redactor = self._hosts.store, Redactor(os.environ)
        found = compared(store, *rows)
        left, right = (all_steps(store, row, redactor) for row in rows)
        return ComparedSessions(
            sessions=(rows[0].session, rows[1].session),
            common=found.common,
            is_same=found.is_same,
            steps=(left, right),
            facts=facts_rows(found, redactor),
        )

    def page(self, session: str, after: int, upto: int) -> list[Event]:
        """Return the events of the journal after one entry, up to another one."""
        row, store = self.row(session), self._hosts.store
        read = pages(store, row.session, after, min(upto, row.seq))
        return [cast("Event", event.data) for _, page in read for event in page]

    async def batches(self, session: str, after: int) -> AsyncGenerator[Batch]:
        """Yield the events of a session after an entry, without end.

        A client of a session in which nothing was said is told of others' queues.
        """
        row = await asyncio.to_thread(self.row, session)
        follower = Follower(self._reach, row.session, after)
        is_new = not after
        async with aclosing(follower.batches()) as batches:
            async for batch in batches:
                yield batch
                if is_new and batch.is_joined:
                    is_new = False
                    yield Batch(batch.confirmed, await asyncio.to_thread(self._saved, row.session))

    def _saved(self, session: str) -> list[Event]:
        row = self._hosts.row(session)
        if row.has_begun:
            return []
        at = Stamp(seq=None, time=iso(time.time()), session=row.session)
        trash = Trash(self._hosts.paths.state)
        return list(told_saved(self._hosts.store, trash, row.folder, at))


def _fits(info: SessionInfo, wanted: Sessions) -> bool:
    """Whether a session is listed, on this page or a later one."""
    words = (info.name, info.title, info.folder, info.id, info.agent, info.workflow)
    return (
        not info.parent
        and wanted.find.casefold() in " ".join(words).casefold()
        and wanted.folder in ("", info.folder)
        and wanted.state in ("", info.state)
        and (not wanted.after or _place(info) < _after(wanted.after))
    )


def _place(info: SessionInfo) -> tuple[bool, float, str]:
    return bool(info.needs), info.updated, info.id


def _after(cursor: str) -> tuple[bool, float, str]:
    """Read a cursor. Raises `ValueError`."""
    needs, updated, session = cursor.split("_", 2)
    return needs == "1", float(updated), session
