"""What comes in on standard input, and how one message is answered."""

import json
import os
import shlex
import subprocess
from typing import Any

import pytest
from support.driver import COMMAND, Gate, Place, shape
from support.model_server import ModelServer, Status, Text, Tools, shell
from support.patience import seconds

from steersman.gateway.commands.registry import NAMES
from steersman.gateway.typed_text import ELSEWHERE

ASK = shell("touch made")


def prompts(server: ModelServer) -> list[str]:
    """The newest user message of each request."""
    return [request.prompt for request in server.requests]


def test_odd_lines_are_taken_as_well_as_can_be(place: Place, serve) -> None:
    """Blank lines, CRLF, broken JSON, odd bytes: nothing crashes, nothing is lost, all in order."""
    server = serve(Text("Yes."), top='busy_input_mode = "queue"')
    chat = place.chat()
    chat.send("", "   ", "crlf\r", '{"text": "unfinished', b"odd \xff\xfe bytes", '{"no": "text"}')
    chat.send("[1, 2]", '{"text": ""}', '{"text": "whole", "as": "nonsense"}', '{"answer": "q9"}')
    chat.send("last")
    assert chat.close() == 0
    said = prompts(server)
    assert said[0] == "crlf"
    assert said[1].startswith("odd ")
    assert "[1, 2]" in said
    assert said[-1] == "last"
    errors = [event["code"] for event in chat.seen("error")]
    assert errors.count("bad_line") == 3  # half an object, one without a text, one of a wrong kind
    assert "no_question" in errors
    assert chat.seen("rejected", reason="empty", text="")
    assert chat.diagnostics == ""
    assert all(event["type"] != "not json" for event in chat.events)


def test_an_answer_names_its_line(place: Place, serve) -> None:
    """Null fields count as absent; a refusal has the `client_id` of its line."""
    server = serve(Text("Yes."))
    chat = place.chat()
    chat.completes({"text": "one", "as": None, "user": None, "client_id": None})
    chat.send({"text": " ", "client_id": "blank"}, {"text": "x", "as": "no", "client_id": "way"})
    chat.wait("rejected", reason="empty", client_id="blank")
    assert "`as` is one of" in chat.wait("error", code="bad_line", client_id="way")["hint"]
    assert chat.close() == 0
    assert prompts(server) == ["one"]


def test_no_input_is_no_work(place: Place, serve) -> None:
    """Input that ends at once begins a session, suspends it, and exits with 0."""
    server = serve(Text("Hello."))
    chat = place.chat()
    assert chat.close() == 0
    assert shape(chat.events) == ["session_started", "session_suspended"]
    assert not server.requests


@pytest.mark.nightly
def test_a_line_of_five_megabytes_is_taken_whole(place: Place, serve) -> None:
    """A very long message arrives at the model as it was said."""
    server = serve(Text("Long."))
    text = "word " * 1_000_000
    chat = place.chat()
    chat.completes({"text": f"{text}end"})
    assert server.requests[0].prompt == f"{text}end"


def test_the_end_of_input_denies_what_is_asked(place: Place, serve) -> None:
    """A question that can no longer be answered is denied; the turn ends, exit code 0."""
    server = serve(ASK, ASK, Text("Then not."))
    chat = place.chat()
    chat.causes("make it", "question")
    assert chat.close() == 0
    assert [event["status"] for event in chat.seen("tool_ended")] == ["denied", "denied"]
    assert chat.seen("turn_ended")[0]["status"] == "completed"
    assert not (place.folder / "made").exists()
    assert len(server.requests) == 3


def test_exit_in_the_middle_leaves_in_order(place: Place, serve, gate: Gate) -> None:
    """`/exit` stops what runs, keeps everything, reads no further line, and exits with 0."""
    server = serve(Tools([gate.call]), Text("No."))
    chat = place.at_work(gate)
    chat.send("/exit", "never said")
    assert chat.ended() == 0
    assert chat.kinds()[-1] == "session_suspended"
    assert [event["status"] for event in chat.seen("turn_ended")] == ["interrupted"]
    assert len(server.requests) == 1


def test_a_command_carries_its_client_id(place: Place, serve) -> None:
    """`accepted` and `result` of a command share an id and carry the client id of the line."""
    serve(Text("Hello."))
    chat = place.chat()
    result = chat.causes({"text": "/queue", "client_id": "mine"}, "result")
    (accepted,) = chat.seen("accepted")
    assert (accepted["id"], accepted["client_id"]) == (result["id"], "mine")
    assert result["client_id"] == "mine"
    assert result["data"] == {"session": chat.session, "state": "open", "items": []}


def test_a_command_sees_what_was_said_before_it(place: Place, serve, gate: Gate) -> None:
    """`/queue` right behind a message shows it, and `/queue pop` takes that one back."""
    serve(Tools([gate.call]), Text("Done."), top='busy_input_mode = "queue"')
    chat = place.at_work(gate)
    chat.send("one", "two", "/queue")
    texts = [item["text"] for item in chat.wait("result")["data"]["items"]]
    assert texts == ["work", "one", "two"]
    chat.send("three", "/queue pop")
    assert chat.wait("result")["data"]["text"] == "three"
    gate.open()
    assert chat.close() == 0
    assert len(chat.seen("turn_started")) == 3


@pytest.mark.nightly
def test_an_unknown_command_is_given_back(place: Place, serve) -> None:
    """A mistyped command stops nothing and is not sent; with a space before it, it is a message."""
    server = serve(Text("Fine."))
    chat = place.chat()
    chat.send("/stpo", " /frobnicate the list")
    refused = chat.wait("rejected")
    assert (refused["reason"], refused["text"]) == ("unknown_command", "/stpo")
    assert "`/stop`" in refused["hint"]
    chat.wait("turn_ended")
    undone = chat.ask("/undo")
    assert undone["text"].endswith("`/revert` takes back changes of files.")
    chat.send("/clear")
    assert "did you mean `/new`?" in chat.wait("rejected", text="/clear")["hint"]
    chat.causes("/nosuch:prompt now", "rejected", reason="unknown_command")
    chat.send("/stop1")
    assert "did you mean `/stop`?" in chat.wait("rejected", text="/stop1")["hint"]
    assert {name.split()[0] for name in ELSEWHERE.values()} <= set(NAMES)
    assert not set(ELSEWHERE) & set(NAMES)
    assert chat.close() == 0
    assert prompts(server) == [" /frobnicate the list"]


@pytest.mark.parametrize("prefix", [(), ("nohup",)])
@pytest.mark.nightly
def test_an_output_that_is_closed_ends_the_program(
    place: Place, serve, gate: Gate, prefix: tuple[str, ...]
) -> None:
    """When the reader goes away, the program leaves in order, and its session can be taken up."""
    serve(Tools([gate.call]), Text("Fine."), top='busy_input_mode = "queue"')
    place.command = (*prefix, *place.command)
    process = place.start("chat", "--json", "--yes")
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("work\n")
    process.stdin.flush()
    gate.wait()
    process.stdout.close()
    process.stdin.write("more\n")
    process.stdin.flush()
    assert process.wait(seconds(30)) != 0
    assert process.stderr is not None
    assert "Traceback" not in process.stderr.read()
    process.stdin.close()
    process.stderr.close()
    later = place.chat("--continue")
    items = later.wait("recovered", cause="exit")["items"]
    assert [item["text"] for item in items] == ["work", "more"]


# One message ------------------------------------------------------------------------------------------


@pytest.mark.nightly
def test_streams_that_are_not_there(place: Place, serve) -> None:
    """Started without standard streams it does its work all the same, and says nothing."""
    server = serve(Text("Hello."))
    line = f"{shlex.join(COMMAND)} chat hi <&- >&- 2>&-; echo $? > code"
    subprocess.run(["/bin/sh", "-c", line], cwd=place.folder, env=place.environ, check=True)
    assert (place.folder / "code").read_text() == "0\n"
    assert server.requests[0].prompt == "hi"


@pytest.mark.parametrize("by_pipe", [False, True])
def test_one_message_one_answer(place: Place, serve, by_pipe: bool) -> None:
    """The answer alone is on standard output, whether the message is an argument or piped."""
    server = serve(Text("Hello there.\nBye."))
    ran = place.run("chat", said="hi\n") if by_pipe else place.run("chat", "hi")
    assert (ran.returncode, ran.stdout) == (0, "Hello there.\nBye.\n")
    assert "Traceback" not in ran.stderr
    assert prompts(server) == ["hi"]


def test_a_script_of_lines_runs_in_order(place: Place, serve) -> None:
    """With `--plain` the lines of the input queue and run one after another, words and all."""
    server = serve(Text("One.", pause=0.02), Text("Two."), Text("Three."))
    ran = place.run("chat", "--plain", said="first\n\nplease stop\nthird\n")
    assert (ran.returncode, ran.stdout) == (0, "One.\nTwo.\nThree.\n")
    assert prompts(server) == ["first", "please stop", "third"]


def test_what_is_piped_in_is_added_to_the_message(place: Place, serve) -> None:
    """`cat notes | steersman chat MESSAGE` asks about the notes, in one turn; too much is refused."""
    server = serve(Text("Two lines."))
    ran = place.run("chat", "how many lines?", said="stop\n\nhere\n")
    assert (ran.returncode, ran.stdout) == (0, "Two lines.\n")
    assert server.requests[0].prompt == "how many lines?\n\nstop\n\nhere"
    ran = place.run("chat", "sum this up", said="x" * 2_000_000)
    assert ran.returncode == 2
    assert "1024 KiB" in ran.stderr
    assert len(server.requests) == 1


@pytest.mark.parametrize("options", [("--json", "--plain"), ("--continue", "--resume", "last")])
@pytest.mark.nightly
def test_options_that_exclude_each_other(place: Place, options: tuple[str, ...]) -> None:
    """An invalid command line is refused with a sentence, starts nothing, and has exit code 2."""
    ran = place.run("chat", *options)
    assert ran.returncode == 2
    assert all(f"`{name}`" in ran.stderr for name in options if name.startswith("--"))
    assert "Traceback" not in ran.stderr
    assert not (place.home / "state").exists()


def test_a_failed_answer_is_exit_code_1(place: Place, serve) -> None:
    """When the model fails, standard output stays empty and the exit code is 1."""
    serve(Status(400, {"error": {"message": "too clever"}}))
    ran = place.run("chat", "hi")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "too clever" in ran.stderr


def test_escape_sequences_never_reach_the_terminal(place: Place, serve) -> None:
    """What a model says in control codes is printed without them, but kept in JSON."""
    serve(Text("\x1b]0;owned\x07red \x1b[31malert\x1b[0m"))
    ran = place.run("chat", "hi")
    assert ran.stdout == "red alert\n"
    assert "\x1b" not in ran.stdout + ran.stderr
    raw = place.run("chat", "--json", said="hi\n").stdout
    assert "\x1b" not in raw
    deltas = [json.loads(line).get("delta", "") for line in raw.splitlines()]
    assert "\x1b[31m" in "".join(deltas)


@pytest.mark.nightly
def test_half_a_surrogate_does_no_harm(place: Place, serve) -> None:
    """Text that is no UTF-8 (a model may cut an emoji in two) is printed as well as can be."""
    serve(Text("half \ud83d of it"))
    ran = place.run("chat", "hi")
    assert (ran.returncode, ran.stdout) == (0, "half ? of it\n")
    ran = place.run("chat", "--json", said="hi\n")
    assert ran.returncode == 0
    assert json.loads(ran.stdout.splitlines()[-1])["type"] == "session_suspended"


def test_no_secret_of_the_environment_reaches_a_tool(place: Place, serve) -> None:
    """Keys of the runtime's environment are neither in a tool's environment nor in the journal."""
    serve(shell("env; true"), Text("Done."))
    place.environ["MY_API_KEY"] = "sk-very-secret-4711"
    ran = place.run("chat", "--yes", "show it")
    assert ran.returncode == 0
    for folder, _, names in os.walk(place.home):
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                assert b"4711" not in file.read(), name


def test_the_module_is_the_command(place: Place, serve) -> None:
    """`python -m steersman` is the same program."""
    serve(Text("Hello."))
    assert place.run("--version").stdout.startswith("steersman ")
    assert COMMAND


@pytest.mark.nightly
def test_a_one_shot_says_only_what_is_news(place: Place, serve) -> None:
    """Nothing about a model that was configured; one short line for all saved queues, none in a run."""
    serve(Text("Hello.", times=0))
    first = place.run("chat", "hi")
    assert (first.stdout, first.stderr) == ("Hello.\n", "")
    assert place.run("send", "last", "later").returncode == 0
    ran = place.run("chat", "again")
    (session,) = [row for row in _listed(place) if row["waiting"]]
    waits = f"A saved queue waits: `steersman chat --resume {session['id']}`\n"
    assert (ran.stdout, ran.stderr) == ("Hello.\n", waits)
    (place.folder / "w.toml").write_text(
        '[workflow]\nname = "w"\n[[step]]\nid = "a"\nrun = ["true"]\n'
    )
    ran = place.run("run", "w.toml")
    assert (ran.returncode, "saved queue" in ran.stderr) == (0, False), ran


def _listed(place: Place) -> list[dict[str, Any]]:
    return place.data("sessions", "list")["sessions"]


def test_piped_lines_run_after_a_stop(place: Place, serve, gate: Gate) -> None:
    """What was held stays held; a line that is piped in afterwards is answered."""
    server = serve(Tools([gate.call]), Text("Hi."), Text("Hi again."))
    chat = place.at_work(gate, "first")
    chat.causes({"text": "second", "as": "queue"}, "accepted", number=2)
    chat.causes("/stop", "stopped")
    assert chat.close() == 0
    ran = place.run("chat", "--continue", "--plain", said="hello\nand more\n")
    assert (ran.returncode, ran.stdout) == (0, "Hi.\nHi again.\n"), ran.stderr
    assert [request.prompt for request in server.requests[1:]] == ["hello", "and more"]
    held = place.stored(chat.session)["queue"]["items"].values()
    assert [item["state"] for item in held][:2] == ["interrupted", "pending"]
