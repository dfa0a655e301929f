"""Agents of other people as agents of ours: a real process that speaks the protocol, under our rules."""

import sys
from pathlib import Path

import pytest
from blackbox.conftest import Serve
from support.driver import Gate, Place, wait_gone
from support.model_server import Text, Tools

AGENT = str(Path(__file__).with_name("someones_agent.py"))


@pytest.fixture
def agent(place: Place) -> None:
    """Declare the agent `other`, with a memory."""
    declare(place)


def declare(place: Place, more: str = "") -> None:
    """Write a configuration with the agent `other`."""
    memory = place.home / "memory"
    memory.mkdir(exist_ok=True)
    place.environ["AGENT_MEMORY"] = str(memory)
    with (place.home / "config.toml").open("a", encoding="utf-8") as file:
        file.write(
            f'{more}\n[agents.other]\nprotocol = "acp"\nstart = ["{sys.executable}", "{AGENT}"]\n'
        )


@pytest.mark.usefixtures("agent")
def test_it_works_under_our_rules_and_is_stopped_with_everything_it_started(
    place: Place, gate: Gate
) -> None:
    """Streamed; asked about; denied; stopped with a tool that left its group; loaded again; reverted."""
    chat = place.chat("--agent", "other")
    chat.completes("say hello from afar")
    assert "".join(event["delta"] for event in chat.seen("text")) == "hello from afar"

    chat.send(f"run trap '' TERM; {gate.command}; sleep 600")
    asked = chat.wait("question")
    assert (asked["tool"], asked["arguments"]["command"][:4]) == ("shell", "trap")
    chat.answer(asked, "allow")
    pid = gate.wait()
    chat.send("/stop")
    assert pid in chat.wait("stopped")["killed"]
    wait_gone([pid])

    chat.send("run touch no")
    chat.answer(chat.wait("question"), "deny")
    chat.wait("turn_ended", status="completed")
    assert not (place.folder / "no").exists()

    chat.send("write made.txt")
    chat.wait("tool_started", tool="edit")
    chat.wait("turn_ended", status="completed")
    assert (place.folder / "made.txt").exists()
    chat.send("/revert")
    chat.wait("reverted", restored=["made.txt"])
    assert not (place.folder / "made.txt").exists()

    chat.completes("recall")
    said = "".join(event["delta"] for event in chat.seen("text"))
    assert said.count("say hello from afar") == 1
    chat.close()


@pytest.mark.nightly
@pytest.mark.usefixtures("agent")
def test_a_crash_leaves_nothing_of_it_and_its_session_is_loaded_again(
    place: Place, gate: Gate
) -> None:
    """Kill -9 in the middle of its work; what was asked is unknown and not repeated; it remembers."""
    chat = place.chat("--agent", "other", "--yes")
    chat.send(f"run {gate.command}")
    pid = gate.wait()
    chat.kill()
    wait_gone([pid])
    again = place.chat("--continue")
    found = again.wait("recovered")
    assert {row["tool"] for row in found["unknown"]} == {"agent", "shell"}
    again.completes("recall")
    assert f"run {gate.command} / recall" in "".join(event["delta"] for event in again.seen("text"))
    again.close()


@pytest.mark.usefixtures("agent")
def test_a_steer_waits_for_its_answer_and_what_is_queued_comes_behind(
    place: Place, gate: Gate
) -> None:
    """The agent accepts no steer at work: a notice says so, and the same turn continues with it."""
    chat = place.chat("--agent", "other", "--yes")
    chat.send(f"run {gate.command}")
    gate.wait()
    chat.send({"text": "say the steered one", "as": "steer"})
    chat.send({"text": "say the queued one", "as": "queue"})
    assert chat.wait("notice")["text"].startswith("other takes no steer")
    gate.open()
    ended = [chat.wait("turn_ended", status="completed") for _ in range(2)]
    assert [event["turn"] for event in ended] == ["t1", "t2"]
    said = "".join(event["delta"] for event in chat.seen("text"))
    assert said.index("It ended with 0") < said.index("queued one")
    first = "".join(event["delta"] for event in chat.seen("text", turn="t1"))
    assert "the steered one" in first
    chat.close()


def test_an_agent_of_ours_delegates_to_it(place: Place, serve: Serve) -> None:
    """Its answer is the result of the call, and its parent goes on with it."""
    task = {"tool": "delegate", "arguments": {"task": "say far away", "agent": "other"}}
    server = serve(Tools([task]), Text("It said so."))
    declare(place)
    chat = place.chat("ask the other one")
    chat.wait("turn_ended", turn="t1", status="completed", parent=None)
    assert "far away" in str(server.requests[-1].body["messages"][-1])
    chat.close()


@pytest.mark.nightly
def test_what_it_lacks_is_said_with_the_next_step(place: Place) -> None:
    """No such program, one that dies at once, no memory of its own, no such agent."""
    (place.home / "config.toml").write_text(
        '[agents.gone]\nprotocol = "acp"\nstart = ["no-such-program"]\n'
        '[agents.dies]\nprotocol = "acp"\nstart = ["sh", "-c", "echo it is broken >&2; exit 3"]\n'
        '[agents.vague]\nprotocol = "acp"\n'
    )
    for name, said in (("gone", "no program `no-such-program`"), ("dies", "it is broken")):
        ran = place.run("chat", "--agent", name, "hello")
        assert said in ran.stderr
        assert ran.returncode == 1
    ran = place.run("chat", "--agent", "vague", "hello")
    assert (ran.returncode, "agents.vague.start" in ran.stderr) == (2, True)
    declare(place)
    del place.environ["AGENT_MEMORY"]
    place.run("chat", "--agent", "other", "say one")
    ran = place.run("chat", "--continue", "recall")
    assert "does not remember" in ran.stdout


@pytest.mark.nightly
@pytest.mark.usefixtures("agent")
@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("flood", "sent an answer of more than 2,097,152"),
        ("line", "a line of more than 16,777,216"),
    ],
)
def test_an_answer_without_an_end_is_ended(place: Place, word: str, why: str) -> None:
    """The turn fails with what there is too much of; the agent is ended, and the next turn works."""
    chat = place.chat("--agent", "other")
    chat.send(word)
    assert why in chat.wait("turn_ended", status="failed")["reason"]
    chat.completes("say still here")


@pytest.mark.usefixtures("agent")
def test_a_driven_agent_knows_that_a_session_has_its_work(place: Place) -> None:
    """Its hooks find its name in the environment, so that it gets no restore record of its own."""
    chat = place.chat("--agent", "other", "--yes")
    chat.send('run echo "$STEERSMAN_DRIVES" > driven')
    chat.wait("turn_ended", status="completed")
    assert (place.folder / "driven").read_text() == "other\n"
