"""The program is killed in the middle of its work: what is lost (nothing), what is left (nothing)."""

import sqlite3

import pytest
from support.driver import Chat, Event, Gate, Place, wait_gone
from support.model_server import Text, shell

HOSTILE = {
    "a background sleep": "sleep 600 & {gate}; wait",
    "a grandchild in a session of its own": "(setsid sh -c 'sleep 600' &) ; {gate}; sleep 600",
    "one that ignores every polite signal": "trap '' TERM HUP INT; {gate}; sleep 600; sleep 600",
    "one that ignores its end of input": "exec 0<&-; (trap '' TERM HUP; sleep 600) & {gate}; wait",
}
SECOND = {"text": "second", "as": "queue", "client_id": "two"}
THIRD = {"text": "third", "as": "queue", "client_id": "three"}


def begin(place: Place, gate: Gate, command: str) -> Chat:
    """Start a chat whose first turn hangs in a shell tool, with two messages behind it."""
    chat = place.chat("--yes")
    chat.send({"text": "first", "client_id": "one"})
    gate.wait()
    chat.send(SECOND, THIRD)
    chat.wait("accepted", client_id="three")
    return chat


def brief(items: list[Event]) -> list[tuple[str, str]]:
    """Return items as (state, text)."""
    return [(item["state"], item["text"]) for item in items]


@pytest.mark.parametrize(
    "kind",
    [
        kind if not n else pytest.param(kind, marks=pytest.mark.nightly)
        for n, kind in enumerate(HOSTILE)
    ],
)
def test_kill_leaves_no_process(place: Place, serve, gate: Gate, kind: str) -> None:
    """After SIGKILL everything that a tool started is dead within a second."""
    command = HOSTILE[kind].format(gate=gate.command)
    serve(shell(command))
    chat = begin(place, gate, command)
    tools = place.processes()
    assert len(tools) >= 4, tools
    chat.process.kill()
    left = wait_gone(tools, 1.0)
    assert not left, {pid: tools[pid] for pid in left}
    assert not place.processes()


def test_what_was_accepted_is_there_and_waits(place: Place, serve, gate: Gate) -> None:
    """After a kill no acknowledged message is missing, nothing runs, and all can be resumed.

    A new message runs past what is held; resume takes the interrupted one first, then the others;
    and the model is told that the outcome of its call is unknown. Its story tells of the crash.
    """
    server = serve(
        shell(f"{gate.command}; echo done"),
        Text("New."),
        Text("First again."),
        Text("Second."),
        Text("Third."),
    )
    chat = begin(place, gate, "")
    session = chat.session
    accepted = [event["id"] for event in chat.seen("accepted")]
    chat.kill()
    wait_gone(place.processes())
    (row,) = place.data("sessions", "list")["sessions"]
    assert (row["state"], row["interrupted"], row["waiting"]) == ("crashed", 1, 2)

    later = place.chat("--continue")
    started = later.wait("session_started")
    recovered = later.wait("recovered")
    assert (started["resumed"], later.session) == (True, session)
    assert later.kinds("session_started", "recovered") == ["session_started", "recovered"]
    assert recovered["cause"] == "crash"
    assert [item["id"] for item in recovered["items"]] == accepted
    assert brief(recovered["items"]) == [
        ("interrupted", "first"),
        ("pending", "second"),
        ("pending", "third"),
    ]
    listed = later.ask("/queue")["data"]
    assert (listed["state"], listed["items"]) == ("held", recovered["items"])
    follower = place.attach(session)
    assert follower.wait("queue")["items"] == recovered["items"]
    assert follower.close() == 0
    why = place.run("why", session, "2")
    assert (why.returncode, "resumed (crash before)" in why.stdout) == (0, True), why.stderr
    assert list(place.processes()) == [later.process.pid]
    assert len(server.requests) == 1

    later.completes("new")
    held = later.ask("/queue")["data"]
    assert (held["state"], len(held["items"])) == ("held", 3)
    told = str(server.requests[1].body["messages"])
    assert "Unknown outcome" in told
    assert "'new'" in told

    assert later.ask("/queue resume")["ok"]
    for item in accepted:
        assert later.wait("turn_ended", status="completed")["item"] == item
    assert later.close() == 0
    prompts = [request.prompt.splitlines()[-1] for request in server.requests]
    assert prompts == ["first", "new", "first", "second", "third"]
    assert len(later.seen("tool_started")) == 0
    why = place.run("why", session, accepted[0])
    assert "resumed (crash before)" in why.stdout, why.stderr


def test_what_has_streamed_outlives_a_kill(place: Place, serve) -> None:
    """What came of an answer until about a second before a kill is there, for people and the model."""
    words = " ".join(f"word{number}" for number in range(3000))
    server = serve(Text(words, pause=0.02), Text("Here I am again."))
    chat = place.chat()
    chat.send("tell me all")
    chat.wait_text("word1 ")
    home = sqlite3.connect(place.home / "state" / "journal.db")
    grown = "SELECT count(*) FROM entries WHERE data LIKE '%answer_grew%'"
    while not home.execute(grown).fetchone()[0]:  # once a second
        chat.wait("text")
    home.close()
    chat.process.kill()
    again = place.chat("--continue")
    again.ask("/history")
    again.send("/queue resume")
    again.wait_text("Here I am again.")
    messages = server.requests[-1].body["messages"]
    (said,) = [message["content"] for message in messages if message["role"] == "assistant"]
    assert said.startswith("word0 word1")
    assert said.endswith("[Interrupted before an answer was given.]")
    assert words.startswith(said.partition("\n")[0].strip())


def test_end_of_input_leaves_held_things_held(place: Place, serve, gate: Gate) -> None:
    """Looking at a crashed session and leaving changes nothing of what waits, time and again."""
    server = serve(shell(gate.command))
    chat = begin(place, gate, "")
    chat.kill()
    for cause in ("crash", "exit"):
        later = place.chat("--continue")
        assert later.close() == 0
        assert [event["cause"] for event in later.seen("recovered")] == [cause]
        states = [state for state, _ in brief(later.seen("recovered")[0]["items"])]
        assert states == ["interrupted", "pending", "pending"]
    assert len(server.requests) == 1


def test_a_known_client_id_is_not_run_twice_after_a_kill(place: Place, serve) -> None:
    """The same client id gives the same id and no second run, in one life and in the next."""
    server = serve(Text("Once."))
    said = {"text": "do it", "client_id": "key-1"}
    chat = place.chat()
    chat.completes(said)
    chat.causes(said, "accepted")
    first, again = chat.seen("accepted")
    assert (again["id"], again["client_id"]) == (first["id"], "key-1")
    chat.kill()
    later = place.chat("--continue")
    assert later.causes(said, "accepted", client_id="key-1")["id"] == first["id"]
    assert later.close() == 0
    assert not later.seen("turn_started")
    assert len(server.requests) == 1


def test_a_tool_that_kills_the_program_is_not_run_again(place: Place, serve) -> None:
    """The call during which the program died is reported as unknown, and runs once in every case."""
    command = "echo ran >> effects; kill -9 $(cat program); sleep 600"
    server = serve(shell(command), Text("I leave it."))
    chat = place.chat("--yes")
    (place.folder / "program").write_text(str(chat.process.pid))
    chat.send("do it")
    assert chat.ended() == -9
    assert not wait_gone(place.processes(), 1.0)
    for said in ("/queue", "/queue resume"):
        later = place.chat("--continue", "--yes")
        assert later.ask(said)["ok"]
        assert later.close() == 0
        assert len(server.requests) == (2 if said == "/queue resume" else 1)
    assert "Unknown outcome" in str(server.requests[1].body["messages"])
    assert (place.folder / "effects").read_text() == "ran\n"


def test_continue_needs_a_session_of_this_folder(place: Place, serve) -> None:
    """Without a session to continue it says so, names the next step, and exits with 1."""
    serve(Text("Hello."))
    ran = place.run("chat", "--continue", "--json")
    assert ran.returncode == 1
    assert str(place.folder) in ran.stderr
    assert "steersman chat" in ran.stderr
