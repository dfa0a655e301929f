"""A server that asks for input: its form is a question of the session, in every interface."""

import json
from typing import Any

import pytest
from extensions.mcp.conftest import program
from extensions.mcp.test_sessions import ALLOWED, called, last_result, notes, table
from support.driver import Chat, Place
from support.model_server import Text

FORM = "mcp:elicitation"


def asked(place: Place, serve: Any, *ends: str, rest: str = "", **options: Any) -> tuple[Chat, Any]:
    """Have a tool of our server ask where a note goes; then the model says something."""
    server = serve(
        *[called("file_note", name="shopping")] * max(1, len(ends)),
        Text("Done."),
        rest=notes() + (rest or ALLOWED),
    )
    chat = place.chat(**options)
    chat.send("file it")
    return chat, server


def test_a_form_is_filled_in(place: Place, serve: Any) -> None:
    """What does not fit is refused with the reason, and the question stays; the rest gets there."""
    chat, server = asked(place, serve)
    question = chat.wait("question", tool=FORM)
    assert (question["tool"], question["options"]) == (FORM, ["answer", "deny"])
    assert question["arguments"]["server"] == "notes"
    assert question["arguments"]["message"] == "Where does shopping go?"
    assert question["arguments"]["schema"]["required"] == ["folder"]
    for wrong, why in (
        ("home", "give a JSON object with the fields folder, copies"),
        ("{}", "`folder` is missing: one of home, work"),
        ('{"folder": "car"}', "`folder` has to be one of home, work"),
        ('{"folder": "home", "copies": 10}', "`copies` has to be 1 to 9"),
    ):
        refused = chat.ask(f"/answer {question['id']} answer {wrong}")
        assert not refused["ok"]
        assert why in refused["data"]["reason"]
    done = chat.ask('/answer q1 answer {"folder": "work", "copies": "3"}')
    assert done["ok"], done
    chat.wait("turn_ended", status="completed")
    assert last_result(server) == "filed shopping in work, 3 times"
    (answered,) = chat.seen("answered")
    assert answered["choice"] == "answer"
    assert chat.close() == 0


def test_a_form_may_be_declined_or_left_by_a_stop(place: Place, serve: Any) -> None:
    """The server is told: declined; with a stop the call ends, and the server lives."""
    chat, server = asked(place, serve, "deny", "stop")
    chat.answer(chat.wait("question", tool=FORM), "deny")
    chat.wait("question", tool=FORM)
    assert last_result(server) == "not filed: decline"
    chat.send("/stop")
    chat.wait("turn_ended", status="interrupted")
    assert [event["choice"] for event in chat.seen("answered")] == ["deny", "withdrawn"]
    assert chat.close() == 0


def test_a_form_is_asked_again_after_a_crash(place: Place, serve: Any) -> None:
    """The server is gone with the program: the call has an unknown end, and the next one asks."""
    chat, server = asked(place, serve, "crash", "again")
    chat.wait("question", tool=FORM)
    chat.kill()
    chat = place.chat("--continue")
    chat.send("/queue resume")
    question = chat.wait("question", tool=FORM)
    assert "may or may not have had its effect" in last_result(server)
    chat.send({"answer": question["id"], "choice": "answer", "reason": '{"folder": "home"}'})
    chat.wait("turn_ended", status="completed")
    assert last_result(server) == "filed shopping in home, 1 times"
    assert chat.close() == 0


def test_a_rule_or_the_want_of_a_person_declines(place: Place, serve: Any) -> None:
    """`deny` for its name, or a chat that nobody can answer: the server hears so at once."""
    rules = (
        f'[permissions]\nrules = [{{ tool = "{FORM}", do = "deny" }}, '
        '{ tool = "mcp__notes__*", do = "allow" }]\n'
    )
    chat, server = asked(place, serve, rest=rules)
    chat.wait("turn_ended", status="completed")
    assert last_result(server) == "not filed: decline"
    assert not chat.seen("question")
    assert chat.close() == 0


def test_a_server_before_2026_asks_within_the_call(place: Place, serve: Any) -> None:
    """The server from npm that has all of the protocol: what it usually is may be left out."""
    everything = table("notes", program("mcp-server-everything"), "stdio")
    server = serve(called("trigger-elicitation-request"), Text("Done."), rest=everything + ALLOWED)
    chat = place.chat()
    chat.send("ask me")
    question = chat.wait("question", tool=FORM)
    wrong = {"name": "Ann", "untitledSingleSelectEnum": "Gunther"}
    refused = chat.ask(f"/answer {question['id']} answer {json.dumps(wrong)}")
    assert "has to be one of Monica, Rachel," in refused["data"]["reason"]
    assert chat.ask('/answer q1 answer {"name": "Ann", "check": "yes", "integer": 7}')["ok"]
    chat.wait("turn_ended", status="completed")
    told = last_result(server)
    assert "User provided the requested information" in told
    assert all(part in told for part in ('"name": "Ann"', '"check": true', '"integer": 7'))
    assert '"number": 3.14' in told
    assert chat.close() == 0


@pytest.mark.nightly
def test_nobody_has_to_answer_where_nobody_can(place: Place, serve: Any) -> None:
    """A single message: the form is declined."""
    serve(called("file_note", name="shopping"), Text("Done."), rest=notes() + ALLOWED)
    ran = place.run("chat", "--json", "file it")
    assert ran.returncode == 4, ran.stderr  # a question that nobody could answer
    assert "not filed: decline" in ran.stdout
