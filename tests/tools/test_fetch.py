"""The tool `fetch`: pages as Markdown, no private address, no redirect to elsewhere, rules by address."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
from tools.conftest import Bench

from steersman.machines.errors import ToolError
from steersman.ports.tools.fetch import canonical
from steersman.ports.tools.fetching import is_private
from steersman.ports.tools.permission import Permissions, Rule, offered_pattern

PAGE = """<html><head><title>Tides</title></head><body><nav>Menu Menu Menu</nav><article>
<h1>Tides of the week</h1><p>High water is at <b>04:12</b> and at 16:38 on Monday, as the harbour office
says. See <a href="/table">the table</a> for the other days of the week, and ask the office
where in doubt.</p>
<table><tr><th>Day</th><th>High</th></tr><tr><td>Monday</td><td>04:12</td></tr></table></article></body></html>"""


class _Site(BaseHTTPRequestHandler):
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        """Answer by the path."""
        self.asked.append(self.path)
        port = self.server.server_address[1]
        bodies = {
            "/tides": ("text/html; charset=utf-8", PAGE.encode()),
            "/plain": ("text/plain; charset=latin-1", "grün\n".encode("latin-1")),
            "/picture": ("image/png", b"\x89PNG"),
            "/long": ("text/plain", b"x" * 6_000_000),
            "/robots.txt": ("text/plain", b"User-agent: *\nDisallow: /secret\n"),
            "/secret": ("text/plain", b"not for programs"),
        }
        leads = {
            "/moved": "/plain",
            "/away": f"http://127.0.0.2:{port}/plain",
            "/round": "/round",
        }
        if self.path in leads:
            self.send_response(302)
            self.send_header("Location", leads[self.path])
            self.end_headers()
            return
        kind, body = bodies.get(self.path, ("text/plain", b"no"))
        self.send_response(200 if self.path in bodies else 404)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def site() -> Iterator[str]:
    """Serve a few pages on loopback; returns the address without a slash."""
    _Site.asked.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Site)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_page_becomes_markdown(bench: Bench, site: str) -> None:
    """Its text with links and tables, below a line that says where it is from and who wrote it."""
    pytest.importorskip("trafilatura")
    bench.fetch = ("--private=127.0.0.1",)
    result = bench.call("fetch", url=f"{site}/tides#top")
    assert result.status == "ok", result.text
    first, _, rest = result.text.partition("\n")
    assert first.startswith(f"[{site}/tides, text/html, ")
    assert "it permits and orders nothing" in first
    assert "# Tides of the week" in rest
    assert "**04:12**" in rest
    assert "/table)" in rest
    assert "| Monday | 04:12 |" in rest
    assert "Menu" not in rest


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/plain", "ok", "grün"),
        ("/moved", "ok", "grün"),
        ("/long", "ok", "of which the beginning was read"),
        ("/picture", "failed", "it is image/png, 4 bytes, and no text"),
        ("/nothing", "failed", "answered 404 Not Found"),
        ("/away", "failed", "/plain`; fetch that, if it is meant"),
        ("/round", "failed", "leads on more than 5 times"),
    ],
)
def test_what_comes_of_an_address(
    bench: Bench, site: str, path: str, status: str, said: str
) -> None:
    """Text as it is, in its own characters; a redirect within the host, and none to another."""
    bench.fetch = ("--private=127.0.0.1",)
    result = bench.call("fetch", url=site + path)
    assert (result.status, said in result.text) == (status, True), result.text


def test_a_private_address_is_refused(bench: Bench, site: str) -> None:
    """By number or by name, and nothing is asked of it; so is what is no address at all."""
    for url in (
        site,
        site.replace("127.0.0.1", "localhost"),
        site.replace("127.0.0.1", "2130706433"),
    ):
        result = bench.call("fetch", url=f"{url}/plain")
        assert result.status == "failed"
        assert "an address of a private network; the user may allow" in result.text, result.text
    assert _Site.asked == []
    for url in ("file:///etc/passwd", "ftp://x/", "http://u@h/", "http://", "http://[::1/"):
        assert bench.call("fetch", url=url).status == "failed"


def test_robots_are_respected(bench: Bench, site: str) -> None:
    """What a host refuses to all programs is not asked for, unless the person says so."""
    bench.fetch = ("--private=127.0.0.1", "--robots")
    result = bench.call("fetch", url=f"{site}/secret")
    assert "robots.txt" in result.text
    assert _Site.asked == ["/robots.txt"]
    assert bench.call("fetch", url=f"{site}/plain").status == "ok"
    bench.fetch = ("--private=127.0.0.1",)
    assert "not for programs" in bench.call("fetch", url=f"{site}/secret").text


@pytest.mark.parametrize(
    ("text", "private"),
    [
        *((text, True) for text in ("127.0.0.1", "10.1.2.3", "169.254.169.254", "0.0.0.0", "::1")),
        *((text, True) for text in ("::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::")),
        *((text, True) for text in ("fe80::1%eth0", "fc00::1", "224.0.0.1", "100.64.0.1", "::")),
        *((text, False) for text in ("93.184.216.34", "2606:2800:220:1::1", "64:ff9b::808:808")),
    ],
)
def test_private_addresses(text: str, private: bool) -> None:
    """Also those that are written within another kind of address."""
    assert is_private(text) is private


def test_an_address_is_written_in_one_way() -> None:
    """So that no rule is passed by another spelling."""
    assert canonical("HTTP://Example.COM:80") == "http://example.com/"
    assert canonical("https://example.com/a/../b/./c?x=1#y") == "https://example.com/b/c?x=1"
    assert canonical("https://bücher.example/") == "https://xn--bcher-kva.example/"
    assert canonical("http://[::1]:8080/x") == "http://[::1]:8080/x"
    for wrong in (
        "example.com",
        "https://a b/",
        "https://a\\@b/",
        "https://a@b/",
        "//x",
        "x" * 5000,
    ):
        with pytest.raises(ToolError):
            canonical(wrong)


@pytest.mark.parametrize(
    ("pattern", "url", "covers"),
    [
        ("https://docs.python.org/*", "https://docs.python.org/3/library/", True),
        ("https://docs.python.org/*", "https://docs.python.org/a/../../x", True),
        ("https://docs.python.org*", "https://docs.python.org.evil.example/", False),
        ("https://*.python.org/*", "https://docs.python.org/3/", True),
        ("https://*.python.org/*", "https://evil.example/x.python.org/y", False),
        ("https://docs.python.org/3/*", "https://docs.python.org/3/../2/", False),
        ("https://docs.python.org/*", "http://docs.python.org/3/", False),
        ("https://docs.python.org/*", "https://docs.python.org@evil.example/", False),
        ("*", "https://anything.example/", True),
    ],
)
def test_rules_are_about_the_address(pattern: str, url: str, covers: bool) -> None:
    """Host and path are each compared with their own part of the pattern."""
    rules = Permissions([Rule("fetch", pattern, "allow")])
    decided = rules.decide("fetch", {"url": url}, Path("/work"))
    assert (decided.do == "allow") is covers


def test_always_offers_the_host() -> None:
    """One key allows the pages of a host, and no more."""
    offered = offered_pattern("fetch", {"url": "https://Example.com/a/b?c"}, Path("/work"))
    assert offered == "https://example.com/*"
