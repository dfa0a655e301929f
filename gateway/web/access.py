"""Who may use the HTTP interface: devices that were paired, each with a name and a scope.

A device is paired by a code that is valid once and for some minutes; what it gets is a token, of which
only the hash is kept. A browser gets two secrets and shows both with every request. The first is a cookie
that no script can read; but browsers send a cookie to every port of a host, so also to another server
on this machine. The second, the page key, is in the page's own storage, which browsers separate by port.
It is sent as a header, which also keeps pages of other sites from asking in this browser's name. Devices
are kept in a file that the command line changes, too, so that a revoked device is shut out with its next
request, and in the middle of a stream.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import os
import secrets
import stat
import time
from collections.abc import Collection, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Send
from starlette.types import Scope as AsgiScope

from ...machines.classification import typed_command
from ...machines.errors import UsageError
from ...machines.json_shape import parse_json
from ...workflows.paths import make_private, write_private
from ..commands.command import CommandCall
from ..commands.registry import NAMES, needing_approval, parse

Scope = Literal["look", "speak", "approve"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
"""What a device may do, the least first: each may also do what those before it may."""

COOKIE, PAGE_KEY = "steersman", "x-page-key"
"""What a browser shows: a cookie with its token, and a header with its page key."""
CODE_SECONDS = 600.0
"""Seconds for which a pairing code is valid."""
ATTEMPTS, ATTEMPT_SECONDS = 10, 60.0
"""Wrong codes in so many seconds; after that no code is taken for a while."""
PROBES = ("/healthz", "/readyz")
"""Paths that answer the same to everybody, whoever asks, by any name."""
LARGEST, LARGEST_HEADER = 1 << 20, 16 << 10
"""Bytes that the body of a request may have, and what stands before it."""
LARGEST_CODE = 4 << 10
"""The same of what is sent with a code, by somebody who is not known yet."""
REQUESTS = 1_000
"""Requests that are answered at a time, streams among them."""
_SAFELY = os.O_NOFOLLOW | os.O_CLOEXEC
_LETTERS = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; worker-src 'self'; form-action 'none'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
_HEADERS = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
)


class Device(BaseModel):
    """A paired device; `hash` is that of its token, times are seconds since 1970.

    `page` is the hash of a browser's page key, empty for a program, which has none.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    name: str
    scope: Scope
    hash: str
    created: float
    page: str = ""


class Code(BaseModel):
    """A pairing code that was not used yet; `hash` is that of its letters."""

    model_config = ConfigDict(frozen=True)

    name: str
    scope: Scope
    hash: str
    expires: float


class Known(BaseModel):
    """The file of devices."""

    devices: list[Device] = Field(default_factory=list[Device])
    codes: list[Code] = Field(default_factory=list[Code])


class DeviceFile:
    """The devices of a home, in a file that several processes change; blocks for a moment."""

    def __init__(self, state: Path) -> None:
        self._path = state / "devices.json"
        self._seen: tuple[int, int, int] | None = None
        self._known = Known()

    def known(self) -> Known:
        """Return the devices as the file has them now. Raises `UsageError` if it cannot be read."""
        try:
            found = os.lstat(self._path)
        except FileNotFoundError:
            self._seen, self._known = None, Known()
            return self._known
        stamp = (found.st_ino, found.st_mtime_ns, found.st_size)
        if stamp != self._seen:
            self._known, self._seen = self._read(), stamp
        return self._known

    def _read(self) -> Known:
        try:
            return Known.model_validate_json(self._content())
        except (OSError, ValidationError) as error:
            raise UsageError(
                f"`{self._path}` cannot be read: {error}", "remove it, and pair the devices again"
            ) from error

    def _content(self) -> bytes:
        """Read the file, which must be this user's own; never through a link. Raises `OSError`."""
        descriptor = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | _SAFELY)
        with open(descriptor, "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
                raise OSError("it is not a file of yours")
            return file.read()

    @contextmanager
    def _changed(self) -> Generator[Known]:
        """Read the file, let it be changed, and write it; one process at a time."""
        make_private(self._path.parent)
        place = self._path.with_suffix(".lock")
        try:
            lock = os.open(place, os.O_RDWR | os.O_CREAT | _SAFELY, 0o600)
        except OSError as error:
            raise UsageError(
                f"`{place}` cannot be opened: {error.strerror}", "remove it"
            ) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            known = self._read() if os.path.lexists(self._path) else Known()
            yield known
            write_private(self._path, known.model_dump_json(indent=1).encode())
        finally:
            os.close(lock)

    def offer(self, name: str, scope: Scope, now: float) -> str:
        """Return a new pairing code for a device of that name. Raises `UsageError` if it is taken."""
        with self._changed() as known:
            _check_free(known, name)
            code = "".join(secrets.choice(_LETTERS) for _ in range(8))
            known.codes[:] = [
                other for other in known.codes if other.name != name and now < other.expires
            ]
            expires = now + CODE_SECONDS
            known.codes.append(Code(name=name, scope=scope, hash=_hash(code), expires=expires))
        return f"{code[:4]}-{code[4:]}"

    def redeem(self, code: str, now: float) -> tuple[Device, str, str] | None:
        """Pair the browser that shows a code: its token, and page key; none if the code is wrong."""
        wanted = _hash("".join(letter for letter in code.upper() if letter in _LETTERS))
        with self._changed() as known:
            for found in known.codes:
                if hmac.compare_digest(found.hash, wanted) and now < found.expires:
                    known.codes.remove(found)
                    if any(device.name == found.name for device in known.devices):
                        return None
                    page_key = secrets.token_urlsafe(32)
                    device, token = _add(known, found.name, found.scope, now, page_key)
                    return device, token, page_key
        return None

    def grant(self, name: str, scope: Scope, now: float) -> str:
        """Pair a program at once, and return its token. Raises `UsageError` if the name is taken."""
        with self._changed() as known:
            _check_free(known, name)
            return _add(known, name, scope, now)[1]

    def revoke(self, name: str) -> None:
        """Shut a device out. Raises `UsageError` for an unknown one."""
        with self._changed() as known:
            rest = [device for device in known.devices if device.name != name]
            codes = [code for code in known.codes if code.name != name]
            if (len(rest), len(codes)) == (len(known.devices), len(known.codes)):
                raise UsageError(f"no device `{name}`", "`steersman devices list` shows them")
            known.devices[:], known.codes[:] = rest, codes


def _check_free(known: Known, name: str) -> None:
    if any(device.name == name for device in known.devices):
        raise UsageError(
            f"there is a device `{name}` already", f"`steersman devices revoke {name}` shuts it out"
        )


def _add(
    known: Known, name: str, scope: Scope, now: float, page_key: str = ""
) -> tuple[Device, str]:
    token = secrets.token_urlsafe(32)
    device = Device(
        id=secrets.token_hex(8),
        name=name,
        scope=scope,
        hash=_hash(token),
        created=now,
        page=_hash(page_key) if page_key else "",
    )
    known.devices.append(device)
    return device, token


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class Access:
    """Admits requests; `hosts` are the names by which the server may be asked, with their ports."""

    def __init__(
        self, devices: DeviceFile, hosts: Collection[str], *, is_secure: bool = False
    ) -> None:
        self._devices = devices
        self.hosts, self.is_secure = hosts, is_secure
        self._wrong: list[float] = []

    # Requests -------------------------------------------------------------------------------------

    async def admit(self, request: Request, scope: Scope) -> Device:
        """Return the device of a request. Raises `HTTPException` if it may not ask that."""
        device = self._device(request)
        if device is None:
            raise HTTPException(
                401,
                "this device is not paired: `steersman devices pair NAME`",
                {"WWW-Authenticate": "Bearer"},
            )
        self.check_scope(device, scope)
        request.state.admitted()
        return device

    def check_scope(self, device: Device, scope: Scope) -> None:
        """Refuse what a device may not do. Raises `HTTPException`."""
        if SCOPES.index(device.scope) < SCOPES.index(scope):
            raise HTTPException(403, f"`{device.name}` may only {device.scope}: this needs {scope}")

    def is_paired(self, device: str) -> bool:
        """Whether a device, by its id, is paired, and was not revoked meanwhile."""
        return any(known.id == device for known in self._devices.known().devices)

    def check_words(self, device: Device, text: str, said_as: str) -> None:
        """Refuse a typed command that a device may not give. Raises `HTTPException`."""
        found = typed_command(text, NAMES, said_as)
        if found is not None:
            with suppress(UsageError):  # it is answered with what is wrong, and does nothing
                self.check_command(device, parse(*found))

    def check_command(self, device: Device, call: CommandCall) -> None:
        """Refuse a command that a device may not give. Raises `HTTPException`."""
        what = needing_approval(call)
        if what and device.scope != "approve":
            raise HTTPException(
                403, f"`{device.name}` may only {device.scope}: {what} needs approve"
            )

    def _device(self, request: Request) -> Device | None:
        """Return the device of a request: a program by its token, a browser by both of its secrets."""
        header = request.headers.get("authorization", "")
        is_bearer = header[:7].lower() == "bearer "
        token = header[7:].strip() if is_bearer else request.cookies.get(COOKIE, "")
        page_key = "" if is_bearer else request.headers.get(PAGE_KEY, "")
        if not token or not (is_bearer or page_key):
            return None
        wanted, page = _hash(token), _hash(page_key) if page_key else ""
        for device in self._devices.known().devices:
            is_it = hmac.compare_digest(device.hash, wanted)
            if is_it and hmac.compare_digest(device.page, page):
                return device
        return None

    # Pairing --------------------------------------------------------------------------------------

    def routes(self) -> list[Route]:
        """Return the routes by which a browser is paired, and learns who it is."""
        return [
            Route("/pair", self._pair, methods=["POST"]),
            Route("/me", self._who, methods=["GET"]),
            Route("/leave", self._leave, methods=["POST"]),
        ]

    async def _pair(self, request: Request) -> Response:
        """Exchange a code for a cookie and a page key."""
        now = time.time()
        self._wrong = [at for at in self._wrong if now - at < ATTEMPT_SECONDS]
        if len(self._wrong) >= ATTEMPTS:
            raise HTTPException(429, "too many wrong codes: wait a minute", {"Retry-After": "60"})
        try:
            said = await request.body()
            body = parse_json(said if len(said) <= LARGEST_CODE else b"")
            code = str(body["code"])
        except (ValueError, KeyError, TypeError, RecursionError):
            raise HTTPException(422, 'send {"code": "…"}') from None
        paired = self._devices.redeem(code, now)
        if paired is None:
            self._wrong.append(now)
            raise HTTPException(403, "this code is wrong, was used, or is too old")
        device, token, page_key = paired
        answer = JSONResponse({**_view(device), "page_key": page_key})
        answer.set_cookie(
            COOKIE,
            token,
            max_age=400 * 86_400,
            httponly=True,
            samesite="strict",
            secure=self.is_secure,
        )
        return answer

    async def _who(self, request: Request) -> Response:
        """Return the name and the scope of the device that asks."""
        return JSONResponse(_view(await self.admit(request, "look")))

    async def _leave(self, request: Request) -> Response:
        """Forget the device that asks."""
        device = await self.admit(request, "look")
        self._devices.revoke(device.name)
        answer = JSONResponse({"ok": True})
        answer.delete_cookie(COOKIE)
        return answer


def _view(device: Device) -> dict[str, Any]:
    return {"name": device.name, "scope": device.scope}


class Door:
    """Refuses requests for other hosts, from other origins, and with too much in them.

    Every answer gets the headers that keep a browser from running, framing or guessing anything else.
    """

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._hosts = app, access.hosts
        scheme = "https" if access.is_secure else "http"
        self._origins = {f"{scheme}://{host}" for host in access.hosts}
        self._open = 0

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it."""
        self._open += 1
        try:
            await self._answer(scope, receive, send)
        finally:
            self._open -= 1

    async def _answer(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        refused = self._refusal(request)
        if refused is not None:
            await refused(scope, receive, self._with_headers(send))
            return
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            if len(body) > LARGEST:
                await _refused(413, f"a request has at most {LARGEST} bytes")(
                    scope, receive, self._with_headers(send)
                )
                return
            if not message.get("more_body"):
                break
        is_given = False

        async def again() -> Message:
            """Give the body, which was read, and then wait for the end of the connection."""
            nonlocal is_given
            if not is_given:
                is_given = True
                return {"type": "http.request", "body": bytes(body), "more_body": False}
            return await receive()

        await self._app(scope, again, self._with_headers(send))

    def _refusal(self, request: Request) -> Response | None:
        if request.url.path in PROBES:
            return None
        if self._open > REQUESTS:
            return _refused(503, "too many requests and streams are open: close some")
        if sum(len(name) + len(value) for name, value in request.headers.raw) > LARGEST_HEADER:
            return _refused(431, f"the header of a request has at most {LARGEST_HEADER} bytes")
        if "transfer-encoding" in request.headers and "content-length" in request.headers:
            return _refused(400, "a request has one length")
        if len(request.headers.getlist("host")) != 1 or request.headers["host"] not in self._hosts:
            return _refused(403, "this is not the host that was asked for")
        origin = request.headers.get("origin")
        is_foreign = origin is not None and origin not in self._origins
        is_own = request.headers.get("sec-fetch-site", "none") in ("none", "same-origin")
        is_visit = request.method == "GET" and request.headers.get("sec-fetch-mode") == "navigate"
        if is_foreign or not (is_own or is_visit):
            return _refused(403, "pages of elsewhere may not ask")
        length = request.headers.get("content-length", "0")
        if not length.isascii() or not length.isdecimal() or int(length) > LARGEST:
            return _refused(413, f"a request has at most {LARGEST} bytes")
        return None

    def _with_headers(self, send: Send) -> Send:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *_HEADERS]
            await send(message)

        return sending


def _refused(status: int, detail: str) -> Response:
    body = {"type": "about:blank", "status": status, "detail": detail}
    closing = {"Connection": "close"} if status in (400, 503) else None
    return JSONResponse(body, status, closing, media_type="application/problem+json")
