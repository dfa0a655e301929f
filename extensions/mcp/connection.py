"""One run of an MCP server: its process or its address, and the protocol over it, by the official SDK.

It imports the SDK, as what has to do with logins does, which takes a second: so `client.py` imports it
late, in a thread.

    the SDK's Client  <── _Incoming ──  lines of a supervised process, or the SDK's HTTP transport
                      ──> _Outgoing ──>

The SDK's own transport for processes is not used: our supervisor proves that a server has ended. Its
scopes have to be entered and left by one task, so a connection has a task of its own; calls come from any
task of the loop. What comes in is screened before the SDK reads it: how much, how often, and which tools.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Mapping,
)
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple, cast

import anyio
import anyio.abc
import httpx2
import mcp_types as types
from mcp.client import Client, Transport
from mcp.client.session import ClientRequestContext
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import Discriminator, Tag, TypeAdapter, ValidationError

from ... import __version__
from ...machines.conversation import Picture
from ...machines.errors import ToolError
from ...ports.models.endpoint import is_loopback
from ...ports.picture import PICTURES, decoded, line_of, size_of
from ...ports.process.pipe import PipeProcess
from ...ports.process.process import Processes
from ...ports.tools.mcp_offer import McpOffer, McpPrompt, McpResource, McpServer, OfferedTool
from ...ports.tools.text import visible
from .foreign_schema import entries, is_within
from .login_file import LoginFile
from .login_request import LoginAuth, LoginNeeded
from .screening import MOST, described, few, for_sdk, screened_tools
from .task import AskFor, FollowedTask, TaskBegun, Tasks

Report = Callable[[str, str], None]
"""Receives a report of progress: how much is done, and a message; either may be empty."""
Ask = Callable[[dict[str, Any]], Awaitable[dict[str, Any] | None]]
"""Has a person fill in a form; see `ToolContext.ask`."""
_ROUNDS = 10
"""How often a server may want to know more before it answers one call."""

_MOST_PAGES = 100
_MOST_UNASKED = 1000
"""Messages in one second that are no answers; a server that sends more of them is ended."""
_REASON = 300  # characters of what a server says of a fault
_CONNECT = 10.0  # seconds until a server on the web accepts
_NAME = 200  # characters of a name or an address
_MESSAGE, _FORM = 2_000, 20_000
"""Characters of what a server asks, and of the schema of its form."""
_CLOSED = "Connection closed"  # what the SDK says to all calls when a connection has ended

Item = SessionMessage | Exception
Streams = tuple["_Incoming", Any]

_Result = types.CallToolResult | types.InputRequiredResult | TaskBegun
_RESULT: TypeAdapter[_Result] = TypeAdapter(
    Annotated[
        Annotated[types.CallToolResult | types.InputRequiredResult, Tag("core")]
        | Annotated[TaskBegun, Tag("task")],
        Discriminator(lambda given: "task" if given.get("resultType") == "task" else "core"),
    ]
)
_issuing: ContextVar[PendingCall | None] = ContextVar("issuing", default=None)
"""The call whose request the running task sends: the SDK does not give the ids of requests."""

for _name in ("mcp", "client"):  # else what the SDK logs would be printed over the screen
    logging.getLogger(_name).addHandler(logging.NullHandler())


class McpAnswer(NamedTuple):
    """The result of a call: a text for the model, and pictures."""

    text: str
    pictures: tuple[Picture, ...]
    is_error: bool


# Calls --------------------------------------------------------------------------------------------


class PendingCall:
    """A call that was sent to the server; `cancel` asks the server to end it.

    `joins` is the task that it is already. `keep` is told, in a thread, of the task that it becomes.
    """

    def __init__(
        self,
        connection: McpConnection,
        tool: str,
        arguments: dict[str, Any],
        report: Report,
        ask: Ask | None,
        keep: Callable[[str], None],
        joins: str,
    ) -> None:
        self.request: types.RequestId | None = None
        self._connection, self._ask, self._keep, self._report = connection, ask, keep, report
        self._followed: FollowedTask | None = None
        self._is_cancelled = False
        self._open = 0  # forms that a person fills in
        self._is_between = False  # the server has answered that it wants to know more, and waits
        self._task = asyncio.create_task(self._send(tool, arguments, joins))

    @property
    def has_time(self) -> bool:
        """Whether a person fills in a form, or a task goes on: both take as long as they take."""
        return self._open > 0 or self._followed is not None

    @property
    def lost_task(self) -> str:
        """The task that it had become when the server could not be reached any more; else empty."""
        is_lost = self._followed is not None and self._connection.is_over
        return self._followed.task if self._followed is not None and is_lost else ""

    async def ask(self, asked: types.ElicitRequestParams) -> types.ElicitResult | types.ErrorData:
        """Have a person fill in a form of the server, or look at an address that it names."""
        if self._ask is None:
            return types.ErrorData(code=types.INVALID_REQUEST, message="nobody can be asked here")
        form: dict[str, Any] = {"server": self._connection.config.name}
        form["message"] = visible(asked.message, _MESSAGE)
        if isinstance(asked, types.ElicitRequestURLParams):
            form["address"] = visible(asked.url, _MESSAGE)
        elif is_within(asked.requested_schema, size=_FORM, depth=8):
            form["schema"] = asked.requested_schema
        else:
            return types.ErrorData(code=types.INVALID_PARAMS, message="the form is too large")
        self._open += 1
        try:
            content = await self._ask(form)
        except asyncio.CancelledError:
            return types.ElicitResult(action="cancel")
        finally:
            self._open -= 1
        if content is None:
            return types.ElicitResult(action="decline")
        return types.ElicitResult(action="accept", content=content if "schema" in form else None)

    async def wait(self) -> McpAnswer:
        """Return the answer. Raises `ToolError`."""
        await asyncio.wait((self._task,))
        if self._task.cancelled():
            raise ToolError(f"the call of `{self._connection.config.name}` was cancelled")
        return self._task.result()

    async def cancel(self, grace: float) -> bool:
        """Cancel the call; whether the server answers it within `grace` seconds, or has nothing to."""
        self._is_cancelled = True
        is_web = bool(self._connection.config.url)
        has_nothing = self._is_between or (self.request is None and not is_web)
        if self._followed is not None:
            with suppress(ToolError, TimeoutError):
                async with asyncio.timeout(grace):
                    await self._followed.cancel()
        elif is_web or has_nothing:
            self._task.cancel()  # which the SDK tells the server
        elif not self._task.done():
            cancelled = types.CancelledNotification(
                params=types.CancelledNotificationParams(
                    request_id=self.request, reason="interrupted"
                )
            )
            await self._connection.client.session.send_notification(cancelled)
        await asyncio.wait((self._task,), timeout=grace)
        return self._task.done() and (has_nothing or not self._task.cancelled())

    async def _send(self, tool: str, arguments: dict[str, Any], joins: str) -> McpAnswer:
        _issuing.set(self)
        if not self._connection.calls:
            self._connection.forget_errors()
        self._connection.calls.append(self)
        try:
            if joins:
                return _answer_of(await self._follow(joins))
            return _answer_of(await self._answered(tool, arguments))
        finally:
            self._connection.calls.remove(self)

    async def _follow(self, task: str) -> types.CallToolResult:
        """Look at a task until it has ended; its id is kept before. Raises `ToolError`."""
        self._followed = self._connection.task(task, self.ask, lambda said: self._report("", said))
        await asyncio.to_thread(self._keep, task)
        if self._is_cancelled:  # before it became a task
            await self._followed.cancel()
        return await self._followed.result()

    async def _answered(self, tool: str, arguments: dict[str, Any]) -> types.CallToolResult:
        """Send the call, again with what the server wanted to know first. Raises `ToolError`."""

        async def progressed(progress: float, total: float | None, message: str | None) -> None:
            share = f"{progress:g} of {total:g}" if total else f"{progress:g}"
            self._report(share, message or "")

        params = types.CallToolRequestParams(name=tool, arguments=arguments)
        for _ in range(_ROUNDS):
            # Not `call_tool`: that checks the answer against the server's schema of it, without bounds.
            result: _Result = await self._connection.answered(
                self._connection.client.session.send_request(
                    types.CallToolRequest(params=params), _RESULT, progress_callback=progressed
                ),
                takes_questions=True,
            )
            if isinstance(result, types.CallToolResult):
                return result
            if isinstance(result, TaskBegun):
                return await self._follow(result.task_id)
            told: dict[str, Any] = {}
            self._is_between, self.request = True, None
            for name, request in (result.input_requests or {}).items():
                if not isinstance(request, types.ElicitRequest):
                    break
                answer = await self.ask(request.params)
                if isinstance(answer, types.ErrorData):
                    break
                told[name] = answer
            self._is_between = False
            if len(told) < len(result.input_requests or {}):
                break
            params = types.CallToolRequestParams(
                name=tool,
                arguments=arguments,
                input_responses=told,
                request_state=result.request_state,
            )
        name = self._connection.config.name
        raise ToolError(f"the server `{name}` asks for input, which it does not get")


def _answer_of(result: types.CallToolResult) -> McpAnswer:
    pictures: list[Picture] = []
    parts = [_block_text(block, pictures) for block in result.content]
    if not parts and result.structured_content is not None:
        parts.append(json.dumps(result.structured_content, ensure_ascii=False, indent=1))
    return McpAnswer("\n".join(parts), tuple(pictures), bool(result.is_error))


def _block_text(block: types.ContentBlock, pictures: list[Picture] | None = None) -> str:
    """Return the text of a block, or describe it; a picture that can be shown goes to `pictures`."""
    match block:
        case types.TextContent(text=text):
            return text
        case types.ImageContent(mime_type=mime, data=data):
            if pictures is not None and len(pictures) < PICTURES:
                with suppress(ToolError):
                    pictures.append(decoded(data))
                    return line_of(pictures[-1])
            return f"[an image, {visible(mime, _NAME)}, {size_of(data):,} bytes: not shown]"
        case types.AudioContent(mime_type=mime, data=data):
            return f"[a sound, {visible(mime, _NAME)}, {size_of(data):,} bytes: not shown]"
        case types.ResourceLink(uri=uri, name=name, description=about):
            about = f": {described(about)}" if about else ""
            return f"[the resource `{visible(name, _NAME)}` at {visible(uri, _NAME)}{about}]"
        case types.EmbeddedResource(resource=types.TextResourceContents(uri=uri, text=text)):
            return f"[the resource {visible(uri, _NAME)}]\n{text}"
        case types.EmbeddedResource(resource=types.BlobResourceContents(uri=uri, blob=blob)):
            size = size_of(blob)
            return f"[the resource {visible(uri, _NAME)}, {size:,} bytes of binary data: not shown]"
        case _:
            return f"[{block.type}: not shown]"


# Streams ------------------------------------------------------------------------------------------


class _Incoming(anyio.abc.ObjectReceiveStream[Item]):
    """The SDK's source of messages: each one is screened first."""

    def __init__(
        self,
        receive: Callable[[], Awaitable[Item | None]],
        screen: Callable[[Item | None], None],
        close: Callable[[], Awaitable[None]],
    ) -> None:
        self._receive, self._screen, self._close = receive, screen, close

    async def receive(self) -> Item:
        """Return the next message. Raises `anyio.EndOfStream`."""
        item = await self._receive()
        self._screen(item)
        if item is None:
            raise anyio.EndOfStream
        return item

    async def aclose(self) -> None:
        """Close the source."""
        await self._close()


class _Outgoing(anyio.abc.ObjectSendStream[SessionMessage]):
    """The SDK's sink of messages, to a process."""

    def __init__(self, pipe: PipeProcess) -> None:
        self._pipe = pipe

    async def send(self, item: SessionMessage) -> None:
        """Send a message. Raises `anyio.BrokenResourceError`."""
        message, issuing = item.message, _issuing.get()
        if issuing is not None and isinstance(message, types.JSONRPCRequest):
            issuing.request = message.id
        data = message.model_dump(by_alias=True, mode="json", exclude_unset=True)
        try:
            await self._pipe.send(data)
        except ConnectionError:
            raise anyio.BrokenResourceError from None

    async def aclose(self) -> None:
        """Do nothing: the connection ends the process."""


async def _next_of(pipe: PipeProcess) -> Item | None:
    """Return the next message of a process; what is none is skipped, or fails the call it answers."""
    while (data := await pipe.receive()) is not None:
        await asyncio.sleep(0)  # a server that never pauses does not keep the loop
        try:
            return SessionMessage(
                types.jsonrpc_message_adapter.validate_python(data, by_name=False)
            )
        except ValidationError as error:
            if isinstance(data.get("id"), int | str) and "method" not in data:
                why = f"its answer is not one of the protocol: {_first(error)}"
                fault = types.ErrorData(code=types.PARSE_ERROR, message=why)
                answer = types.JSONRPCError(jsonrpc="2.0", id=data["id"], error=fault)
                return SessionMessage(answer)
            pipe.stray = pipe.stray or visible(json.dumps(data), _NAME)
    return None


class _CountedBody(httpx2.AsyncByteStream):
    """The body of an HTTP answer, which fails when it is too long."""

    def __init__(self, body: httpx2.AsyncByteStream, limit: int) -> None:
        self._body, self._limit = body, limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._limit
        async for piece in self._body:
            left -= len(piece)
            if left < 0:
                raise httpx2.ReadError(f"the answer has more than {self._limit:,} bytes")
            yield piece

    async def aclose(self) -> None:
        """Close the connection."""
        await self._body.aclose()


def _http_client(config: McpServer, login: LoginFile | None) -> httpx2.AsyncClient:
    """Make the HTTP client of a server: no answer is longer than its limit, compressed or not."""

    async def bound(response: httpx2.Response) -> None:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise httpx2.RemoteProtocolError("the answer is compressed, which was not asked for")
        kind = response.headers.get("content-type", "")
        if not kind.startswith("text/event-stream"):  # of events, each one is bounded by the SDK
            body = cast("httpx2.AsyncByteStream", response.stream)
            response.stream = _CountedBody(body, config.limit)

    return httpx2.AsyncClient(
        headers={"accept-encoding": "identity", **config.headers},
        auth=LoginAuth(config.name, config.url, login) if login is not None else None,
        timeout=httpx2.Timeout(_CONNECT, read=None, pool=None),  # a call has its own time limit
        event_hooks={"response": [bound]},
        verify=config.url.startswith("https:"),  # no certificates are loaded for plain HTTP
        trust_env=not is_loopback(config.url),  # a proxy cannot reach our loopback
    )


def _login_file(config: McpServer) -> LoginFile | None:
    """Return where a login is; none if the headers have one, or if others could listen."""
    is_known = "authorization" in (name.lower() for name in config.headers)
    is_safe = config.url.startswith("https:") or is_loopback(config.url)
    return LoginFile(Path(config.login)) if config.login and is_safe and not is_known else None


def _without(secrets: set[str], item: Item) -> Item:
    """Cover the tokens of a login in a message: they are journalled nowhere."""
    if secrets and isinstance(item, SessionMessage):
        text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        if found := [secret for secret in secrets if secret in text]:
            for secret in sorted(found, key=len, reverse=True):
                text = text.replace(secret, "…")
            return SessionMessage(types.jsonrpc_message_adapter.validate_json(text, by_name=False))
    return item


class _Screen:
    """Looks at what comes in: counts unsolicited messages, and leaves out tools that cannot be used."""

    def __init__(self, stop: Callable[[str], None]) -> None:
        self._stop = stop
        self.is_silent = True  # so far
        self.is_at_end = False  # the process has ended
        self.page: tuple[dict[str, OfferedTool], list[str]] | None = None  # while tools are listed
        self._unasked = (0.0, 0)  # since when, and how many

    def look(self, item: Item | None) -> None:
        """Look at a message, or at the end. Raises `anyio.EndOfStream` when too many are unsolicited."""
        if item is None:
            self.is_at_end = True
            self._stop("")
            return
        self.is_silent = False
        message = item.message if isinstance(item, SessionMessage) else None
        if isinstance(message, types.JSONRPCNotification | types.JSONRPCRequest):
            since, number = self._unasked
            now = asyncio.get_running_loop().time()
            self._unasked = (now, 1) if now - since > 1.0 else (since, number + 1)
            if number >= _MOST_UNASKED:
                self._stop(f"it sent more than {_MOST_UNASKED:,} unsolicited messages in a second")
                raise anyio.EndOfStream
        elif isinstance(message, types.JSONRPCResponse) and self.page is not None:
            known, notes = self.page
            tools, more = screened_tools(entries(message.result.get("tools")), known)
            known.update((tool.name, tool) for tool in tools)
            notes += more[: MOST - len(notes)]
            if "tools" in message.result:
                message.result["tools"] = [for_sdk(tool) for tool in tools]


# The connection -----------------------------------------------------------------------------------


class McpConnection:
    """One run of a server; used on one asyncio loop.

    `on_end` is called once, when the server has ended or cannot be reached any more; `fault` says why
    then. `on_change` is called whenever the server says that its tools are not the same as before.
    """

    def __init__(
        self,
        config: McpServer,
        *,
        is_legacy: bool,
        on_end: Callable[[McpConnection], None],
        on_change: Callable[[], None],
    ) -> None:
        self.config, self.is_legacy = config, is_legacy
        self.client: Client
        self.fault = ""
        self._on_end, self._on_change = on_end, on_change
        self.needs_login = False
        self._screen = _Screen(self._stop)
        self._login = _login_file(config)
        self._pipe: PipeProcess | None = None
        self._live: asyncio.Task[None] | None = None
        self._ending = asyncio.Event()
        self._is_over = asyncio.Event()
        self.calls: list[PendingCall] = []

    @property
    def pid(self) -> int:
        """Process id of the server; 0 for one on the web, and when it has ended."""
        return self._pipe.pid if self._pipe is not None and self._pipe.is_alive else 0

    @property
    def about(self) -> tuple[str, str, str]:
        """The server's program with its version, the version of the protocol, its instructions."""
        info = self.client.server_info
        program = visible(f"{info.name} {info.version}", _NAME) if info is not None else ""
        return program, self.client.protocol_version, described(self.client.instructions)

    @property
    def is_fatally_asked(self) -> bool:
        """Whether the server ended at the first question, which servers before 2026 do not know."""
        if self._pipe is None or self._pipe.result is None or not self._pipe.result.done():
            return False
        is_program = self._pipe.result.result().exit_code not in (126, 127)
        return is_program and self._screen.is_silent and not self.is_legacy

    def forget_errors(self) -> None:
        """Let no later fault be explained by what a server has printed up to now."""
        if self._pipe is not None:
            self._pipe.forget_errors()

    @property
    def hint(self) -> str:
        """What a server that does not answer has printed."""
        if self._pipe is None:
            return ""
        errors = _errors_of(self._pipe)
        stray = visible(self._pipe.stray, _REASON)
        is_new = errors and errors not in self.fault
        said = [f"its last error output is: {errors}"] if is_new else []
        said += [f"it printed what is no message: {stray}"] if stray else []
        return "; ".join(said)

    async def open(
        self,
        processes: Processes,
        folder: Path,
        environment: Mapping[str, str],
        command: tuple[str, ...],
    ) -> None:
        """Start the server, by this command, and agree with it on a version. Raises `ToolError`."""
        if not self.config.url:
            self._pipe = PipeProcess(self.config.limit)
            await self._pipe.start(processes, command, folder, dict(environment))
            transport = self._over_pipe(self._pipe)
        else:
            http = await asyncio.to_thread(_http_client, self.config, self._login)
            transport = self._over_http(http)
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._live = asyncio.create_task(self._run(transport, ready))
        self._live.add_done_callback(self._over)
        await asyncio.wait((self._live, ready), return_when=asyncio.FIRST_COMPLETED)
        if self._live.done():
            why = f"the server `{self.config.name}` could not be used: {self.fault}"
            raise ToolError(why, self.hint)

    @property
    def is_over(self) -> bool:
        """Whether the server has ended, or cannot be reached any more."""
        return self._is_over.is_set()

    def call(
        self,
        tool: str,
        arguments: dict[str, Any],
        report: Report,
        ask: Ask | None = None,
        keep: Callable[[str], None] = lambda task: None,
        joins: str = "",
    ) -> PendingCall:
        """Send a call of a tool, by the server's own name of it, or join the task that it is."""
        return PendingCall(self, tool, arguments, report, ask, keep, joins)

    def task(self, task: str, ask: AskFor, report: Callable[[str], None]) -> FollowedTask:
        """Return a task of the server, to be looked at; each look has the time limit of a call."""

        async def send(request: types.Request[Any, Any], kind: type[Any]) -> Any:
            try:
                async with asyncio.timeout(self.config.timeout):
                    return await self.answered(self.client.session.send_request(request, kind))
            except TimeoutError:
                limit = f"within {self.config.timeout:g} s"
                raise ToolError(
                    f"the server `{self.config.name}` said nothing of the task {limit}"
                ) from None

        return FollowedTask(task, send, ask, report)

    async def outcome(self, task: str) -> McpAnswer | None:
        """Ask once what became of a task, or why it failed; none while it goes on.

        Raises `ToolError` if the server cannot be asked.
        """

        async def decline(asked: types.ElicitRequestParams) -> types.ElicitResult:
            return types.ElicitResult(action="decline")

        try:
            result = await self.task(task, decline, lambda said: None).look()
        except ToolError as error:
            if self.is_over:
                raise
            return McpAnswer(f"Error: {error}", (), is_error=True)
        return _answer_of(result) if result is not None else None

    async def end(self, grace: float) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """End the server; returns the pids that were ended, and any that survived."""
        self.fault = self.fault or "it was closed"
        ended: tuple[tuple[int, ...], tuple[int, ...]] = (), ()
        if self._pipe is not None and self._pipe.result is not None:
            result = await self._pipe.end(grace)
            ended = result.killed, result.survivors
        self._ending.set()
        if self._live is not None:
            await asyncio.wait((self._live,), timeout=grace)
            self._live.cancel()
            await asyncio.wait((self._live,))
        return ended

    async def close(self, grace: float) -> None:
        """Let the server exit, and end it if it has not within `grace` seconds."""
        if self._pipe is not None and self._pipe.result is not None:
            self._pipe.close_input()
            await asyncio.wait((self._pipe.result,), timeout=grace)
        await self.end(grace)

    async def answered(
        self, asking: Coroutine[Any, Any, Any], *, takes_questions: bool = False
    ) -> Any:
        """Await a result. Raises `ToolError`, with the reason when the server has ended.

        Also where the server wants to know more first, unless the caller `takes_questions`.
        """
        name = self.config.name
        try:
            result = await asking
        except MCPError as error:
            if error.code == types.CONNECTION_CLOSED and error.error.message == _CLOSED:
                with suppress(TimeoutError):
                    async with asyncio.timeout(_CONNECT):
                        await self._is_over.wait()  # and its reason is known
            if self._is_over.is_set():
                raise ToolError(f"the server `{name}` ended: {self.fault}") from None
            raise ToolError(f"`{name}`: {visible(error.error.message, _REASON)}") from None
        except ValidationError as error:
            why = f"the answer of the server `{name}` is not one of the protocol: {_first(error)}"
            raise ToolError(why) from None
        if isinstance(result, types.InputRequiredResult) and not takes_questions:
            raise ToolError(f"the server `{name}` asks for input, which it does not get")
        return result

    # Resources and prompts ------------------------------------------------------------------------

    async def read(self, uri: str) -> str:
        """Read a resource, as text. Raises `ToolError`, also for binary data."""
        session = self.client.session
        result = await self.answered(session.read_resource(uri, allow_input_required=True))
        texts = [text for text in result.contents if isinstance(text, types.TextResourceContents)]
        if not texts and result.contents:
            binary = result.contents[0]
            kind = visible(binary.mime_type or "of no kind", _NAME)
            raise ToolError(f"it is binary data ({kind}, {size_of(binary.blob):,} bytes)")
        if len(texts) == 1:
            return str(texts[0].text)
        return "\n".join(f"[{visible(text.uri, _NAME)}]\n{text.text}" for text in texts)

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        """Return a prompt as text; words of an assistant in it are marked. Raises `ToolError`."""
        session = self.client.session
        result = await self.answered(session.get_prompt(name, arguments, allow_input_required=True))
        parts = [(message.role, _block_text(message.content)) for message in result.messages]
        return "\n\n".join(text if role == "user" else f"[{role}]\n{text}" for role, text in parts)

    # Listings -------------------------------------------------------------------------------------

    async def offer(self) -> McpOffer:
        """List all that the server offers. Raises `ToolError` if its tools cannot be listed."""
        tools, notes = await self.tools()
        able, session = self.client.server_capabilities, self.client.session
        resources: list[McpResource] = []
        prompts: list[McpPrompt] = []
        try:
            if able.resources is not None:
                listed = await self._listed(session.list_resources, "resources", notes)
                listed += await self._listed(
                    session.list_resource_templates, "resource_templates", notes
                )
                resources += map(_resource, listed)
            if able.prompts is not None:
                prompts += map(_prompt, await self._listed(session.list_prompts, "prompts", notes))
        except ToolError as error:
            if self._ending.is_set():
                raise
            notes.append(f"resources or prompts cannot be listed: {error.message}")
        return McpOffer(
            tools=tuple(tools), resources=tuple(resources), prompts=tuple(prompts), notes=few(notes)
        )

    async def tools(self) -> tuple[list[OfferedTool], list[str]]:
        """List the tools, with notes about those that are left out. Raises `ToolError`."""
        if self.client.server_capabilities.tools is None:
            return [], []
        screened: dict[str, OfferedTool] = {}
        notes: list[str] = []
        self._screen.page = screened, notes
        try:
            listed = await self._listed(self.client.session.list_tools, "tools", notes)
        finally:
            self._screen.page = None
        return [screened[tool.name] for tool in listed if tool.name in screened], notes

    async def _listed(
        self, list_page: Callable[..., Coroutine[Any, Any, Any]], kind: str, notes: list[str]
    ) -> list[Any]:
        """List page by page; a server that never comes to an end is not followed for ever."""
        found: list[Any] = []
        cursors: set[str | None] = set()
        cursor: str | None = None
        while cursor not in cursors and len(found) <= MOST and len(cursors) < _MOST_PAGES:
            cursors.add(cursor)
            params = types.PaginatedRequestParams(cursor=cursor) if cursor else None
            page = await self.answered(list_page(params=params))
            found += getattr(page, kind)
            cursor = page.next_cursor or None
        words = kind.replace("_", " ")
        if len(found) > MOST or cursor is not None:
            notes.append(f"of its {words} only the first {len(found[:MOST]):,} are listed")
        return found[:MOST]

    # The task of the connection -------------------------------------------------------------------

    async def _run(
        self, transport: AbstractAsyncContextManager[Streams], ready: asyncio.Future[None]
    ) -> None:
        """Hold the session open until the end of the server, or of this connection."""
        client = Client(
            cast("Transport", transport),
            mode="legacy" if self.is_legacy else "auto",
            cache=None,
            client_info=types.Implementation(name="steersman", version=__version__),
            message_handler=self._noticed,
            elicitation_callback=self._elicited,
            extensions=[Tasks()],
        )
        async with client:
            self.client = client
            self.is_legacy = client.protocol_version not in MODERN_PROTOCOL_VERSIONS
            listening = None if self.is_legacy else asyncio.create_task(self._listen())
            ready.set_result(None)
            try:
                await self._ending.wait()
            finally:
                if listening is not None:
                    listening.cancel()
                    await asyncio.wait((listening,))

    def _stop(self, fault: str) -> None:
        self.fault = self.fault or fault
        self._ending.set()

    def _over(self, live: asyncio.Task[None]) -> None:
        error = None if live.cancelled() else live.exception()
        if not self.fault and self._screen.is_at_end and self._pipe is not None:
            self.fault = _end_of(self._pipe)
        self.needs_login = isinstance(_first_of(error), LoginNeeded)
        self._stop("it was closed" if error is None else _reason_of(error))
        self._is_over.set()
        self._on_end(self)

    async def _listen(self) -> None:
        """Wait for changes of the tools, as servers of the protocol since 2026 report them."""
        with suppress(MCPError, ListenNotSupportedError, SubscriptionLost, TimeoutError):
            async with self.client.listen(tools_list_changed=True) as changes:
                async for _ in changes:
                    self._on_change()

    async def _elicited(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        """Ask on behalf of the call that was made last: servers before 2026 do not say for which."""
        if not self.calls:
            return types.ErrorData(code=types.INVALID_REQUEST, message="no call is open")
        return await self.calls[-1].ask(params)

    async def _noticed(self, message: types.ServerNotification | Exception) -> None:
        if isinstance(message, types.ToolListChangedNotification) and self.is_legacy:
            self._on_change()

    @asynccontextmanager
    async def _over_pipe(self, pipe: PipeProcess) -> AsyncGenerator[Streams, None]:
        yield _Incoming(partial(_next_of, pipe), self._screen.look, pipe.close), _Outgoing(pipe)

    @asynccontextmanager
    async def _over_http(self, http: httpx2.AsyncClient) -> AsyncGenerator[Streams, None]:
        async with (
            http,
            streamable_http_client(
                self.config.url, http_client=http, max_sse_event_size=self.config.limit
            ) as (incoming, outgoing),
        ):

            async def received() -> Item:
                item = await incoming.receive()
                return item if self._login is None else _without(self._login.secrets, item)

            yield _Incoming(received, self._screen.look, incoming.aclose), outgoing


def _end_of(pipe: PipeProcess) -> str:
    """Say how a process ended."""
    assert pipe.result is not None
    result = pipe.result.result()
    code, errors = result.exit_code, _errors_of(pipe)
    if pipe.diagnostic and pipe.diagnostic != pipe.last_errors:
        return visible(pipe.diagnostic, _REASON)
    if code in (126, 127):
        return f"its command cannot be run: {errors.rpartition(': exec: ')[2]}"
    end = "it ended" if code is None else f"it ended with exit code {code}"
    if code is not None and code < 0:
        end = f"it was ended by signal {-code}"
    return f"{end}; its last error output is: {errors}" if errors else end


_FRAMES = frozenset(map(chr, range(0x2500, 0x2580)))
"""Signs that draw a box, as tracebacks for a terminal have them."""


def _errors_of(pipe: PipeProcess) -> str:
    """Return the end of what a process wrote to its standard error, without lines that frame it."""
    words = (word for word in pipe.last_errors.split() if not set(word) <= _FRAMES)
    return visible(" ".join(words), _REASON)


def _first_of(error: BaseException | None) -> BaseException | None:
    """Return the first error of a group."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


def _reason_of(error: BaseException) -> str:
    """Return the first reason in a group of errors, in a few words."""
    error = _first_of(error) or error
    if isinstance(error, ValidationError):
        return f"its answer is not one of the protocol: {_first(error)}"
    text = error.error.message if isinstance(error, MCPError) else str(error)
    return visible(text or type(error).__name__, _REASON)


def _first(error: ValidationError) -> str:
    """Return the first fault of data that does not fit."""
    fault = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(map(str, fault["loc"]))
    return visible(f"{place}: {fault['msg']}" if place else fault["msg"], _REASON)


def _resource(given: types.Resource | types.ResourceTemplate) -> McpResource:
    uri = given.uri if isinstance(given, types.Resource) else given.uri_template
    return McpResource(
        uri=visible(uri, _NAME),
        name=visible(given.name, _NAME),
        description=described(given.description),
        is_template=isinstance(given, types.ResourceTemplate),
    )


def _prompt(given: types.Prompt) -> McpPrompt:
    return McpPrompt(
        name=visible(given.name, _NAME),
        description=described(given.description),
        arguments=tuple(
            (visible(each.name, _NAME), bool(each.required)) for each in given.arguments or ()
        ),
    )
