"""A silent HTTP server on loopback, which benchmarks/peers and benchmarks/work derive theirs from."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

__all__ = ["Loopback", "Talk"]


class Loopback:
    """Serves until closed; a context manager. Each connection is a `talk`, which has it as `owner`."""

    def __init__(self, talk: "type[Talk]") -> None:
        self._http = _Http(("127.0.0.1", 0), talk)
        self._http.owner = self
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        """Return the running server."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop."""
        self._http.shutdown()
        self._http.server_close()


class _Http(ThreadingHTTPServer):
    owner: Any
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Stay silent about clients that hang up."""


class Talk(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Http

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""

    def body(self) -> bytes:
        """Read what was sent, also in chunks."""
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts: list[bytes] = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def reply(self, value: Any, status: int = 200) -> None:
        """Answer with JSON."""
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)
