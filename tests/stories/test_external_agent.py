"""Story 10: an external agent that runs with our hooks."""

import json
import os
import shutil
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from support.answering import AnsweringServer
from support.driver import COMMAND, Place

from .terminal import Terminal

pytestmark = pytest.mark.nightly

PLACES = f"{os.environ.get('STEERSMAN_TEST_AGENTS', '')}:{os.environ['PATH']}"
FAKE = f'''#!{sys.executable}
"""Reads hermes's own configuration, and calls what it names, as hermes does."""
import json, os, subprocess, sys
from pathlib import Path
from ruamel.yaml import YAML

hooks = YAML(typ="safe", pure=True).load(Path.home() / ".hermes" / "config.yaml")["hooks"]
words = sys.argv[1:]
session = words[words.index("--resume") + 1] if "--resume" in words else "20261122_061000_a1b2c3"

def call(event):
    said = dict(hook_event_name=event, tool_name=None, tool_input=None, session_id=session,
                cwd=os.getcwd(), extra=dict(model="fake", platform="cli"))
    for hook in hooks[event]:
        subprocess.run(hook["command"], shell=True, input=json.dumps(said), text=True,
                       stdout=subprocess.DEVNULL, timeout=hook["timeout"])

if "--resume" not in words:
    call("on_session_start")
print("Welcome", flush=True)
for line in sys.stdin:
    if line.strip() == "/quit":
        break
    for event in "pre_llm_call", "post_llm_call", "on_session_end":
        call(event)
    print("ok", flush=True)
call("on_session_finalize")
'''


@pytest.fixture
def server() -> Generator[AnsweringServer]:
    """A model that says ok."""
    with AnsweringServer() as here:
        yield here


@pytest.fixture(params=["hermes", "fake"])
def place(
    request: pytest.FixtureRequest, tmp_path: Path, server: AnsweringServer
) -> Generator[Place]:
    """A place with hermes on its PATH, the real one or one that only calls its hooks."""
    here = Place(tmp_path)
    folder = tmp_path / "bin"
    folder.mkdir()
    if request.param == "fake":
        (folder / "hermes").write_text(FAKE)
        (folder / "hermes").chmod(0o755)
    elif (real := shutil.which("hermes", path=PLACES)) is None:
        pytest.skip("hermes is not installed here")
    else:
        (folder / "hermes").symlink_to(real)
    settings = tmp_path / ".hermes" / "config.yaml"
    settings.parent.mkdir()
    model = f"  default: fake\n  provider: custom\n  base_url: {server.url}/v1\n"
    settings.write_text(f"model:\n{model}")
    here.environ |= {
        "PATH": f"{folder}:{here.environ['PATH']}",
        "LANG": "C.UTF-8",
        "OPENAI_API_KEY": "x",
        "HERMES_ACCEPT_HOOKS": "1",
    }
    yield here
    here.close()


def offered(place: Place) -> list[dict[str, Any]]:
    """Read what `restore list` offers."""
    return place.data("restore", "list")["restore"]


def heard(place: Place) -> list[str]:
    """List what the agent said of its session, in order."""
    files = (place.home / "state" / "agents").rglob("*.jsonl")
    lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    return [one["event"] for one in sorted(lines, key=lambda one: one["time"])]


@pytest.mark.timeout(180)
def test_external_agent(place: Place) -> None:
    """Three turns end and its terminal dies: it is offered with its own command; its end ends that."""
    assert place.run("hooks", "install", "hermes").returncode == 0
    terminal = Terminal(["hermes", "chat"], place.folder, place.environ)
    try:
        terminal.shows("Welcome")
        for number in (1, 2, 3):
            terminal.types(f"say ok {number}")
            terminal.waits(lambda: heard(place).count("session-end") == number)  # noqa: B023
    finally:
        terminal.kill()
        terminal.abandon()
    (record,) = offered(place)
    assert record["command"] == ["hermes", "--resume", record["id"]]
    assert (record["alive"], record["cwd"]) == (False, str(place.folder))
    assert record["last_boundary"] is not None
    assert f"hermes --resume {record['id']}" in place.run("restore", "list").stdout

    terminal = Terminal([*COMMAND, "restore", "run", "last"], place.folder, place.environ)
    try:
        terminal.shows("Welcome")
        assert [(row["id"], row["alive"]) for row in offered(place)] == [(record["id"], True)]
        terminal.presses("/quit\r")
        assert terminal.ended() == 0
    finally:
        terminal.abandon()
    assert offered(place) == []
    assert heard(place).count("session-finalize") == 1
