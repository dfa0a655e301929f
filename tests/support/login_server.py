"""An MCP server on loopback that wants a login, with its authorization server, by the official SDK.

Whoever opens the address of a login has agreed. A refresh token counts once, as a careful server has it.
"""

import asyncio
import secrets
import socket
import threading
import time
from typing import Any, NamedTuple

import uvicorn
from mcp.server import MCPServer
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

__all__ = ["LoginServer", "Seen"]


class Seen(NamedTuple):
    """A request that came."""

    path: str
    authorization: str
    body: str


class _Provider(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """Clients, codes and tokens in memory; `life` is that of new access tokens in seconds."""

    def __init__(self, life: int) -> None:
        self.life = life
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.access: dict[str, AccessToken] = {}
        self.refresh: dict[str, RefreshToken] = {}
        self.granted: list[str] = []

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[client_info.client_id] = client_info

    async def authorize(
        self, client: OAuthClientInformationFull, params: AuthorizationParams
    ) -> str:
        code = secrets.token_urlsafe(24)
        self.codes[code] = AuthorizationCode(
            code=code,
            scopes=params.scopes or [],
            expires_at=time.time() + 600,
            client_id=client.client_id,
            **params.model_dump(include={"code_challenge", "redirect_uri", "resource"}),
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
        )
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        code = self.codes.pop(authorization_code.code)
        return self._grant(client.client_id, code.scopes, code.resource)

    async def load_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: str
    ) -> RefreshToken | None:
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        used = self.refresh.pop(refresh_token.token)
        await asyncio.sleep(0)
        return self._grant(client.client_id, scopes, used.resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.access.get(token)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.access.clear()
        self.refresh.clear()

    def _grant(self, client: str, scopes: list[str], resource: str | None) -> OAuthToken:
        access, refresh = f"acc-{secrets.token_hex(16)}", f"ref-{secrets.token_hex(16)}"
        of: dict[str, Any] = {"client_id": client, "scopes": scopes, "resource": resource}
        self.access[access] = AccessToken(token=access, **of)
        self.refresh[refresh] = RefreshToken(token=refresh, **of)
        self.granted += [access, refresh]
        return OAuthToken(
            access_token=access,
            expires_in=self.life,
            refresh_token=refresh,
            scope=" ".join(scopes),
        )


class LoginServer:
    """The server, while the block is open; `life` is that of access tokens in seconds."""

    def __init__(self, life: int = 3600, *, can_revoke: bool = True) -> None:
        self.seen: list[Seen] = []
        self.provider = _Provider(life)
        self._socket = socket.create_server(("127.0.0.1", 0))  # what comes before it runs waits
        self.origin = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self.url = f"{self.origin}/mcp"
        settings: dict[str, Any] = {
            "issuer_url": self.origin,
            "resource_server_url": self.url,
            "required_scopes": ["notes"],
            "validate_token_resource": True,
            "client_registration_options": ClientRegistrationOptions(
                enabled=True, valid_scopes=["notes"], default_scopes=["notes"]
            ),
            "revocation_options": RevocationOptions(enabled=can_revoke),
        }
        server = MCPServer(
            "locked", auth_server_provider=self.provider, auth=AuthSettings(**settings)
        )

        @server.tool()
        def look_up(name: str) -> str:
            """Look up a note."""
            token = get_access_token()
            return f"The note {name}, for {token.token if token else 'nobody'}."

        self._app = server.streamable_http_app(stateless_http=True, json_response=True)
        config = uvicorn.Config(
            self._seeing, interface="asgi3", log_level="critical", lifespan="on"
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True
        )
        self._is_up = threading.Event()

    def __enter__(self) -> "LoginServer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()

    def paths(self, path: str) -> list[Seen]:
        """Return the requests for a path."""
        return [seen for seen in self.seen if seen.path == path]

    def forget_access(self) -> None:
        """Have no access token count any more."""
        self.provider.access.clear()

    async def _seeing(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body, is_more = b"", True
        while is_more:
            message = await receive()
            body += message.get("body", b"")
            is_more = message.get("more_body", False)
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        seen = Seen(scope["path"], headers.get("authorization", ""), body.decode())
        self.seen.append(seen)
        pending = [{"type": "http.request", "body": body}]

        async def again() -> Any:
            return pending.pop() if pending else await receive()

        await self._app(scope, again, send)
