"""`steersman node`: sessions that need an owner are run, taken over, given back and fenced."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from support.driver import FROM_ELSEWHERE, Gate, Place, wait_gone
from support.fleet import FleetNode, listed, settings, states
from support.model_server import Text, shell
from support.patience import seconds
from support.postgres_server import PostgresServer
from support.served import Served
from support.until import until

from steersman.extensions.postgres.store import PostgresStore
from steersman.workflows.home_place import URL

Start = Callable[..., FleetNode]


@pytest.fixture(params=["sqlite", "postgres"], autouse=True)
def kind(request: pytest.FixtureRequest, place: Place) -> str:
    """The store of the home: SQLite in its folder, or PostgreSQL."""
    if request.param == "postgres":
        place.environ[URL] = request.getfixturevalue("postgres_url")
    return str(request.param)


@pytest.fixture
def node(place: Place) -> Iterator[Start]:
    """Start nodes of the place's home."""
    nodes: list[FleetNode] = []

    def start(*arguments: str) -> FleetNode:
        nodes.append(FleetNode(place, *arguments))
        return nodes[-1]

    yield start
    for running in nodes:
        running.abandon()


def left(place: Place) -> str:
    """A session whose first turn has ended, and that no process has open."""
    chat = place.chat()
    chat.completes("first")
    assert chat.close() == 0
    return chat.session


@pytest.mark.checks_data("node list", "node status", "node evict")
def test_a_message_has_a_session_run_on_a_node(place: Place, serve, node: Start) -> None:
    """A node takes the session, runs the message, is listed, evicts, and ends in order."""
    serve(Text("Done.", times=0), rest=settings())
    session = left(place)
    assert place.run("node", "status").returncode == 1
    running = node("--capacity", "3")
    [row] = place.data("node", "status")["nodes"]
    assert (row["node"], row["state"]) == (running.name, "active")
    sent = place.run("send", session, "second")
    assert (sent.returncode, sent.stdout) == (0, f"Started as #1 ({session}).\n")
    row = listed(place)[running.name]
    assert (row["state"], row["capacity"], row["sessions"]) == ("active", 3, 1)
    assert states(place) == {session: "idle"}
    assert place.run("node", "evict", session).returncode == 0
    assert states(place) == {session: "left"}
    again = place.run("node", "evict", session)
    assert (again.returncode, "no program has session" in again.stderr) == (1, True)
    assert place.run("send", session, "third").returncode == 0
    until(lambda: place.stored(session)["turns_made"] == 3, "the third turn")
    running.signal(signal.SIGTERM)
    assert running.ended() == 0
    assert states(place) == {session: "left"}
    assert listed(place) == {}


def test_a_program_that_serves_the_home_is_a_node(place: Place, serve, kind: str) -> None:
    """It takes the session to which something is said, and gives it back when it ends."""
    if kind != "postgres":
        pytest.skip("a home of one machine has its sessions in the programs of people")
    serve(Text("Done.", times=0), rest=settings())
    session = left(place)
    web = Served(place)
    sent = place.run("send", session, "second")
    assert (sent.returncode, sent.stdout) == (0, f"Started as #1 ({session}).\n")
    [row] = listed(place).values()
    assert (row["state"], row["pid"], row["sessions"]) == ("active", web.program.pid, 1)
    until(lambda: place.stored(session)["turns_made"] == 2, "the turn of the message")
    assert "Traceback" not in web.close()
    assert states(place) == {session: "left"}


def test_another_node_takes_over_what_a_killed_one_had(
    place: Place, serve, node: Start, gate: Gate
) -> None:
    """After kill -9 the session is recovered elsewhere, nothing runs, and a message runs there."""
    serve(Text("Done."), shell(gate.command), Text("Done.", times=0), rest=settings())
    session = left(place)
    first = node()
    assert place.run("send", session, "work").returncode == 0
    tool = gate.wait()
    queued = place.run("send", session, "later", "--as", "queue")
    assert queued.returncode == 0
    second = node()
    first.signal(signal.SIGKILL)
    assert wait_gone([tool]) == []
    until(lambda: listed(place)[second.name]["sessions"] == 1, "the takeover")
    until(lambda: place.stored(session)["queue"]["state"] == "held", "the recovery")
    items = place.run("queue", "list", "--session", session).stdout
    assert "[INTERRUPTED]: work" in items
    assert "[PENDING]: later" in items
    assert place.run("send", session, "go on").returncode == 0
    until(lambda: place.stored(session)["turns_made"] == 3, "the turn of the message")


def test_a_held_call_waits_for_a_person_on_the_node_that_takes_over(
    place: Place, serve, node: Start, kind: str
) -> None:
    """With PostgreSQL on another machine, too: nothing has run, and an answer runs it there."""
    named = place.folder.parent / "place.toml"
    place.environ["STEERSMAN_CONFIG"] = str(named)
    named.write_text('[node]\nplace = "shared"\n', "utf-8")
    pushes = shell("echo pushed >> main.txt")
    serve(Text("Done."), pushes, pushes, Text("Pushed."), rest=settings())
    session = left(place)
    assert place.run("sessions", "hold", session, "shell", "echo push*").returncode == 0

    def is_asked() -> bool:
        return states(place) == {session: "waiting"}

    first = node()
    assert place.run("send", session, "push it").returncode == 0
    until(is_asked, "the question of the hold")
    if kind == "postgres":
        place.command = FROM_ELSEWHERE
    second = node()
    first.signal(signal.SIGKILL)
    until(lambda: listed(place).get(second.name, {}).get("sessions") == 1, "the takeover")
    until(lambda: place.stored(session)["queue"]["state"] == "held", "the recovery")
    assert place.run("queue", "resume", "--session", session).returncode == 0
    until(is_asked, "the question on the other node")
    assert not (place.folder / "main.txt").exists()
    assert place.run("sessions", "answer", session, "q1", "allow").returncode == 0
    until(lambda: states(place) == {session: "idle"}, "the end of the turn")
    assert (place.folder / "main.txt").read_text() == "pushed\n"


def test_a_message_waits_for_a_node_that_is_away_for_a_moment(
    place: Place, serve, node: Start
) -> None:
    """What a sender decides does not depend on who lives just then: the next node runs the message."""
    serve(Text("Done.", times=0), rest=settings())
    session = left(place)
    first = node()
    first.signal(signal.SIGKILL)
    until(lambda: listed(place)[first.name]["state"] == "dead", "the end of the node")
    sending = place.start("send", session, "second")
    node()
    said, _ = sending.communicate(timeout=seconds(60))
    assert said == f"Started as #1 ({session}).\n"
    until(lambda: place.stored(session)["turns_made"] == 2, "the turn of the message")


@pytest.mark.nightly
@pytest.mark.checks_data("node drain")
def test_a_drained_node_ends_when_its_turns_have(
    place: Place, serve, node: Start, gate: Gate
) -> None:
    """`node drain` lets the turn end, takes nothing more, and has the node exit with 0."""
    serve(Text("Done."), shell(gate.command), Text("Done.", times=0), rest=settings())
    session = left(place)
    running = node()
    assert place.run("send", session, "work").returncode == 0
    gate.wait()
    assert place.run("node", "drain", running.name[:8]).returncode == 0
    assert listed(place)[running.name]["state"] == "draining"
    assert running.process.poll() is None
    gate.open()
    assert running.ended() == 0
    assert states(place) == {session: "left"}
    wrong = place.run("node", "drain", "nowhere")
    assert (wrong.returncode, "there is no node `nowhere`" in wrong.stderr) == (2, True)


@pytest.mark.nightly
def test_a_frozen_node_has_no_tools_past_its_fence(
    place: Place, serve, node: Start, gate: Gate
) -> None:
    """Its tool is dead although the node cannot end it; on waking it gives all up, and joins again."""
    serve(
        Text("Done."),
        shell(gate.command),
        Text("Done.", times=0),
        rest=settings(lease=3.0, fence=2.0),
    )
    session = left(place)
    running = node()
    assert place.run("send", session, "work").returncode == 0
    tool = gate.wait()
    running.signal(signal.SIGSTOP)
    assert wait_gone([tool]) == []
    running.signal(signal.SIGCONT)
    until(lambda: place.stored(session)["queue"]["state"] == "held", "the recovery")
    assert place.run("send", session, "go on").returncode == 0
    until(lambda: place.stored(session)["turns_made"] == 3, "the turn of the message")
    running.signal(signal.SIGTERM)
    assert running.ended() == 0
    assert "is fenced" in running.said


def test_a_node_that_was_just_stopped_still_ends_in_order(place: Place, serve, node: Start) -> None:
    """SIGTERM right after SIGCONT: another thread than the main one may get it, and it counts."""
    serve(Text("Done.", times=0), rest=settings())
    for _ in range(3):
        running = node()
        for number in (signal.SIGSTOP, signal.SIGCONT, signal.SIGTERM):
            running.signal(number)
        assert running.ended() == 0


@pytest.mark.nightly
def test_a_session_runs_only_where_its_files_are(place: Place, serve, node: Start) -> None:
    """Elsewhere it is read, and not resumed; a message waits until a node of its place runs."""
    serve(Text("Done.", times=0), rest=settings())
    named = place.folder.parent / "place.toml"
    place.environ["STEERSMAN_CONFIG"] = str(named)
    named.write_text('[node]\nplace = "there"\n', "utf-8")
    session = left(place)
    named.write_text('[node]\nplace = "here"\n', "utf-8")
    refused = place.run("chat", "--resume", session, "hello")
    assert (refused.returncode, "has its files at `there`" in refused.stderr) == (2, True), refused
    sent = place.run("send", session, "second")
    assert (sent.returncode, sent.stdout) == (0, f"Posted ({session}).\n")
    assert "its files at `there`, where no node runs" in sent.stderr
    assert "first" in place.run("sessions", "show", session).stdout
    node("--place", "here")
    assert place.stored(session)["turns_made"] == 1
    node("--place", "there")
    until(lambda: place.stored(session)["turns_made"] == 2, "the turn at the other place")


def until_moved(url: str, session: str, heir: FleetNode, tool: int) -> None:
    """Wait until another node has a session; at no moment may it have it while the tool lives."""
    with closing(PostgresStore.open(url, lease=5.0, fence=3.0)) as store:

        def has_moved() -> bool:
            is_alive = Path(f"/proc/{tool}").exists()
            owner = store.owner(session)
            is_heirs = owner is not None and owner.node == heir.name
            assert not (is_heirs and is_alive)
            return is_heirs

        until(has_moved, "the takeover")


@pytest.mark.nightly
def test_a_node_that_is_cut_off_ends_its_tools_before_another_has_the_session(
    place: Place, serve, gate: Gate, postgres_server: PostgresServer, kind: str
) -> None:
    """Its network swallows everything: at no moment has another node the session and its tool lives."""
    if kind != "postgres":
        pytest.skip("an SQLite home has no network")
    serve(Text("Done."), shell(gate.command), Text("Done.", times=0), rest=settings(5.0, 3.0))
    session = left(place)
    direct = place.environ[URL]
    program = (
        "import signal, sys; from pathlib import Path; sys.path.insert(0, sys.argv[1]);"
        "from support.cut_wire import CutWire;"
        "print(CutWire(Path(sys.argv[2])).port, flush=True); signal.pause()"
    )
    socket = str(postgres_server.folder / ".s.PGSQL.5432")
    tests = str(Path(__file__).parents[1])
    command = [sys.executable, "-c", program, tests, socket]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as wire:
        assert wire.stdout is not None
        port = wire.stdout.readline().strip()
        schema = direct.partition("schema=")[2]
        place.environ[URL] = postgres_server.url(schema, host="127.0.0.1", port=port)
        first = FleetNode(place)
        place.environ[URL] = direct
        assert place.run("send", session, "work").returncode == 0
        tool = gate.wait()
        second = FleetNode(place)
        try:
            wire.send_signal(signal.SIGSTOP)
            until_moved(direct, session, second, tool)
            assert place.run("send", session, "go on").returncode == 0
            until(lambda: place.stored(session)["turns_made"] == 3, "the turn of the message")
            wire.send_signal(signal.SIGCONT)
        finally:
            for running in (first, second):
                running.abandon()
            wire.kill()


@pytest.mark.nightly
def test_a_frozen_node_without_connections_has_its_sessions_until_its_tools_are_dead(
    place: Place, serve, node: Start, gate: Gate, postgres_server: PostgresServer, kind: str
) -> None:
    """The server ends its connections, so its lock is free; its process is there, and so is the tool."""
    if kind != "postgres":
        pytest.skip("an SQLite home has no connections")
    serve(Text("Done."), shell(gate.command), Text("Done.", times=0), rest=settings(5.0, 3.0))
    session = left(place)
    first = node()
    assert place.run("send", session, "work").returncode == 0
    tool = gate.wait()
    second = node()
    first.signal(signal.SIGSTOP)
    postgres_server.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE application_name = 'steersman' AND pid <> pg_backend_pid()"
    )
    until_moved(place.environ[URL], session, second, tool)
    assert place.run("send", session, "go on").returncode == 0
    until(lambda: place.stored(session)["turns_made"] == 3, "the turn of the message")
    first.signal(signal.SIGCONT)
    first.signal(signal.SIGTERM)
    assert first.ended() == 0
