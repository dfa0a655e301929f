"""What becomes of runs that were interrupted or failed, as other commands see them."""

import signal

import pytest
from blackbox.driver import COMMAND, Chat, Gate, Place

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
for_each = ["1", "2", "3"]
run = ["sh", "-c", "echo $0 >> ../made; test $0 != 2 || test -e ../mended", "{{ item }}"]
[[step]]
id = "after"
needs = ["each"]
run = ["true"]
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
