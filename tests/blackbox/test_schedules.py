"""Schedules in the program that serves a home: carried out once, also when it is killed."""

import json
import signal
import subprocess
import sys
from collections.abc import Generator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.driver import WAIT, Place, wait_gone
from support.model_server import Text, Tools
from support.patience import seconds
from support.until import until

LONG_AGO = "2026-01-01T00:00"
DYING = """
import os, signal, sys
from steersman.journal.sqlite import SqliteStore

name, last, side = sys.argv[1], int(sys.argv[2]), sys.argv[3]
do, count = getattr(SqliteStore, name), 0

def dying(self, *arguments):
    global count
    count += 1
    if (count, side) == (last, "before"):
        os.kill(os.getpid(), signal.SIGKILL)
    result = do(self, *arguments)
    if count == last:
        os.kill(os.getpid(), signal.SIGKILL)
    return result

setattr(SqliteStore, name, dying)
from steersman.cli.main import main
sys.argv[1:] = ["serve", "--foreground"]
sys.exit(main())
"""
"""A server that kills itself before or after the n-th call of a method of its store."""

Server = subprocess.Popen[str]


@pytest.fixture
def servers() -> Generator[list[Server]]:
    """The servers of a test, which are ended after it."""
    started: list[Server] = []
    yield started
    for server in started:
        if server.poll() is None:
            server.kill()
        server.communicate()


@pytest.fixture
def home(place: Place, servers: list[Server]) -> "Home":
    """A home that is served now and then."""
    return Home(place, servers)


class Home:
    """What a person sees of a home's schedules."""

    def __init__(self, place: Place, servers: list[Server]) -> None:
        self.place = place
        self._servers = servers

    def serve(self) -> Server:
        """Start to serve, and wait until it does."""
        server = self.place.start("serve", "--foreground")
        self._servers.append(server)
        assert server.stdout is not None
        said = server.stdout.readline()
        assert said.startswith("serving at http"), said + server.communicate()[1]
        return server

    def die(self, call: str, number: int, side: str) -> None:
        """Serve until the n-th call of a method of the store, and be killed there."""
        command = [sys.executable, "-c", DYING, call, str(number), side]
        server = subprocess.Popen(
            command,
            cwd=self.place.folder,
            env=self.place.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._servers.append(server)
        said = server.communicate(timeout=seconds(WAIT))
        assert server.returncode == -signal.SIGKILL, said

    def end(self, server: Server) -> None:
        """End it in peace."""
        server.send_signal(signal.SIGTERM)
        out, err = server.communicate(timeout=seconds(WAIT))
        assert (server.returncode, "Traceback" in err) == (0, False), out + err

    def schedules(self) -> dict[str, dict[str, Any]]:
        """Return what `schedule list` says, by name."""
        return {row["name"]: row for row in self.place.data("schedule", "list")["schedules"]}

    def wait(self, name: str, *outcomes: str) -> dict[str, Any]:
        """Wait until a schedule's newest time has come to one of these ends; return it."""

        def last() -> dict[str, Any]:
            found: dict[str, Any] = self.schedules()[name]["last"] or {}
            return found if found.get("outcome") in outcomes else {}

        return until(last, self.schedules)


def schedule(name: str, more: str, at: str = LONG_AGO) -> str:
    """Write a schedule that has been missed, and happens in place of that."""
    return f'[[schedule]]\nname = "{name}"\nat = "{at}"\nmissed = "once"\n{more}\n'


def workflow(folder: Path, command: str = "echo ran >> ran") -> str:
    """Write a workflow of one command; return the schedule's keys that run it."""
    step = f'[workflow]\nname = "tidy"\n[[step]]\nid = "a"\nshell = "{command}"\n'
    (folder / "tidy.toml").write_text(step)
    return f'run = "tidy.toml"\nfolder = "{folder}"'


def ran(place: Place) -> int:
    """Count how often the workflow's command ran."""
    file = place.folder / "ran"
    return len(file.read_text().split()) if file.exists() else 0


@pytest.mark.checks_data("schedule list")
def test_a_workflow_runs_at_its_time_and_a_message_is_said(place: Place, home: Home, serve) -> None:
    """Both happen when their time comes, once, and the list says what came of it."""
    soon = (datetime.now() + timedelta(seconds=4)).isoformat()
    keys = workflow(place.folder)
    talk = f'say = "What is new?"\nfolder = "{place.folder}"'
    model = serve(
        Text("Nothing."), rest=schedule("tidy", keys, soon) + schedule("news", talk, soon)
    )
    before = home.schedules()
    assert {name: one["last"] for name, one in before.items()} == {"tidy": None, "news": None}
    assert before["tidy"]["next"] is not None
    server = home.serve()
    run, said = home.wait("tidy", "succeeded"), home.wait("news", "done")
    assert (run["state"], said["state"], ran(place)) == ("begun", "begun", 1)
    assert [request.prompt for request in model.requests] == [
        "[New message from schedule news] What is new?"
    ]
    assert {row["next"] for row in home.schedules().values()} == {None}
    home.end(server)
    listed = place.run("schedule", "list")
    assert "run tidy.toml" in listed.stdout
    assert run["session"] in listed.stdout
    assert "no program serves this home" in listed.stderr
    home.end(home.serve())
    assert (ran(place), len(model.requests)) == (1, 1)
    assert home.schedules()["news"]["last"] == said


BEFORE = [
    ("note", 1, "before"),
    ("note", 1, "after"),
    ("create", 1, "before"),
    ("create", 1, "after"),
    ("claim", 1, "after"),
    ("commit", 1, "after"),
    ("commit", 2, "before"),
]
"""Points at which the run's first message is not on disk: it has not begun."""
BEHIND = [("commit", 2, "after"), ("commit", 3, "before"), ("conclude", 1, "before")]
"""Points behind that: what was begun is not begun again, since nobody knows what it did."""
Point = tuple[str, int, str]


@pytest.mark.nightly
@pytest.mark.parametrize("point", BEFORE, ids=lambda point: "-".join(map(str, point)))
def test_a_run_that_had_not_begun_when_the_server_was_killed_runs_once(
    place: Place, home: Home, serve, point: Point
) -> None:
    """It is carried out at the next start, and not at the one after that."""
    serve(Text("Nothing."), rest=schedule("tidy", workflow(place.folder)))
    home.die(*point)
    assert ran(place) == 0
    server = home.serve()
    found = home.wait("tidy", "succeeded")
    home.end(server)
    home.end(home.serve())
    assert (home.schedules()["tidy"]["last"], ran(place)) == (found, 1)


@pytest.mark.nightly
@pytest.mark.parametrize("point", BEHIND, ids=lambda point: "-".join(map(str, point)))
def test_a_run_that_had_begun_when_the_server_was_killed_waits_for_a_person(
    place: Place, home: Home, serve, point: Point
) -> None:
    """The list says that it was interrupted, and how it goes on; nothing goes on by itself."""
    talk = f'say = "ping"\nfolder = "{place.folder}"'
    keys = workflow(place.folder)
    serve(Text("pong"), rest=schedule("tidy", keys))
    home.die(*point)
    wait_gone(place.processes())
    with (place.home / "config.toml").open("a") as file:
        file.write(schedule("behind", talk))
    before = ran(place)
    server = home.serve()
    home.wait("behind", "done")  # was begun after it, and is over
    found = home.wait("tidy", "interrupted")
    assert ran(place) == before
    home.end(server)
    resume = f"run --resume {found['session']}"
    assert f"tidy was interrupted: `steersman {resume}` goes on" in (
        place.run("schedule", "list").stderr
    )
    resumed = place.run(*resume.split(), "--again", "all")
    assert resumed.returncode == 0, resumed.stderr
    assert home.schedules()["tidy"]["last"]["outcome"] == "succeeded"
    assert ran(place) == before + 1


@pytest.mark.nightly
@pytest.mark.parametrize(
    "point",
    [
        ("note", 1, "after"),
        ("commit", 1, "after"),
        ("commit", 2, "after"),
        ("conclude", 1, "before"),
    ],
    ids=lambda point: "-".join(map(str, point)),
)
def test_a_message_is_said_once_whenever_the_server_is_killed(
    place: Place, home: Home, serve, point: Point
) -> None:
    """Its session has it once, and answers it at most once."""
    model = serve(Text("Hello."), Text("Nothing."))
    assert place.run("chat", "hello").returncode == 0
    (listed,) = place.data("sessions", "list")["sessions"]
    session = listed["id"]
    with (place.home / "config.toml").open("a") as file:
        file.write(schedule("news", f'say = "What is new?"\nsession = "{session}"'))
    home.die(*point)
    server = home.serve()
    found = home.wait("news", "done", "interrupted", "pending")
    assert found["session"] == session
    home.end(server)
    home.end(home.serve())
    items = place.stored(session)["queue"]["items"].values()
    assert [item["said"]["text"] for item in items] == ["hello", "What is new?"]
    asked = [request.prompt for request in model.requests if "What is new?" in request.prompt]
    assert len(asked) <= 1
    assert (found["outcome"] == "done") <= (len(asked) == 1)


def test_hooks_tell_a_person_who_is_away(place: Place, home: Home, serve) -> None:
    """That a session of the server asks, also a subagent, and that a schedule was not carried out."""
    log = place.folder / "log"
    command = json.dumps(["sh", "-c", f"cat >> {log}"])
    hooks = "".join(
        f'[[hooks]]\non = "{event}"\nrun = {command}\n' for event in ("question", "schedule_failed")
    )
    ask = {"tool": "shell", "arguments": {"command": "true"}}
    delegate = {"tool": "delegate", "arguments": {"task": "look", "name": "looker"}}
    talk = f'say = "ask {{}}"\nfolder = "{place.folder}"'
    serve(
        Tools([ask], match="ask me"),
        Tools([delegate], match="ask through"),
        Tools([ask], match="look"),
        rest=hooks
        + schedule("me", talk.format("me"))
        + schedule("through", talk.format("through"))
        + schedule("lost", 'run = "nothing"')
        + schedule("late", talk.format("late")).replace('"once"', '"skip"'),
    )
    server = home.serve()
    until(lambda: log.exists() and log.read_text().count("\n") == 4)
    told = [json.loads(line) for line in log.read_text().splitlines()]
    by = {name: one["last"] for name, one in home.schedules().items()}
    failed = {event["schedule"]: event for event in told if event["event"] == "schedule_failed"}
    assert {name: one["state"] for name, one in failed.items()} == {
        "lost": "failed",
        "late": "missed",
    }
    assert failed["lost"]["reason"].startswith("there is no workflow `nothing` (known: ")
    assert failed["late"]["reason"] == "no server carried it out in time"
    own, below = sorted((event for event in told if event["event"] == "question"), key=_has_parent)
    assert (own["session"], own["tool"], own["arguments"]) == (
        by["me"]["session"],
        "shell",
        {"command": "true"},
    )
    assert below["parent"] == by["through"]["session"]
    assert (by["lost"]["session"], by["late"]["outcome"]) == (None, "missed")
    home.end(server)


def _has_parent(told: dict[str, Any]) -> bool:
    return told["parent"] is not None


@pytest.mark.nightly
def test_a_schedule_is_taken_up_and_dropped_while_the_server_runs(
    place: Place, home: Home, serve
) -> None:
    """The configuration is read again when it changes; one that cannot be used changes nothing."""
    serve(Text("Nothing."))
    server = home.serve()
    configuration = place.home / "config.toml"
    whole = configuration.read_text()
    configuration.write_text(whole + schedule("tidy", workflow(place.folder)))
    found = home.wait("tidy", "succeeded")
    resumed = place.run("run", "--resume", found["session"])  # it is nobody's any more
    assert "has succeeded already" in resumed.stderr
    home.end(server)
    assert ran(place) == 1


@pytest.mark.nightly
def test_a_newer_session_of_a_schedule_takes_the_place_of_a_quiet_one(
    place: Place, home: Home, serve
) -> None:
    """The server leaves the first one, so that it does not collect sessions for ever."""
    serve(Text("Nothing."), Text("Nothing."))
    configuration = place.home / "config.toml"
    whole = configuration.read_text()
    talk = f'say = "What is new?"\nfolder = "{place.folder}"'
    configuration.write_text(whole + schedule("news", talk))
    server = home.serve()
    first = home.wait("news", "done")
    configuration.write_text(whole + schedule("news", talk, "2026-02-02T00:00"))
    until(lambda: home.wait("news", "done") != first)
    second = home.wait("news", "done")
    listed = place.data("sessions", "list")["sessions"]
    states = {session["id"]: session["state"] for session in listed}
    assert states == {first["session"]: "left", second["session"]: "idle"}  # it is open
    home.end(server)


def test_the_list_says_what_could_not_be_carried_out(place: Place, serve) -> None:
    """An unknown workflow, session, folder or agent, long before its time, and without a server."""
    never = "2999-01-01T00:00"
    (place.folder / "bad.toml").write_text(
        '[workflow]\nname = "bad"\n[[step]]\nid = "a"\nrum = "x"\n'
    )
    folder = f'folder = "{place.folder}"'
    serve(
        Text("Nothing."),
        rest=schedule("a", f'run = "nothing"\n{folder}', never)
        + schedule("b", f'run = "bad.toml"\n{folder}', never)
        + schedule("c", 'say = "hi"\nsession = "gone"', never)
        + schedule("d", 'say = "hi"\nfolder = "/nowhere"', never)
        + schedule("e", 'say = "hi"\nagent = "nobody"', never)
        + schedule("f", f"{workflow(place.folder)}\nvariables = {{ x = 1 }}", never)
        + schedule("g", 'say = "a rather long message that goes on and on"', never),
    )
    ran = place.run("schedule", "list")
    assert ran.returncode == 0
    lines = ran.stdout.splitlines()
    assert lines[0].split() == ["name", "next", "last", "outcome", "session", "what"]
    start = "a     2999-01-01 00:00  -     -        -        run nothing in "
    assert lines[1] == f"{start}{place.folder}"
    assert lines[7].endswith("say: a rather long message that goes on and…")
    said = ran.stderr.splitlines()
    expected = [
        "a cannot be carried out: there is no workflow `nothing`",
        f"b cannot be carried out: {place.folder}/bad.toml:5:1: unknown key `step[0].rum`",
        "c cannot be carried out: no session `gone`",
        "d cannot be carried out: `/nowhere` is not a folder",
        "e cannot be carried out: there is no agent `nobody`",
        "f cannot be carried out: workflow `tidy` has no variable `x`",
        "no program serves this home, so nothing happens: `steersman serve` starts one",
    ]
    assert said == expected
    assert not (place.home / "state").exists()
