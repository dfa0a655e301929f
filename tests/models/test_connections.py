"""The connections to a server that is not on this machine."""

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from steersman.ports.models import endpoint
from steersman.ports.models.chat import PROVIDER
from steersman.ports.models.provider import ModelConfig

CHUNK = {"choices": [{"index": 0, "delta": {"content": "Yes."}, "finish_reason": "stop"}]}
BODY = f"data: {json.dumps(CHUNK)}\n\ndata: [DONE]\n\n".encode()


class Connection(BaseHTTPRequestHandler):
    """Answers every request, and counts the connections."""

    protocol_version = "HTTP/1.1"
    opened: ClassVar[list[object]] = []

    def setup(self) -> None:
        """Count this one."""
        super().setup()
        self.opened.append(self.client_address)

    def do_POST(self) -> None:
        """Answer."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    """The address of a server."""
    Connection.opened.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Connection) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        server.shutdown()
        thread.join()


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
