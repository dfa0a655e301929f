"""The connections to model servers: kept, lost, through proxies, with TLS."""

import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from msgspec.structs import replace

from steersman.machines.errors import ModelError
from steersman.ports.models import endpoint
from steersman.ports.models.chat import PROVIDER
from steersman.ports.models.provider import ModelConfig

CHUNK = {"choices": [{"index": 0, "delta": {"content": "Yes."}, "finish_reason": "stop"}]}
CERTIFICATE = """
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgkYJRAcyNlrRRQymC
XBCpv4lOID1QLt5z9kYlSCg2UlGhRANCAATgw1uHa+eEIXZuOV5sGtAyAgMwekKa
HMZkS476C0xuFxG4gf8nbQSWYSl7FlTGxJcNBQXfb6pHaLcAnKJ0d3cf
-----END PRIVATE KEY-----
-----BEGIN CERTIFICATE-----
MIIBkTCCATagAwIBAgIUCgpL9H4kUeSK+LK8Ca4r94O0QVwwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJMTI3LjAuMC4xMCAXDTI2MTEyMzIyNDk1NFoYDzIxMjYxMDMw
MjI0OTU0WjAUMRIwEAYDVQQDDAkxMjcuMC4wLjEwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAATgw1uHa+eEIXZuOV5sGtAyAgMwekKaHMZkS476C0xuFxG4gf8nbQSW
YSl7FlTGxJcNBQXfb6pHaLcAnKJ0d3cfo2QwYjAdBgNVHQ4EFgQUxdOqJIBctSxX
0euCyDFuCUJue78wHwYDVR0jBBgwFoAUxdOqJIBctSxX0euCyDFuCUJue78wDwYD
VR0TAQH/BAUwAwEB/zAPBgNVHREECDAGhwR/AAABMAoGCCqGSM49BAMCA0kAMEYC
IQDy8PHcNfWpLvFfffNcOyd9iyJHqKUtHi7mJDbf0id0wQIhAIGlRRLCFcYVxKBj
slGm35UAIle/gBVuXex5JzpxGlhw
-----END CERTIFICATE-----
"""
"""For 127.0.0.1, signed by itself."""
BODY = f"data: {json.dumps(CHUNK)}\n\ndata: [DONE]\n\n".encode()


class Connection(BaseHTTPRequestHandler):
    """Answers every request, and counts the connections."""

    protocol_version = "HTTP/1.1"
    opened: ClassVar[list[object]] = []
    asked: ClassVar[list[str]] = []
    served: ClassVar[int] = 1000
    """How many requests of a connection are answered; at the next one it hangs up."""

    def setup(self) -> None:
        """Count this one."""
        super().setup()
        self.opened.append(self.client_address)

    def do_POST(self) -> None:
        """Answer."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.asked.append(self.path)
        self.served -= 1
        if self.served < 0:
            self.close_connection = True
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)

    def do_CONNECT(self) -> None:
        """Pass on what comes between the client and the server that it names, until either ends."""
        self.asked.append(self.path)
        host, _, port = self.path.partition(":")
        with socket.create_connection((host, int(port))) as other:
            self.send_response(200)
            self.end_headers()
            back = threading.Thread(target=_copy, args=(other, self.connection))
            back.start()
            _copy(self.connection, other)
            back.join()

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


def _copy(source: socket.socket, target: socket.socket) -> None:
    """Copy until the end, and pass that on."""
    try:
        while data := source.recv(1 << 16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        return


@contextmanager
def serving(kind: type[Connection] = Connection, certificate: Path | None = None) -> Iterator[str]:
    """Serve on loopback; give host and port."""
    with ThreadingHTTPServer(("127.0.0.1", 0), kind) as server:
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.fixture
def url() -> Iterator[str]:
    """The address of a server."""
    Connection.opened.clear()
    Connection.asked.clear()
    with serving() as place:
        yield f"http://{place}/v1"


def asked_twice(asker: Any, url: str, folder: Path) -> None:
    """Ask a model at this address two times."""
    config = ModelConfig(name="main", provider="openai", base_url=url, model="m")
    asker(PROVIDER.build(config, folder, {}), "Is it so?", "Still?")
    assert asker.pieces == ["Yes.", "Yes."]


def test_a_connection_is_used_again(url: str, asker: Any, tmp_path: Path) -> None:
    """Two calls take one connection, also on this machine."""
    asked_twice(asker, url, tmp_path)
    assert len(Connection.opened) == 1


def test_a_kept_connection_that_breaks_is_replaced(
    url: str, asker: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that hangs up at the second request is asked again, at once and without a notice."""
    monkeypatch.setattr(Connection, "served", 1)
    asked_twice(asker, url, tmp_path)
    assert len(Connection.opened) == 2
    assert len(Connection.asked) == 3
    assert not asker.notices


def test_a_proxy_is_asked(
    url: str, asker: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment's proxy gets the whole address, except for those that it leaves out."""
    monkeypatch.setattr(endpoint, "is_loopback", lambda url: False)
    monkeypatch.setenv("http_proxy", url)
    monkeypatch.setenv("no_proxy", "elsewhere.example")
    asked_twice(asker, "http://model.example/v1", tmp_path)
    assert Connection.asked == ["http://model.example/v1/chat/completions"] * 2
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    Connection.asked.clear()
    asker.pieces.clear()
    asked_twice(asker, url, tmp_path)
    assert Connection.asked == ["/v1/chat/completions"] * 2


@pytest.mark.parametrize("has_proxy", [False, True])
def test_tls(
    has_proxy: bool, url: str, asker: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server whose certificate is trusted is asked, directly or through a proxy; no other is."""
    certificate = tmp_path / "certificate.pem"
    certificate.write_text(CERTIFICATE)
    monkeypatch.setattr(endpoint, "is_loopback", lambda url: False)
    monkeypatch.delenv("no_proxy", raising=False)
    if has_proxy:
        monkeypatch.setenv("https_proxy", url)
    config = ModelConfig(name="main", provider="openai", base_url="", model="m")
    with serving(certificate=certificate) as place:
        with pytest.raises(ModelError, match="no trusted connection"):
            asker(
                PROVIDER.build(replace(config, base_url=f"https://{place}/v1"), tmp_path, {}), "Hi"
            )
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        asked_twice(asker, f"https://{place}/v1", tmp_path)
    assert Connection.asked[-1] == "/v1/chat/completions"
    assert (place in Connection.asked) is has_proxy


@pytest.mark.parametrize(("seconds", "count"), [(60, 1), (120, 2)])
def test_a_connection_outlasts_a_tool(
    url: str, seconds: int, count: int, asker: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is used again after a minute; after some more it is not, since the server may drop it."""
    passed = 0
    later = SimpleNamespace(monotonic=lambda: time.monotonic() + passed)
    monkeypatch.setattr("steersman.ports.models.connection.time", later)
    monkeypatch.setattr(endpoint, "is_loopback", lambda url: False)
    monkeypatch.setenv("NO_PROXY", "*")
    config = ModelConfig(name="main", provider="openai", base_url=url, model="m")
    model = PROVIDER.build(config, tmp_path, {})

    async def twice() -> None:
        nonlocal passed
        try:
            await asker.ask(model, "Is it so?")
            passed = seconds
            await asker.ask(model, "Still?")
        finally:
            await model.aclose()

    asker.run(twice())
    assert asker.pieces == ["Yes.", "Yes."]
    assert len(Connection.opened) == count
