"""`/mode`: what a tool call may do without a question, by a decision of the session."""

import json

import pytest
from support.driver import WAIT, Place
from support.model_server import Hang, Text, Tools

WRITE = {"tool": "write", "arguments": {"path": "made.txt", "content": "x\n"}}
READ = {"tool": "read", "arguments": {"path": "notes.txt"}}
SHELL = {"tool": "shell", "arguments": {"command": "echo ran > ran.txt"}}
HOOK = {"tool": "write", "arguments": {"path": "inner/../.git/hooks/pre-commit", "content": "x"}}
OUTSIDE = {"tool": "write", "arguments": {"path": "../beside.txt", "content": "x"}}
SECRET = {"tool": "write", "arguments": {"path": "secret.txt", "content": "x"}}

RULES = """
[permissions]
rules = [{ tool = "*", match = "secret*", do = "deny" }]
"""


@pytest.mark.checks_data("/mode")
def test_a_plan_only_looks(place: Place, serve) -> None:
    """In mode plan, what reads runs; everything else is refused with that reason, until it is left."""
    (place.folder / "notes.txt").write_text("twelve\n")
    server = serve(
        Tools([READ, WRITE, SHELL]), Text("I would write."), Tools([WRITE]), Text("Done.")
    )
    chat = place.chat()
    assert chat.ask("/mode")["data"]["mode"] == "ask"
    assert chat.ask("/permissions explain write x")["data"]["do"] == "ask"
    assert chat.ask("/mode plan")["ok"]
    assert chat.ask("/permissions")["text"].splitlines()[-1].startswith("Mode plan: only tools")
    explained = chat.ask("/permissions explain write x")
    assert (explained["data"]["do"], explained["data"]["rule"]) == ("deny", "mode plan")
    chat.completes("what would you do?")
    assert [(event["tool"], event["status"]) for event in chat.seen("tool_ended")] == [
        ("read", "ok"),
        ("write", "denied"),
        ("shell", "denied"),
    ]
    told = json.dumps(server.requests[-1].body["messages"])
    assert (told.count("the session is in plan mode"), "twelve" in told) == (2, True)
    assert chat.seen("question") == []
    assert [event["mode"] for event in chat.seen("mode")] == ["plan"]
    assert place.stored(chat.session)["mode"] == "plan"
    chat.kill()

    chat = place.chat("--continue")
    assert chat.wait("mode")["mode"] == "plan"
    assert chat.ask("/mode")["data"]["mode"] == "plan"
    chat.causes({"command": "mode", "arguments": {"mode": "edits"}}, "mode", mode="edits")
    chat.completes("do it")
    assert (place.folder / "made.txt").read_text() == "x\n"
    assert not (place.folder / "ran.txt").exists()
    assert chat.ask("/mode sideways")["ok"] is False


def test_a_plan_refuses_what_is_asked_about(place: Place, serve) -> None:
    """A question that is open when the mode comes is answered by it: the call does not run."""
    server = serve(Tools([SHELL]), Text("I would run it."))
    chat = place.chat()
    chat.causes("work", "question")
    assert chat.ask("/mode plan")["ok"]
    chat.wait("turn_ended", status="completed")
    assert [event["status"] for event in chat.seen("tool_ended")] == ["denied"]
    assert "plan mode" in server.requests[-1].body["messages"][-1]["content"]
    assert not (place.folder / "ran.txt").exists()


def test_edits_and_all_allow_no_more_than_they_say(place: Place, serve) -> None:
    """`edits` is about files in the folder, but not of `.git`; `all` leaves what a rule denies."""
    (place.folder / "inner").mkdir()
    (place.folder / "link").symlink_to(place.folder / ".git")
    linked = {"tool": "write", "arguments": {"path": "link/config", "content": "x"}}
    asked = [SHELL, HOOK, OUTSIDE, linked]
    serve(
        Tools([WRITE, *asked, SECRET]),
        Text("Done."),
        Tools([SHELL, SECRET]),
        Text("Done."),
        rest=RULES,
    )
    chat = place.chat("--mode", "edits")
    chat.wait("mode", mode="edits")
    chat.send("work")
    for call in asked:
        question = chat.wait("question")
        assert question["arguments"] == call["arguments"]
        chat.answer(question, "deny")
    chat.wait("turn_ended", status="completed")
    ends = [event["status"] for event in chat.seen("tool_ended")]
    assert ends == ["ok", "denied", "denied", "denied", "denied", "denied"]
    assert chat.ask("/mode all")["ok"]
    chat.completes("again")
    assert [event["status"] for event in chat.seen("tool_ended")[6:]] == ["ok", "denied"]
    assert (place.folder / "ran.txt").exists()
    assert not (place.folder / "secret.txt").exists()


@pytest.mark.parametrize(
    "said", ["/mode edits", "/mode all", "/permissions allow write m*", "always"]
)
def test_a_call_that_waits_for_an_answer_is_allowed_too(place: Place, serve, said: str) -> None:
    """What a person allows holds for the questions that are open, also of a subagent."""
    task = {"task": "count", "name": "kid", "background": True}
    serve(
        Tools([{"tool": "delegate", "arguments": task}], match="begin", times=1),
        Tools([WRITE], match="begin", times=1),
        Tools(
            [{**WRITE, "arguments": {"path": "more.txt", "content": "x"}}], match="count", times=1
        ),
        Text("Done."),
    )
    chat = place.chat()
    chat.send("begin")
    first, _ = [chat.wait("question") for _ in range(2)]
    if said == "always":
        chat.answer(first, "always", "m*")
    else:
        assert chat.ask(said)["ok"]
    chat.wait("turn_ended", status="completed", session=chat.session)
    assert chat.close() == 0
    ends = [event["status"] for event in chat.seen("tool_ended", tool="write")]
    assert ends == ["ok", "ok"]
    rules = {event.get("rule") for event in chat.seen("answered")}
    asked = {None} if said == "always" else set()
    assert rules - asked == {said[1:] if said.startswith("/mode") else 'write "m*": allow'}


def test_a_subagents_question_is_answered_by_its_place(place: Place, serve) -> None:
    """`q1` is the first that is open, also where only a subagent asks."""
    task = {"task": "count", "name": "kid", "background": True}
    begin = Tools([{"tool": "delegate", "arguments": task}], match="begin", times=1)
    serve(begin, Tools([WRITE], match="count", times=1), Text("Done."))
    chat = place.chat()
    chat.send("begin")
    question = chat.wait("question")
    refused = place.run("sessions", "answer", "last", "q2", "allow")
    assert (refused.returncode, f"Open: {question['id']}." in refused.stderr) == (1, True)
    assert place.data("sessions", "answer", "last", "q1", "allow")["id"] == question["id"]
    chat.wait("tool_ended", tool="write", status="ok")


@pytest.mark.parametrize("mode", ["plan", ""])
def test_a_queue_is_resumed_in_the_mode_that_was_chosen_here(
    place: Place, serve, mode: str
) -> None:
    """What a person sets before holds in the session that goes on; else its own mode is told."""
    server = serve(Hang(), Tools([SHELL]), Text("Done."))
    chat = place.chat("--mode", "all")
    chat.send("work")
    server.wait_requests(1, WAIT)
    chat.wait("turn_started")
    chat.kill()
    again = place.chat()
    again.wait("saved_queues")
    if mode:
        assert again.ask(f"/mode {mode}")["ok"]
    again.completes("/queue resume")
    (ended,) = again.seen("tool_ended")
    assert ended["status"] == ("denied" if mode else "ok")
    (told,) = [event["text"] for event in again.seen("notice") if "goes on:" in event["text"]]
    assert told.startswith(f"Session {chat.session} goes on: mode {mode or 'all'}: may read here")


def test_a_hold_waits_whatever_is_allowed(place: Place, serve) -> None:
    """A mode answers no question about a call that a person holds."""
    serve(Tools([WRITE]), Text("Done."))
    chat = place.chat()
    assert chat.ask("/hold write *")["ok"]
    question = chat.causes("write", "question")
    assert chat.ask("/mode all")["ok"]
    assert chat.seen("answered") == []
    chat.answer(question, "deny")
    chat.wait("turn_ended", status="completed")


def test_only_a_person_raises_the_mode(place: Place, serve) -> None:
    """A project's file does not, trusted or not, nor an imported session; a wrong name is refused."""
    serve(Tools([WRITE]), Text("Done."), top='permission_mode = "plan"')
    (place.folder / "steersman.toml").write_text('permission_mode = "all"\n')
    assert place.run("trust", "--yes").returncode == 0
    chat = place.chat()
    chat.wait_text("cannot set `permission_mode`")
    assert chat.ask("/mode")["data"]["mode"] == "plan"
    assert chat.ask("/mode all")["ok"]
    assert chat.close() == 0
    file = place.folder / "session.json"
    assert place.run("sessions", "export", "last", str(file), "--whole").returncode == 0
    taken = place.data("sessions", "import", str(file), "--new-id")
    imported = place.chat("--resume", taken["session"])
    assert imported.session != chat.session
    assert imported.ask("/mode")["data"]["mode"] == "plan"
    assert imported.close() == 0
    ran = place.run("chat", "--mode", "sideways", "hi")
    assert (ran.returncode, "modes: ask, edits, plan, all" in ran.stderr) == (2, True)
