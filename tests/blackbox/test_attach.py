"""A second terminal: it hears what happens, may speak, and leaves the session as it is."""

import json
import os
import signal
import sys
from getpass import getuser
from pathlib import Path

import pytest
from support.driver import Chat, Gate, Place
from support.executed import executed
from support.model_server import Hang, Text, Tools


def attached(place: Place, *arguments: str) -> Chat:
    """Start `attach --json`, and wait until it hears."""
    chat = place.attach("last", *arguments)
    chat.wait("session_started", resumed=True)
    return chat


def test_a_second_terminal_takes_part(place: Place, serve, gate: Gate) -> None:
    """It hears who says what, speaks under its own name, steers, stops, and leaves nothing broken."""
    server = serve(Tools([gate.call]), Text("All done."))
    chat = place.at_work(gate, "count the stars")
    ann = attached(place, "--user", "ann")
    ann.wait("turn_started")
    bob = attached(place, "--user", "bob")

    accepted = ann.causes({"text": "only the bright ones", "as": "steer"}, "accepted")
    assert (accepted["as"], accepted["user"]) == ("steer", "ann")
    for other in (chat, bob):
        assert other.wait("notice", text="ann: only the bright ones")
    assert not ann.seen("notice", text="ann: only the bright ones")
    gate.open()
    bob.wait("steered")
    assert bob.wait("turn_ended")["status"] == "completed"
    assert server.requests[-1].prompt == "[New message from ann] only the bright ones"
    chat.send("thank you")
    ann.wait("notice", text="user: thank you")
    ann.wait("turn_ended")

    assert ann.close() == 0
    assert chat.process.poll() is None
    assert bob.causes("/inspect", "result", name="inspect")["ok"]
    os.kill(chat.process.pid, signal.SIGSTOP)
    bob.send("and the moon")
    chat.kill()
    lost = "The session's program ended before it answered to: and the moon"
    assert bob.wait("notice", text=lost)
    assert bob.ended() == 1
    assert not bob.seen("error")
    assert "has ended without closing it" in bob.diagnostics
    ran = place.run("attach", "last")
    assert (ran.returncode, "steersman chat --resume" in ran.stderr) == (1, True)


def test_who_is_attached_goes_on_with_the_program(place: Place, serve) -> None:
    """However often, and whoever of both, puts another session in the place of this one."""
    serve(*(Text(f"Answer {number}.") for number in range(4)), Hang())
    chat = place.chat()
    chat.completes("which colour?")
    ann = attached(place)
    for number, (one, other) in enumerate([(chat, ann), (ann, chat), (ann, chat)], 1):
        here = one.causes(f"/edit-last colour {number}?", "session_started")["session"]
        assert other.wait("session_started")["session"] == here
        if one is ann:  # the other one has not seen what she typed
            told = f"{getuser()}: colour {number}?"
            assert chat.wait("notice", text=told)["session"] == here
        assert chat.wait("turn_ended")["session"] == here
    ann.causes("and the sea?", "turn_started")
    assert chat.ask("/stop")["data"]["interrupted"]
    assert ann.wait("turn_ended")["status"] == "interrupted"
    assert ann.close() == 0


def test_every_method_of_the_socket(place: Place, serve, gate: Gate) -> None:
    """Each thing that can be said has a method of its own, and does what the words would."""
    serve(Tools([gate.call]), Text("All done."))
    chat = place.at_work(gate, "count the stars")
    (path,) = (place.home / "state" / "sockets").iterdir()
    code = f"""
import json, os, socket
folder = os.open({str(path.parent)!r}, os.O_PATH)
client = socket.socket(socket.AF_UNIX)
client.connect(f"/proc/self/fd/{{folder}}/{path.name}")
lines = client.makefile("rwb")
def call(method, **params):
    request = {{"id": 1, "method": method, "params": {{"session": {chat.session!r}, **params}}}}
    lines.write(json.dumps(request).encode() + b"\\n"); lines.flush()
    return json.loads(lines.readline())
for method, params in {CALLS!r}:
    print(json.dumps(call(method, **params)))
"""
    ran = executed([sys.executable, "-c", code])
    answers = [json.loads(line) for line in ran.stdout.splitlines()]
    results = [answer.get("result", answer) for answer in answers]
    assert results[0]["sessions"] == [
        {
            "id": chat.session,
            "name": "",
            "title": "count the stars",
            "state": "running",
            "needs": "",
        }
    ]
    assert [answer.get("as") for answer in results[1:3]] == ["queue", "steer"]
    assert (results[3]["name"], results[3]["ok"]) == ("agents", True)
    assert [item["text"] for item in results[4]["items"]][1:] == ["later", "brighter"]
    assert results[5]["data"]["interrupted"]
    assert (results[6]["name"], results[6]["ok"]) == ("finalize", True)
    chat.wait("session_finalized")
    assert chat.causes("anybody?", "rejected")["reason"] == "session_finalized"


CALLS = [
    ("list", {}),
    ("say", {"text": "later", "as": "queue"}),
    ("say", {"text": "brighter", "as": "steer"}),
    ("command", {"name": "agents"}),
    ("queue", {}),
    ("stop", {}),
    ("command", {"name": "finalize"}),
]


AS_NOBODY = """
import contextlib, io, os, sys
from steersman.cli.main import main

def run(*words):
    sys.argv = ["steersman", *words]
    try:
        return main()
    except SystemExit as done:
        return done.code

with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    words = sys.argv[1:]
    run("inspect", "last")  # loads what somebody else may not read: the program itself
    run(*("nope" if one == "last" else one for one in words))
os.setgroups([])
os.setuid(65534)
sys.exit(run(*words))
"""


def test_words_that_another_person_replaced_are_theirs(place: Place, serve, gate: Gate) -> None:
    """Nobody speaks under the name of somebody else, and each edits their own last message."""
    server = serve(Tools([gate.call]), Text("Done."))
    chat = place.at_work(gate)
    bob = attached(place, "--user", "bob")
    bob.causes({"text": "paint it red", "as": "queue"}, "accepted")
    refused = chat.ask("/edit-last paint it blue")
    assert (refused["ok"], "#2 of bob came after it" in refused["text"]) == (False, True)
    assert chat.ask("/queue edit 2 paint it green")["ok"]
    bob.wait("result", text="#2 reads now: paint it green")
    why = place.run("why", "last", "2").stdout
    assert ', as "paint it red"' in why
    assert 'edited: "paint it green"' in why
    told = bob.ask("/edit-last paint nothing")["text"]
    assert told.endswith("there is no message of yours yet.\nYour text: paint nothing")
    gate.open()
    for _ in range(2):
        chat.wait("turn_ended", status="completed")
    assert server.requests[-1].prompt == "paint it green"


@pytest.mark.nightly
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_last_is_one_that_a_list_shows(place: Place, serve) -> None:
    """What was opened without a word is passed over; an empty input is told the way to this session."""
    serve(Text("Four."))
    chat = place.chat()
    chat.completes("count the stars")
    place.run("chat", "--plain", said="")
    ran = place.run("attach", "--plain", said="")
    assert ran.returncode == 0
    assert f'`steersman send {chat.session} "MESSAGE"` says something.' in ran.stderr
    assert "is newer" not in ran.stderr


def test_another_user_gets_nothing_from_any_command(place: Place, serve) -> None:
    """With another user id every command that looks or speaks fails, and shows nothing."""
    serve(Text("The answer is forty-two."))
    chat = place.chat("what is the answer?")
    chat.wait("turn_ended")
    for arguments in (
        ("inspect", "last"),
        ("sessions", "show", "last"),
        ("sessions", "search", "forty"),
        ("why", "last"),
        ("send", "last", "hello"),
        ("attach", "last"),
        ("stop", "last"),
    ):
        ran = executed([sys.executable, "-c", AS_NOBODY, *arguments], env=place.environ, cwd="/")
        assert ran.returncode in (1, 2), arguments
        assert ran.stderr.startswith("steersman: "), ran.stderr
        assert "forty-two" not in ran.stdout + ran.stderr
        assert "Traceback" not in ran.stderr
    assert place.run("why", "last").returncode == 0
    assert len(chat.seen("accepted")) == 1
    assert Path(place.home / "state").stat().st_mode & 0o077 == 0


def test_who_joins_late_has_the_whole_answer(place: Place, serve) -> None:
    """Whenever a terminal attaches, its pieces of text and its answers are in the end those of the owner.

    An answer of an earlier step comes as one piece; so does what was streamed before.
    """
    words = " ".join(f"word{number}" for number in range(60))
    (place.folder / "notes.txt").write_text("hello\n")
    look = {"tool": "read", "arguments": {"path": "notes.txt"}}
    serve(Tools([look], text="I look first."), Text(words, pause=0.1))
    chat = place.chat("--yes", "go")
    late = list[Chat]()
    for word in ("word1 ", "word20 ", "word45 "):
        chat.wait("text", delta=word)
        late.append(attached(place))
    chat.wait("turn_ended")
    for other in late:
        other.wait("turn_ended")
        assert "".join(piece["delta"] for piece in other.seen("text")) == f"I look first.{words}"
        assert [said["text"] for said in other.seen("answer")] == ["I look first.", words]
        assert [bool(piece.get("so_far")) for piece in other.seen("text")][:3] == [
            False,
            True,
            False,
        ]
        assert other.close() == 0


def test_who_joins_late_is_asked_the_same_and_leaves_it_open(place: Place, serve) -> None:
    """With its rule and where the call leads; a program whose input ends answers nothing by that."""
    write = {
        "tool": "write",
        "arguments": {"path": str(place.folder.parent / "other.txt"), "content": "x"},
    }
    serve(Tools([write]), Text("Done."))
    chat = place.chat()
    chat.send("go")
    question = chat.wait("question")
    assert question["outside"]
    assert question["rule"]
    late = attached(place)
    told = late.wait("question")
    assert {**told, "seq": 0, "time": ""} == {**question, "seq": 0, "time": ""}
    assert late.close() == 0
    for line in ("and then?", "n", "what else?"):
        ran = place.run("attach", "--plain", "last", said=f"{line}\n")
        assert "Waits for an answer: write /" in ran.stderr
        assert f"`steersman attach {chat.session}` in a terminal gives it." in ran.stderr
        assert f'Queued #{chat.wait("accepted", text=line)["number"]}: "{line}"' in ran.stderr
    chat.answer(question, "allow")
    assert chat.wait("turn_ended")["status"] == "completed"
    assert (place.folder.parent / "other.txt").read_text() == "x"
