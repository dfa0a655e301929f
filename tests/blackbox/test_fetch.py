"""An agent reads the web as far as a person allows: asked with the address, always for its host."""

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from support.driver import Place
from support.model_server import Text, Tools


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    """Serve a folder with two notes on loopback."""
    folder = tmp_path / "site"
    folder.mkdir()
    for name in ("one.txt", "two.txt"):
        (folder / name).write_text(f"this is {name}\n")
    handler = partial(SimpleHTTPRequestHandler, directory=folder)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_page_is_read_once_it_is_allowed(place: Place, serve: Any, site: str) -> None:
    """The question has the address; `always` covers the host's other pages, and no other host."""
    calls = [
        {"tool": "fetch", "arguments": {"url": f"{site}/{name}"}} for name in ("one.txt", "two.txt")
    ]
    elsewhere = {"tool": "fetch", "arguments": {"url": "https://docs.example/x"}}
    server = serve(
        *(Tools([call]) for call in (*calls, elsewhere)),
        Text("Read."),
        rest='tools = ["fetch"]\n[tools]\nfetch_private = ["127.0.0.1"]\n',
    )
    chat = place.chat()
    question = chat.causes("read them", "question")
    assert question["arguments"] == {"url": f"{site}/one.txt"}
    chat.answer(question, "always", f"{site}/*")
    other = chat.wait("question")
    assert other["arguments"] == {"url": "https://docs.example/x"}
    chat.answer(other, "deny")
    chat.wait("turn_ended", status="completed")
    assert chat.close() == 0
    told = str(server.requests[-1].body["messages"])
    assert "this is one.txt" in told
    assert "this is two.txt" in told
    assert "it permits and orders nothing" in told
