"""The answers of slash commands hold the right data: what was said, ids, counts, effects on disk.

Each test also runs against an echo of each command that it names, and has to fail then (`conftest.py`).
"""

import json
import os
import sys

import pytest
from support.driver import Chat, Gate, Place
from support.mcp_servers import SERVER
from support.model_server import Hang, Text, Tools, shell
from support.patience import seconds

checks_data = pytest.mark.checks_data

WRITES = Tools([{"tool": "write", "arguments": {"path": "a.txt", "content": "new\n"}}])
ALLOWED = '[permissions]\nrules = [{ tool = "*", do = "allow" }]\n'


def answered(place: Place, said: str | dict[str, str] = "which colour?") -> Chat:
    """Start a chat and have one message answered."""
    chat = place.chat()
    chat.completes(said)
    return chat


@checks_data("/history", "/receipts", "/usage", "/inspect", "/export")
def test_what_is_known_of_a_session(place: Place, serve) -> None:
    """The conversation, the outcome of its message, its tokens and its id."""
    serve(Text("Blue."))
    chat = answered(place, {"text": "which\n\ncolour?"})
    said = [("user", "which\n\ncolour?"), ("assistant", "Blue.")]
    messages = chat.ask("/history")["data"]["messages"]
    assert [(message["role"], message["text"]) for message in messages] == said
    assert len(chat.ask("/history 1")["data"]["messages"]) == 1
    (receipt,) = chat.ask("/receipts")["data"]["receipts"]
    assert (receipt["text"], receipt["state"], receipt["turn"]) == (said[0][1], "done", "t1")
    assert chat.ask("/receipts")["text"] == "m1 #1 done (t1)  which colour?"
    (ended,) = chat.seen("turn_ended")
    used = chat.ask("/usage")["data"]["session"]
    assert (used["input"], used["output"]) == (ended["usage"]["input"], ended["usage"]["output"])
    assert used["output"] > 0
    dump = chat.ask("/inspect")["data"]
    assert (dump["id"], dump["turn"]) == (chat.session, "t1")
    chat.ask("/export out.md")
    assert "Blue." in (place.folder / "out.md").read_text()
    chat.ask("/export out.json")
    assert "Blue." in json.dumps(json.loads((place.folder / "out.json").read_text()))


@checks_data("/rename", "/resume", "/new")
def test_sessions_change_names_and_places(place: Place, serve) -> None:
    """A name is stored; a new session has another id; the first can be listed and taken up."""
    serve(Text("Blue."))
    chat = answered(place)
    first = chat.session
    chat.ask("/rename colours")
    assert place.stored(first)["name"] == "colours"
    assert chat.close() == 0
    chat = place.chat()
    second = chat.session
    listed = chat.ask("/resume")["data"]["sessions"]
    assert [(row["id"], row["name"]) for row in listed] == [(first, "colours")]
    begun = chat.ask("/new")["data"]
    assert begun["finalized"] == second
    assert chat.seen("session_started")[-1]["session"] == begun["session"] != second
    taken = chat.ask(f"/resume {first[:5]}")
    assert taken["data"]["session"] == first
    assert len(chat.ask("/history")["data"]["messages"]) == 2


@checks_data("/exit")
def test_exit_leaves_a_session_that_can_be_resumed(place: Place, serve) -> None:
    """The program ends, and the session is suspended."""
    serve(Text("Blue."))
    chat = answered(place)
    assert not chat.ask("/exit")["data"]
    assert chat.ended() == 0
    assert place.stored(chat.session)["state"] == "suspended"


@checks_data("/finalize")
def test_finalize_ends_the_session(place: Place, serve) -> None:
    """The program ends, and the session is over."""
    serve(Text("Blue."))
    chat = answered(place)
    assert chat.ask("/finalize")["data"]["session"] == chat.session
    assert chat.ended() == 0
    assert place.stored(chat.session)["state"] == "finalized"


@checks_data("/help")
def test_help_names_every_command(place: Place, serve) -> None:
    """With the verbs of one, if it is named."""
    from steersman.gateway.commands.registry import COMMANDS, DECLARED

    serve()
    chat = place.chat()
    assert {row["name"] for row in chat.ask("/help")["data"]["commands"]} == COMMANDS.keys()
    of_queue = {name for name in DECLARED if name.split()[0] == "queue"}
    assert {row["name"] for row in chat.ask("/help queue")["data"]["commands"]} == of_queue


@checks_data("/show", "/diff", "/revert")
def test_what_a_call_did_to_a_file(place: Place, serve) -> None:
    """The call with its arguments, the change of the file, and the file as it was before."""
    (place.folder / "a.txt").write_text("old\n")
    serve(WRITES, Text("Done."), rest=ALLOWED)
    chat = answered(place)
    (call,) = chat.ask("/show")["data"]["calls"]
    assert (call["tool"], call["arguments"]["content"]) == ("write", "new\n")
    assert chat.ask("/show last")["data"]["call"] == call["call"]
    diff = chat.ask("/diff")
    assert diff["data"]["files"] == [{"path": "a.txt", "change": "modified"}]
    assert "-old\n+new" in diff["text"]
    assert chat.ask("/revert")["data"]["restored"] == ["a.txt"]
    assert (place.folder / "a.txt").read_text() == "old\n"


@checks_data("/limits", "/busy")
def test_settings_of_the_session(place: Place, serve) -> None:
    """The configured values, and what became of them here."""
    limits = "[limits]\nmax_tokens = 12345\n"
    serve(top='busy_input_mode = "steer"', rest=limits)
    chat = place.chat()
    assert chat.ask("/busy")["data"]["busy_input_mode"] == "steer"
    chat.ask("/busy queue")
    assert chat.ask("/busy")["data"]["busy_input_mode"] == "queue"
    found = chat.ask("/limits")["data"]
    assert (found["max_tokens"], found["grants"]) == (12345, 0)
    assert chat.ask("/limits more")["data"]["max_tokens"] == 2 * 12345


@checks_data("/model")
def test_the_model_is_the_one_that_is_asked(place: Place, serve) -> None:
    """Its name, the names of the others, and who answers after a change."""
    serve(Text("Blue."))
    script = place.home / "script.toml"
    script.write_text('[[answer]]\ntext = "Green."\n')
    more = f'[models.other]\nprovider = "scripted"\nscript = "{script}"\n'
    config = place.home / "config.toml"
    config.write_text(config.read_text() + more)
    chat = answered(place)
    shown = chat.ask("/model")["data"]
    assert (shown["model"].split()[0], {"main", "other"} <= {*shown["known"]}) == ("main", True)
    chat.ask("/model other")
    assert chat.causes("which now?", "text")["delta"].startswith("Green")
    chat.wait("turn_ended", status="completed")


@checks_data(
    "/permissions",
    "/permissions list",
    "/permissions explain",
    "/permissions allow",
    "/permissions forget",
)
def test_rules_and_allowances(place: Place, serve) -> None:
    """The configured rules with their file; what is allowed here, and asked about again."""
    serve(rest='[permissions]\nrules = [{ tool = "shell", match = "git *", do = "deny" }]\n')
    chat = place.chat()
    own = {"n": 1, "tool": "shell", "match": "git *", "do": "deny"}
    for command in ("/permissions", "/permissions list"):
        first = chat.ask(command)["data"]["rules"][0]
        assert first == {**own, "source": str(place.home / "config.toml")}
    assert chat.ask("/permissions explain shell git log")["data"]["do"] == "deny"
    assert chat.ask("/permissions explain shell make")["data"]["do"] == "ask"
    assert chat.ask("/permissions allow shell make *")["ok"]
    (allowed,) = chat.ask("/permissions")["data"]["allowed"]
    assert (allowed["tool"], allowed["match"]) == ("shell", "make *")
    assert chat.ask("/permissions explain shell make all")["data"]["do"] == "allow"
    assert chat.ask("/permissions forget 1")["data"]["match"] == "make *"
    assert chat.ask("/permissions")["data"]["allowed"] == []


@checks_data("/routes", "/routes use", "/routes explain")
def test_the_routing_table_of_the_session(place: Place, serve) -> None:
    """Its name, the row that decides about a message, and the table that was chosen here."""
    serve()
    chat = place.chat()
    assert chat.ask("/routes")["data"]["table"] == "steersman"
    assert chat.ask("/routes explain hello")["data"]["rule"] == "run"
    chat.ask("/routes use never-cancel --unsafe")
    found = chat.ask("/routes")["data"]
    assert (found["table"], found["is_chosen"]) == ("never-cancel", True)


@checks_data("/tools", "/mcp", "/mcp restart", "/permissions allow")
def test_tools_and_servers(place: Place, serve) -> None:
    """The tools of an MCP server with their decisions, and its process, which a restart replaces."""
    odd = f"[mcp.odd]\ncommand = [{json.dumps(sys.executable)}, {json.dumps(str(SERVER))}]\n"
    odd += f"wait = {seconds(30)}\n"
    declared = '[[tool]]\nname = "ticket"\ndescription = "A ticket."\nrun = ["true"]\n'
    agent = '[agents.handy]\nmodel = "main"\ntools = ["read", "ticket", "mcp__odd__echo"]\n'
    rules = '[permissions]\nrules = [{ tool = "mcp__odd__echo", do = "deny" }]\n'
    serve(Text("Hello."), rest=odd + declared + agent + rules, top='default_agent = "handy"')
    chat = answered(place)
    tools = {tool["name"]: tool for tool in chat.ask("/tools")["data"]["tools"]}
    assert {"read", "ticket", "mcp__odd__echo"} <= tools.keys()
    echo = tools["mcp__odd__echo"]
    assert (echo["from"], echo["do"]) == ("mcp.odd", "deny")
    assert [*echo["parameters"]["properties"]] == ["text"]
    assert (tools["ticket"]["from"], tools["read"]["from"]) == ("configuration", "built in")
    (server,) = chat.ask("/mcp")["data"]["servers"]
    assert (server["name"], server["state"], server["program"]) == ("odd", "ready", "odd 1")
    assert "echo" in server["tools"]
    os.kill(server["pid"], 0)
    begun = chat.ask("/mcp restart odd")["data"]
    assert (begun["state"], begun["pid"] != server["pid"]) == ("ready", True)
    assert server["pid"] not in place.processes()
    assert chat.ask("/mcp")["data"]["servers"][0]["pid"] == begun["pid"]
    for name, is_there in (("mcp__odd__echo", True), ("ticket", True), ("mcp__odd__nope", False)):
        assert chat.ask(f"/permissions allow {name} *")["ok"] is is_there
    allowed = chat.ask("/permissions")["data"]["allowed"]
    assert [rule["tool"] for rule in allowed] == ["mcp__odd__echo", "ticket"]


@checks_data("/skills", "sessions skills")
def test_skills(place: Place, serve) -> None:
    """The person's own, with their places, and why one is left out."""
    for name, head in (("release", "description: Make a release"), ("broken", "name: broken")):
        file = place.home / "skills" / name / "SKILL.md"
        file.parent.mkdir(parents=True)
        file.write_text(f"---\n{head}\n---\nDo it.\n")
    serve(Text("Hello."))
    chat = answered(place)
    found = chat.ask("/skills")["data"]
    told = [(one["name"], one["description"], one["needs"]) for one in found["skills"]]
    assert told == [("release", "Make a release", "")]
    assert found["skills"][0]["file"] == str(place.home / "skills" / "release" / "SKILL.md")
    (fault,) = found["left_out"]
    assert fault.startswith(str(place.home / "skills" / "broken" / "SKILL.md"))
    assert chat.close() == 0
    assert place.data("sessions", "skills", "last") == found


# Turns, subagents and goals -----------------------------------------------------------------------


def at_work(place: Place, gate: Gate, *said: str) -> Chat:
    """Start a chat whose first turn is at the gate, and queue more messages."""
    chat = place.chat("--yes", "begin")
    chat.wait("accepted")
    gate.wait()
    for text in said:
        chat.causes({"text": text, "as": "queue"}, "accepted", text=text)
    return chat


@checks_data("/stop", "/steer", "/smalltalk")
def test_what_is_said_to_a_turn(place: Place, serve, gate: Gate) -> None:
    """A steer and a side talk are accepted as that, and a stop names the turn that it ended."""
    serve(Tools([gate.call]), Text("Seven.", match="how many"), Text("Done."))
    chat = at_work(place, gate)
    for command, way in (("/steer use tabs", "steer"), ("/smalltalk how many?", "side_talk")):
        taken = chat.causes(command, "accepted")
        chat.ask("/queue")
        assert (taken["as"], taken["text"]) == (way, command.partition(" ")[2])
    assert chat.wait("side_talk_ended")["text"] == "Seven."
    assert chat.ask("/stop")["data"]["interrupted"] == "t1"
    chat.wait("turn_ended", status="interrupted")


@checks_data("/undo", "/queue list", "/queue steer")
def test_what_waits_beside_a_turn(place: Place, serve, gate: Gate) -> None:
    """A message that steered waits again, is listed, and is handed to the turn by its number."""
    serve(Tools([gate.call]), Text("Done."))
    chat = at_work(place, gate)
    number = chat.causes({"text": "use tabs", "as": "steer"}, "accepted", text="use tabs")["number"]
    assert chat.ask("/undo")["data"]["number"] == number
    running, item = chat.ask("/queue list")["data"]["items"]
    assert (running["state"], item["number"], item["text"]) == ("running", number, "use tabs")
    assert chat.ask(f"/queue steer {number}")["data"]["turn"] == "t1"
    gate.open()
    assert chat.wait("steered")["text"] == "use tabs"
    chat.wait("turn_ended", status="completed")


@checks_data("/queue keep")
def test_an_answer_that_is_kept_becomes_a_message(place: Place, serve, gate: Gate) -> None:
    """The number is that of the offered answer, which then waits."""
    serve(Tools([gate.call]), Text("Seven.", match="how many"), Text("Done."))
    chat = at_work(place, gate)
    number = chat.causes("/smalltalk how many?", "side_talk_ended")["number"]
    assert chat.ask("/queue keep")["data"]["number"] == number
    states = {item["number"]: item["state"] for item in chat.ask("/queue")["data"]["items"]}
    assert states[number] == "pending"
    chat.ask("/stop")


@checks_data("/answer")
def test_an_answer_lets_the_call_run(place: Place, serve) -> None:
    """The reply names the question, and the call has its effect."""
    touch = shell("touch made")
    serve(touch, Text("Done."))
    chat = place.chat("make it")
    question = chat.wait("question")["id"]
    assert chat.ask(f"/answer {question} allow")["data"] == {"id": question, "choice": "allow"}
    chat.wait("turn_ended", status="completed")
    assert (place.folder / "made").exists()


@checks_data("/queue export", "/queue import", "/queue discard", "/queue restore")
def test_saved_queues_move_through_files_and_sessions(place: Place, serve, gate: Gate) -> None:
    """The file has the texts, an import adds them, and a queue is found, brought here and deleted."""
    serve(Tools([gate.call]), Text("Done."))
    chat = at_work(place, gate, "one", "two")
    first = chat.session
    assert chat.ask("/queue export q.toml")["data"]["items"] == 3
    assert 'content = "two"' in (place.folder / "q.toml").read_text()
    chat.ask("/stop")
    chat.wait("turn_ended", status="interrupted")
    assert chat.close() == 0
    chat = place.chat()
    imported = chat.ask("/queue import q.toml")["data"]["imported"]
    assert len(imported) == 3
    assert len(chat.ask("/queue discard")["data"]["withdrawn"]) == 3
    (saved,) = chat.ask("/queue restore --list")["data"]["saved"]
    assert (saved["session"], [item["text"] for item in saved["items"]][1:]) == (
        first,
        ["one", "two"],
    )
    brought = chat.ask(f"/queue restore {first}")["data"]
    assert len(brought["imported"]) == 3


@checks_data("/agents", "/agents list", "/agents show", "/agents stop", "/agents wrap-up")
def test_subagents(place: Place, serve, gate: Gate) -> None:
    """Their names, tasks and states; who is stopped is cancelled, and who wraps up is asked to."""
    kid = {"task": "count the stars", "name": "kid"}
    delegate = Tools([{"tool": "delegate", "arguments": kid}], match="begin")
    serve(delegate, Tools([gate.call], match="stars"), Text("Done."))
    chat = at_work(place, gate)
    for listing in ("/agents", "/agents list"):
        (found,) = chat.ask(listing)["data"]["agents"]
        state = (found["name"], found["task"], found["state"])
        assert state == ("kid", "count the stars", "working")
    seen = chat.ask("/agents show kid")["data"]
    assert seen["id"] == found["id"]
    assert [message["role"] for message in seen["messages"]] == ["user", "assistant"]
    assert "count the stars" in seen["messages"][0]["text"]
    assert not chat.ask("/agents show nobody")["ok"]
    asked = chat.ask("/agents wrap-up kid")["data"]
    assert (asked["name"], asked["seconds"] > 0) == ("kid", True)
    assert not chat.ask("/agents stop nobody")["ok"]
    assert chat.ask("/agents stop kid")["data"]["name"] == "kid"
    assert chat.wait("child_ended")["status"] == "cancelled"
    chat.wait("turn_ended", status="completed", session=chat.session)


@checks_data("/goal", "/goal status", "/goal pause", "/goal resume", "/goal next", "/goal clear")
def test_goals(place: Place, serve) -> None:
    """The goal with its state and budget, in each of which it is put."""
    serve(Hang())
    chat = place.chat()
    begun = chat.ask("/goal --turns 7 count to three")["data"]
    assert (begun["text"], begun["state"], begun["max_turns"]) == ("count to three", "active", 7)
    assert chat.ask("/goal status")["data"]["text"] == "count to three"
    assert chat.ask("/goal pause")["data"]["state"] == "paused"
    assert chat.ask("/goal status")["data"]["reason"] == "user"
    assert chat.ask("/stop")["ok"]
    chat.wait("turn_ended", status="interrupted")
    assert chat.ask("/goal resume")["data"]["state"] == "active"
    lined = chat.ask("/goal next count to four")["data"]
    assert (lined["place"], lined["next"][0]["text"]) == (1, "count to four")
    assert chat.ask("/goal clear")["data"]["state"] == "cleared"
    chat.ask("/stop")
