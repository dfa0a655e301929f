"""Tools of the configuration, by a real script: asked about, run, refused, stopped, killed."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.driver import Gate, Place, wait_gone
from support.model_server import Text, Tools

TICKET = """
[[tool]]
name = "ticket"
description = "Look up a ticket."
run = ["./ticket.sh"]
{more}
[tool.parameters]
id = {{ type = "string", description = "The ticket's number" }}
fields = {{ type = "array", items = {{ enum = ["title", "state"] }}, default = ["title"] }}
"""
AGENT = """
tools = ["read", "ticket"]
"""
ALLOWED = """
[permissions]
rules = [{ tool = "ticket", do = "allow" }]
"""
CALL = {"tool": "ticket", "arguments": {"id": "7"}}


def script(place: Place, text: str) -> Path:
    """Write the tool's script beside the configuration that declares it."""
    file = place.home / "ticket.sh"
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return file


@pytest.fixture
def begin(place: Place, serve: Any) -> Any:
    """Serve a model and configure the tool, its script, and the assistant that has it."""

    def start(text: str, *behaviours: Any, more: str = "", rest: str = ALLOWED) -> Any:
        script(place, text)
        server = serve(*behaviours, rest=f"{rest}{TICKET.format(more=more)}")
        file = place.home / "config.toml"
        assistant = '[agents.assistant]\nmodel = "main"\n'
        file.write_text(file.read_text().replace(assistant, f"{assistant}{AGENT}"))
        return server

    return start


def said_to_model(server: Any) -> str:
    """What the model was sent last."""
    return str(server.requests[-1].body["messages"][-1]["content"])


def test_the_script_gets_json_and_prints_the_result(place: Place, begin: Any) -> None:
    """It runs in the session's folder; the model gets what it prints, and no errors beside it."""
    server = begin(
        "pwd; cat; echo beside >&2; env | grep -c KEY",
        Tools([CALL]),
        Text("Fine."),
        more="timeout = 20",
    )
    place.environ["OPENAI_API_KEY"] = "sk-4711"
    chat = place.chat("--", "look it up")
    chat.wait("turn_ended", status="completed")
    assert chat.close() == 0
    (ended,) = chat.seen("tool_ended")
    assert (ended["status"], ended["exit_code"]) == ("failed", 1)  # grep found no key
    folder, given, keys, beside, end = said_to_model(server).splitlines()
    assert folder == str(place.folder)
    assert json.loads(given) == {"id": "7", "fields": ["title"]}
    assert (keys, beside, end) == ("0", "beside", "[exit code 1]")
    (offered,) = [
        tool["function"]
        for tool in server.requests[0].body["tools"]
        if tool["function"]["name"] == "ticket"
    ]
    assert offered["description"] == "Look up a ticket."
    assert offered["parameters"]["required"] == ["id"]
    assert offered["parameters"]["properties"]["id"] == {
        "type": "string",
        "description": "The ticket's number",
    }


def test_what_does_not_fit_is_refused_before_it_runs(place: Place, begin: Any) -> None:
    """Each fault of the arguments is a sentence to the model, and the script does not run."""
    wrong = [
        ({}, "`id` is missing"),
        ({"id": 7}, "`id` must be a text"),
        ({"id": "7", "fields": ["title", "stat"]}, '`fields[1]` must be one of "title", "state"'),
        ({"id": "7", "key": "x"}, "`key` is not an argument of this tool"),
        ('{"id": "7"', ""),
    ]
    calls = [{"tool": "ticket", "arguments": arguments} for arguments, _ in wrong]
    server = begin("touch ran", Tools(calls), Tools([CALL]), Text("Fine."))
    chat = place.chat("look it up")
    chat.wait("turn_ended", status="completed")
    said = str(server.requests[1].body["messages"])
    assert [fault for _, fault in wrong if fault not in said.replace('\\\\"', '"')] == []
    told = [event["status"] for event in chat.seen("tool_ended")]
    assert told == ["failed"] * 5 + ["ok"]
    assert said_to_model(server) == "(no output)"
    assert (place.folder / "ran").exists()


def test_it_is_asked_about_with_its_whole_arguments(place: Place, begin: Any) -> None:
    """Without a rule each call is a question; a denied one does not run; `always` holds on."""
    exact = {"id": "7 \x1b[2J\u202e", "fields": []}
    call = {"tool": "ticket", "arguments": exact}
    server = begin(
        "echo ran >> ran; echo done",
        Tools([call]),
        Text("So be it."),
        Tools([call]),
        Tools([CALL]),
        Text("End."),
        rest="",
    )
    chat = place.chat("begin")
    question = chat.wait("question")
    assert (question["tool"], question["arguments"]) == ("ticket", exact)
    assert (question["rule"], question["kind"]) == ('* "*": ask', "permission")
    chat.answer(question, "deny")
    chat.wait("turn_ended", status="completed")
    assert "the user said no" in said_to_model(server)
    assert not (place.folder / "ran").exists()
    question = chat.causes("again", "question")
    chat.answer(question, "always")
    chat.wait("turn_ended", status="completed")
    assert (place.folder / "ran").read_text() == "ran\nran\n"
    assert chat.ask("/permissions allow ticket *")["ok"]
    assert not chat.ask("/permissions allow tickt *")["ok"]
    assert chat.close() == 0
    explained = place.run("permissions", "explain", "x", "--tool", "ticket")
    assert (explained.returncode, "ticket x: ask" in explained.stdout) == (0, True)


STUBBORN = "trap '' TERM; (setsid sleep 600 &); {gate}; sleep 600"


def test_a_time_limit_ends_all_that_it_started(place: Place, begin: Any, gate: Gate) -> None:
    """After `timeout` seconds everything is dead, and the model is told what happened."""
    server = begin(
        "echo before; (setsid sleep 600 &); sleep 600",
        Tools([CALL]),
        Text("Too slow."),
        more="timeout = 0.5",
    )
    chat = place.chat("go")
    chat.wait("tool_ended", status="timed_out")
    chat.wait("turn_ended", status="completed")
    assert said_to_model(server) == "before\n[timed out after 0.5 s and was stopped]"
    assert not [process for process in place.processes().values() if "sleep" in process]


def test_a_stop_in_the_middle_leaves_nothing(place: Place, begin: Any, gate: Gate) -> None:
    """An interrupt ends the script and what it started in the background, also against their will."""
    begin(STUBBORN.format(gate=gate.command), Tools([CALL]))
    chat = place.chat("go")
    gate.wait()
    stopped = chat.causes("stop", "stopped")
    assert (len(stopped["killed"]) >= 2, stopped["survivors"]) == (True, [])
    assert not [process for process in place.processes().values() if "sleep" in process]
    assert [event["status"] for event in chat.seen("tool_ended")] == ["killed"]


def test_killed_in_the_tool_its_outcome_is_unknown(place: Place, begin: Any, gate: Gate) -> None:
    """After kill -9 the script is dead, it does not run again, and the model is told to look."""
    server = begin(
        f"echo x >> ran; {STUBBORN.format(gate=gate.command)}", Tools([CALL]), Text("I see.")
    )
    chat = place.chat("go")
    gate.wait()
    chat.kill()
    assert not wait_gone(place.processes())
    chat = place.chat("--continue")
    chat.wait("recovered", cause="crash")
    chat.completes("/queue resume")
    assert "A call without a result may or may not have had its effect" in said_to_model(server)
    assert (place.folder / "ran").read_text() == "x\n"


@pytest.mark.parametrize("is_known", [True, False])
def test_asked_afterwards_it_tells_what_became_of_a_call(
    place: Place, begin: Any, gate: Gate, is_known: bool
) -> None:
    """After kill -9 `outcome` gets the call's id; only if it fails the outcome is unknown."""
    booking = 'echo "$STEERSMAN_SESSION $STEERSMAN_CALL" >> ran'
    server = begin(
        f"{booking}; {STUBBORN.format(gate=gate.command)}",
        Tools([CALL]),
        Text("I see."),
        more='outcome = ["./asked.sh", "--of"]',
    )
    asked = place.home / "asked.sh"
    asked.write_text(f'#!/bin/sh\necho "$@ $(cat)"\nexit {0 if is_known else 3}\n')
    asked.chmod(0o755)
    chat = place.chat("go")
    gate.wait()
    session = chat.session
    chat.kill()
    assert not wait_gone(place.processes())
    chat = place.chat("--continue")
    recovered = chat.wait("recovered", cause="crash")
    call = (place.folder / "ran").read_text().split()[1]
    assert [event["call"] for event in recovered["found"]] == [call] * is_known
    assert [event["call"] for event in recovered["unknown"]] == [call] * (not is_known)
    chat.completes("/queue resume")
    (told,) = [one for one in server.requests[-1].body["messages"] if one["role"] == "tool"]
    said = f'its tool says:]\n--of {call} {{"fields": ["title"], "id": "7"}}'
    assert (said in told["content"]) == is_known
    assert ("Unknown outcome" in told["content"]) == (not is_known)
    assert (place.folder / "ran").read_text() == f"{session} {call}\n"


@pytest.mark.parametrize("mutating", [False, True])
def test_mutating_says_whether_the_folder_is_looked_at(
    place: Place, begin: Any, mutating: bool
) -> None:
    """What a mutating tool wrote is reverted with its turn; of another one nothing is known."""
    begin(
        "echo new > notes.txt",
        Tools([CALL]),
        Text("Done."),
        more=f"mutating = {str(mutating).lower()}",
    )
    (place.folder / "notes.txt").write_text("old\n")
    chat = place.chat("go")
    chat.wait("turn_ended", status="completed")
    chat.ask("/revert")
    assert chat.close() == 0
    assert (place.folder / "notes.txt").read_text() == ("old\n" if mutating else "new\n")


def test_a_project_that_is_not_trusted_brings_no_tool(place: Place, serve: Any) -> None:
    """Its script does not run, and its tool is not there, until `steersman trust`."""
    rest = '[permissions]\nrules = [{ tool = "*", do = "allow" }]\n'
    server = serve(Tools([CALL]), Text("No."), Tools([CALL]), Text("Yes."), rest=rest)
    (place.folder / "ticket.sh").write_text("#!/bin/sh\ntouch ran\n")
    (place.folder / "ticket.sh").chmod(0o755)
    project = TICKET.format(more="") + '[agents.assistant]\ntools = ["ticket"]\n'
    (place.folder / "steersman.toml").write_text(project)
    chat = place.chat("go")
    chat.wait_text("`tool`, `agents` not applied")
    chat.wait("turn_ended", status="completed")
    assert chat.close() == 0
    assert "there is no tool `ticket`" in said_to_model(server)
    assert not (place.folder / "ran").exists()
    trusted = place.run("trust", "--yes")
    assert trusted.returncode == 0, trusted.stderr
    assert "./ticket.sh" in trusted.stdout
    chat = place.chat("go")
    chat.wait("turn_ended", status="completed")
    assert (place.folder / "ran").exists()


def test_a_script_that_cannot_run_is_a_failure(place: Place, begin: Any) -> None:
    """The model is told that the program is not there; `config check` reports a name that is taken."""
    server = begin("true", Tools([CALL]), Text("A pity."))
    (place.home / "ticket.sh").unlink()
    chat = place.chat("go")
    chat.wait("turn_ended", status="completed")
    assert chat.close() == 0
    assert "ticket.sh" in said_to_model(server)
    assert said_to_model(server).startswith("Error: ")
    file = place.home / "config.toml"
    file.write_text(file.read_text().replace('name = "ticket"', 'name = "shell"'))
    checked = place.run("config", "check")
    assert checked.returncode == 2
    assert "`tool[0].name` is taken: `shell` is a built-in tool" in checked.stderr
    assert "tools[1]` must be one of" in checked.stderr
