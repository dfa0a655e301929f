"""`steersman update`: only `--check` asks the index, through the proxy of the environment."""

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from support.driver import Place


@contextmanager
def index(answer: bytes, status: int = 200) -> Generator[tuple[str, list[str]]]:
    """Serve one answer; yields the address and the paths that were asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(status)
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def versions(*names: str) -> bytes:
    """Write an answer of an index."""
    return json.dumps({"meta": {"api-version": "1.1"}, "versions": names}).encode()


@pytest.mark.checks_data("update")
def test_the_index_is_asked_only_if_it_is_wanted(place: Place) -> None:
    """It says what is newest, by number and without test versions; nothing is asked otherwise."""
    with index(versions("0.1.0", "0.9.0", "0.10.0", "1.0rc1")) as (address, asked):
        place.environ["PIP_INDEX_URL"] = f"{address}/simple/"
        told = place.run("update")
        assert (told.returncode, asked) == (0, [])
        assert "pipx upgrade steersman" in told.stdout
        ran = place.run("update", "--check", "--json")
        data = json.loads(ran.stdout)
        assert (data["newest"], data["is_newer"], data["index"]) == ("0.10.0", True, "127.0.0.1")
        assert asked == ["/simple/steersman/"]
    with index(versions("0.0.9")) as (address, _):
        place.environ["PIP_INDEX_URL"] = address
        assert "is the newest" in place.run("update", "--check").stdout
    with index(b"", 404) as (address, _):
        place.environ["PIP_INDEX_URL"] = address
        assert "has no released version" in place.run("update", "--check").stdout


def test_a_proxy_is_honoured(place: Place) -> None:
    """The request goes to it, with the whole address."""
    with index(versions("0.2.0")) as (address, asked):
        place.environ |= {"PIP_INDEX_URL": "http://index.invalid/simple", "http_proxy": address}
        ran = place.run("update", "--check")
        assert (ran.returncode, "index.invalid has 0.2.0" in ran.stdout) == (0, True), ran.stderr
        assert asked == ["http://index.invalid/simple/steersman/"]


@pytest.mark.parametrize(
    ("address", "code", "said"),
    [
        ("http://127.0.0.1:9/simple", 1, "the package index at 127.0.0.1 could not be asked"),
        ("file:///simple", 2, "`PIP_INDEX_URL` is not a web address"),
    ],
)
def test_what_goes_wrong_is_said(place: Place, address: str, code: int, said: str) -> None:
    """Without a network, and for a setting that cannot be meant."""
    place.environ["PIP_INDEX_URL"] = address
    ran = place.run("update", "--check")
    assert (ran.returncode, said in ran.stderr) == (code, True), ran.stderr
    assert "Traceback" not in ran.stderr
    with index(b"<html>") as (there, _):
        place.environ["PIP_INDEX_URL"] = there
        assert "could not be asked" in place.run("update", "--check").stderr
