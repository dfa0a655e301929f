"""Listing, showing and inspecting sessions, which must change nothing and hide every secret."""

import asyncio
import json
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest
from support.patience import seconds

import steersman
from steersman.cli.output import without_nulls
from steersman.journal.sqlite import SqliteStore
from steersman.journal.store import SessionRow

WAITS = '[[answer]]\ntext = "never"\ndelay = inf\n'


def content(home: Path) -> dict[str, list[Any]]:
    """Read every table of the store."""
    connection = apsw.Connection(str(home / "state" / "journal.db"))
    try:
        names = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"
        tables = [str(name) for (name,) in connection.execute(names)]
        return {name: list(connection.execute(f"SELECT * FROM {name}")) for name in tables}
    finally:
        connection.close()


async def states_of(home: Path) -> list[tuple[str, str, str]]:
    """Return the sessions of a home as the library lists them."""
    async with steersman.open(home) as runtime:
        return [(info.id, info.state, info.needs) for info in runtime.sessions()]


@contextmanager
def busy_chat(environ: dict[str, str], folder: Path) -> Iterator["subprocess.Popen[str]"]:
    """Run a chat whose model never answers; it is in the model call when this yields."""
    command = [sys.executable, "-m", "steersman", "chat", "--json"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, env=environ, cwd=folder, stdin=pipe, stdout=pipe, text=True
    ) as chat:
        assert chat.stdin
        assert chat.stdout
        try:
            print("work on it", file=chat.stdin, flush=True)
            kinds = (json.loads(line)["type"] for line in chat.stdout)
            assert "turn_started" in kinds
            yield chat
        finally:
            chat.kill()


def test_an_empty_home_has_no_sessions(command: Any, home: Path) -> None:
    """Whatever is listed: the document is empty, the text a hint, and nothing is created."""
    queue = {"session": None, "state": "open", "items": []}
    goal = {"session": None, "state": None, "text": None, "next": [], "waits_for": None}
    for words, empty in (
        (("sessions", "list"), {"sessions": []}),
        (("queue", "list"), queue),
        (("queue", "restore"), queue),
        (("agents", "list"), {"agents": []}),
        (("goal", "status"), goal),
    ):
        assert json.loads(command(*words, "--json").out) == empty
        done = command(*words)
        assert (done.code, done.out) == (0, ""), words
        assert "steersman chat" in done.err
    assert command("queue", "list", "--session", "nope").code == 2
    assert list(home.iterdir()) == []


def test_a_saved_queue_is_thrown_away_by_its_session(command: Any, told: Path) -> None:
    """The session can be named by its id alone; two names for it are one too many."""
    assert command("queue", "add", "later", "--session", "last").code == 0
    (one,) = json.loads(command("sessions", "list", "--json").out)["sessions"]
    both = command("queue", "discard", one["id"], "--session", "other")
    assert (both.code, "name one session" in both.err) == (2, True)
    assert len(json.loads(command("queue", "restore", one["id"], "--json").out)["items"]) == 1
    assert "chat --resume" in command("queue", "resume", one["id"]).err
    assert command("queue", "discard", one["id"]).code == 0
    assert json.loads(command("queue", "list", "--session", "last", "--json").out)["items"] == []


def test_list_shows_what_there_is(command: Any, told: Path) -> None:
    """A session that was left in order is suspended, in its folder, with its agent."""
    (one,) = json.loads(command("sessions", "list", "--json").out)["sessions"]
    assert (one["state"], one["agent"], one["waiting"]) == ("left", "assistant", 0)
    assert Path(one["folder"]).name == "project"
    lines = command("sessions", "list").out.splitlines()
    assert lines[0].split("  ")[0] == "ID"
    assert one["id"] in lines[1]
    assert "left" in lines[1]
    assert " ago" in lines[1] or "just now" in lines[1]


def test_show_prints_the_conversation(command: Any, told: Path) -> None:
    """The conversation reads in order, with the ids of the tool calls."""
    out = command("sessions", "show", "last").out
    wanted = ["\nuser\n", "what is in", "\nassistant\n", "I look.", "] list", "\ntool t", "The key"]
    places = [out.index(text) for text in wanted]
    assert places == sorted(places)


def test_show_as_data(command: Any, told: Path) -> None:
    """The document has the session and its messages, oldest first."""
    data = json.loads(command("sessions", "show", "last", "--json").out)
    roles = [message["role"] for message in data["messages"]]
    assert roles == ["user", "assistant", "tool", "assistant"]
    assert data["session"]["state"] == "left"
    assert data["messages"][1]["tool_calls"][0]["call"] == data["messages"][2]["call"]


LOOKS = [
    ("sessions", "show", "last"),
    ("sessions", "show", "last", "--json"),
    ("sessions", "list"),
    ("inspect",),
    ("inspect", "last", "--format", "toml"),
    ("inspect", "last", "--format", "json"),
]


@pytest.mark.parametrize("look", LOOKS, ids=" ".join)
def test_no_secret_and_no_escape_gets_out(
    look: tuple[str, ...], command: Any, told: Path, secret: str
) -> None:
    """Keys by their shape, values of secret variables, and escape sequences are not shown."""
    done = command(*look, OTHER_API_KEY="hunter2hunter2", SOME_TOKEN="in here?")
    assert done.code == 0
    assert secret[8:] not in done.out
    assert "hunter2" not in done.out
    assert "in here?" not in done.out
    assert "\x1b" not in done.out
    assert "\x07" not in done.out
    if "show" in look:
        assert "owned" in done.out  # seen, not obeyed


DUMPS = [
    *LOOKS[:3],
    ("sessions", "search", "xxx"),
    ("sessions", "search", "xxx", "--json"),
    ("sessions", "search", "canary"),
    ("sessions", "export", "last"),
    ("sessions", "export", "last", "--format", "json"),
    *(("inspect", "last", "--format", form) for form in ("tree", "toml", "json", "mermaid", "svg")),
    ("inspect", "last", "--at", "6"),
    ("inspect", "last", "--diff", "1", "9"),
    ("inspect", "last", "--events"),
    ("inspect", "last", "--events", "--format", "json"),
    *(("why", "last", "1", "--format", form) for form in ("text", "toml", "json", "mermaid")),
    ("queue", "list", "--session", "last"),
    ("agents", "list"),
    ("doctor",),
]


@pytest.mark.parametrize("dump", DUMPS, ids=" ".join)
def test_no_part_of_a_secret_is_in_a_dump(
    dump: tuple[str, ...], command: Any, canaries: tuple[Path, dict[str, str]]
) -> None:
    """Neither a variable's value nor the password of an address is shown, not even cut or alone."""
    home, secrets = canaries
    done = command(*dump, STEERSMAN_HOME=str(home), **secrets)
    assert dump[0] == "doctor" or done.code == 0, done.err
    assert done.out or dump[0] in ("queue", "agents")
    assert "canar" not in done.out


def test_dumps_parse_and_agree(command: Any, told: Path) -> None:
    """TOML holds what JSON does but nulls: every actor with its machine and state, and the way."""
    data = tomllib.loads(command("inspect", "last", "--format", "toml").out)
    whole = json.loads(command("inspect", "last", "--format", "json").out)
    assert (data, whole["owner"]) == (without_nulls(whole), None)
    states = {name: (actor["machine"], actor["state"]) for name, actor in data["actors"].items()}
    assert states == {
        "session": ("session", "suspended"),
        "children": ("subagent", "idle"),
        "queue": ("queue", "open"),
        "turn": ("turn", "completed"),
    }
    last = data["transitions"][-1]
    assert (last["what"], last["to"]) == ("session", "suspended")
    assert last["cause"].startswith("session_suspended")
    assert "conversation" not in data


@pytest.mark.parametrize("look", [*LOOKS, ("doctor",)], ids=" ".join)
def test_looking_changes_nothing(look: tuple[str, ...], command: Any, told: Path) -> None:
    """Whatever is looked at, every row of the store stays as it was."""
    before = content(told)
    assert command(*look).code == 0
    assert content(told) == before


def test_a_running_session_is_shown_as_it_is(
    configure: Callable[..., None], environ: dict[str, str], folder: Path, command: Any
) -> None:
    """From another process one sees who runs the session and what it waits for."""
    configure(WAITS)
    with busy_chat(environ, folder) as chat:
        (one,) = json.loads(command("sessions", "list", "--json").out)["sessions"]
        assert (one["state"], one["pid"]) == ("running", chat.pid)
        assert one["needs"] is None
        data = json.loads(command("inspect", one["id"][:6], "--format", "json").out)
        assert data["owner"]["pid"] == chat.pid
        assert data["actors"]["session"]["state"] == "busy"
        assert data["actors"]["session"]["supervised"] == "running"
        assert data["actors"]["turn"]["waiting_for"] in ("", "the model")
        assert chat.poll() is None
        chat.send_signal(signal.SIGTERM)
        assert chat.wait(seconds(30)) == 143
    (one,) = json.loads(command("sessions", "list", "--json").out)["sessions"]
    assert (one["state"], one["interrupted"]) == ("left", 1)


def test_a_dead_owner_is_noticed(
    configure: Callable[..., None], environ: dict[str, str], folder: Path, home: Path, command: Any
) -> None:
    """After SIGKILL every list says crashed, its state is there, and the doctor says what to do."""
    configure(WAITS)
    with busy_chat(environ, folder) as chat:
        chat.kill()
        chat.wait(seconds(30))
    (one,) = json.loads(command("sessions", "list", "--json").out)["sessions"]
    assert (one["state"], one["needs"], one["pid"]) == ("crashed", None, None)
    assert asyncio.run(states_of(home)) == [(one["id"], "crashed", "")]
    data = json.loads(command("inspect", "--format", "json").out)
    assert data["actors"]["session"]["supervised"] == "stopped"
    assert data["actors"]["session"]["state"] == "busy"
    checks = json.loads(command("doctor", "--json").out)["checks"]
    (sessions,) = [check for check in checks if check["name"] == "sessions"]
    assert sessions["verdict"] == "warn"
    assert one["id"] in sessions["hint"]


def test_a_reader_may_leave_early(environ: dict[str, str], folder: Path, told: Path) -> None:
    """A closed pipe causes no error message."""
    command = [sys.executable, "-m", "steersman", "inspect", "last", "--format", "toml"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environ, cwd=folder, stdout=pipe, stderr=pipe) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(seconds(30)) == 0


def test_a_session_that_never_began_is_no_session(command: Any, told: Path) -> None:
    """One whose process failed before its first entry, as on a full disk, is neither listed nor dead."""
    store = SqliteStore.open(told / "state")
    store.create(SessionRow(session="00ff00ff", folder="/"))
    store.close()
    (listed,) = json.loads(command("sessions", "list", "--json").out)["sessions"]
    assert listed["state"] == "left"
    assert "00ff00ff" not in command("sessions", "list").out
    assert "never began" in command("sessions", "show", "00ff00ff").out
    doctor = command("doctor").out
    assert "00ff00ff" not in doctor
    assert "sessions  1, 0 of them running" in doctor
