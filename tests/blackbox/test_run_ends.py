"""What becomes of runs that were interrupted or failed, as other commands see them."""

import signal
from typing import Any

import pytest
from blackbox.driver import COMMAND, Chat, Gate, Place
from serving import Text

STOPPED = """
[workflow]
name = "halting"
[[step]]
id = "wait"
run = ["sh", "-c", '''{command}''']
"""
BROKEN = """
[workflow]
name = "broken"
[[step]]
id = "each"
run = ["false"]
"""
OUTER = """
[workflow]
name = "outer"
output = "{{ steps.below.output }}"
[[step]]
id = "below"
workflow = "inner.toml"
"""
INNER = """
[workflow]
name = "inner"
output = "{{ steps.speak.output }}"
[agents.poet]
system = "You are the poet of the inner file."
[[step]]
id = "speak"
agent = "poet"
prompt = "speak"
"""


def run(place: Place, *arguments: str) -> Chat:
    """Start `steersman run --json`."""
    chat = Chat(place, (*COMMAND, "run", "--json", *arguments))
    place.chats.append(chat)
    return chat


@pytest.mark.slow
def test_an_interrupted_run_is_named_with_its_own_command(place: Place, gate: Gate) -> None:
    """A chat says how the run goes on and does not take it up itself; so does the list."""
    (place.folder / "halting.toml").write_text(STOPPED.format(command=gate.command))
    chat = run(place, "halting.toml")
    gate.wait()
    assert chat.signal(signal.SIGINT) == 130
    name = chat.session
    way = f"`steersman run --resume {name}` goes on"

    listed = place.run("sessions", "list")
    assert (listed.returncode, way in listed.stdout + listed.stderr) == (0, True)
    for session in (name, "last"):
        refused = place.run("chat", "--resume", session)
        assert refused.returncode == 2
        assert f"is a run of the workflow `halting`, which is no chat\n  {way}" in refused.stderr
    beside = place.chat()
    beside.wait("notice", text=lambda text: way in text and "workflow halting" in text)
    beside.send(f"/queue restore {name}")
    beside.wait_text("which is no chat")
    assert beside.close() == 0


@pytest.mark.slow
def test_a_failed_run_says_what_to_do(place: Place) -> None:
    """It can't go on; the message names the file that begins anew, and how to take back."""
    (place.folder / "broken.toml").write_text(BROKEN)
    assert place.run("run", "broken.toml").returncode == 1
    again = place.run("run", "--resume", "last")
    assert again.returncode == 1
    assert "has failed already\n  mend what failed, then `steersman run " in again.stderr
    assert "broken.toml` begins anew" in again.stderr


@pytest.mark.slow
def test_agents_of_an_included_file_are_known(place: Place, serve: Any) -> None:
    """A workflow that is a step of another has the agents that its own file declares."""
    server = serve(Text("A word."))
    (place.folder / "outer.toml").write_text(OUTER)
    (place.folder / "inner.toml").write_text(INNER)
    chat = run(place, "outer.toml")
    ended = chat.wait("run_ended", session=chat.session)
    assert (ended["status"], ended["output"]) == ("succeeded", "A word.")
    assert "poet of the inner file" in str(server.requests[0].body)
    assert chat.close() == 0
