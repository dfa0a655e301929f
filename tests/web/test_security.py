"""Attacks on `steersman serve`: by pages, by programs without a token, by devices of a small scope."""

import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, cast

import pytest
from support.driver import Gate, Place
from support.model_server import Text, Tools
from support.patience import seconds
from support.served import Served
from web.conftest import Start, code_for

from steersman.gateway.web.access import SCOPES
from steersman.gateway.web.application import Api
from steersman.gateway.web.desk import Desk


@pytest.fixture
def web(serve, served: Start) -> Served:
    """A server whose model says hello."""
    serve(Text("Hello."))
    return served()


# Requests by hand ---------------------------------------------------------------------------------


def connect(web: Served) -> socket.socket:
    """Connect, and wait for no answer longer than a test has."""
    host, _, port = web.address.rpartition(":")
    return socket.create_connection((host, int(port)), seconds(30))


def raw(web: Served, head: str, body: bytes = b"", host: str | None = None) -> tuple[int, str]:
    """Send lines of a request as they are; return the status and all of the answer."""
    named = web.address if host is None else host
    lines = [*head.splitlines(), f"Host: {named}", "Connection: close"]
    with closing(connect(web)) as connection:
        connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        return answered(connection)


def answered(connection: socket.socket) -> tuple[int, str]:
    """Read up to the end; a connection that was cut has the status 0."""
    said = b""
    with suppress(ConnectionError):
        while part := connection.recv(65536):
            said += part
    text = said.decode(errors="replace")
    return int(text.split()[1]) if text else 0, text


def memory(web: Served) -> int:
    """Return the bytes that the server has in memory."""
    pages = Path(f"/proc/{web.program.pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def count(web: Served, what: str) -> int:
    """Count the server's descriptors (`fd`) or threads (`task`)."""
    return len(os.listdir(f"/proc/{web.program.pid}/{what}"))


def paired(web: Served, scope: str = "approve") -> dict[str, str]:
    """Pair a browser; return the headers that it sends with every request."""
    code = code_for(web.place, f"browser-{scope}", scope)
    token, web.token = web.token, ""
    answer = web.ask("POST", "/pair", {"code": code})
    web.token = token
    assert answer.status == 200, answer
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    return {"Cookie": cookie.partition(";")[0], "X-Page-Key": answer.data["page_key"]}


# Pages of elsewhere -------------------------------------------------------------------------------


def test_pages_of_elsewhere_get_nothing(web: Served) -> None:
    """Neither under another name (DNS rebinding) nor from another origin, whatever they bear."""
    bearer = f"Authorization: Bearer {web.token}"
    ask = f"GET /api/v1/sessions HTTP/1.1\n{bearer}"
    port = web.address.rpartition(":")[2]
    assert raw(web, ask)[0] == 200
    assert raw(web, ask, host=f"localhost:{port}")[0] == 200
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1.evil:{port}", ""):
        assert raw(web, ask, host=host)[0] == 403, host
    assert raw(web, f"{ask}\nHost: evil.example")[0] in (400, 403)
    for origin in ("null", "http://evil.example", f"https://{web.address}", "http://127.0.0.1:1"):
        assert raw(web, f"{ask}\nOrigin: {origin}")[0] == 403, origin
    assert raw(web, f"{ask}\nOrigin: http://{web.address}")[0] == 200
    for site in ("cross-site", "same-site", "nonsense"):
        assert raw(web, f"{ask}\nSec-Fetch-Site: {site}")[0] == 403, site
    assert raw(web, f"{ask}\nSec-Fetch-Site: same-origin")[0] == 200
    visit = "Sec-Fetch-Site: cross-site\nSec-Fetch-Mode: navigate"
    assert raw(web, f"GET / HTTP/1.1\n{visit}")[0] == 200
    assert raw(web, f"POST /pair HTTP/1.1\n{visit}\nContent-Length: 0")[0] == 403
    status, said = raw(web, f"OPTIONS /api/v1/sessions HTTP/1.1\nOrigin: http://{web.address}")
    assert status == 405
    assert "access-control" not in said.lower()


PUBLIC = {("get", "/"), ("get", "/assets/app.js"), ("get", "/openapi.json")}


@pytest.mark.nightly
def test_a_cookie_alone_is_worth_nothing(place: Place, web: Served) -> None:
    """Browsers send it to every port of this host: whoever got it there is refused on every route.

    So is the page key alone, that of another device, and the cookie's token as that of a program.
    """
    session = web.begin()
    described = web.ask("GET", "/openapi.json").data["paths"]
    mine, other = paired(web), paired(web, "speak")
    web.token = ""
    token = mine["Cookie"].partition("=")[2]
    key = mine["X-Page-Key"]
    worthless = (
        {"Cookie": mine["Cookie"]},
        {"Cookie": mine["Cookie"], "X-Page-Key": ""},
        {"Cookie": mine["Cookie"], "X-Page-Key": token},
        {"Cookie": mine["Cookie"], "X-Page-Key": other["X-Page-Key"]},
        {"X-Page-Key": key},
        {"Cookie": f"steersman={key}", "X-Page-Key": key},
        {"Authorization": f"Bearer {token}"},
        {"Authorization": f"Bearer {token}", "X-Page-Key": key},
        {"Authorization": f"Bearer {key}"},
        mine | {"Authorization": "Bearer wrong"},
    )
    routes = [(method, path) for path, methods in described.items() for method in methods]
    asked = [*routes, ("get", "/me"), ("post", "/leave"), *PUBLIC]
    assert len(routes) >= 15
    for method, path in asked:
        real = path.replace("{session}", session).replace("{number}", "1")
        real = real.replace("{question}", "q1")
        for given in worthless if (method, path) not in PUBLIC else ():
            answer = web.ask(method.upper(), real, None, given)
            assert answer.status == 401, (method, path, given, answer)
            assert session not in str(answer.data) + str(answer.headers)
    for method, path in PUBLIC:  # what they answer is the same for everybody
        told = [web.ask(method.upper(), path, None, given).data for given in ({}, worthless[0])]
        assert told[0] == told[1]
    assert web.ask("GET", "/me", None, mine).data == {
        "name": "browser-approve",
        "scope": "approve",
    }
    assert web.ask("GET", "sessions", None, mine).status == 200
    assert web.ask("POST", "sessions", {"folder": str(place.folder)}, mine).status == 201
    assert web.ask("POST", "/leave", None, mine).status == 200
    assert web.ask("GET", "sessions", None, mine).status == 401


@pytest.mark.nightly
def test_codes_cannot_be_tried_out(place: Place, web: Served) -> None:
    """Ten wrong ones in a minute, over all clients, and then not even the right one is taken."""
    code = code_for(place, "phone")
    assert place.run("devices", "pair", "phone").returncode == 0  # the first code is void now
    statuses = list[int]()
    with ExitStack() as after:
        open_ones = [after.enter_context(closing(connect(web))) for _ in range(30)]
        for number, connection in enumerate(open_ones):
            body = json.dumps({"code": code if number == 0 else f"AAAA-AA{number:02}"}).encode()
            head = f"POST /pair HTTP/1.1\r\nHost: {web.address}\r\nConnection: close\r\n"
            head += f"Content-Length: {len(body)}\r\n\r\n"
            connection.sendall(head.encode() + body)
        statuses = [answered(connection)[0] for connection in open_ones]
    assert (statuses.count(403), statuses.count(429)) == (10, 20)
    for body in (b"", b"[]", b"7", b"[" * 100_000, b'{"code": ["x"]}', b"\xff"):
        head = f"POST /pair HTTP/1.1\nContent-Length: {len(body)}"
        assert raw(web, head, body)[0] in (422, 429), body[:10]


def test_a_stranger_sends_no_more_than_a_code(place, web: Served) -> None:
    """A request to pair with more than 4 KiB is not read, and the code stays valid."""
    code = code_for(place, "phone")
    web.token = ""
    assert web.ask("POST", "/pair", {"code": code, "more": "x" * 4_096}).status == 422
    assert web.ask("POST", "/pair", {"code": code}).status == 200


# Odd requests -------------------------------------------------------------------------------------


def test_odd_requests_are_refused_in_a_sentence(web: Served) -> None:
    """Two lengths, huge headers and bodies, tricks with paths and methods."""
    session = web.begin()
    bearer = f"Authorization: Bearer {web.token}"
    smuggled = b"0\r\n\r\nGET /me HTTP/1.1\r\nHost: x\r\n\r\n"
    for lengths in (
        "Content-Length: 4\nTransfer-Encoding: chunked",
        "Content-Length: 4\nContent-Length: 5",
        "Transfer-Encoding: chunked, identity",
        "Transfer-Encoding: xchunked",
        "Content-Length: -1",
        "Content-Length: +4",
        "Content-Length: 4_0",
    ):
        status, said = raw(web, f"POST /pair HTTP/1.1\n{lengths}", smuggled)
        assert status in (400, 413, 501), (lengths, said)
        assert said.count("HTTP/1.1 ") == 1, said
    for size in (20_000, 60_000, 300_000):
        status, said = raw(web, f"GET / HTTP/1.1\nX-Big: {'a' * size}")
        assert status in (0, 400, 431), (size, said[:200])
    place = f"POST /api/v1/sessions/{session}/messages HTTP/1.1\n{bearer}"
    assert raw(web, f"{place}\nContent-Length: {1 << 40}")[0] == 413
    chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
    status, said = raw(web, f"{place}\nTransfer-Encoding: chunked", chunk * 17 + b"0\r\n\r\n")
    assert status in (0, 413), said[:200]
    for path in (
        *(
            "/assets/../../access.py",
            "/assets/%2e%2e/%2e%2e/access.py",
            "/assets/..%2f..%2faccess.py",
        ),
        *(
            "/assets/%00",
            "/assets//etc/passwd",
            "//",
            "http://evil.example/",
            "/api/v1/sessions/%00",
        ),
        *("/api/v1/sessions/..%2f..%2fx", "/api/v1/../../etc", "/assets/%c0%ae%c0%ae/access.py"),
    ):
        status, said = raw(web, f"GET {path} HTTP/1.1\n{bearer}")
        assert status in (400, 404), (path, said)
        assert "def " not in said
    for method in ("TRACE", "CONNECT", "PUT", "PROPFIND", "GET\x01"):
        status, said = raw(web, f"{method} /api/v1/sessions HTTP/1.1\n{bearer}")
        assert status in (400, 404, 405), (method, said)
    assert raw(web, f"HEAD /api/v1/sessions/{session}/events HTTP/1.1\n{bearer}")[0] == 200
    assert web.ask("GET", f"sessions/{session}").status == 200


@pytest.mark.nightly
@pytest.mark.parametrize("number", ["-1", "9" * 5000, "1e3", "\u0661", "soon", "9" * 30])
def test_an_absurd_number_of_an_event_tells_all_or_nothing(web: Served, number: str) -> None:
    """A stream begins at the beginning, or at the end of what is there; it never fails."""
    session = web.begin()
    web.ask("POST", f"sessions/{session}/messages", {"text": "one"})
    web.until(session, "turn_ended")
    bearer = f"Authorization: Bearer {web.token}"
    head = f"GET /api/v1/sessions/{session}/events HTTP/1.1\r\nHost: {web.address}\r\n{bearer}\r\n"
    with closing(connect(web)) as connection:
        connection.sendall(f"{head}Last-Event-ID: {number}\r\n\r\n".encode())
        assert b" 200 " in connection.recv(65536)
        web.ask("POST", f"sessions/{session}/messages", {"text": "two words"})
        said = b""
        while b"two words" not in said:
            part = connection.recv(65536)
            assert part, said
            said += part


def test_what_is_said_is_never_a_page(serve, served: Start) -> None:
    """Script and markup come back as data with a type that no browser runs, whoever is asked."""
    planted = "<script>alert(1)</script>\u2028</script>"
    serve(Text(planted))
    web = served()
    session = web.begin()
    web.ask("POST", f"sessions/{session}/messages", {"text": planted})
    web.until(session, "turn_ended")
    web.ask("POST", f"sessions/{session}/messages", {"text": f"/rename {planted}"})
    kinds = ("application/json", "application/problem+json", "text/plain", "text/event-stream")
    bearer = f"Authorization: Bearer {web.token}"
    for path in (
        *("sessions", f"sessions/{session}", f"sessions/{session}/queue"),
        *(f"sessions/{session}/inspect", f"sessions/{session}/sequence", "sessions/%3Cscript%3E"),
        *(f"sessions/{session}/inspect?at=%3Cscript%3E", f"sessions/{session}/events?upto=99"),
        *("%3Cscript%3E", f"sessions/{session}/queue/%3Cscript%3E"),
    ):
        _, said = raw(web, f"GET /api/v1/{path} HTTP/1.1\n{bearer}")
        head = said.partition("\r\n\r\n")[0].lower()
        kind = head.partition("content-type: ")[2].split("\r\n")[0].split(";")[0]
        assert kind in kinds, (path, head)
        assert "x-content-type-options: nosniff" in head, path
        assert "default-src 'none'" in head, path


# Many and slow connections ------------------------------------------------------------------------


@contextmanager
def held(web: Served, number: int, said: bytes) -> Iterator[list[socket.socket]]:
    """Hold connections open on which a part of a request was sent."""
    with ExitStack() as after:
        found = list[socket.socket]()
        for _ in range(number):
            connection = after.enter_context(closing(connect(web)))
            found.append(connection)
            with suppress(ConnectionError):
                connection.sendall(said)
        yield found


@pytest.mark.nightly
def test_a_request_that_does_not_end_is_cut(web: Served) -> None:
    """Neither its header nor its body may trickle for ever, also behind a request that was whole."""
    host = f"Host: {web.address}\r\nAuthorization: Bearer {web.token}\r\n"
    whole = f"GET /api/v1/sessions HTTP/1.1\r\n{host}\r\n"
    with ExitStack() as after:
        open_ones = list[socket.socket]()
        for begun in (
            "GET / HT",
            f"POST /pair HTTP/1.1\r\n{host}Content-Length: 9000\r\n\r\n{{",
            f"POST /pair HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\n\r\n1\r\n{{",
            f"{whole}GET / HT",
            f"{whole}POST /pair HTTP/1.1\r\n{host}Content-Length: 9000\r\n\r\n{{",
        ):
            connection = after.enter_context(closing(connect(web)))
            connection.sendall(begun.encode())
            connection.settimeout(0.2)
            open_ones.append(connection)
        deadline = time.monotonic() + seconds(30)
        while open_ones:
            assert time.monotonic() < deadline, f"{len(open_ones)} are still open"
            for connection in tuple(open_ones):
                try:
                    connection.sendall(b"x")
                    if not connection.recv(65536):
                        open_ones.remove(connection)
                except TimeoutError:
                    continue
                except ConnectionError:
                    open_ones.remove(connection)
    assert web.ask("GET", "sessions").status == 200


@pytest.mark.nightly
def test_many_connections_of_strangers_keep_nobody_out(web: Served) -> None:
    """The next request is answered; what the server holds for the others stays bounded."""
    session = web.begin()
    stream = web.events(session)
    next(stream)  # a paired device, which is not cut
    host = f"Host: {web.address}\r\n"
    before = count(web, "fd")
    begun = f"POST /pair HTTP/1.1\r\n{host}Content-Length: 99\r\n\r\n{{"
    whole = f"GET /openapi.json HTTP/1.1\r\n{host}\r\n"
    for said in ("", "GET / HTTP/1.1\r\n", begun, whole):
        with held(web, 900, said.encode()):
            assert web.ask("GET", "sessions").status == 200
            assert count(web, "fd") < before + 300, said
    assert count(web, "task") < 100
    web.ask("POST", f"sessions/{session}/messages", {"text": "still here"})
    assert any(event.get("text") == "still here" for _, event in stream)


def certified(folder: Path) -> tuple[str, ssl.SSLContext]:
    """Make a self-signed certificate; return its table for the configuration, and what trusts it."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    made += ["-nodes", "-days", "2", "-subj", "/CN=localhost"]
    made += ["-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
    subprocess.run([*made, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    table = f'[serve]\ncertificate = "{certificate}"\nkey = "{key}"'
    return table, ssl.create_default_context(cafile=certificate)


@pytest.mark.nightly
@pytest.mark.skipif(shutil.which("openssl") is None, reason="`openssl` is not installed here")
def test_handshakes_that_never_end_keep_nobody_out(place: Place, serve, served: Start) -> None:
    """Connections whose encryption is not agreed upon are strangers: few at a time, and not for long."""
    table, trusted = certified(place.home)
    serve(Text("Hello."), rest=table)
    web = served(trusted=trusted)
    session = web.begin()
    stream = web.events(session)
    next(stream)  # a paired device, which is not cut
    before = count(web, "fd")
    hello = ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        trusted.wrap_bio(ssl.MemoryBIO(), hello, server_hostname="localhost").do_handshake()
    whole = hello.read()
    for said in (b"", whole[:100], whole, b"GET / HTTP/1.1\r\n"):
        with held(web, 900, said):
            assert web.ask("GET", "sessions").status == 200
            assert count(web, "fd") < before + 300, said
    with held(web, 100, whole[:100]) as late:
        for connection in late:
            with suppress(ConnectionError):
                while connection.recv(65536):
                    pass  # it ends by itself
    web.ask("POST", f"sessions/{session}/messages", {"text": "still here"})
    assert any(event.get("text") == "still here" for _, event in stream)
    assert any(event["type"] == "turn_ended" for _, event in stream)


def test_one_who_does_not_read_costs_nobody_else(place: Place, serve, served: Start) -> None:
    """A flood of events waits for no client; others get all of it, and memory stays bounded."""
    serve(Text(" ".join(["word"] * 60_000)))
    web = served()
    session = web.begin()
    asked = f"GET /api/v1/sessions/{session}/events HTTP/1.1\r\nHost: {web.address}\r\n"
    asked += f"Authorization: Bearer {web.token}\r\n\r\n"
    with held(web, 20, asked.encode()):
        before = memory(web)
        web.ask("POST", f"sessions/{session}/messages", {"text": "talk"})
        said = web.until(session, "turn_ended")
        assert said[-1]["status"] == "completed"
        assert memory(web) - before < 150 << 20
        assert web.ask("GET", "sessions").status == 200


@pytest.mark.nightly
def test_a_revoked_device_is_cut_in_the_middle_of_a_stream(place: Place, web: Served) -> None:
    """Also one that has hundreds of streams open; meanwhile others are answered."""
    session = web.begin()
    own = web.token
    web.pair("tabs", "look")
    asked = f"GET /api/v1/sessions/{session}/events HTTP/1.1\r\nHost: {web.address}\r\n"
    asked += f"Authorization: Bearer {web.token}\r\n\r\n"
    web.token = own
    with held(web, 200, asked.encode()) as tabs:
        for tab in tabs:
            assert b" 200 " in tab.recv(65536)
        assert web.ask("GET", "sessions").status == 200
        assert count(web, "task") < 150
        assert place.run("devices", "revoke", "tabs").returncode == 0
        for tab in tabs:
            with suppress(ConnectionError):
                while tab.recv(65536):
                    pass  # it ends by itself


def test_a_stopped_program_holds_up_nobody_else(place: Place, serve, served: Start) -> None:
    """However often its session is asked for, what concerns other sessions is answered at once."""
    serve(Text("Hello."))
    chat = place.chat()
    chat.send("first")
    chat.wait("turn_ended")
    web = served()
    session = web.begin()
    asked = f"GET /api/v1/sessions/{chat.session}/queue HTTP/1.1\r\nHost: {web.address}\r\n"
    asked += f"Authorization: Bearer {web.token}\r\n\r\n"
    chat.process.send_signal(signal.SIGSTOP)
    try:
        with held(web, 60, asked.encode()) as waiting:
            for _ in range(40):  # by then all of the others have come
                assert web.ask("GET", f"sessions/{session}").status == 200
            assert web.ask("GET", f"sessions/{session}/queue").status == 200
            waiting[0].setblocking(False)
            with pytest.raises(BlockingIOError):
                waiting[0].recv(1)  # all that took less long than the stopped one's patience
    finally:
        chat.process.send_signal(signal.SIGCONT)


# What is on disk ----------------------------------------------------------------------------------


def test_a_token_is_nowhere_but_with_its_device(place: Place, web: Served) -> None:
    """Not in a file of the home, nor in the process list; files and folders are the owner's only."""
    browser = paired(web)
    session = web.begin()
    web.ask("POST", f"sessions/{session}/messages", {"text": "hi"})
    web.until(session, "turn_ended")
    cookie = browser["Cookie"].partition("=")[2]
    dump = json.dumps(web.ask("GET", f"sessions/{session}/inspect").data)
    listed = "\n".join(place.processes().values())
    for token in (web.token, cookie, browser["X-Page-Key"]):
        assert token not in dump + listed
        for file in place.home.rglob("*"):
            assert not file.is_file() or token.encode() not in file.read_bytes(), file
    state = place.home / "state"
    for file in (state, *state.rglob("*")):
        assert file.lstat().st_mode & 0o077 == 0, file


@pytest.mark.nightly
def test_the_log_is_the_owners_and_no_link(place: Place, serve) -> None:
    """What a link in its place names stays as it is; what strangers send is not written down."""
    serve(Text("Hello."))
    state, other = place.home / "state", place.home / "other"
    state.mkdir(0o700)
    other.write_text("as it was")
    (state / "serve.log").symlink_to(other)
    place.environ["PYTHONWARNINGS"] = "ignore"
    ran = place.run("serve")
    try:
        assert ran.returncode == 0, ran.stderr
        address = ran.stdout.strip().removeprefix("http://")
        host, _, port = address.rpartition(":")
        for _ in range(20):
            with socket.create_connection((host, int(port)), seconds(30)) as connection:
                connection.sendall(b"nonsense\r\n\r\n")
                assert answered(connection)[0] == 400
        log = state / "serve.log"
        assert (log.is_symlink(), log.stat().st_mode & 0o777) == (False, 0o600)
        assert other.read_text() == "as it was"
        assert log.read_text().count("\n") == 1
    finally:
        assert place.run("serve", "stop").returncode == 0


# Scopes -------------------------------------------------------------------------------------------

SPELLINGS = [
    "/permissions list",
    "/PERMISSIONS list",
    "  /permissions list",
    "\uff0fpermissions list",
    "/permissions! list",
    "/permissions\tlist",
    "\n/Permissions\nlist",
]
BEYOND = [
    *("/limits more", "/model test-model", "/routes use x", "/resume last", "/new", "/finalize"),
    *("/export stolen.md", "/queue export stolen.toml", "/queue EXPORT stolen.toml"),
    *("/queue import x.toml", "/mcp restart x", "/goal --gate 'touch stolen' win"),
    *("/goal next --gate 'touch stolen' win", "/answer q1 allow"),
    *("!touch stolen", "\uff01touch stolen", "!! touch stolen", "/shell touch stolen"),
]


def test_each_operation_is_refused_below_its_scope(place: Place, web: Served) -> None:
    """Every route, by a device of each smaller scope; a session that is begun needs all of them.

    One who may only look changes nothing: every method but GET needs more.
    """
    session = web.begin()
    routes = Api(cast(Any, Desk), cast(Any, None), cast(Any, None)).table()
    assert all(route.method == "GET" for route in routes if route.scope == "look")
    for scope in SCOPES[:2]:
        web.pair(scope, scope)
        small = SCOPES.index(scope)
        beyond = [route for route in routes if SCOPES.index(route.scope) > small]
        assert beyond
        for entry in beyond:
            path = (
                entry.path[1:].replace(":int", "").format(session=session, number=1, question="q1")
            )
            answer = web.ask(entry.method, path, {})
            assert (answer.status, entry.scope in answer.data["detail"]) == (403, True), answer
        for agent in ("", "judge", "nobody"):
            body = {"folder": str(place.folder), "agent": agent}
            assert web.ask("POST", "sessions", body).status == 403
    assert web.ask("POST", "sessions", {"resume": session}).status == 201
    assert len(web.ask("GET", "sessions").data["sessions"]) == 1


def test_no_spelling_gives_a_speaker_more(place: Place, web: Served) -> None:
    """Commands that need `approve` are refused however they are typed, and as data; talk is not."""
    session = web.begin()
    web.pair("speaker", "speak")
    for text in (*SPELLINGS, *BEYOND):
        answer = web.ask("POST", f"sessions/{session}/messages", {"text": text})
        assert answer.status == 403, (text, answer)
        assert "needs approve" in answer.data["detail"]
    for said_as in ("queue", "steer", "interrupt"):
        body = {"text": "!touch stolen", "as": said_as}
        assert web.ask("POST", f"sessions/{session}/messages", body).status == 403
    data: list[tuple[str, dict[str, object]]] = [
        ("permissions", {}),
        ("permissions list", {}),
        ("export", {"file": "stolen.md"}),
        ("queue export", {"file": "stolen.toml"}),
        ("answer", {"question": "q1", "choice": "allow"}),
        ("goal", {"text": "win", "gates": ["touch stolen"]}),
    ]
    for name, arguments in data:
        body = {"name": name, "arguments": arguments}
        answer = web.ask("POST", f"sessions/{session}/commands", body)
        assert answer.status == 403, (name, answer)
    for name in ("PERMISSIONS", " permissions", "permissions\tlist"):
        answer = web.ask("POST", f"sessions/{session}/commands", {"name": name})
        assert answer.status == 422, (name, answer)
    question = f"sessions/{session}/questions/q1"
    assert web.ask("POST", question, {"choice": "allow"}).status == 403
    assert list(place.folder.iterdir()) == []
    for text in ("/usage", " /QUEUE list", "/diff"):
        assert web.ask("POST", f"sessions/{session}/messages", {"text": text}).status == 200, text
    said = {"text": "/permissions list", "as": "queue"}
    accepted = web.ask("POST", f"sessions/{session}/messages", said)
    assert (accepted.status, accepted.data["as"]) != (200, "command")


def test_a_speaker_cannot_answer_a_question(place: Place, serve, served: Start, gate: Gate) -> None:
    """Neither by the interface nor by a command; the question stays open."""
    serve(Tools([{"tool": "shell", "arguments": {"command": gate.command}}]), Text("Done."))
    web = served()
    session = web.begin()
    web.ask("POST", f"sessions/{session}/messages", {"text": "work"})
    question = web.until(session, "question")[-1]["id"]
    web.pair("speaker", "speak")
    for text in (
        f"/answer {question} allow",
        f" /ANSWER {question} always",
        f"/answer! {question} deny",
    ):
        said = web.ask("POST", f"sessions/{session}/messages", {"text": text})
        assert said.status == 403, said
    choice = {"question": question, "choice": "allow"}
    said = web.ask("POST", f"sessions/{session}/commands", {"name": "answer", "arguments": choice})
    assert said.status == 403, said
    state = json.dumps(web.ask("GET", f"sessions/{session}/inspect").data)
    assert question in state
    body = {"resume": session, "model": "other"}
    assert web.ask("POST", "sessions", body).status == 422
    for more in ({"is_yes": True}, {"launch": {"is_yes": True}}, {"can_ask": False}):
        answer = web.ask("POST", "sessions", {"folder": str(place.folder), **more})
        assert answer.status == 422, answer
