"""Where something runs out: memory, disk. Slow ones; everything is bounded and nothing is lost."""

import re
import resource
from pathlib import Path

import pytest
from support.driver import Gate, Place
from support.model_server import Text, shell

FILE_SIZE = 400 * 1024
FREE = 1 << 30
FLOOD = "head -c 200000000 /dev/zero | tr '\\0' x"


def peak(pid: int) -> int:
    """The most memory that a process has ever had, in bytes."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def limit_files() -> None:
    """Let no file grow beyond `FILE_SIZE`, as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_SIZE, FREE))


def test_a_line_of_200_megabytes_needs_no_memory(place: Place, serve, gate: Gate) -> None:
    """The output of a tool is capped in memory: head and tail reach the model, the count is true."""
    server = serve(
        shell(f"{gate.command}; {FLOOD}; echo; echo end"),
        Text("Much."),
    )
    chat = place.at_work(gate, "flood")
    before = peak(chat.process.pid)
    gate.open()
    ended = chat.wait("tool_ended", timeout=100)
    chat.wait("turn_ended", status="completed")
    assert peak(chat.process.pid) - before < 60 * 1024 * 1024
    assert ended["bytes"] >= 200_000_000
    told = server.requests[1].body["messages"][-1]["content"]
    assert len(told) < 2_000_000
    assert "xxx" in told[:2000]
    assert "end" in told[-200:]
    assert chat.close() == 0


def test_a_full_disk_is_reported_and_loses_nothing(place: Place, serve) -> None:
    """When the journal can't grow, the program says so and accepts nothing more.

    What it had accepted is there when there is room again.
    """
    serve(Text("Well."), top='busy_input_mode = "queue"')
    chat = place.chat(preexec_fn=limit_files)
    line = "word " * 4000
    try:
        for number in range(40):
            chat.send({"text": f"{number} {line}", "client_id": f"c{number}"})
    except BrokenPipeError:
        assert number
    error = chat.wait("error", code="store_failed")
    assert error["text"]
    assert error["hint"]
    assert chat.close() == 1
    answered = {event["client_id"]: event["type"] for event in chat.seen("accepted", "rejected")}
    assert list(answered) == [f"c{at}" for at in range(len(answered))]  # none is passed over
    assert "rejected" in answered.values()
    assert all(event["text"].endswith("word ") for event in chat.seen("rejected"))
    assert "Traceback" not in chat.diagnostics
    accepted = {event["id"] for event in chat.seen("accepted")}
    assert accepted
    later = place.chat("--continue")
    session = later.session
    assert later.close() == 0
    known = place.stored(session)["queue"]["items"]
    assert accepted <= known.keys()


@pytest.mark.nightly
def test_with_room_again_the_session_goes_on_without_a_restart(place: Place, serve) -> None:
    """Each word of a person tries again; the first one for which there is room is answered."""
    server = serve(*[Text(f"Well {number}.") for number in range(8)])
    chat = place.chat(preexec_fn=limit_files)
    chat.completes("first")
    full = "word " * 200_000
    chat.causes({"text": full, "client_id": "full"}, "error", code="store_failed")
    assert chat.wait("rejected", client_id="full")["text"] == full
    for number in range(4):  # more often than a supervisor lets an actor fail
        chat.send({"text": full, "client_id": f"full{number}"})
        assert chat.wait("rejected", client_id=f"full{number}")["text"] == full
    resource.prlimit(chat.process.pid, resource.RLIMIT_FSIZE, (FREE, FREE))
    assert chat.causes({"text": "room?", "client_id": "room"}, "accepted", client_id="room")["id"]
    chat.wait("turn_ended", status="completed")
    chat.completes("and on")
    assert chat.close() == 0
    told = [
        message["content"]
        for message in server.requests[-1].body["messages"]
        if message["role"] == "user"
    ]
    assert told == ["first", "room?", "and on"]
