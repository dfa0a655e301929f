"""A turn whose model calls are used up: a person is asked, or it stops so that it can be resumed."""

import itertools

import pytest
from support.driver import Place
from support.model_server import ModelServer, Recorded, Text, Tools

STEPS = "max_steps = 2"
HINT = "`/queue resume` goes on, for as many again; agents.NAME.max_steps sets the limit"


def works(steps: int):
    """Make a model that looks for something so many times, and then has done."""
    number = itertools.count(1)

    def behave(request: Recorded) -> Text | Tools:
        at = next(number)
        if at > steps:
            return Text("Done.")
        return Tools([{"tool": "search", "arguments": {"pattern": f"text {at}"}}])

    return behave


@pytest.fixture
def limited(place: Place, serve):
    """Configure an agent that may make two model calls, of so many that it wants to make."""

    def start(steps: int) -> ModelServer:
        server = serve(works(steps))
        config = place.home / "config.toml"
        config.write_text(
            config.read_text().replace("[agents.assistant]", f"[agents.assistant]\n{STEPS}")
        )
        return server

    return start


def test_a_person_is_asked_and_the_turn_goes_on(place: Place, limited) -> None:
    """`allow` is for as many calls again, `always` for the rest of the turn; nothing is lost."""
    server = limited(9)
    chat = place.chat("go")
    asked = chat.wait("question")
    assert (asked["tool"], asked["arguments"]) == ("continue", {"model_calls": 2})
    assert asked["rule"] == "max_steps = 2"
    assert len(server.requests) == 2
    chat.answer(asked, "allow")
    again = chat.wait("question")
    assert len(server.requests) == 4
    assert again["id"] != asked["id"]
    chat.answer(again, "always")
    chat.wait("turn_ended", status="completed")
    assert len(server.requests) == 10
    assert len(chat.seen("question")) == 2
    assert [event["choice"] for event in chat.seen("answered")] == ["allow", "always"]


def test_a_turn_that_may_not_go_on_is_resumed_where_it_was(place: Place, limited) -> None:
    """`deny` stops it with a hint; a resumed turn may make as many calls again, and says so again."""
    server = limited(5)
    chat = place.chat("go")
    chat.answer(chat.wait("question"), "deny")
    error = chat.wait("error", code="limit_reached")
    assert "2 model calls in a turn" in error["text"]
    assert error["hint"] == HINT
    chat.wait("turn_ended", status="interrupted")
    chat.send("/queue resume")
    chat.answer(chat.wait("question"), "allow")
    chat.wait("turn_ended", status="completed")
    assert len(server.requests) == 6
    assert [message["content"] for message in server.requests[-1].body["messages"]].count("go") == 1


def test_a_stop_withdraws_the_question_and_a_steer_waits_for_it(place: Place, limited) -> None:
    """A steer while the person is asked enters with the next call; `/stop` ends turn and question."""
    server = limited(9)
    chat = place.chat("go")
    asked = chat.wait("question")
    chat.causes({"text": "and be quick", "as": "steer"}, "accepted")
    chat.answer(asked, "allow")
    chat.wait("steered")
    asked = chat.wait("question")
    assert "and be quick" in str(server.requests[2].body["messages"])
    chat.causes("/stop", "turn_ended", status="interrupted")
    assert chat.seen("answered")[-1]["choice"] == "withdrawn"


def test_the_question_is_open_for_who_attaches_and_gone_after_a_crash(
    place: Place, limited
) -> None:
    """After kill -9 nothing runs and nothing is asked; resume goes on."""
    server = limited(3)
    chat = place.chat("go")
    asked = chat.wait("question")
    attached = place.start("attach", "last", "--json")
    assert attached.stdout is not None
    assert any(f'"{asked["id"]}"' in line for line in iter(attached.stdout.readline, ""))
    attached.kill()
    attached.communicate()
    chat.kill()
    again = place.chat("--continue")
    again.wait("recovered")
    again.completes("/queue resume")
    assert len(server.requests) == 4


def test_where_nobody_can_be_asked_it_stops_and_can_be_resumed(place: Place, limited) -> None:
    """A one-shot says what is used up and how to go on, with an exit code; `chat --continue` does."""
    server = limited(3)
    ran = place.run("chat", "--plain", "go")
    assert ran.returncode == 3
    said = ran.stdout + ran.stderr
    assert "2 model calls in a turn" in said
    assert HINT in said
    chat = place.chat("--continue")
    chat.wait("recovered")
    chat.completes("/queue resume")
    assert len(server.requests) == 4
