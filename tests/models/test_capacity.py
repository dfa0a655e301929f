"""How large a model is."""

import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from steersman.ports.models.capacity import parameters_in, parameters_of


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("qwen2.5-coder:1.5b", 1.5e9),
        ("Qwen2.5-Coder-0.5B-Instruct", 0.5e9),
        ("llama3.2-3b-q4", 3e9),
        ("SmolLM2-135M", 1.35e8),
        ("qwen3:235b-a22b", 2.35e11),
        ("gpt-5", 0.0),
        ("claude-sonnet-4-5", 0.0),
    ],
)
def test_a_name_may_say_it(name: str, size: float) -> None:
    """By the largest number before a `b` or an `m`."""
    assert parameters_in(name) == size


@pytest.mark.parametrize("how", ["to its end", "of a length", "in chunks"])
def test_a_server_on_this_machine_is_asked(how: str) -> None:
    """However it answers, it knows better than the name; one that does not counts for nothing."""
    listed = {"data": [{"id": "qwen", "meta": {"n_params": 1_543_714_304}}]}

    class Handler(BaseHTTPRequestHandler):
        if how != "to its end":
            protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = json.dumps(listed).encode()
            self.send_response(200 if self.path == "/v1/models" else 404)
            if how == "of a length":
                self.send_header("Content-Length", str(len(body)))
            if how == "in chunks":
                self.send_header("Transfer-Encoding", "chunked")
                half = len(body) // 2
                parts = (body[:half], body[half:], b"")
                body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *parts: object) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/v1"
    assert parameters_of(url, "qwen") == 1_543_714_304
    server.shutdown()
    server.server_close()
    assert parameters_of(url, "qwen-7b") == 7e9
    assert parameters_of("https://api.example.org/v1", "gpt-5") == 0.0
