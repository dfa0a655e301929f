"""Slash commands of a session that are given on the command line, in another terminal.

Each test also runs against an echo of each command that it names, and has to fail then (`conftest.py`).
"""

import pytest
from support.driver import Gate, Place
from support.model_server import Text, Tools

checks_data = pytest.mark.checks_data

WRITES = Tools([{"tool": "write", "arguments": {"path": "a.txt", "content": "new\n"}}])


@pytest.fixture
def session(place: Place, serve) -> str:
    """The id of a session in which a file was written; it is open nowhere."""
    serve(WRITES, Text("Blue."), rest='[permissions]\nrules = [{ tool = "*", do = "allow" }]\n')
    chat = place.chat("which colour?")
    chat.wait("turn_ended", status="completed")
    assert chat.close() == 0
    return chat.session


@checks_data("sessions usage", "sessions receipts", "sessions diff")
def test_what_a_session_did_is_shown(place: Place, session: str) -> None:
    """Its tokens, what became of its message, and the file that it made."""
    assert place.data("sessions", "usage", session)["session"]["output"] > 0
    (receipt,) = place.data("sessions", "receipts", session)["receipts"]
    assert (receipt["text"], receipt["state"]) == ("which colour?", "done")
    assert place.data("sessions", "receipts", session, "#1")["receipts"] == [receipt]
    files = place.data("sessions", "diff", session, "t1")["files"]
    assert files == [{"path": "a.txt", "change": "created"}]


def test_two_sessions_are_compared(place: Place, session: str, serve) -> None:
    """Where they part, by entry, and what each came to; one that did the same elsewhere is the same."""
    again = place.data("sessions", "fork", session)["session"]
    whole = place.data("sessions", "diff", session, session)
    assert (whole["is_same"], whole["first"]) == (True, [None, None])
    assert whole["facts"][0]["files"] == {"a.txt": [1, 0]}
    serve(
        WRITES,
        Text("Red."),
        Text("No."),
        rest='[permissions]\nrules = [{ tool = "*", do = "allow" }]\n',
    )
    (place.folder / "a.txt").unlink()
    chat = place.chat("which colour?")
    chat.wait("turn_ended", status="completed")
    assert chat.close() == 0
    parted = place.data("sessions", "diff", session, chat.session)
    assert [step["text"] for step in parted["first"]] == ["Blue.", "Red."]
    assert not parted["is_same"]
    for facts, name in zip(parted["facts"], (session, chat.session), strict=True):
        assert (facts["session"], facts["turns"], facts["calls"]) == (name, 1, {"write": 1})
    made = {"files": {"a.txt": [1, 0]}, "is_blind": False}
    for way, files in ((), made), (("last",), {**made, "files": {}}), (("undo",), made):
        if way:
            assert place.run("sessions", "revert", chat.session, *way).returncode == 0
        facts = place.data("sessions", "diff", session, chat.session)["facts"][1]
        assert {**facts, **files} == facts
    fork = place.data("sessions", "diff", session, again)
    assert (fork["common"], fork["is_same"]) == (whole["common"], True)  # it begins with the same
    (place.folder / "a.txt").unlink()
    longer = place.chat("--resume", again, "and then?")
    longer.wait("turn_ended", status="completed")
    assert longer.close() == 0
    first = place.data("sessions", "diff", session, again)["first"]
    assert (first[0], first[1]["text"]) == (None, "and then?")
    said = place.run("sessions", "diff", session, chat.session).stdout
    assert f"  {chat.session}  t1 (entry " in said
    assert "answered: Red." in said


@checks_data("sessions mode", "sessions busy", "sessions model")
@checks_data("permissions allow", "permissions forget", "queue on", "queue off", "queue hold")
def test_a_session_is_set(place: Place, session: str) -> None:
    """What was set is what is shown, also if no process has the session open."""
    of = ("--session", session)
    assert place.data("sessions", "mode", session, "plan")["ok"]
    assert place.data("sessions", "mode", session)["mode"] == "plan"
    assert place.data("sessions", "busy", session, "interrupt")["ok"]
    assert place.data("sessions", "busy", session)["busy_input_mode"] == "interrupt"
    assert not place.data("sessions", "model", session)["is_chosen"]
    assert place.data("sessions", "model", session, "main")["model"] == "main"
    assert place.data("sessions", "model", session)["is_chosen"]
    refused = place.run("sessions", "limits", session, "more")
    assert (refused.returncode, "Not granted: the session is not open" in refused.stderr) == (
        1,
        True,
    )
    rule = {"tool": "write", "match": "a.txt"}
    assert place.data("permissions", "allow", "write", "a.txt", *of) == rule
    assert place.data("permissions", "forget", "1", *of) == rule
    assert not place.data("queue", "off", *of)["auto_queue"]
    assert place.data("queue", "on", *of)["auto_queue"]
    place.run("queue", "add", "later", *of)
    assert place.data("queue", "hold", *of)["state"] == "held"
    assert place.data("queue", "list", *of)["state"] == "held"


@checks_data("sessions answer", "sessions compact", "sessions limits")
def test_a_session_that_is_open_is_answered_and_summed_up(place: Place, serve) -> None:
    """The call that was asked about runs; afterwards the conversation is summed up."""
    serve(WRITES, Text("A summary.", match="What matters most: colours"), Text("Blue."))
    chat = place.chat("which colour?")
    question = chat.wait("question")
    assert place.data("sessions", "answer", chat.session, question["id"], "allow") == {
        "id": question["id"],
        "choice": "allow",
    }
    chat.wait("turn_ended", status="completed")
    assert (place.folder / "a.txt").read_text() == "new\n"
    assert place.data("sessions", "limits", chat.session, "more")["grants"] == 1
    assert place.data("sessions", "compact", chat.session, "colours")["ok"]
    chat.wait("compacted")


@checks_data("sessions undo")
def test_a_steer_is_taken_back(place: Place, serve, gate: Gate) -> None:
    """The message waits in the queue instead."""
    serve(Tools([gate.call]), Text("Done."))
    chat = place.at_work(gate, "begin")
    number = chat.causes({"text": "use tabs", "as": "steer"}, "accepted", text="use tabs")["number"]
    assert place.data("sessions", "undo", chat.session)["number"] == number
    assert [item["state"] for item in chat.ask("/queue")["data"]["items"]] == ["running", "pending"]
    gate.open()
    for _ in range(2):
        chat.wait("turn_ended", status="completed")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("sessions mode last none", "`none` is not one of ask, edits, plan, all"),
        ("agents stop last ", "which one?"),
    ],
)
def test_what_means_nothing_is_a_mistake(place: Place, words: str, why: str) -> None:
    """A choice that there is not, or an empty name: nothing is sent."""
    ran = place.run(*words.split(" "))
    assert (ran.returncode, ran.stdout, why in ran.stderr) == (2, "", True)
