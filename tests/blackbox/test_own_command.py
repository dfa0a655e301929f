"""`!COMMAND`: the person's own command runs beside the work, and the model sees it on request only."""

import json

import pytest
from support.driver import Chat, Event, Gate, Place, wait_gone
from support.model_server import Hang, Text


def ended(chat: Chat, name: str) -> Event:
    """Wait for the end of an own command; it may come before the result of what began or ended it."""
    return chat.wait_any("own_command", id=name, state=lambda state: state != "running")


@pytest.mark.checks_data("/shell", "/share")
def test_the_output_is_the_persons_until_it_is_shared(place: Place, serve) -> None:
    """It runs in the folder, during a turn, without a question; `/share` sends it, with its text."""
    server = serve(Text("Well."), Text("I see."))
    (place.folder / "notes.txt").write_text("twelve\n")
    chat = place.chat()
    assert chat.ask("/share")["ok"] is False
    accepted = chat.causes("!cat notes.txt; printf '\\033[31mred'; exit 3", "result", name="shell")
    assert accepted["data"] == {
        "id": "!1",
        "command": "cat notes.txt; printf '\\033[31mred'; exit 3",
    }
    end = ended(chat, "!1")
    assert (end["state"], end["exit_code"], end["survivors"]) == ("exited", 3, [])
    printed = "".join(event["output"] for event in chat.seen("own_command"))
    assert printed.startswith("twelve\n")
    chat.completes("hello")
    assert "twelve" not in json.dumps(server.requests[-1].body)
    shared = chat.ask("/share stop guessing, look")
    assert (shared["data"]["exit_code"], shared["data"]["bytes"]) == (3, len("twelve\nred"))
    chat.wait("turn_ended", status="completed")
    said = server.requests[-1].body["messages"][-1]["content"]
    assert "stop guessing, look" in said
    assert "twelve\nred" in said
    assert "exit code 3" in said


@pytest.mark.checks_data("/kill")
def test_it_is_stopped_and_stops_nothing(place: Place, serve, gate: Gate) -> None:
    """`/stop` leaves it, `/kill` ends its whole tree and leaves the turn; a kill -9 ends both."""
    serve(Hang(match="wait"), Text("Well."))
    chat = place.chat("wait")
    chat.wait("turn_started")
    chat.send(f"!setsid sh -c '{gate.command}' & wait")
    daemon = gate.wait()
    assert chat.ask("/stop")["data"]["interrupted"] == "t1"
    chat.wait("turn_ended", status="interrupted")
    assert daemon in place.processes()
    assert chat.ask("/kill")["data"] == {"stopped": ["!1"]}
    end = ended(chat, "!1")
    assert (end["state"], end["survivors"]) == ("killed", [])
    assert wait_gone([daemon]) == []
    assert chat.ask("/kill")["ok"] is False
    chat.send(f"!{gate.command}")
    left = gate.wait()
    chat.kill()
    assert wait_gone([left]) == []


def test_what_is_no_command_of_ones_own(place: Place, serve) -> None:
    """A blank before it, a picture in Markdown and an outcry are messages; a key sends none as one."""
    server = serve(Text("Well."))
    chat = place.chat()
    for text in (" !ls", "![a picture](b.png)", "!!! no"):
        chat.completes({"text": text})
    assert server.requests[-1].body["messages"][-1]["content"].endswith("!!! no")
    chat.send({"text": "!echo one", "as": "queue"}, {"text": "!!echo two", "as": "steer"})
    for name in ("!1", "!2"):
        assert ended(chat, name)["exit_code"] == 0
    assert len(server.requests) == 3
    assert chat.close() == 0
    ran = place.run("chat", "!echo $((40 + 2))")
    assert (ran.returncode, "42\n" in ran.stdout, len(server.requests)) == (0, True, 3)


def test_what_is_piped_in_runs_nothing(place: Place, serve) -> None:
    """A line with `!` that is piped in is a message; behind a typed command it is left out."""
    server = serve(Text("Well."))
    assert place.run("chat", "--plain", said="!touch stolen\n").returncode == 0
    assert "!touch stolen" in server.requests[0].prompt
    place.run("chat", "!true", said="\ntouch stolen\n")
    assert not (place.folder / "stolen").exists()
