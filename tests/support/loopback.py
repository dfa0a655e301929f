"""Small HTTP servers on loopback; nothing is printed about their requests."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


class LoopbackRequest(BaseHTTPRequestHandler):
    """A request of a server on loopback."""

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""

    def content(self) -> bytes:
        """Return what came with the request."""
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def reply(self, status: int, content: bytes = b"", *headers: tuple[str, str]) -> None:
        """Answer."""
        self.send_response(status)
        for name, value in (*headers, ("Content-Length", str(len(content)))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)


class LoopbackServer(ThreadingHTTPServer):
    """Serves on a free port until the end of its block; its requests find it as their `server`."""

    daemon_threads = True

    def __init__(self, handler: Any) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self._thread = threading.Thread(target=self.serve_forever, args=(0.02,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()
