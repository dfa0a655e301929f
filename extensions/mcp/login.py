"""A login at an MCP server: a person opens an address in any browser, on any machine.

The browser ends at an address of this machine, where we wait for it, or where it cannot get to: then that
address is pasted here. The SDK finds the authorization server, registers, and exchanges the code.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from http import HTTPStatus
from pathlib import Path
from secrets import compare_digest
from types import TracebackType
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, OAuthTokenError
from mcp.client.auth.oauth2 import OAuthContext
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from pydantic import AnyUrl

from ... import __version__
from ...gateway.wording.formats import iso
from ...gateway.wording.secret_kind import covered
from ...machines.errors import ToolError
from ...ports.tools.mcp_offer import McpServer
from ...ports.tools.text import visible
from .login_file import Login, LoginFile
from .login_request import LoginTransport, check_address

_PATH = "/callback"
_LONGEST = 16 << 10  # bytes of a request or a line, which has a code of a stranger's making
_REQUEST = 10.0  # seconds for a request of the browser
_REASON = 300  # characters of what a server says of a fault
_GONE = (OSError, EOFError, asyncio.LimitOverrunError, TimeoutError)  # of a browser
_VERSION = "2025-06-18"
_FIRST = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": _VERSION,
        "capabilities": {},
        "clientInfo": {"name": "steersman", "version": __version__},
    },
}
_LIST: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
"""What is asked for until it is answered; a server of any version refuses one of them without a login."""

Say = Callable[[str], None]

_logger = logging.getLogger("mcp.client.auth")
_logger.addHandler(logging.NullHandler())
_logger.propagate = False  # its errors have what servers answer


async def log_in(server: McpServer, say: Say, seconds: float) -> Login:
    """Have a person log in within some seconds, and keep what is granted.

    Raises `ToolError`, `StoreError` and `OSError`; nothing is kept then.
    """
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": _VERSION}
    try:
        async with asyncio.timeout(seconds), _Callback(server, say) as callback:
            metadata = OAuthClientMetadata(
                redirect_uris=[AnyUrl(callback.address)], client_name="steersman"
            )
            provider = OAuthClientProvider(
                server.url, metadata, _Start(server, callback), callback.show, callback.wait
            )
            transport = LoginTransport(server.url)
            async with httpx2.AsyncClient(transport=transport, auth=provider) as http:
                first = {**headers, **server.headers}
                answer = await http.post(server.url, json=_FIRST, headers=first)
                session = answer.headers.get("mcp-session-id")
                more = {**first, "MCP-Session-Id": session} if session else first
                if provider.context.current_tokens is None:  # some let everybody begin
                    answer = await http.post(server.url, json=_LIST, headers=more)
                if session:
                    await http.request("DELETE", server.url, headers=more)
    except TimeoutError:
        raise ToolError(f"nobody has logged in within {seconds:g} s", "try it again") from None
    except OAuthTokenError as error:  # what the server answered may have tokens
        raise ToolError(f"no token was granted: {str(error).partition(':')[0]}") from None
    except (OAuthFlowError, httpx2.InvalidURL, ValueError, OverflowError) as error:
        raise ToolError(f"the login failed: {covered(visible(str(error), _REASON))}") from None
    status, said = answer.status_code, "it asked for no login"
    if provider.context.current_tokens is not None:
        said = "it refuses the token that was granted"
    if provider.context.current_tokens is None or status in (401, 403):
        phrase = HTTPStatus(status).phrase if status in set(HTTPStatus) else ""
        raise ToolError(f"`{server.name}` answered {f'{status} {phrase}'.strip()}: {said}")
    login, file = _login(server.url, provider.context), LoginFile(Path(server.login))
    with file.locked():
        file.write(login)
    return login


def _login(url: str, context: OAuthContext) -> Login:
    """Gather what the SDK does not keep: without it no token can be renewed by another process."""
    tokens, client, known = context.current_tokens, context.client_info, context.oauth_metadata
    assert tokens is not None
    assert client is not None
    is_named = context.should_include_resource_param(context.protocol_version)
    base = context.get_authorization_base_url(url)
    revocation = known.revocation_endpoint if known is not None else None
    login = Login(
        url=url,
        access_token=tokens.access_token,
        resource=context.get_resource_url() if is_named else "",
        issuer=str(known.issuer) if known is not None else base,
        token_endpoint=str(known.token_endpoint) if known is not None else f"{base}/token",
        revocation_endpoint=str(revocation or ""),
        client=client.model_dump(mode="json", exclude_none=True),
    )
    return login.granted(tokens)


class _Start:
    """The SDK's storage: what each login begins with; what comes of it is kept as a whole at its end."""

    def __init__(self, server: McpServer, callback: _Callback) -> None:
        self._client, self._callback = server.client, callback

    async def get_tokens(self) -> OAuthToken | None:
        """Return no tokens: earlier ones are to be replaced."""
        return None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Leave them in the SDK's context."""

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return the person's own client; of others the port of the callback changes each time."""
        name, secret = self._client
        if not name:
            return None
        return OAuthClientInformationFull(
            client_id=name,
            client_secret=secret or None,
            redirect_uris=[AnyUrl(self._callback.address)],
            token_endpoint_auth_method="client_secret_basic" if secret else "none",
        )

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Leave it in the SDK's context."""


class _Callback:
    """Waits for the address at which the browser ends: at a port of this machine, and at the terminal."""

    def __init__(self, server: McpServer, say: Say) -> None:
        self._url, self._say = server.url, say
        self._state = ""
        self._line = b""
        self._found: asyncio.Future[AuthorizationCodeResult]

    async def __aenter__(self) -> _Callback:
        self._found = asyncio.get_running_loop().create_future()
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0, limit=_LONGEST)
        self.address = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}{_PATH}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._server.close()
        asyncio.get_running_loop().remove_reader(0)

    async def show(self, url: str) -> None:
        """Say what to open. Raises `ToolError` for an address that the server may not name."""
        await asyncio.to_thread(check_address, url, self._url)
        self._state = dict(parse_qsl(urlsplit(url).query)).get("state", "")
        self._say(f"Open this in a browser, on any machine:\n\n{url}\n")
        if sys.stdin is not None and sys.stdin.isatty():
            asyncio.get_running_loop().add_reader(0, self._read)
            self._say(
                "If the browser is on another machine, it ends at an address that it cannot reach: "
                "paste that here."
            )
        else:
            self._say(f"Waiting for the browser at {self.address}")

    async def wait(self) -> AuthorizationCodeResult:
        """Return what the browser brought. Raises `ToolError` if the login was refused."""
        return await self._found

    def _take(self, address: str) -> str:
        """Take an address at which a browser ended; return why not, empty if it is the one."""
        parts = urlsplit(address)
        given = dict(parse_qsl(parts.query))
        if not ("code" in given or "error" in given) or not parts.path.endswith(_PATH):
            return "this is not the address at which a login ends"
        if not self._state or not compare_digest(
            given.get("state", "").encode(), self._state.encode()
        ):
            return "this address is that of another login"
        if self._found.done():
            return "this login has ended already"
        if "code" in given:
            self._found.set_result(AuthorizationCodeResult.model_validate(given))
        else:
            said = given.get("error_description") or given["error"]
            self._found.set_exception(ToolError(f"the login was refused: {visible(said, _REASON)}"))
        return ""

    def _read(self) -> None:
        """Read what was typed or pasted; the end of input leaves the port."""
        piece = os.read(0, _LONGEST)
        *lines, self._line = (self._line + piece).split(b"\n")
        if not piece or len(self._line) > _LONGEST:
            asyncio.get_running_loop().remove_reader(0)
        for line in lines:
            text = line.decode(errors="replace").strip()
            if text and (why := self._fault(text)):
                self._say(f"{why}; paste the whole address, which begins with {self.address}")

    def _fault(self, address: str) -> str:
        try:
            return self._take(address)
        except ValueError:
            return "this is no address"

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer a request of the browser, or of anybody else."""
        with closing(writer), suppress(*_GONE):
            async with asyncio.timeout(_REQUEST):
                head = await reader.readuntil(b"\r\n\r\n")
                method, _, rest = head.decode("ascii", "replace").partition(" ")
                why = self._fault(rest.partition(" ")[0]) if method == "GET" else "this is no login"
                status = "400 Bad Request" if why else "200 OK"
                text = f"{why}\n" if why else "This page can be closed: see the terminal.\n"
                writer.write(
                    f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nCache-Control: no-store\r\n"
                    f"Content-Length: {len(text)}\r\nConnection: close\r\n\r\n{text}".encode()
                )
                await writer.drain()


def login_data(name: str, login: Login) -> dict[str, Any]:
    """Return what was granted, without the tokens."""
    return {
        "server": name,
        "url": login.url,
        "issuer": login.issuer,
        "scopes": login.scope.split(),
        "expires": iso(login.expires) if login.expires else None,
        "can_be_renewed": bool(login.refresh_token),
    }
