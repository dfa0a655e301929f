"""steersman as an agent of the Agent Client Protocol: the methods that an editor can call.

Sessions of one connection may have different folders; each folder has its own host, with that folder's
configuration. Extensions: `_session/steering` and `_session/goal`, as other agents have them, and
`_steersman/command` for every slash command, with its reply as data.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from acp import PROTOCOL_VERSION
from acp.exceptions import RequestError
from acp.schema import (
    AgentCapabilities,
    ClientCapabilities,
    ForkSessionResponse,
    HttpMcpServer,
    Implementation,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    McpCapabilities,
    McpServerStdio,
    NewSessionResponse,
    PromptCapabilities,
    PromptResponse,
    ResumeSessionResponse,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionDeleteCapabilities,
    SessionForkCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SessionResumeCapabilities,
    SetSessionConfigOptionResponse,
    TerminalAuthMethod,
    Usage,
)
from pydantic import TypeAdapter

from ...gateway.client import SessionClient
from ...gateway.commands.command import CommandCall
from ...gateway.commands.goal import clear_goal, goal, pause_goal, resume_goal
from ...gateway.events.contract import Event
from ...gateway.home.home import refuse_run
from ...gateway.home.retention import delete_session
from ...gateway.host.host import Host
from ...gateway.session_info import listed
from ...gateway.views.session_file import fork
from ...machines.conversation import Usage as TurnUsage
from ...machines.errors import SteersmanError, UnknownSession, UsageError
from ...ports.models.loose_json import table
from ...ports.tools.mcp_offer import McpServer
from ...ports.tools.text import visible
from .link import REFUSED, UNKNOWN, WRONG, EditorLink
from .session import EditorSession
from .settings import SETTINGS
from .update import Block, EditorUpdates, said_of

T = TypeVar("T")
BLOCKS: TypeAdapter[list[Block]] = TypeAdapter(list[Block])
GOAL_ACTIONS: dict[str, Callable[[Mapping[str, Any]], CommandCall]] = {
    "set": lambda params: goal(str(params.get("objective", ""))),
    "pause": lambda params: pause_goal(),
    "resume": lambda params: resume_goal(),
    "clear": lambda params: clear_goal(),
}
SETUP = TerminalAuthMethod(
    id="setup",
    name="Set up a model",
    description="Choose a provider, and give its key: `steersman setup` in a terminal.",
    type="terminal",
    args=["setup"],
)
_NAME = 64  # characters of a server's name
PAGE = 100
"""Sessions that are listed at a time."""


class EventFeed:
    """Brings events from the threads of the runtimes to `deliver` on this loop, in their order."""

    def __init__(self, deliver: Callable[[Event], Awaitable[None]]) -> None:
        self._deliver = deliver
        self._loop = asyncio.get_running_loop()
        self._events: asyncio.Queue[Callable[[], Awaitable[None]] | None] = asyncio.Queue()
        self._delivering = asyncio.create_task(self._run())

    def put(self, event: Event) -> None:
        """Queue an event; any thread."""
        self.put_work(partial(self._deliver, event))

    def put_work(self, work: Callable[[], Awaitable[None]]) -> None:
        """Queue what is to be done between events; any thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._events.put_nowait, work)

    async def delivered(self) -> None:
        """Wait until what was put so far is delivered."""
        done = asyncio.Event()

        async def note() -> None:
            done.set()

        self.put_work(note)
        await done.wait()

    async def aclose(self) -> None:
        """Deliver the queued events, then end."""
        await asyncio.sleep(0)  # events that were put last arrive in the queue
        self._events.put_nowait(None)
        await self._delivering

    async def _run(self) -> None:
        while (work := await self._events.get()) is not None:
            await work()


class AcpAgent:
    """One connection. `host_of` makes the host of a folder; `words_of` makes what writes events."""

    def __init__(
        self,
        version: str,
        host_of: Callable[[Path], Host],
        words_of: Callable[[], Callable[[Event], str]],
    ) -> None:
        self._version = version
        self._host_of, self._words_of = host_of, words_of
        self._is_initialized = False
        self._hosts: dict[Path, Host] = {}
        self._sessions: dict[str, EditorSession] = {}
        self._parents: dict[str, str] = {}
        self._opening = asyncio.Lock()
        self._entering = asyncio.Lock()  # a new session's events come after it is open
        self._feed = EventFeed(self._deliver)
        self._tasks = set[asyncio.Task[None]]()

    def speaks(self, link: EditorLink, updates: type[EditorUpdates] = EditorUpdates) -> None:
        """Tell the editor all that comes in the version of the protocol that was agreed on."""
        self._is_initialized = True
        self._link, self._updates = link, updates

    async def aclose(self) -> None:
        """Leave every session, and close all hosts."""
        for host in self._hosts.values():
            await asyncio.to_thread(host.close)
        await self._feed.aclose()

    # The protocol ---------------------------------------------------------------------------------

    @property
    def extensions(self) -> dict[str, Any]:
        """What the agent can do beside the protocol, as an editor is told."""
        goals = {"version": 1, "controlMethod": "_session/goal", "actions": list(GOAL_ACTIONS)}
        return {
            "steering": {"supported": True},
            "steersman": {"commandMethod": "_steersman/command"},
            "goal": goals,
        }

    @property
    def info(self) -> Implementation:
        """What this program is."""
        return Implementation(name="steersman", title="steersman", version=self._version)

    async def initialize(
        self,
        protocol_version: int,
        client_capabilities: ClientCapabilities | None = None,
        **_: Any,
    ) -> InitializeResponse:
        """Return the capabilities of this agent."""
        asked = client_capabilities.elicitation if client_capabilities is not None else None
        able = asked.model_dump(exclude_none=True) if asked is not None else {}
        self._link.fills = frozenset(able)
        login = client_capabilities.auth if client_capabilities is not None else None
        sessions = SessionCapabilities(
            list=SessionListCapabilities(),
            resume=SessionResumeCapabilities(),
            close=SessionCloseCapabilities(),
            delete=SessionDeleteCapabilities(),
            fork=SessionForkCapabilities(),
        )
        return InitializeResponse(
            protocol_version=min(protocol_version, PROTOCOL_VERSION),
            agent_capabilities=AgentCapabilities(
                load_session=True,
                mcp_capabilities=McpCapabilities(http=True, sse=False),
                prompt_capabilities=PromptCapabilities(embedded_context=True, image=True),
                session_capabilities=sessions,
            ),
            agent_info=self.info,
            auth_methods=[SETUP] if login is not None and login.terminal else [],
            field_meta=self.extensions,
        )

    async def new_session(
        self, cwd: str, mcp_servers: list[Any] | None = None, **_: Any
    ) -> NewSessionResponse:
        """Begin a session; its notices follow the answer."""
        folder = _folder(cwd)
        given, refused = servers_of(mcp_servers or ())
        session, notices = await self._open(folder, lambda host: host.begin(folder, servers=given))
        notices += refused
        self._later(session, notices)
        return NewSessionResponse(
            session_id=session.id,
            config_options=await session.options(),
            modes=await session.modes(),
        )

    async def load_session(
        self, cwd: str, session_id: str, mcp_servers: list[Any] | None = None, **_: Any
    ) -> LoadSessionResponse:
        """Resume a session, and send its conversation."""
        session = await self.resumed(cwd, session_id, mcp_servers, with_history=True)
        return LoadSessionResponse(
            config_options=await session.options(), modes=await session.modes()
        )

    async def resume_session(
        self, cwd: str, session_id: str, mcp_servers: list[Any] | None = None, **_: Any
    ) -> ResumeSessionResponse:
        """Resume a session without sending its conversation."""
        session = await self.resumed(cwd, session_id, mcp_servers, with_history=False)
        return ResumeSessionResponse(
            config_options=await session.options(), modes=await session.modes()
        )

    async def fork_session(
        self, cwd: str, session_id: str, mcp_servers: list[Any] | None = None, **_: Any
    ) -> ForkSessionResponse:
        """Begin a session with the conversation of another one; its notices follow the answer."""
        folder = _folder(cwd)
        store = (await self._host(folder)).store
        made = await _refusing(lambda: fork(store, store.row(session_id), "", time.time()))
        given, refused = servers_of(mcp_servers or ())
        session, notices = await self._open(folder, lambda host: _resumed(host, made, given))
        self._later(session, notices + refused)
        return ForkSessionResponse(
            session_id=made, config_options=await session.options(), modes=await session.modes()
        )

    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **_: Any
    ) -> ListSessionsResponse:
        """List the sessions that can be loaded, newest activity first."""
        host = await self._host(_folder(cwd) if cwd else Path.cwd())
        known = [
            info
            for info in await asyncio.to_thread(listed, host.store)
            if info.has_begun
            and not info.parent
            and info.state != "finalized"
            and cwd in (None, info.folder)
        ]
        start = int(cursor) if cursor and cursor.isdecimal() else 0
        more = str(start + PAGE) if start + PAGE < len(known) else None
        found = [
            SessionInfo(
                session_id=info.id,
                cwd=info.folder,
                title=info.name or info.title or None,
                updated_at=datetime.fromtimestamp(info.updated, UTC).isoformat(),
                field_meta={"steersman": {"state": info.state, "needs": info.needs}},
            )
            for info in known[start : start + PAGE]
        ]
        return ListSessionsResponse(sessions=found, next_cursor=more)

    async def close_session(self, session_id: str, **_: Any) -> None:
        """Stop what runs in a session, and let go of it: it can be loaded again."""
        session = self._sessions.get(session_id)
        if session is not None:
            await asyncio.to_thread(session.conversation.leave)
            await self._feed.delivered()
            self._sessions.pop(session_id, None)

    async def delete_session(self, session_id: str, **_: Any) -> None:
        """Delete a session, which is closed first; nothing if there is none."""
        session = self._sessions.get(session_id)
        host = session.host if session is not None else await self._host(Path.cwd())
        await self.close_session(session_id)
        place = host.paths, host.config, host.opener.environ

        def delete() -> None:
            with suppress(UnknownSession):
                delete_session(host.store, *place, session_id)

        await _refusing(delete)

    async def set_session_mode(self, session_id: str, mode_id: str, **_: Any) -> None:
        """Change the permission mode."""
        await self.set_config_option("mode", session_id, mode_id)

    async def login(self, params: Any = None) -> dict[str, Any]:
        """Go on after `steersman setup` was run in a terminal; there is no other login, and no logout."""
        if table(params).get("methodId") == SETUP.id:
            return {}
        raise RequestError(WRONG, "there is no login here; `steersman setup` takes a model's key")

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> PromptResponse:
        """Send a message; the answer comes when the message is done."""
        try:
            outcome = await self.known(session_id).prompt(said_of(prompt))
        except UnknownSession:  # it was left
            return PromptResponse(stop_reason="cancelled")
        if outcome is None:
            return PromptResponse(stop_reason="end_turn")
        return PromptResponse(
            stop_reason="end_turn" if outcome.status in ("done", "steered") else "cancelled",
            usage=_usage(outcome.usage) if outcome.turn else None,
        )

    async def cancel(self, session_id: str, **_: Any) -> None:
        """Interrupt the running turn."""
        await self.known(session_id).cancel()

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **_: Any
    ) -> SetSessionConfigOptionResponse:
        """Change a setting."""
        session = self.known(session_id)
        if config_id not in SETTINGS:
            raise RequestError(
                WRONG,
                f"no setting `{visible(config_id, _NAME)}`; there are: {', '.join(SETTINGS)}",
            )
        command, argument = SETTINGS[config_id]
        try:
            reply = await session.run(command.call({argument: value}))
        except ValueError as error:
            raise RequestError(WRONG, str(error)) from error
        if not reply.ok:
            raise RequestError(WRONG, reply.text)
        return SetSessionConfigOptionResponse(config_options=await session.options())

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Answer an extension."""
        session = self.known(str(params.get("sessionId", "")))
        match method:
            case "session/steering":
                said = said_of(BLOCKS.validate_python(params.get("prompt", [])))
                wish = table(table(params.get("_meta")).get("steering")).get("idleBehavior")
                # The editor itself sends the prompt if no turn runs that a steer could enter.
                return {"outcome": await session.steer(said, wish == "promptRequired")}
            case "session/goal" if (action := str(params.get("action"))) in GOAL_ACTIONS:
                reply = await session.run(GOAL_ACTIONS[action](params))
            case "steersman/command":
                reply = await session.command(str(params.get("command", "")))
            case _:
                raise RequestError.method_not_found(f"_{method}")
        return {"ok": reply.ok, "text": reply.text, "data": reply.data}

    # Sessions -------------------------------------------------------------------------------------

    def known(self, session: str) -> EditorSession:
        """Return an open session. Raises `RequestError`."""
        found = self._sessions.get(session)
        if found is None:
            name = visible(session, _NAME)
            raise RequestError(
                UNKNOWN, f"session `{name}` is not open here; load it first", {"sessionId": session}
            )
        return found

    async def _host(self, folder: Path) -> Host:
        """Return the host of a folder, made at its first session. Raises `RequestError`."""
        if not self._is_initialized:
            raise RequestError(-32600, "the first request is `initialize`")
        async with self._opening:
            if folder not in self._hosts:
                host = await _refusing(lambda: self._host_of(folder))
                host.event_bus.subscribe(self._feed.put)
                self._hosts[folder] = host
            return self._hosts[folder]

    async def _open(
        self, folder: Path, opens: Callable[[Host], SessionClient]
    ) -> tuple[EditorSession, list[str]]:
        host = await self._host(folder)
        async with self._entering:
            before = len(host.notices)
            conversation = await _refusing(lambda: opens(host))
            conversation.can_switch = False
            found = await asyncio.to_thread(conversation.describe)
            session = EditorSession(
                host,
                conversation,
                link=self._link,
                updates=self._updates(conversation.session, found.folder, self._words_of()),
                delivered=self._delivered,
            )
            self._sessions[session.id] = session
        choice = [host.choice.line] if host.choice is not None else []
        first = [] if before else list(host.config.notices)
        return session, [*choice, *first, *host.notices[before:]]

    async def resumed(
        self, cwd: str, name: str, mcp_servers: list[Any] | None, *, with_history: bool
    ) -> EditorSession:
        """Open a session again, and tell what was said in it before, if wanted."""
        session = self._sessions.get(name)
        notices: list[str] = []
        if session is not None:
            await session.is_introduced.wait()  # its notices come before what is asked for next
            if with_history:
                await self._tell_again(session)
        else:
            given, refused = servers_of(mcp_servers or ())
            session, notices = await self._open(
                _folder(cwd), lambda host: _resumed(host, name, given)
            )
            notices += refused
            if with_history:
                await session.send_history()
        await session.introduce(notices)
        return session

    async def _tell_again(self, session: EditorSession) -> None:
        """Send the conversation of a session that may be at work, then what streams, then what comes."""
        told = asyncio.get_running_loop().create_future()

        async def tell(upto: int) -> None:
            try:
                await session.send_history(upto)
                told.set_result(None)
            except SteersmanError as error:
                told.set_exception(error)

        def hear(event: Event) -> None:
            if event["session"] == session.id:
                self._feed.put(event)

        follow = session.host.event_bus.follow
        follow(session.id, hear, lambda upto: self._feed.put_work(partial(tell, upto)))()
        await told

    def _later(self, session: EditorSession, notices: list[str]) -> None:
        """Introduce a session after its answer was sent, when the editor knows the session's id."""

        async def introduce() -> None:
            await asyncio.sleep(0.05)
            await session.introduce(notices)

        task = asyncio.create_task(introduce())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # Events ---------------------------------------------------------------------------------------

    async def _delivered(self, conversation: SessionClient) -> None:
        """Wait until the editor has what happened in a session so far."""
        await asyncio.to_thread(conversation.publish_all)
        await self._feed.delivered()

    async def _deliver(self, event: Event) -> None:
        """Pass an event to the editor session that it belongs to."""
        async with self._entering:
            session = self._sessions.get(self._root(event))
        if session is not None:
            await session.hear(event)

    def _root(self, event: Event) -> str:
        """Return the session that an event belongs to; for a subagent's event its topmost ancestor."""
        session, parent = event["session"], event.get("parent", "")
        if parent:
            self._parents[session] = parent
        while session in self._parents:
            session = self._parents[session]
        return session


def _resumed(host: Host, name: str, servers: Sequence[McpServer]) -> SessionClient:
    """Resume a session that is not finalized. Raises `SteersmanError`."""
    row = host.store.row(name)
    if row.state == "finalized":
        raise UsageError(f"session `{name}` is finalized", "begin a new one")
    refuse_run(row)
    return host.resume(name, servers)


def servers_of(given: Sequence[Any]) -> tuple[list[McpServer], list[str]]:
    """Return the MCP servers that an editor gives a session, and a notice for each unknown kind."""
    servers: list[McpServer] = []
    notices: list[str] = []
    for server in given:
        name = visible(str(server.name), _NAME)
        match server:
            case McpServerStdio():
                env = {variable.name: variable.value for variable in server.env}
                command = (server.command, *server.args)
                servers.append(McpServer(name=name, command=command, env=env))
            case HttpMcpServer():
                headers = {header.name: header.value for header in server.headers}
                servers.append(McpServer(name=name, url=server.url, headers=headers))
            case _:
                notices.append(
                    f"MCP server `{name}` cannot be used: steersman knows commands and HTTP, "
                    f"not the transport `{visible(str(server.type), _NAME)}`"
                )
    return servers, notices


async def _refusing(work: Callable[[], T]) -> T:
    """Run blocking work in a thread. Raises `RequestError` for a `SteersmanError`, with its hint."""
    try:
        return await asyncio.to_thread(work)
    except SteersmanError as error:
        message = f"{error.message}; {error.hint}" if error.hint else error.message
        raise RequestError(_code_of(error), message) from error


def _code_of(error: SteersmanError) -> int:
    if isinstance(error, UnknownSession):
        return UNKNOWN
    return WRONG if isinstance(error, UsageError) else REFUSED


def _folder(cwd: str) -> Path:
    folder = Path(cwd)
    if not (folder.is_absolute() and os.path.isdir(cwd)):  # false, too, for what can be no path
        raise RequestError(WRONG, f"`{cwd}` is no folder with an absolute path")
    return folder.resolve()


def _usage(used: TurnUsage) -> Usage:
    return Usage(
        total_tokens=used.tokens,
        input_tokens=used.input,
        output_tokens=used.output,
        cached_read_tokens=used.cache_read,
        cached_write_tokens=used.cache_write,
        thought_tokens=used.reasoning,
    )
