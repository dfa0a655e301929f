"""The connections to a server that is not on this machine: kept, encrypted, and through a proxy."""

import asyncio
import gzip
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from models.conftest import NONE
from support.coroutines import run
from support.readable import readable

from steersman.ports.models import endpoint
from steersman.ports.models.chat import ChatModel
from steersman.ports.models.route import Address, proxy_of, target_of

CHUNK = {"choices": [{"index": 0, "delta": {"content": "Yes."}, "finish_reason": "stop"}]}
BODY = f"data: {json.dumps(CHUNK)}\n\ndata: [DONE]\n\n".encode()
CERTIFICATE = Path(__file__).parents[1] / "support" / "localhost.pem"
"""A key and its certificate for `localhost`, which signs itself and is valid for a hundred years."""


class Server(BaseHTTPRequestHandler):
    """Answers every request, passes tunnels on, and notes the connections and the requests."""

    protocol_version = "HTTP/1.1"
    opened: ClassVar[list[object]] = []
    asked: ClassVar[list[tuple[str, dict[str, str]]]] = []
    idle: ClassVar[float | None] = None
    coding: ClassVar[str] = ""
    refuses: ClassVar[bool] = False
    patience: ClassVar[int] = 1000
    """Requests of a connection that are answered; at the next one it hangs up."""

    def setup(self) -> None:
        """Count this one."""
        self.timeout = self.idle
        super().setup()
        self.opened.append(self.client_address)

    def do_POST(self) -> None:
        """Answer; or refuse before the body is read."""
        self._note()
        if self.refuses:
            self.close_connection = True
            self._answer(413, b'{"error": "too large"}')
            self.connection.shutdown(socket.SHUT_WR)
            while self.rfile.read(1 << 16):  # or the answer may be lost with what was not read
                pass
            return
        self.rfile.read(int(self.headers["Content-Length"]))
        self.patience -= 1
        if self.patience < 0:
            self.close_connection = True
            return
        self._answer(200, gzip.compress(BODY) if self.coding else BODY)

    def do_CONNECT(self) -> None:
        """Connect to what is asked for, whatever its name is: it is on this machine."""
        self._note()
        if self.refuses:
            self._answer(407, b"")
            return
        port = int(self.path.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as behind:
            self.send_response(200)
            self.end_headers()
            ends = {self.connection: behind, behind: self.connection}
            while ready := readable(*ends):
                for end in ready:
                    if not (piece := end.recv(1 << 16)):
                        return
                    ends[end].sendall(piece)

    def _note(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.asked.append((self.requestline.removesuffix(" HTTP/1.1"), headers))

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(body)))
        if self.coding:
            self.send_header("Content-Encoding", self.coding)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@pytest.fixture(autouse=True)
def far(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every server is treated like one that is elsewhere; none was asked yet, and there is no proxy."""
    Server.opened.clear()
    Server.asked.clear()
    for name, value in {"idle": None, "coding": "", "refuses": False, "patience": 1000}.items():
        monkeypatch.setattr(Server, name, value)
    monkeypatch.setattr(endpoint, "is_loopback", lambda url: False)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def served(server: ThreadingHTTPServer) -> Iterator[int]:
    """Serve until the test ends; give the port."""
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    thread.join()
    server.daemon_threads = True
    server.server_close()


@pytest.fixture
def port() -> Iterator[int]:
    """The port of a server without encryption, or of a proxy."""
    yield from served(ThreadingHTTPServer(("127.0.0.1", 0), Server))


@pytest.fixture
def secure_port() -> Iterator[int]:
    """The port of a server that speaks TLS."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    yield from served(server)


@pytest.mark.parametrize(("seconds", "count"), [(60, 1), (120, 2)])
def test_a_connection_outlasts_a_tool(
    port: int, seconds: int, count: int, asker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is used again after a minute; after some more it is not, since the server may drop it."""
    passed = 0
    later = SimpleNamespace(monotonic=lambda: time.monotonic() + passed)
    monkeypatch.setattr(endpoint, "time", later)
    model = ChatModel(f"http://127.0.0.1:{port}/v1", "m", retry=NONE)

    async def twice() -> None:
        nonlocal passed
        try:
            await asker.ask(model, "Is it so?")
            passed = seconds
            await asker.ask(model, "Still?")
        finally:
            await model.aclose()

    run(twice())
    assert asker.pieces == ["Yes.", "Yes."]
    assert len(Server.opened) == count


async def test_a_connection_that_the_server_closed_is_not_used(
    port: int, asker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of a kept connection is noticed, so the next call opens another one and succeeds."""
    monkeypatch.setattr(Server, "idle", 0.01)
    model = ChatModel(f"http://127.0.0.1:{port}/v1", "m", retry=NONE)
    try:
        await asker.ask(model, "Is it so?")
        [(_, kept)] = model._endpoint._kept
        await kept.ended.wait()
        await asker.ask(model, "Still?")
    finally:
        await model.aclose()
    assert asker.pieces == ["Yes.", "Yes."]
    assert len(Server.opened) == 2


@pytest.mark.skipif(not hasattr(socket, "TCP_QUICKACK"), reason="this system has no such option")
def test_each_piece_is_acknowledged_at_once(
    port: int, asker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The option holds for a moment only, so it is set again after each piece that came or went."""
    acknowledged: list[int] = []
    set_option = asyncio.trsock.TransportSocket.setsockopt

    def noted(one: Any, level: int, name: int, value: int) -> None:
        acknowledged.append(name)
        set_option(one, level, name, value)

    monkeypatch.setattr(asyncio.trsock.TransportSocket, "setsockopt", noted)
    model = ChatModel(f"http://127.0.0.1:{port}/v1", "m", retry=NONE)
    asker(model, "Is it so?", "Still?")
    assert len(Server.opened) == 1
    assert acknowledged.count(socket.TCP_QUICKACK) >= 5


def test_a_kept_connection_that_breaks_is_replaced(
    port: int, asker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that hangs up at the second request is asked once more, without a notice."""
    monkeypatch.setattr(Server, "patience", 1)
    model = ChatModel(f"http://127.0.0.1:{port}/v1", "m", retry=NONE)
    asker(model, "Is it so?", "Still?")
    assert asker.pieces == ["Yes.", "Yes."]
    assert (len(Server.opened), len(Server.asked)) == (2, 3)
    assert not asker.notices


def test_a_new_connection_that_breaks_is_not(
    port: int, asker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that hangs up at the first request was asked once: the fault is reported."""
    monkeypatch.setattr(Server, "patience", 0)
    assert asker.fault(ChatModel(f"http://127.0.0.1:{port}/v1", "m", retry=NONE))
    assert len(Server.asked) == 1


def test_a_large_request_arrives_whole(port: int, asker: Any) -> None:
    """Pieces that the connection does not take at once are sent as it does."""
    text = "word " * (1 << 20)
    asker(ChatModel(f"http://127.0.0.1:{port}/v1", "m", retry=NONE), text)
    [(line, headers)] = Server.asked
    assert line == "POST /v1/chat/completions"
    assert int(headers["content-length"]) > len(text)
    assert asker.pieces == ["Yes."]


def test_a_refusal_is_read_before_everything_is_sent(
    port: int, asker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that ends its side after its refusal has its reason reported, not a lost connection."""
    monkeypatch.setattr(Server, "refuses", True)
    fault = asker.fault(
        ChatModel(f"http://127.0.0.1:{port}/v1", "m", retry=NONE), "word " * (1 << 21)
    )
    assert "answered 413: too large" in fault.message


def test_an_answer_is_not_compressed(
    port: int, asker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request asks for none, and one that comes is reported."""
    monkeypatch.setattr(Server, "coding", "gzip")
    fault = asker.fault(ChatModel(f"http://127.0.0.1:{port}/v1", "m", retry=NONE))
    assert Server.asked[0][1]["accept-encoding"] == "identity"
    assert "the answer is compressed" in fault.message


def test_the_user_of_an_address_logs_in(port: int, asker: Any) -> None:
    """A name and a password in `base_url` are sent as basic authentication, and not as the host."""
    asker(ChatModel(f"http://ann:s%20e@127.0.0.1:{port}/v1", "m", retry=NONE), "Hi")
    headers = Server.asked[0][1]
    assert headers["authorization"] == "Basic YW5uOnMgZQ=="
    assert headers["host"] == f"127.0.0.1:{port}"


def test_encrypted_with_a_certificate_that_is_trusted(
    secure_port: int, asker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`SSL_CERT_FILE` says whom to trust; one connection serves both calls."""
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    model = ChatModel(f"https://localhost:{secure_port}/v1", "m", retry=NONE)
    asker(model, "Hi", "Still?")
    assert asker.pieces == ["Yes.", "Yes."]
    assert len(Server.opened) == 1


def test_a_certificate_that_nobody_trusts(secure_port: int, asker: Any) -> None:
    """No request is sent, and the message says what is wrong."""
    fault = asker.fault(ChatModel(f"https://localhost:{secure_port}/v1", "m", retry=NONE))
    assert fault.message.startswith("no trusted connection to `https://localhost:")
    assert "check the certificate" in fault.hint
    assert Server.asked == []


def test_a_tunnel_through_a_proxy(
    port: int, secure_port: int, asker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proxy learns the host and its own password; the request itself it cannot read."""
    monkeypatch.setenv("HTTPS_PROXY", f"http://ann:secret@127.0.0.1:{port}")
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    asker(ChatModel(f"https://localhost:{secure_port}/v1", "m", key="k", retry=NONE), "Hi")
    (tunnel, to_proxy), (request, to_server) = Server.asked
    assert tunnel == f"CONNECT localhost:{secure_port}"
    assert to_proxy["proxy-authorization"] == "Basic YW5uOnNlY3JldA=="
    assert "authorization" not in to_proxy
    assert request == "POST /v1/chat/completions"
    assert to_server["authorization"] == "Bearer k"
    assert "proxy-authorization" not in to_server


def test_a_proxy_passes_a_plain_request_on(
    port: int, asker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gets the whole address: the name need not be known here."""
    monkeypatch.setenv("HTTP_PROXY", f"ann:secret@127.0.0.1:{port}")
    asker(ChatModel("http://models.invalid/v1", "m", retry=NONE), "Hi")
    [(line, headers)] = Server.asked
    assert line == "POST http://models.invalid/v1/chat/completions"
    assert headers["host"] == "models.invalid"
    assert headers["proxy-authorization"] == "Basic YW5uOnNlY3JldA=="


def test_a_proxy_that_refuses_is_named(
    port: int, asker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message says that the proxy refused, without its password."""
    monkeypatch.setattr(Server, "refuses", True)
    monkeypatch.setenv("HTTPS_PROXY", f"http://ann:secret@127.0.0.1:{port}")
    fault = asker.fault(ChatModel("https://models.invalid/v1", "m", retry=NONE))
    assert f"the proxy 127.0.0.1:{port} answered 407" in fault.message
    assert "secret" not in fault.message


@pytest.mark.parametrize(
    ("url", "excepted", "is_used"),
    [
        ("https://api.example.com", "", True),
        ("https://api.example.com", "example.com", False),
        ("https://api.example.com", ".example.com, other.net", False),
        ("https://example.org", "example.com", True),
        ("https://api.example.com:8443", "api.example.com:8443", False),
        ("https://10.1.2.3", "10.0.0.0/8", False),
        ("https://11.1.2.3", "10.0.0.0/8", True),
        ("https://[fd00::1]", "fd00::/8", False),
        ("https://api.example.com", "*", False),
        ("http://api.example.com", "", False),  # it is the proxy of the other scheme
    ],
)
def test_which_addresses_a_proxy_is_for(
    url: str, excepted: str, is_used: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`NO_PROXY` lists names with all that are below them, and networks."""
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", excepted)
    proxy = Address(scheme="http", host="proxy.example", port=3128)
    assert proxy_of(Address.of(url)) == (proxy if is_used else None)


@pytest.mark.parametrize(
    ("url", "header", "target"),
    [
        ("https://api.example.com/v1/x", "api.example.com", "/v1/x"),
        ("https://api.example.com:443", "api.example.com", "/"),
        ("http://api.example.com:443/a b/ä?q=1 2", "api.example.com:443", "/a%20b/%C3%A4?q=1%202"),
        ("http://[::1]:80/v1", "[::1]", "/v1"),
        ("http://bücher.example/%41", "xn--bcher-kva.example", "/%41"),
    ],
)
def test_an_address_as_a_request_contains_it(url: str, header: str, target: str) -> None:
    """The host is ASCII, without the usual port; in a path, what is quoted stays as it is."""
    assert (Address.of(url).header, target_of(url)) == (header, target)
