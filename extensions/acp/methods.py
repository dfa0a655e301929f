"""The methods that an editor calls, by the version of the protocol that it asks for at `initialize`.

Version 1 is what the protocol's library routes. Version 2 is a draft
(https://agentclientprotocol.com/protocol/v2/draft/overview): a prompt is answered when its message is in
the conversation, and updates tell the rest. `session/inject` is a proposal for it (pull request 1261 of
the protocol's repository): a message that waits or steers is answered when it is stored, and can be
replaced or taken back until it enters.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

from acp.agent.router import build_agent_router
from acp.connection import Connection
from acp.exceptions import RequestError
from acp.router import Route
from acp.schema import DeleteSessionRequest, HttpMcpServer, McpServerStdio
from acp.utils import normalize_result, serialize_params
from pydantic import TypeAdapter, ValidationError

from ...gateway.commands.command import CommandCall
from ...gateway.commands.queue import edit_queue, pop_queue
from ...ports.models.loose_json import table, tables
from .agent import BLOCKS, AcpAgent
from .link import UNKNOWN, WRONG, EditorLink, Params
from .session import EditorSession
from .update import said_of
from .update_v2 import UpdatesV2, call_of, options_of

NOT_DELIVERABLE = -32010
"""The proposal's error for a message that cannot be steered, replaced or taken back any more."""
_SERVER: TypeAdapter[HttpMcpServer | McpServerStdio] = TypeAdapter(HttpMcpServer | McpServerStdio)


class Methods:
    """Answers one editor; what it calls before `initialize` is refused."""

    def __init__(self, agent: AcpAgent) -> None:
        self._agent = agent
        routed: Any = agent  # it has no methods for what an editor's own file system would do
        self._first = build_agent_router(routed, use_unstable_protocol=True)
        self._first.route_request(
            *("session/delete", DeleteSessionRequest, agent, "delete_session"),
            adapt_result=normalize_result,
        )
        for method in ("authenticate", "logout"):
            self._first.add_route(Route(method=method, func=agent.login, kind="request"))
        self._called: Callable[[str, Any, bool], Awaitable[Any]] = self._first

    def connect(self, connection: Connection) -> None:
        """Tell the editor all that comes over this connection."""
        self._connection = connection

    async def __call__(self, method: str, params: Any, is_notification: bool) -> Any:
        """Answer a call. Raises `RequestError`."""
        if method == "initialize":
            version = table(params).get("protocolVersion")
            if isinstance(version, int) and version >= 2:
                link = LinkV2(self._connection)
                self._agent.speaks(link, UpdatesV2)
                self._called = MethodsV2(self._agent, link)
            else:
                self._agent.speaks(EditorLink(self._connection))
                self._called = self._first
        return await self._called(method, params, is_notification)


class LinkV2(EditorLink):
    """What an editor is told and asked in version 2."""

    def _asked(self, call: Params) -> Params:
        subject = {"type": "tool_call", "toolCall": call_of(call)}
        return {"title": call["title"], "subject": subject}


class MethodsV2:
    """The methods of version 2."""

    def __init__(self, agent: AcpAgent, link: EditorLink) -> None:
        self._agent, self._link = agent, link
        self._requests: dict[str, Callable[[Params], Awaitable[Params]]] = {
            "initialize": self._initialize,
            "session/new": self._new,
            "session/resume": self._resume,
            "session/fork": self._fork,
            "session/list": self._list,
            "session/close": self._close,
            "session/delete": self._delete,
            "session/set_config_option": self._set,
            "session/prompt": self._prompt,
            "session/inject": self._inject,
            "session/revoke_inject": self._revoke,
            "session/replace_inject": self._replace,
            "tool_call/cancel": self._not_alone,
            "terminal/cancel": self._not_alone,
            "auth/login": self._agent.login,
            "auth/logout": self._agent.login,
        }

    async def __call__(self, method: str, params: Any, is_notification: bool) -> Any:
        """Answer a call. Raises `RequestError`."""
        given = table(params)
        if is_notification:
            if method == "session/cancel":
                await self._session(given).cancel()
            return None
        if method.startswith("_"):
            return await self._agent.ext_method(method[1:], given)
        answer = self._requests.get(method)
        if answer is None:
            raise RequestError.method_not_found(method)
        try:
            return await answer(given)
        except ValidationError as error:
            raise RequestError.invalid_params({"errors": error.errors()}) from error

    def _session(self, given: Params) -> EditorSession:
        return self._agent.known(_text(given, "sessionId"))

    async def _initialize(self, given: Params) -> Params:
        able = table(table(given.get("capabilities")).get("elicitation"))
        self._link.fills = frozenset(able)
        return {
            "protocolVersion": 2,
            "info": serialize_params(self._agent.info),
            "capabilities": {
                "session": {
                    "prompt": {"image": {}, "embeddedContext": {}},
                    "mcp": {"stdio": {}, "http": {}},
                    "delete": {},
                    "fork": {},
                    "inject": {
                        "modes": ["queue", "steer"],
                        "steerInStream": ["finish"],
                        "pending": {"replace": True},
                    },
                }
            },
            "_meta": self._agent.extensions,
        }

    # Sessions -------------------------------------------------------------------------------------

    async def _new(self, given: Params) -> Params:
        opened = await self._agent.new_session(_text(given, "cwd"), _servers(given))
        return {"sessionId": opened.session_id, **await self._settings(opened.session_id)}

    async def _fork(self, given: Params) -> Params:
        name = _text(given, "sessionId")
        opened = await self._agent.fork_session(_text(given, "cwd"), name, _servers(given))
        return {"sessionId": opened.session_id, **await self._settings(opened.session_id)}

    async def _resume(self, given: Params) -> Params:
        start = given.get("replayFrom")
        if start is not None and table(start).get("type") != "start":
            raise RequestError(WRONG, '`replayFrom` can only be {"type": "start"}')
        cwd, name = _text(given, "cwd"), _text(given, "sessionId")
        session = await self._agent.resumed(
            cwd, name, _servers(given), with_history=start is not None
        )
        await session.send_state()
        return await self._settings(name)

    async def _settings(self, session: str) -> Params:
        return {"configOptions": options_of(await self._agent.known(session).options())}

    async def _list(self, given: Params) -> Params:
        cwd, cursor = given.get("cwd"), given.get("cursor")
        return serialize_params(
            await self._agent.list_sessions(
                cwd if isinstance(cwd, str) else None, cursor if isinstance(cursor, str) else None
            )
        )

    async def _close(self, given: Params) -> Params:
        await self._agent.close_session(_text(given, "sessionId"))
        return {}

    async def _delete(self, given: Params) -> Params:
        await self._agent.delete_session(_text(given, "sessionId"))
        return {}

    async def _set(self, given: Params) -> Params:
        name, value = _text(given, "configId"), given.get("value")
        if given.get("type") != "id" or not isinstance(value, str):
            raise RequestError(WRONG, f"the value of `{name}` is an id")
        session = self._session(given)
        await self._agent.set_config_option(name, session.id, value)
        return await self._settings(session.id)

    # Messages -------------------------------------------------------------------------------------

    async def _prompt(self, given: Params) -> Params:
        said = said_of(BLOCKS.validate_python(given.get("prompt", [])))
        return {"messageId": await self._session(given).insert(said)}

    async def _inject(self, given: Params) -> Params:
        session, mode = self._session(given), given.get("mode")
        said = said_of(BLOCKS.validate_python(given.get("content", [])))
        if mode not in ("queue", "steer"):
            raise RequestError(WRONG, "`mode` is queue or steer")
        if mode == "steer" and not await session.is_running():
            raise RequestError(
                NOT_DELIVERABLE, "no turn runs that could be steered", {"reason": "no_running_turn"}
            )
        return {"messageId": await session.inject(said, mode)}

    async def _revoke(self, given: Params) -> Params:
        session, number = await self._waiting(given)
        return await self._changed(session, pop_queue.call({"number": number}), given)

    async def _replace(self, given: Params) -> Params:
        session, number = await self._waiting(given)
        text = said_of(BLOCKS.validate_python(given.get("content", []))).text
        call = edit_queue.call({"number": number, "text": text})
        await self._changed(session, call, given)
        session.reword(given["messageId"], text)
        return {"messageId": given["messageId"]}

    async def _changed(self, session: EditorSession, call: CommandCall, given: Params) -> Params:
        """Change a message that waits. Raises `RequestError` if it has entered meanwhile."""
        reply = await session.run(call)
        if not reply.ok:
            raise _delivered(given["messageId"], reply.text)
        return {}

    async def _waiting(self, given: Params) -> tuple[EditorSession, int]:
        """Return the number of a message that waits. Raises `RequestError`."""
        session, name = self._session(given), _text(given, "messageId")
        item = await session.item(name)
        if item is None or item.state == "withdrawn":
            raise RequestError(
                UNKNOWN,
                "no such message waits",
                {"reason": "unknown_message_id", "messageId": name},
            )
        if item.state != "pending":
            raise _delivered(name)
        return session, item.number

    # What there is not ----------------------------------------------------------------------------

    async def _not_alone(self, given: Params) -> Params:
        raise RequestError(
            WRONG, "one call cannot be stopped alone; `session/cancel` stops the turn"
        )


def _delivered(name: str, why: str = "the message is in the conversation already") -> RequestError:
    about = {"reason": "already_delivered", "messageId": name}
    return RequestError(NOT_DELIVERABLE, why, about)


def _text(given: Params, key: str) -> str:
    value = given.get(key)
    if not isinstance(value, str) or not value:
        raise RequestError(WRONG, f"`{key}` is missing")
    return value


def _servers(given: Params) -> list[Any]:
    """Return the MCP servers of a request; of an unknown kind only its name and type are kept."""
    found: list[Any] = []
    for server in tables(given.get("mcpServers")):
        usual: Params = (
            {"args": [], "env": []} if server.get("type") == "stdio" else {"headers": []}
        )
        try:
            found.append(_SERVER.validate_python({**usual, **server}))
        except ValidationError:
            kind = SimpleNamespace(name=server.get("name", ""), type=server.get("type", ""))
            found.append(kind)
    return found
