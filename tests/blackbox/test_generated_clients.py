"""Clients that are generated from `openapi.json` and from the schema of events, used against a server."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support.executed import executed
from support.model_server import Text
from support.patience import seconds
from support.served import Served

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / ".venv" / "clients"
CLIENTS = Path(__file__).parent / "clients"

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(not TOOLS.exists(), reason="no generators: `.ci/clients/make`"),
    pytest.mark.timeout(300),
]


@pytest.fixture
def web(serve, served: Callable[[], Served]) -> Served:
    """A server whose model answers."""
    serve(Text("Good day."))
    return served()


@pytest.fixture
def described(web: Served, tmp_path: Path) -> Path:
    """A folder with the description that the server gives, and the schema of events."""
    folder = tmp_path / "client"
    folder.mkdir()
    text = json.dumps(web.ask("GET", "/openapi.json").data)
    (folder / "openapi.json").write_text(text)
    shutil.copy(ROOT / "docs" / "events.schema.json", folder)
    return folder


def run(folder: Path, *command: str | Path) -> str:
    """Run a program in a folder, which has to succeed, and return what it prints."""
    environ = {"PATH": f"{TOOLS}/bin:{os.environ['PATH']}", "HOME": str(folder)}
    ran = executed([*map(str, command)], cwd=folder, env=environ, timeout=seconds(120))
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    return ran.stdout


def check(web: Served, printed: str) -> None:
    """Compare what a client printed with what the server has."""
    (session,) = web.ask("GET", "sessions").data["sessions"]
    (accepted,) = [event for event in web.page(session["id"]) if event["type"] == "accepted"]
    expected = {"id": accepted["id"], "status": "completed", "answer": "Good day."}
    assert json.loads(printed) == expected


def test_a_python_client_is_generated_and_used(web: Served, described: Path) -> None:
    """No part of the description is left out, and its types carry a message there and back."""
    generate = ("generate", "--path", "openapi.json", "--fail-on-warning", "--output-path", "made")
    run(described, TOOLS / "bin" / "openapi-python-client", *generate)
    client = shutil.copy(CLIENTS / "client.py", described / "made")
    given = (web.address, web.token, web.place.folder)
    check(web, run(described, TOOLS / "bin" / "python", client, *given))


@pytest.mark.skipif(
    not (TOOLS / "node_modules").exists() or not shutil.which("node"), reason="no npm, or no node"
)
def test_a_typescript_client_is_generated_and_used(web: Served, described: Path) -> None:
    """The strictest type checker passes it, and refuses a path and a field that are not there."""
    (described / "node_modules").symlink_to(TOOLS / "node_modules")
    (described / "package.json").write_text('{"type": "module"}')
    shutil.copy(CLIENTS / "client.ts", described)
    tools = TOOLS / "node_modules" / ".bin"
    typed = ("--default-non-nullable", "false", "-o", "api.d.ts")
    run(described, tools / "openapi-typescript", "openapi.json", *typed)
    closed = ("--no-additionalProperties", "-o", "events.d.ts")
    run(described, tools / "json2ts", "-i", "events.schema.json", *closed)
    options = ("--strict", "--noUncheckedIndexedAccess", "--types", "node", "--noEmitOnError")
    kind = ("--target", "es2022", "--module", "esnext", "--moduleResolution", "bundler")
    run(described, tools / "tsc", *options, *kind, "client.ts")
    given = (web.address, web.token, web.place.folder)
    check(web, run(described, "node", "client.js", *given))
