"""The commands of the command line hold the right data: what was said, ids, counts, effects on disk.

Each test also runs against an echo of each command that it names, and has to fail then (`conftest.py`).
"""

import json
import subprocess
import tomllib
from collections.abc import Callable
from subprocess import PIPE
from typing import Any

import pytest
from support.driver import Gate, Place
from support.model_server import Hang, Text, Tools

from steersman.cli.commands.sessions import COMMANDS, EXCEPTIONS

checks_data = pytest.mark.checks_data

WRITES = Tools([{"tool": "write", "arguments": {"path": "a.txt", "content": "new\n"}}])
ALLOWED = '[permissions]\nrules = [{ tool = "*", do = "allow" }]\n'


def told(place: Place, *arguments: str, **options: Any) -> str:
    """Run a command, and return what it prints."""
    ran = place.run(*arguments, **options)
    assert ran.returncode == 0, ran.stderr
    return str(ran.stdout)


@pytest.fixture
def session(place: Place, serve: Callable[..., Any]) -> str:
    """The id of a session in which one message was answered; it is open nowhere."""
    serve(WRITES, Text("Blue."), rest=ALLOWED)
    (place.folder / "a.txt").write_text("old\n")
    chat = place.chat("which colour?")
    chat.wait("turn_ended", status="completed")
    assert chat.close() == 0
    return chat.session


# Sessions -----------------------------------------------------------------------------------------


@checks_data("chat")
def test_one_question_is_answered(place: Place, serve) -> None:
    """What the model says is what is printed."""
    serve(Text("Blue."))
    assert told(place, "chat", "which colour?") == "Blue.\n"


@checks_data("inspect", "why", "sessions list", "sessions show", "sessions search")
def test_what_is_known_of_a_session(place: Place, session: str) -> None:
    """Its id, its conversation, and the story of its message."""
    dump = place.stored()
    assert (dump["id"], dump["turn"]) == (session, "t1")
    story = place.data("why", "last", "1")
    assert (story["session"], story["message"]["text"]) == (session, "which colour?")
    (row,) = place.data("sessions", "list")["sessions"]
    assert (row["id"], row["state"], row["folder"]) == (session, "left", str(place.folder))
    messages = place.data("sessions", "show", session)["messages"]
    assert (messages[0]["text"], messages[-1]["text"]) == ("which colour?", "Blue.")
    (found,) = place.data("sessions", "search", "lue.")["found"]
    assert (found["session"], found["text"]) == (session, "Blue.")


@pytest.mark.nightly
@checks_data("sessions rename", "sessions fork", "sessions export", "sessions import")
def test_sessions_are_named_copied_and_moved(place: Place, session: str) -> None:
    """A name finds it; a fork and an import have ids of their own and the conversation."""
    place.run("sessions", "rename", session, "colours")
    assert place.stored("colours")["id"] == session
    made = place.data("sessions", "fork", session)["session"]
    assert made != session
    assert "Blue." in told(place, "sessions", "show", made)
    assert "Blue." in told(place, "sessions", "export", session)
    place.run("sessions", "export", session, "s.json")
    assert "Blue." in (place.folder / "s.json").read_text()
    brought = place.data("sessions", "import", "s.json", "--new-id")["session"]
    ids = {row["id"] for row in place.data("sessions", "list")["sessions"]}
    assert ids == {session, made, brought}


@checks_data("sessions revert", "sessions finalize", "sessions delete")
def test_sessions_are_taken_back_ended_and_deleted(place: Place, session: str) -> None:
    """The file is as it was before; the state is finalized; the session is gone."""
    reverted = place.data("sessions", "revert", session)
    assert reverted["restored"] == ["a.txt"]
    assert (place.folder / "a.txt").read_text() == "old\n"
    place.run("sessions", "finalize", session)
    assert place.stored(session)["state"] == "finalized"
    place.run("sessions", "delete", session, "--yes")
    assert place.data("sessions", "list")["sessions"] == []


@pytest.mark.nightly
@checks_data("sessions prune", "home trash")
def test_an_old_session_is_pruned_restored_and_emptied(place: Place, session: str) -> None:
    """It goes to the trash after eight days of use, comes back, and stays when the trash is emptied.

    Its saved queue never was one. A second session is still in the trash then, and is deleted.
    """
    again = place.run("chat", "hello again")
    assert again.returncode == 0, again.stderr
    other = place.stored()["id"]
    for name in (session, other):
        place.run("sessions", "finalize", name)
    place.alter("UPDATE sessions SET row = json_replace(row, '$.updated', 0.0)")
    days = "".join(f"{day * 86400.0}\n" for day in range(1, 9))
    (place.home / "state" / "trash" / "starts").write_text(days)
    pruned = place.data("sessions", "prune", "--finalized")
    assert (set(pruned["trashed"]), pruned["deleted"]) == ({session, other}, [])
    assert place.data("sessions", "list")["sessions"] == []
    restored = place.data("home", "trash", "restore", f"session-{session}")
    assert restored == {"restored": f"session-{session}", "of": session}
    trash = place.data("home", "trash")["trash"]
    assert f"session-{other}" in {found["id"] for found in trash}
    emptied = place.data("home", "trash", "empty", "--yes")["deleted"]
    assert emptied["session"] == [other]
    (row,) = place.data("sessions", "list")["sessions"]
    assert row["id"] == session


@checks_data("sessions resume", "send", "queue resume")
def test_a_message_from_elsewhere_runs_when_the_session_is_resumed(
    place: Place, session: str
) -> None:
    """Its number is that in the queue, and its answer comes in the chat that is opened."""
    sent = place.data("send", session, "and now?")
    assert (sent["as"], sent["number"], sent["session"]) == ("queue", 1, session)
    refused = place.run("queue", "resume", "--session", session)
    assert (refused.returncode, session in refused.stderr) == (1, True)
    ran = place.run("sessions", "resume", session, said="/queue resume\n")
    assert ran.returncode == 0, ran.stderr
    assert "Blue." in ran.stdout
    assert place.data("queue", "list")["items"] == []


@checks_data("stop", "attach")
def test_a_turn_is_followed_and_stopped_from_elsewhere(place: Place, serve, gate: Gate) -> None:
    """The second terminal hears of the turn, and the stop names and ends it."""
    serve(Tools([gate.call]), Text("Done."))
    chat = place.chat("--yes", "begin")
    pid = gate.wait()
    ann = place.attach("last")
    assert ann.wait("turn_started")["session"] == chat.session
    assert place.data("stop", "last")["interrupted"] == "t1"
    assert ann.wait("turn_ended")["status"] == "interrupted"
    assert pid not in place.processes()
    assert ann.close() == 0
    assert chat.close() == 130  # a single message, stopped from elsewhere


@checks_data("acp")
def test_an_editor_begins_a_session(place: Place, serve) -> None:
    """The id of the session that an editor gets is that of the store."""
    serve(Text("Blue."))
    asks = [
        {"id": 1, "method": "initialize", "params": {"protocolVersion": 1}},
        {"id": 2, "method": "session/new", "params": {"cwd": str(place.folder), "mcpServers": []}},
    ]
    said = "".join(json.dumps({"jsonrpc": "2.0", **ask}) + "\n" for ask in asks)
    lines = [json.loads(line) for line in told(place, "acp", said=said).splitlines()]
    answers = {line["id"]: line["result"] for line in lines if "id" in line}
    assert answers[1]["agentInfo"]["name"] == "steersman"
    assert place.stored(answers[2]["sessionId"])["folder"] == str(place.folder)


def test_a_program_sees_the_sessions(place: Place, session: str) -> None:
    """The session that an MCP client is told of is that of the store."""
    about = {"protocolVersion": "2025-06-18", "capabilities": {}}
    about["clientInfo"] = {"name": "c", "version": "1"}
    asks: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": about},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "list_sessions", "arguments": {}}},
    ]
    said = "".join(json.dumps({"jsonrpc": "2.0", **ask}) + "\n" for ask in asks)
    client = subprocess.Popen(
        (*place.command, "mcp"), stdin=PIPE, stdout=PIPE, env=place.environ, cwd=place.folder
    )
    with client:
        assert client.stdin is not None
        assert client.stdout is not None
        client.stdin.write(said.encode())
        client.stdin.flush()
        first, second = (json.loads(client.stdout.readline()) for _ in range(2))
    assert first["result"]["serverInfo"]["name"] == "steersman"
    (known,) = second["result"]["structuredContent"]["sessions"]
    assert (known["id"], known["folder"]) == (session, str(place.folder))


@checks_data("mcp import")
def test_a_server_is_taken_over(place: Place) -> None:
    """What another program's file says of it becomes a table of one's own configuration."""
    servers = {"odd": {"command": "python3", "args": ["-m", "odd"], "env": {"LEVEL": "3"}}}
    (place.folder / "servers.json").write_text(json.dumps({"mcpServers": servers}))
    ran = place.run("mcp", "import", "servers.json", "--yes")
    assert ran.returncode == 0, ran.stderr
    kept = tomllib.loads((place.home / "config.toml").read_text("utf-8"))["mcp"]
    assert kept == {"odd": {"command": ["python3", "-m", "odd"], "env": {"LEVEL": "3"}}}


# Queues and goals ---------------------------------------------------------------------------------


@checks_data("queue list", "queue add", "queue edit", "queue move", "queue pop", "queue clear")
def test_a_queue_is_put_in_order_from_elsewhere(place: Place, session: str) -> None:
    """Texts, numbers and order are those that were given."""
    for text in ("one", "two", "three"):
        place.run("queue", "add", text)
    place.run("queue", "edit", "2", "two, but better")
    assert place.data("queue", "move", "3", "1")["position"] == 1
    assert place.data("queue", "pop", "1")["withdrawn"] == [1]
    found = place.data("queue", "list")
    left = [(item["number"], item["text"]) for item in found["items"]]
    assert (found["session"], left) == (session, [(3, "three"), (2, "two, but better")])
    assert place.data("queue", "clear")["withdrawn"] == [3, 2]


@checks_data("queue export", "queue import", "queue restore", "queue discard")
def test_a_saved_queue_moves_through_a_file(place: Place, session: str) -> None:
    """The file has the text, what is imported is listed as saved, and discarded by its numbers."""
    assert place.data("queue", "add", "one")["number"] == 1
    place.run("queue", "export", "q.toml")
    items = tomllib.loads((place.folder / "q.toml").read_text())["items"]
    assert [item["content"] for item in items] == ["one"]
    assert place.data("queue", "import", "q.toml")["imported"] == [2]
    (saved,) = place.data("queue", "restore", "--list")["saved"]
    assert (saved["session"], len(saved["items"])) == (session, 2)
    assert place.data("queue", "discard", session)["withdrawn"] == [1, 2]


@pytest.mark.nightly
@checks_data("queue steer", "queue keep")
def test_what_waits_in_a_live_session_is_handed_over(place: Place, serve, gate: Gate) -> None:
    """A waiting message becomes a steer of the turn, an offered answer a message."""
    work = Tools([gate.call])
    serve(work, Text("Seven.", match="how many"), Text("Done."))
    chat = place.at_work(gate, "begin")
    chat.causes({"text": "use tabs", "as": "queue"}, "accepted", text="use tabs")
    assert place.data("queue", "steer", "2")["turn"] == "t1"
    number = chat.causes("/smalltalk how many?", "side_talk_ended")["number"]
    assert place.data("queue", "keep")["number"] == number
    chat.ask("/stop")


@checks_data("goal set", "goal status", "goal pause", "goal resume", "goal clear")
def test_a_goal_from_elsewhere(place: Place, serve) -> None:
    """The goal with its state and budget, in each of which it is put."""
    serve(Hang())
    chat = place.chat()
    chat.wait("session_started")
    begun = place.data("goal", "set", "count to three", "--turns", "7")
    assert (begun["text"], begun["state"], begun["max_turns"]) == ("count to three", "active", 7)
    chat.wait("turn_started")
    assert place.data("goal", "pause")["state"] == "paused"
    assert place.data("goal", "status")["reason"] == "user"
    chat.ask("/stop")
    chat.wait("turn_ended", status="interrupted")
    assert place.data("goal", "resume")["state"] == "active"
    assert place.data("goal", "clear")["state"] == "cleared"
    chat.ask("/stop")


# Other agents -------------------------------------------------------------------------------------


@pytest.mark.nightly
@checks_data("hooks list", "hooks install", "hooks uninstall")
def test_hooks_are_in_the_agents_own_file(place: Place) -> None:
    """The commands are in the file, as the list says, and out of it again."""
    file = place.home.parent / ".claude" / "settings.json"
    file.parent.mkdir()
    file.write_text('{"model": "best"}')

    def state() -> str:
        rows = place.data("hooks", "list")["hooks"]
        return next(str(row["state"]) for row in rows if row["agent"] == "claude")

    assert state() == "not installed"
    ran = place.run("hooks", "install", "claude")
    assert ran.returncode == 0, ran.stderr
    assert "hooks emit claude" in file.read_text()
    assert state() == "installed"
    place.run("hooks", "uninstall", "claude")
    assert "hooks emit claude" not in file.read_text()


@checks_data("hooks emit", "hooks tell", "restore list", "restore run", "restore forget")
def test_a_session_of_another_agent(place: Place) -> None:
    """It is recorded by its id, resumed by the agent's own command, told of once, and forgotten."""
    (place.home / "bin").mkdir()
    agent = place.home / "bin" / "claude"
    agent.write_text('#!/bin/sh\necho "$@" > ran\n')
    agent.chmod(0o755)
    place.environ["PATH"] = f"{agent.parent}:{place.environ['PATH']}"
    said = json.dumps({"session_id": "s-1", "cwd": str(place.folder)})
    assert told(place, "hooks", "emit", "claude", "session-start", said=said) == "{}\n"
    (record,) = place.data("restore", "list")["restore"]
    assert (record["id"], record["agent"]) == ("s-1", "claude")
    place.run("restore", "run", "s-1")
    assert (place.folder / "ran").read_text() == "--resume s-1\n"
    place.run("restore", "forget", "s-1")
    assert place.data("restore", "list")["restore"] == []
    said = json.dumps({"session_id": "s-2", "cwd": str(place.folder)})
    for event in ("session-start", "session-finalize"):
        place.run("hooks", "emit", "hermes", event, said=said)
    hook = '[[hooks]]\non = "session_finalize"\nrun = ["sh", "-c", "cat >> log"]\n'
    (place.home / "config.toml").write_text(hook.replace("log", str(place.home / "log")))
    assert [told(place, "hooks", "tell").split()[-1] for _ in range(2)] == ["2.", "0."]
    log = (place.home / "log").read_text()
    assert [name in log for name in ("s-1", "s-2", "s-3")] == [True, True, False]


# Workflows ----------------------------------------------------------------------------------------


@checks_data("run", "workflow check", "workflow new", "workflow list")
def test_workflows_are_checked_and_run(place: Place) -> None:
    """A file is made, listed and found faulty at its place, and a run has its effect on disk."""
    job = '[workflow]\nname = "job"\n[[step]]\nid = "one"\nrun = ["touch", "made"]\n'
    (place.folder / "job.toml").write_text(job)
    checked = place.data("workflow", "check", "job.toml")
    assert "one" in json.dumps(checked)
    (place.folder / "wrong.toml").write_text(job.replace("run =", "rn ="))
    wrong = place.run("workflow", "check", "wrong.toml")
    assert (wrong.returncode, "wrong.toml:5:1" in wrong.stderr + wrong.stdout) == (2, True)
    assert place.run("run", "job.toml", "--yes").returncode == 0
    assert (place.folder / "made").exists()
    before = {row["name"] for row in place.data("workflow", "list")["workflows"]}
    assert "codemod" in before
    place.run("workflow", "new", "tidy")
    assert tomllib.loads((place.folder / "tidy.toml").read_text())["workflow"]["name"] == "tidy"


# Settings, models, tables -------------------------------------------------------------------------


@checks_data("config show", "config path", "config check", "config schema", "workflow schema")
def test_the_configuration(place: Place) -> None:
    """A key that was set with its file, the files in use, a fault with its place, and every key."""
    file = place.home / "config.toml"
    file.write_text('busy_input_mode = "steer"\n')
    shown = place.data("config", "show")
    found = shown["config"]["busy_input_mode"], shown["sources"]["busy_input_mode"]
    assert found == ("steer", str(file))
    assert str(file) in told(place, "config", "path")
    assert told(place, "config", "path", "user") == f"{file}\n"
    (place.folder / ".mcp.json").write_text("{}")
    assert told(place, "config", "path", "project").endswith("/steersman.toml\n")
    (place.folder / ".mcp.json").unlink()
    assert "there are cache, state" in place.run("config", "path", "usr").stderr
    paths = {path["what"]: path for path in place.data("config", "path")["paths"]}
    assert (paths["user"]["path"], paths["project"]["exists"]) == (str(file), False)
    assert place.data("config", "check") == {
        "ok": True,
        "problems": [],
        "notices": [],
    }
    keys = json.loads(told(place, "config", "schema"))["properties"].keys()
    assert {"busy_input_mode", "models", "mcp"} <= keys
    assert {"workflow", "step"} <= json.loads(told(place, "workflow", "schema"))[
        "properties"
    ].keys()
    file.write_text('busy_input_mode = "stear"\n')
    wrong = place.run("config", "check")
    assert (wrong.returncode, f"{file}:1:" in wrong.stderr + wrong.stdout) == (2, True)
    told_json = place.data("config", "check", code=2)
    assert (told_json["ok"], f"{file}:1:" in told_json["problems"][0]) == (False, True)


@checks_data("models list", "models check", "models fetch", "doctor")
def test_the_models(place: Place, serve) -> None:
    """The configured model and its address, what it answers, and that no other is needed."""
    server = serve(Text("Yes."))
    found = place.data("models", "list")
    assert [model["base_url"] for model in found["models"]] == [server.base_url]
    checked = place.data("models", "check")
    assert checked["model"] == "main"
    assert len(server.requests) > 0
    unknown = place.run("models", "fetch", "nothing")
    offered = {entry["name"] for entry in found["catalogue"]}
    assert unknown.returncode == 2
    assert all(name in unknown.stderr for name in offered)
    checks = {
        row["name"]: row for row in json.loads(place.run("doctor", "--json").stdout)["checks"]
    }
    assert server.base_url.partition("//")[2] in json.dumps(checks)


@checks_data("permissions list", "permissions explain", "trust")
def test_what_is_allowed_in_a_folder(place: Place) -> None:
    """A project's rules are in force once they are trusted, with the file that has them."""
    file = place.folder / "steersman.toml"
    file.write_text('[permissions]\nrules = [{ tool = "shell", match = "make", do = "allow" }]\n')
    assert place.data("permissions", "explain", "make")["do"] == "ask"
    place.run("trust", ".", "--yes", said="y\n")
    (row,) = place.data("trust", "--list")["trusted"]
    assert row["folder"] == str(place.folder)
    first = place.data("permissions", "list")["rules"][0]
    assert (first["match"], first["source"]) == ("make", str(file))
    assert place.data("permissions", "explain", "make")["do"] == "allow"


@pytest.mark.nightly
@checks_data("routes list", "routes use", "routes explain", "routes diff", "routes show")
def test_the_routing_tables(place: Place) -> None:
    """The table in force, its rows as a file that agrees with it, and what differs from another."""

    def used() -> list[str]:
        rows = place.data("routes", "list")["tables"]
        return [row["name"] for row in rows if row["is_used"]]

    assert used() == ["steersman"]
    told_of = place.data("routes", "explain", "hello", "--state", "idle")
    assert told_of["rule"] == "run"
    (place.folder / "t.toml").write_text(told(place, "routes", "show", "--format", "toml"))
    same = place.data("routes", "diff", "steersman", "t.toml")
    assert same["differences"] == []
    found = place.data("routes", "diff", "steersman", "never-cancel")
    assert any(row["steersman"] != row["never-cancel"] for row in found["differences"])
    place.run("routes", "use", "never-cancel", "--unsafe")
    assert used() == ["never-cancel"]


@checks_data("routes check", "machines list", "machines show", "machines check")
def test_tables_and_machines_are_proved(place: Place) -> None:
    """Faults are counted, and machines have their states."""
    unsafe = place.run("routes", "check", "cancel-on-message")
    assert (unsafe.returncode, "[kills-child]" in unsafe.stderr) == (2, True)
    machines = place.data("machines", "list")["machines"]
    states = {machine["name"]: machine["states"] for machine in machines}
    drawn = tomllib.loads(told(place, "machines", "show", "turn", "--format", "toml"))
    assert [state["name"] for state in drawn["state"]] == states["turn"]
    lines = told(place, "machines", "check").splitlines()
    counts = {line.split(":")[0]: int(line.split()[1]) for line in lines}
    assert counts == {name: len(names) for name, names in states.items()}


def test_what_a_command_prints_needs_no_json(place: Place, session: str) -> None:
    """Each command of a session that needs nothing else says something to people, too."""
    needless = [
        name
        for name, command in COMMANDS.built_in.items()
        if name not in EXCEPTIONS and not any(one.is_needed for one in command.parameters)
    ]
    assert "usage" in needless
    for name in needless:
        ran = place.run("sessions", *name.split(), session)
        assert "Traceback" not in ran.stderr, name
        assert ran.stdout or ran.stderr, name


def test_a_closed_session_goes_by_the_configuration(place: Place, session: str) -> None:
    """What a message during a turn does is that of the chat which takes it up."""
    assert place.data("sessions", "busy", session)["busy_input_mode"] == "steer"
