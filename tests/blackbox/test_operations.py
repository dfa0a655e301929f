"""The operator's page: every command of its blocks, run as it stands there, on a home that is at work."""

import json
import os
import re
import shutil
import signal
from collections.abc import Callable, Generator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from support.driver import COMMAND, Gate, Place, finish
from support.executed import executed
from support.fleet import FleetNode
from support.model_server import Hang, Text, Tools
from support.patience import seconds
from support.postgres_server import PostgresServer
from support.served import Served

from steersman.workflows.home_place import URL

PAGE = Path(__file__).resolve().parents[2] / "docs" / "operations.md"
BLOCKS = {
    "health": ("Is it well?", 0),
    "audit": ("Who did what", 0),
    "backup": ("Backup", 0),
    "backup of a database": ("Backup", 1),
    "restore": ("Restore", 0),
    "restore of a database": ("Restore", 1),
    "upgrade": ("Upgrade", 0),
}
"""The blocks of commands, by the section that each is in, and its place there."""

Begin = Callable[[], Served]


def blocks() -> dict[tuple[str, int], list[str]]:
    """Return the commands of each block of the page."""
    found: dict[tuple[str, int], list[str]] = {}
    for section in PAGE.read_text("utf-8").split("\n## ")[1:]:
        heading = section.partition("\n")[0]
        for number, block in enumerate(re.findall(r"```console\n(.*?)```", section, re.DOTALL)):
            found[heading, number] = [line.removeprefix("$ ") for line in block.splitlines()]
    return found


def run(place: Place, name: str, address: str = "", **variables: str | Path) -> str:
    """Run the commands of a block in one shell, each of which has to succeed; return what they print."""
    text = "\n".join(("set -euo pipefail", *blocks()[BLOCKS[name]]))
    path = f"{Path(COMMAND[0]).parent}:{os.environ['PATH']}"
    given = {key: str(value) for key, value in variables.items()}
    environ = {**place.environ, **given, "PATH": path}
    script = text.replace("127.0.0.1:8200", address)
    ran = executed(["bash", "-c", script], cwd=place.folder, env=environ, timeout=seconds(100))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture
def begin(place: Place) -> Generator[Begin]:
    """Start programs that serve the place; none of them may complain."""
    with ExitStack() as after:

        def start() -> Served:
            web = Served(place)
            after.callback(lambda: web.close() and None)
            return web

        yield start


def needing(*programs: str) -> pytest.MarkDecorator:
    """Skip a test where a program is not installed."""
    missing = [name for name in programs if not shutil.which(name)]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


def texts(web: Served, session: str) -> list[str]:
    """Return what was said in a session, by its journal."""
    return [event["text"] for event in web.page(session) if event["type"] == "accepted"]


def test_every_block_is_known() -> None:
    """The tests below run all of them, and each line of a block is a command."""
    found = blocks()
    assert list(found) == list(BLOCKS.values())
    lines = PAGE.read_text("utf-8").count("\n$ ")
    assert sum(map(len, found.values())) == lines


@needing("curl")
def test_a_server_is_asked_how_it_is(place: Place, serve, begin: Begin) -> None:
    """Both probes answer, the metrics come with a token, and the status names the address."""
    serve(Text("Good day."))
    web = begin()
    said = run(place, "health", web.address)
    assert said.startswith("ok\nok\n# HELP steersman_sessions ")
    assert web.address in json.loads(said[said.index("{\n") :])["address"]


@pytest.mark.checks_data("sessions audit")
def test_who_did_what_is_told(place: Place, serve, begin: Begin) -> None:
    """What a device said and answered, what the agent did, and by which rule; nothing of others."""
    call = {"tool": "shell", "arguments": {"command": "echo made > made"}}
    serve(Tools([call]), Text("Good day.", times=0))
    web = begin()
    web.pair("phone")
    session = web.begin()
    web.ask("POST", f"sessions/{session}/messages", {"text": "hello"})
    question = web.until(session, "question")[-1]
    web.ask("POST", f"sessions/{session}/questions/{question['id']}", {"choice": "allow"})
    web.until(session, "turn_ended")
    web.ask("POST", f"sessions/{session}/commands", {"name": "mode", "arguments": {"mode": "plan"}})
    assert web.close() is not None
    chat = place.chat()
    chat.completes("hi")
    assert chat.ask("/revert --dry-run")["data"]["dry_run"]  # a look is no act
    assert chat.close() == 0
    serve(Tools([{**call, "arguments": {"command": "echo more > made"}}]), Text("Made."))
    assert place.run("chat", "--yes", "more").returncode == 0
    acts = [
        (act["who"], act["act"], act["what"], act["rule"])
        for act in place.data("sessions", "audit")["acts"]
    ]
    asked = ("agent assistant", "question", "shell echo made > made")
    assert acts[0] == ("phone", "turn", "hello", "run")
    assert acts[1][:3] == asked
    assert acts[1][3]
    assert acts[2:] == [
        ("phone", "answer", f"allow {question['id']}", ""),
        ("agent assistant", "call", "shell echo made > made", ""),
        ("phone", "settings", "mode=plan", ""),
        ("owner", "turn", "hi", "run"),
        ("owner", "turn", "more", "run"),
        ("agent assistant", "call", "shell echo more > made", '--yes, for * "*": ask'),
    ]
    agents = place.data("sessions", "audit", "--who", "agent *")["acts"]
    assert [act["act"] for act in agents] == ["question", "call", "call"]
    assert place.data("sessions", "audit", "--since", "2999-01-01") == {"acts": []}
    of_one = place.data("sessions", "audit", session)["acts"]
    assert {act["session"] for act in of_one} == {session}
    wrong = place.run("sessions", "audit", "--since", "5")
    assert (wrong.returncode, "is not a time" in wrong.stderr) == (2, True)
    said = run(place, "audit")
    table, _, whole = said.partition("{\n")
    assert "hi" in table
    assert [act["who"] for act in json.loads("{" + whole)["acts"]] == ["phone"] * 3


@needing("sqlite3")
@pytest.mark.parametrize("is_lost", [False, True])
def test_a_home_is_backed_up_while_it_works(
    place: Place, serve, begin: Begin, tmp_path: Path, is_lost: bool
) -> None:
    """It comes back as it was at that moment, with its devices; what ran then was interrupted.

    Also where nothing of it is left.
    """
    model = serve(Text("Good day.", match="first"), Hang(match="second"), Text("Later.", times=0))
    web = begin()
    web.pair("phone")
    session = web.begin()
    web.ask("POST", f"sessions/{session}/messages", {"text": "first"})
    web.until(session, "turn_ended")
    web.ask("POST", f"sessions/{session}/messages", {"text": "second"})
    model.wait_requests(2)
    backup = tmp_path / "backup"
    backup.mkdir()
    run(place, "backup", BACKUP=backup)
    assert (backup / "journal.db").stat().st_mode & 0o077 == 0
    web.ask("POST", f"sessions/{session}/stop")
    third = web.ask("POST", f"sessions/{session}/messages", {"text": "third"})
    web.until(session, "turn_ended", third.data["seq"])
    place.run("devices", "revoke", "phone")
    assert place.run("serve", "stop").returncode == 0
    if is_lost:
        shutil.rmtree(place.home / "state")
        assert "there is no session here" in place.run("home", "check").stdout
    assert run(place, "restore", BACKUP=backup).endswith("\nevery journal can be read\n")
    again = begin()
    again.token = web.token
    found = again.ask("GET", f"sessions/{session}").data
    assert (found["state"], found["interrupted"]) == ("crashed", 1)
    assert texts(again, session) == ["first", "second"]
    assert len(model.requests) == 3
    receipt = again.ask("POST", f"sessions/{session}/messages", {"text": "and now?"})
    assert receipt.status == 202
    ended = again.until(session, "turn_ended", receipt.data["seq"])
    assert ended[-1]["status"] == "completed"


@pytest.fixture
def database(postgres_server: PostgresServer) -> Generator[str]:
    """The address of a database of its own."""
    name = f"operations_{os.getpid()}"
    postgres_server.execute(f"CREATE DATABASE {name}")
    yield f"postgresql://postgres@/{name}?host={postgres_server.folder}"
    postgres_server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.nightly
@needing("pg_dump", "pg_restore")
def test_a_home_in_a_database_is_backed_up_and_upgraded(
    place: Place, serve, database: str, tmp_path: Path
) -> None:
    """A node ends when it is drained; the home comes back as it was at the backup."""
    serve(Text("Good day.", times=0))
    place.environ[URL] = database
    assert place.run("home", "init", database).returncode == 0
    chat = place.chat()
    chat.completes("first")
    run(place, "backup of a database", BACKUP=tmp_path, DATABASE=database)
    chat.completes("second")
    session = chat.session
    assert chat.close() == 0
    node = FleetNode(place)
    try:
        said = run(place, "upgrade", NODE=node.name)
        assert node.name in said
        assert node.ended() == 0
    finally:
        node.abandon()
    checked = run(place, "restore of a database", BACKUP=tmp_path, DATABASE=database)
    assert checked.endswith("\nevery journal can be read\n")
    shown: dict[str, Any] = place.data("sessions", "show", session)
    said_then = [message["text"] for message in shown["messages"] if message["role"] == "user"]
    assert said_then == ["first"]


@pytest.mark.nightly
def test_what_a_step_asked_and_a_stop_of_a_run_are_told_once(place: Place, gate: Gate) -> None:
    """The answer to a step's question has its row; one Ctrl-C is one stop, also where it waits."""
    asks = 'ask = { text = "Go on?", options = ["yes", "no"] }'
    work = f"needs = [\"q\"]\nrun = [\"sh\", \"-c\", '''{gate.command}''']"
    (place.folder / "w.toml").write_text(
        f'[[step]]\nid = "q"\n{asks}\n[[step]]\nid = "work"\n{work}\n'
    )
    job = place.start("run", "w.toml", "--json")
    assert job.stdin is not None
    assert job.stdout is not None
    assert any('"question"' in line for line in job.stdout)
    job.stdin.write(json.dumps({"answer": "q-t1.w1", "choice": "yes"}) + "\n")
    job.stdin.flush()
    gate.wait()
    job.send_signal(signal.SIGINT)
    assert finish(job).returncode == 130
    acts = place.data("sessions", "audit", "last")["acts"]
    told = [(act["who"], act["act"], act["what"]) for act in acts]
    assert told[-3:] == [
        ("step q", "question", "Go on?"),
        ("owner", "answer", "yes q"),
        ("owner", "stop", "stop"),
    ]
