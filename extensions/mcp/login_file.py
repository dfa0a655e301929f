"""What a login at an MCP server left, `<state>/mcp-logins/NAME.json`, and how its token is renewed.

The file is private, as that of the stored keys is, and is read for every request: a login or logout of
another process counts at once. It belongs to one address, and has nothing for any other. A lock beside it
has one process renew at a time, since a server that hands out a new refresh token takes back the older.
All here blocks, for a thread: a renewal that nobody waits for any more is written all the same.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlencode, urlsplit

import msgspec
from mcp.client.auth.oauth2 import OAuthContext
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from msgspec import field
from msgspec.structs import replace
from pydantic import ValidationError

from ...journal.folder import PrivateFolder
from ...journal.lock import Lock
from ...machines.errors import ToolError
from ...machines.json_shape import parse_json
from ...machines.value import Value
from ...ports.tools.text import visible
from ...workflows.foreign_file import decoded, read_foreign
from ...workflows.paths import write_private
from .login_request import ask

_EARLY = 5.0  # seconds before its end in which an access token is renewed
_LONGEST = 10 * 365 * 86_400  # seconds that an access token is believed to last
_LOCKED = 90.0  # seconds that another process may take to renew
_REFUSALS = (400, 401)  # RFC 6749, 5.2; any other failure may pass
_FORM = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}


class Login(Value):
    """What was granted for the server at `url`; `expires` in seconds since 1970, 0 if it is not said.

    `client` is what the server registered, `resource` what the tokens are for, if that was asked for.
    Without an `access_token` the server has refused to renew it.
    """

    url: str
    access_token: str
    refresh_token: str = ""
    expires: float = 0.0
    scope: str = ""
    resource: str = ""
    issuer: str = ""
    token_endpoint: str
    revocation_endpoint: str = ""
    client: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def secrets(self) -> set[str]:
        """The tokens, and the secret of the client."""
        own = str(self.client.get("client_secret", ""))
        return {text for text in (self.access_token, self.refresh_token, own) if len(text) > 5}

    def has_to_be_renewed(self, refused: str) -> bool:
        """Whether the access token is over, or the one that was refused; and it can be."""
        is_over = 0 < self.expires < time.time() + _EARLY
        return bool(self.refresh_token) and (is_over or self.access_token == refused)

    def granted(self, token: OAuthToken) -> Login:
        """Return the login with what a server granted now; what it leaves out stays as it was."""
        return replace(
            self,
            access_token=token.access_token,
            refresh_token=token.refresh_token or self.refresh_token,
            expires=time.time() + min(token.expires_in, _LONGEST) if token.expires_in else 0.0,
            scope=token.scope or self.scope,
        )

    def post(self, endpoint: str, data: dict[str, str]) -> tuple[int, bytes]:
        """Send a form as the registered client. Raises `ToolError` and `OSError`."""
        known = OAuthClientInformationFull.model_validate(self.client)
        context = OAuthContext(
            self.url, cast("Any", None), cast("Any", None), None, None, client_info=known
        )
        data, headers = context.prepare_token_auth(
            {**data, "client_id": known.client_id}, {**_FORM}
        )
        answer = ask("POST", endpoint, self.url, headers, urlencode(data).encode())
        return answer.status, answer.body


class LoginFile:
    """The file of the server of a name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.secrets: set[str] = set()  # that were read or granted here

    def read(self, url: str = "") -> Login | None:
        """Return the login, none at all and none for another address. Raises `ToolError`."""
        try:
            found = os.lstat(self.path)
            if found.st_uid != os.geteuid() or found.st_mode & 0o077:
                raise OSError("others may read or have written it")
            content = decoded(read_foreign(self.path, follows_links=False))
            login = msgspec.convert(parse_json(content), Login)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            why = visible(str(error), 200)
            raise ToolError(
                f"`{self.path}` cannot be used: {why}", "remove it, and log in again"
            ) from None
        self.secrets = self.secrets | login.secrets  # others may look at the older set
        return login if not url or login.url == url else None

    def write(self, login: Login) -> None:
        """Replace the file, durably. Raises `OSError`."""
        self.secrets = self.secrets | login.secrets
        write_private(self.path, msgspec.json.format(msgspec.json.encode(login), indent=1))

    @contextmanager
    def locked(self) -> Generator[None]:
        """Hold the lock of the file. Raises `StoreError` and `OSError`."""
        folder = PrivateFolder.open(self.path.parent, create=True)
        try:
            lock = Lock(folder, self.path.stem)
            lock.take_within(_LOCKED)
            try:
                yield
            finally:
                lock.release()
        finally:
            folder.close()

    def access_token(self, url: str, refused: str = "") -> str:
        """Return a token for an address that is not `refused`, renewed if need be; empty without one.

        Raises `ToolError` if the server cannot be asked, `StoreError` and `OSError`.
        """
        login = self.read(url)
        if login is not None and login.has_to_be_renewed(refused):
            with self.locked():
                login = self.read(url)  # another process may have renewed it meanwhile
                if login is not None and login.has_to_be_renewed(refused):
                    login = _renewed(login)
                    self.write(login)
        return "" if login is None or login.access_token == refused else login.access_token

    def remove(self) -> tuple[Login | None, str]:
        """Remove the file; return what it had, and how the server took that back."""
        with self.locked():
            login = self.read()
            if login is None:
                return None, ""
            said = _revoked(login)
            self.path.unlink()
        return login, said


def _renewed(login: Login) -> Login:
    """Ask for a new access token; a login without one if that is refused. Raises `ToolError`."""
    data = {"grant_type": "refresh_token", "refresh_token": login.refresh_token}
    data |= {"resource": login.resource} if login.resource else {}
    host = urlsplit(login.token_endpoint).netloc
    try:
        status, body = login.post(login.token_endpoint, data)
        if status in _REFUSALS:
            return replace(login, access_token="", refresh_token="")
        if status != 200:
            raise ToolError(f"`{host}` answered {status}")
        return login.granted(OAuthToken.model_validate_json(body))
    except ToolError as error:
        raise ToolError(f"the login could not be renewed: {error.message}") from None
    except (OSError, ValidationError) as error:  # whose texts may have what was sent
        kind = type(error).__name__
        raise ToolError(f"the login could not be renewed at `{host}`: {kind}") from None


def _revoked(login: Login) -> str:
    """Ask the server to take the tokens back; say in a few words whether it has."""
    token = login.refresh_token or login.access_token
    if not login.revocation_endpoint or not token:
        return "the server names no way to revoke them"
    host = urlsplit(login.revocation_endpoint).netloc
    kind = "refresh_token" if login.refresh_token else "access_token"
    try:
        status, _ = login.post(login.revocation_endpoint, {"token": token, "token_type_hint": kind})
    except (ToolError, OSError, ValidationError):
        return f"`{host}` could not be asked to revoke them"
    return f"revoked at `{host}`" if status == 200 else f"`{host}` did not revoke them: {status}"
