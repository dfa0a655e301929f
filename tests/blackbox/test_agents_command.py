"""`steersman agents` and its neighbours: subagents seen and ended from another terminal."""

from typing import Any

import pytest
from support.driver import Chat, Gate, Place, wait_gone
from support.model_server import Behaviour, ModelServer, Text, Tools

KID = {"task": "count the stars", "name": "kid"}


def begin(place: Place, serve: Any, gate: Gate, *then: Behaviour) -> tuple[Chat, ModelServer, int]:
    """Start a chat whose agent waits for `kid`, which runs a command until the gate opens."""
    delegate = Tools([{"tool": "delegate", "arguments": KID}], match="build")
    server = serve(delegate, Tools([gate.call], match="stars"), *then, Text("All is well."))
    chat = place.chat("--yes", "build the report")
    return chat, server, gate.wait()


def agents(place: Place, *arguments: str) -> list[dict[str, Any]]:
    """Return what `agents list` says."""
    return place.data("agents", "list", *arguments)["agents"]


@pytest.mark.checks_data("agents list", "agents show", "agents stop")
def test_one_is_listed_and_stopped_from_elsewhere(place: Place, serve: Any, gate: Gate) -> None:
    """The list says who works and since when; a stop reaches the process that has the session."""
    chat, _, pid = begin(place, serve, gate)
    (kid,) = agents(place, chat.session[:5])
    assert (kid["name"], kid["state"], kid["relation"]) == ("kid", "working", "foreground_child")
    assert "kid [WORKING] count the stars" in place.run("agents", "list", "last").stdout
    seen = place.data("agents", "show", "last", "kid")
    assert (seen["id"], len(seen["messages"])) == (kid["id"], 2)
    nobody = place.run("agents", "stop", "last", "bob")
    assert (nobody.returncode, nobody.stderr) == (1, "No subagent `bob` works. There are: kid.\n")
    assert place.data("agents", "stop", "last", "kid")["name"] == "kid"
    acts = place.data("sessions", "audit", "last")["acts"]
    assert ("owner", "stop", "kid") in [(act["who"], act["act"], act["what"]) for act in acts]
    assert chat.wait("child_ended")["status"] == "cancelled"
    chat.wait("turn_ended", status="completed", session=chat.session)
    assert not wait_gone([pid], 0.0)
    assert chat.close() == 0
    (kid,) = agents(place, "last")
    assert kid["state"] == "cancelled"


@pytest.mark.checks_data("agents wrap-up")
def test_one_sums_up_when_asked(place: Place, serve: Any, gate: Gate) -> None:
    """`wrap-up` is in the child's next request, and its last word is the result."""
    chat, server, _ = begin(place, serve, gate, Text("Seven so far.", match="asked to end now"))
    assert place.run("agents", "wrap-up", "last", "kid").returncode == 0
    gate.open()
    assert chat.wait("child_ended")["status"] == "completed"
    chat.wait("turn_ended", status="completed", session=chat.session)
    assert server.requests[-1].body["messages"][-1]["content"] == "Seven so far."


@pytest.mark.nightly
def test_after_a_crash_the_list_is_what_the_next_owner_finds(
    place: Place, serve: Any, gate: Gate
) -> None:
    """Listing claims and changes nothing, and shows no dead subagent at work."""
    chat, _, _ = begin(place, serve, gate)
    chat.kill()
    nobody = place.run("agents", "stop", "last", "kid")
    assert (nobody.returncode, "is not open" in nobody.stderr) == (1, True)
    assert "Traceback" not in nobody.stderr
    before = place.stored()["seq"]
    assert [agent["state"] for agent in agents(place)] == ["interrupted"]
    assert place.stored()["seq"] == before
    assert place.run("agents", "stop", "last", "kid").returncode == 1


@pytest.mark.nightly
@pytest.mark.parametrize(("to", "child"), [("@kid", "kid"), ("", "kid"), ("@parent", None)])
def test_a_waiting_message_is_handed_to_whom_it_names(
    place: Place, serve: Any, gate: Gate, to: str, child: str | None
) -> None:
    """`/queue steer N` goes to the child at work, `@name` to that one, `@parent` to the agent."""
    chat, server, _ = begin(place, serve, gate)
    chat.causes({"text": "use tabs", "as": "queue"}, "accepted", **{"as": "queue"})
    assert chat.ask(f"/queue steer 2 {to}")["ok"]
    assert not chat.ask("/queue steer 2 @nobody")["ok"]
    gate.open()
    steered = chat.wait("steered", session=chat.session)
    assert steered.get("child") == child
    chat.wait("turn_ended", status="completed", session=chat.session)
    holders = [
        request.body["messages"][1]["content"]
        for request in server.requests
        if "[New message from user] use tabs" in str(request.body["messages"])
    ]
    assert set(holders) == {"count the stars" if child else "build the report"}
