"""One turn on real files: its effects, its events, and the messages to the model."""

import itertools
from datetime import datetime

from support.driver import Gate, Place, shape
from support.model_server import ModelServer, Text, Tools, shell

COMMON = ["type", "seq", "time", "session"]
FIELDS = {
    "session_started": {"resumed", "folder"},
    "accepted": {"id", "as", "number", "position", "client_id", "matched", "rule"},
    "turn_started": {"turn", "item", "number"},
    "text": {"turn", "delta"},
    "answer": {"turn", "step", "text"},
    "tool_started": {"turn", "call", "tool", "arguments"},
    "tool_ended": {"turn", "call", "tool", "status", "exit_code", "bytes"},
    "question": {"id", "kind", "tool", "arguments", "options"},
    "answered": {"id", "turn", "choice"},
    "progress": {"turn", "done", "total", "unit"},
    "queue": {"state", "items"},
    "turn_ended": {"turn", "item", "status", "usage"},
    "notice": {"text"},
    "session_suspended": set[str](),
    "result": {"id", "name", "ok", "data"},
}
WORK = (
    Tools([{"tool": "read", "arguments": {"path": "notes.txt"}}], "I look. "),
    Tools(
        [
            {"tool": "write", "arguments": {"path": "new/list.txt", "content": "one\ntwo\n"}},
            {
                "tool": "edit",
                "arguments": {"path": "notes.txt", "old": "hello", "new": "goodbye"},
            },
        ]
    ),
    shell("cat new/list.txt; echo three"),
    Tools([{"tool": "progress", "arguments": {"done": 3, "total": 3, "unit": "file"}}]),
    Text("All done."),
)


def bodies(server: ModelServer) -> list[dict]:
    """What the model was sent, oldest first."""
    return [request.body for request in server.requests]


def assert_only_appended(server: ModelServer) -> None:
    """System prompt and tools stay the same, and messages only grow at the end."""
    sent = bodies(server)
    for before, after in itertools.pairwise(sent):
        kept = after["messages"][: len(before["messages"])]
        assert kept == before["messages"]
        assert after.get("tools") == before.get("tools")
    assert sent[0]["messages"][0]["role"] == "system"


def test_a_turn_works_on_real_files_in_order(place: Place, serve) -> None:
    """Read, write, edit, shell and progress have their effects, and all events come in order."""
    server = serve(*WORK)
    (place.folder / "notes.txt").write_text("hello world\n")
    chat = place.chat("--yes")
    chat.completes({"text": "put my notes in order", "client_id": "one", "user": "Ann"})
    assert chat.close() == 0

    assert (place.folder / "notes.txt").read_text() == "goodbye world\n"
    assert (place.folder / "new/list.txt").read_text() == "one\ntwo\n"
    tool = ["tool_started", "tool_ended"]
    assert shape(chat.events) == [
        "session_started",
        "accepted",
        "turn_started",
        "text",
        "answer",
        *tool * 4,
        *["tool_started", "progress", "tool_ended"],
        "text",
        "answer",
        "turn_ended",
        "session_suspended",
    ]
    tools = [event["tool"] for event in chat.seen("tool_ended", status="ok")]
    assert tools == ["read", "write", "edit", "shell", "progress"]
    assert "one\\ntwo\\nthree" in str(bodies(server)[-1]["messages"])
    (accepted,) = chat.seen("accepted")
    assert (accepted["as"], accepted["number"], accepted["client_id"]) == ("turn", 1, "one")
    (ended,) = chat.seen("turn_ended")
    assert ended["item"] == accepted["id"]
    assert ended["usage"]["input"] == 100 * len(WORK)
    assert "".join(event["delta"] for event in chat.seen("text")) == "I look. All done."
    assert_only_appended(server)


def test_events_have_the_fields_of_the_contract(place: Place, serve) -> None:
    """Each event has the common fields first and all of its own; journal numbers rise densely."""
    serve(*WORK)
    (place.folder / "notes.txt").write_text("hello world\n")
    chat = place.chat("put my notes in order")
    for _ in range(3):
        chat.answer(chat.wait("question"), "allow")
    chat.wait("turn_ended")
    chat.ask("/queue")
    assert chat.close() == 0
    for event in chat.events:
        assert list(event)[:4] == COMMON, event
        assert FIELDS[event["type"]] <= event.keys(), event
        assert datetime.fromisoformat(event["time"]).tzinfo is not None
        assert event["session"] == chat.session
    numbers = [event["seq"] for event in chat.events if event["seq"] is not None]
    assert numbers == sorted(numbers)
    assert chat.events[-1]["type"] == "session_suspended"
    question = chat.seen("question")[0]
    assert question["kind"] == "permission"
    assert question["options"] == ["allow", "always", "deny"]
    answered = [(event["id"], event["choice"]) for event in chat.seen("answered")]
    assert answered == [(event["id"], "allow") for event in chat.seen("question")]


def test_the_last_lines_of_a_long_command_are_reported(place: Place, serve, gate: Gate) -> None:
    """Progress comes while a tool runs, and never after its end; a short tool has only its result."""
    long = f"seq 1 30; printf 'half\\rdone'; {gate.command}; echo over"
    calls = [{"tool": "shell", "arguments": {"command": one}} for one in ("echo short", long)]
    serve(*(Tools([call]) for call in calls), Text("Well."))
    chat = place.chat("--yes", "work")
    output = chat.wait("output")
    assert output["text"].split("\n") == [*(str(n) for n in range(22, 31)), "done"]
    assert (output["call"], output["seq"]) == ("t1.s2.c1", None)
    gate.open()
    assert chat.wait("tool_ended")["call"] == "t1.s2.c1"
    assert chat.close() == 0
    assert chat.kinds("output", "tool_ended")[-1] == "tool_ended"
    assert not chat.seen("output", call="t1.s1.c1")


def test_a_denied_call_does_not_run_and_the_model_gets_the_reason(place: Place, serve) -> None:
    """A denied call doesn't run, the turn goes on, and the model reads that the user said no."""
    server = serve(shell("touch made.txt"), Text("Very well."))
    chat = place.chat("make a file")
    question = chat.wait("question", tool="shell")
    assert question["arguments"] == {"command": "touch made.txt"}
    chat.answer(question, "deny")
    assert chat.wait("tool_ended")["status"] == "denied"
    chat.wait("turn_ended", status="completed")
    assert not (place.folder / "made.txt").exists()
    assert "the user said no" in bodies(server)[-1]["messages"][-1]["content"]


def test_always_asks_once(place: Place, serve) -> None:
    """After `always` the same call runs without a question."""
    call = {"tool": "shell", "arguments": {"command": "echo again"}}
    serve(Tools([call]), Tools([call]), Text("Twice."))
    chat = place.chat("say it twice")
    chat.answer(chat.wait("question"), "always")
    chat.wait("turn_ended", status="completed")
    assert len(chat.seen("question")) == 1
    assert [event["status"] for event in chat.seen("tool_ended")] == ["ok", "ok"]


def test_every_turn_appends_to_what_the_model_has_seen(place: Place, serve) -> None:
    """Over several turns, a steer and a restart, requests only grow at their end."""
    server = serve(
        Text("One."),
        Tools([{"tool": "read", "arguments": {"path": "notes.txt"}}], pause=0.1),
        Text("Two."),
        Text("Three."),
    )
    (place.folder / "notes.txt").write_text("hello\n")
    chat = place.chat("first")
    chat.wait("turn_ended")
    chat.causes("second", "turn_started")
    chat.completes({"text": "be brief", "as": "steer"})
    assert chat.close() == 0
    later = place.chat("--continue")
    later.wait("session_started", resumed=True)
    later.completes("third")
    assert_only_appended(server)
    assert len(server.requests) == 4
