"""A session from another terminal: while it runs, after it died, and by many at once."""

import json
import shlex
import signal
import subprocess
import sys
from typing import Any

import pytest
from support.driver import Gate, Place, finish
from support.model_server import Status, Text, shell
from support.patience import seconds

from steersman.cli.talk import done_by_another


def listed(place: Place, *arguments: str) -> dict[str, Any]:
    """Return what `queue list --json` says."""
    return place.data("queue", "list", *arguments)


def brief(data: dict[str, Any]) -> list[tuple[int, str, str]]:
    """Return items as (number, state, text)."""
    return [(item["number"], item["state"], item["text"]) for item in data["items"]]


def stored(place: Place, session: str) -> list[str]:
    """Return the kinds of the newest entries of a session's journal."""
    moves = place.stored(session)["transitions"]
    return [move["cause"] for move in moves]


def test_a_message_to_a_session_that_is_not_open_says_that_it_waits(place: Place, serve) -> None:
    """Its sender learns how it gets to run, and that works; in an open session nothing is added."""
    serve(Text("One.", times=0))
    chat = place.chat("first")
    chat.wait("turn_ended")
    sent = place.run("send", chat.session, "second", "--as", "queue")
    assert (sent.returncode, sent.stderr) == (0, "")
    chat.wait("turn_ended")
    assert chat.close() == 0
    sent = place.run("send", chat.session, "third")
    assert (sent.returncode, sent.stdout) == (0, f"Queued as #1 ({chat.session}).\n")
    assert f"no program has session {chat.session} open" in sent.stderr
    assert f"`steersman chat --resume {chat.session}`" in sent.stderr
    again = place.chat("--resume", chat.session)
    again.wait("recovered")
    again.completes("/queue resume")


def test_who_sends_waits_for_the_answer(place: Place, serve) -> None:
    """`--wait` prints it and ends as the turn did; where no program would answer, it does not wait."""
    serve(Text("One."), Text("Two."), Status(400), shell("true"), Text("Five."))
    chat = place.chat()
    chat.completes("first")
    sent = place.run("send", chat.session, "second", "--wait")
    assert (sent.returncode, sent.stdout, sent.stderr) == (0, "Two.\n", "")
    sent = place.run("send", chat.session, "third", "--wait", "--json")
    told = json.loads(sent.stdout)
    assert (sent.returncode, told["type"], told["outcome"]["status"]) == (1, "accepted", "failed")
    assert told["outcome"]["reason"]
    sending = place.start("send", chat.session, "fourth", "--wait")
    assert sending.stderr is not None
    told = sending.stderr.readline()  # how to answer, while it waits for that
    assert (
        place.run(*shlex.split(told.split("`")[1].replace("ANSWER", "allow"))[1:]).returncode == 0
    )
    assert finish(sending).stdout == "Five.\n"
    assert chat.close() == 0
    sent = place.run("send", chat.session, "fifth", "--wait")
    assert (sent.returncode, "no program has session" in sent.stderr) == (1, True)


@pytest.mark.nightly
def test_a_dead_session_is_changed_and_not_taken_up(place: Place, serve, gate: Gate) -> None:
    """Changes of a crashed session's queue are kept, nothing runs, the next start reports the crash."""
    server = serve(shell(gate.command), Text("Go."))
    chat = place.at_work(gate, "first")
    chat.kill()
    assert brief(listed(place)) == [(1, "interrupted", "first")]
    for text in ("second", "stop"):
        assert place.run("queue", "add", text).returncode == 0
    assert place.run("send", "last", "third").returncode == 0
    assert place.run("queue", "pop", "2").returncode == 0
    refused = place.run("queue", "resume")
    assert (refused.returncode, "chat --resume" in refused.stderr) == (1, True)
    expected = [(1, "interrupted", "first"), (3, "pending", "stop"), (4, "pending", "third")]
    data = listed(place)
    assert (data["state"], brief(data)) == ("held", expected)
    causes = stored(place, chat.session)
    assert not [
        cause for cause in causes if "recover" in cause.lower() or "suspend" in cause.lower()
    ]
    assert len(server.requests) == 1
    assert not place.processes()

    later = place.chat("--continue")
    recovered = later.wait("recovered")
    assert (recovered["cause"], brief(recovered)) == ("crash", expected)
    assert later.close() == 0
    assert place.run("queue", "discard").returncode == 0
    assert listed(place)["items"] == []
    assert len(server.requests) == 1


def test_discard_of_what_a_crash_cut_off(place: Place, serve, gate: Gate) -> None:
    """`queue discard` also deletes the item that ran when the program died; the session goes on."""
    server = serve(shell(gate.command), Text("New."))
    chat = place.at_work(gate, "first")
    place.run("queue", "add", "second")
    chat.kill()
    assert place.data("queue", "discard")["withdrawn"] == [1, 2]
    later = place.chat("--continue")
    assert later.causes("new", "turn_ended")["status"] == "completed"
    assert not later.seen("recovered")
    roles = [message["role"] for message in server.requests[-1].body["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user"]


def test_a_message_needs_no_control_socket(place: Place, serve) -> None:
    """A message goes through the mailbox, so that it reaches an owner whose socket is gone, too."""
    serve(Text("Hello."))
    chat = place.chat()
    chat.wait("session_started")
    (path,) = (place.home / "state" / "sockets").iterdir()
    path.unlink()
    ran = place.run("queue", "add", "hello?")
    assert ran.returncode == 0, ran.stderr
    chat.wait("turn_ended")


def test_a_frozen_owner_is_named(place: Place, serve) -> None:
    """An owner that is stopped by a signal is named at once, and the message is kept for it."""
    serve(Text("Hello."))
    chat = place.chat()
    chat.wait("session_started")
    chat.process.send_signal(signal.SIGSTOP)
    ran = place.run("send", chat.session, "hello?")
    stopped = place.run("stop", "last")
    chat.process.send_signal(signal.SIGCONT)
    assert (ran.returncode, ran.stdout) == (0, f"Posted ({chat.session}).\n")
    assert (stopped.returncode, "The message is kept" in stopped.stderr) == (1, True)
    assert (
        f"process {chat.process.pid} has session `{chat.session}` open and was stopped"
        in ran.stderr
    )
    assert f"`kill -CONT {chat.process.pid}` lets it go on" in ran.stderr
    assert chat.wait("accepted", text="hello?")["as"] == "turn"


HUNDRED = """
import os
# Once for all of them: starting is not what is tested.
from steersman.cli import app, program
from steersman.cli.commands import queue
from steersman.gateway.commands import registry
import apsw
import contextlib
import io
import pydantic

said = io.StringIO()
contextlib.redirect_stderr(said).__enter__()
children = []
for n in range(100):
    child = os.fork()
    if not child:
        # The journal is waited for for 5 seconds, which a busy machine may need for its turn.
        while code := program.run(["queue", "add", f"message {n}"]):
            if "was locked" not in said.getvalue():
                os.write(2, said.getvalue().encode())
                break
            said.truncate(0)
        os._exit(code)
    children.append(child)
ended = [os.waitstatus_to_exitcode(os.waitpid(one, 0)[1]) for one in children]
assert ended == [0] * 100, ended
"""
"""A hundred processes of the command line, all at the same time."""


@pytest.mark.nightly
@pytest.mark.timeout(300)
@pytest.mark.parametrize("is_alive", [True, False])
def test_a_hundred_at_once(place: Place, serve, gate: Gate, is_alive: bool) -> None:
    """A hundred `queue add` at the same time all land, once each, whether the owner lives or not."""
    serve(shell(gate.command), rest="[auto_queue]\nmax_queue_size = 200")
    chat = place.at_work(gate, "first")
    if not is_alive:
        chat.kill()

    done = subprocess.run(
        [sys.executable, "-c", HUNDRED],
        cwd=place.folder,
        env=place.environ,
        capture_output=True,
        timeout=seconds(240),
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    texts = [item["text"] for item in listed(place)["items"]]
    assert sorted(texts) == sorted(["first", *(f"message {n}" for n in range(100))])
    if is_alive:
        chat.kill()


@pytest.mark.nightly
def test_sessions_are_found_by_folder_and_by_name(place: Place, serve) -> None:
    """Without `--session` it is the newest of this folder; an unknown one is a usage error."""
    serve(Text("Hello."))
    here = place.chat()
    here.wait("session_started")
    assert here.close() == 0
    elsewhere = place.chat("--cwd", str(place.home))
    elsewhere.wait("session_started")
    assert elsewhere.close() == 0
    assert listed(place)["session"] == here.session
    assert listed(place, "--session", "last")["session"] == here.session
    assert listed(place, "--session", elsewhere.session)["session"] == elsewhere.session
    there = place.chat()
    there.wait("session_started")
    assert place.run("sessions", "fork", here.session).returncode == 0
    assert listed(place)["session"] == there.session  # it is open: that is the one that is meant
    assert there.close() == 0
    assert place.run("queue", "list", "--session", "nope").returncode == 2
    assert place.run("send", "last", "x", "--as", "nonsense").returncode == 2


@pytest.mark.nightly
def test_nothing_changes_a_finalized_session(place: Place, serve) -> None:
    """A message to a finalized session is refused."""
    serve(Text("Hello."))
    chat = place.chat()
    first = chat.session
    chat.ask("/new")
    assert chat.close() == 0
    finalized = "The session is finalized, so the message was not accepted. Your text: hello?\n"
    another = "  `steersman chat` begins another session\n"
    for said in (("send", first, "hello?"), ("queue", "add", "hello?", "--session", first)):
        ran = place.run(*said)
        assert (ran.returncode, ran.stdout, ran.stderr) == (1, "", finalized + another)
    refused = place.run("queue", "pop", "--session", first)
    assert (refused.returncode, refused.stderr) == (
        1,
        "The session is finalized; `steersman chat` begins another session\n",
    )
    assert place.run("queue", "list", "--session", first).stdout.endswith("is empty.\n")


def test_a_message_to_a_closed_session_says_what_it_waits_for(place: Place, serve) -> None:
    """`send` and `queue add` and `queue import` say so, until a chat has the session open."""
    serve(Text("Hello."), Text("One."))
    assert place.run("chat", "Hi").returncode == 0
    session = place.stored()["id"]
    opens = f"`steersman chat --resume {session}` opens it, and `/queue resume` there runs it."
    added = place.run("queue", "add", "one")
    assert (added.returncode, opens in added.stdout, "#1" in added.stdout) == (0, True, True)
    assert place.run("queue", "export", "q.toml").returncode == 0
    assert opens in place.run("queue", "import", "q.toml").stdout
    assert opens in place.run("send", "last", "two").stderr
    chat = place.chat("--resume", session)
    chat.wait("session_started")
    assert opens not in place.run("queue", "add", "three").stdout


@pytest.mark.nightly
def test_a_run_that_has_succeeded_takes_no_message(place: Place) -> None:
    """Nothing begins in it any more, so that a message is given back, with the next step."""
    (place.folder / "job.toml").write_text(
        '[workflow]\nname = "job"\n[[step]]\nid = "one"\nrun = ["true"]\n'
    )
    assert place.run("run", "job.toml", "--yes").returncode == 0
    session = place.stored()["id"]
    over = "The run has succeeded, so the message was not accepted. Your text: hello?\n"
    for said in (("send", "last", "hello?"), ("queue", "add", "hello?")):
        ran = place.run(*said)
        assert (ran.returncode, ran.stdout, ran.stderr.startswith(over)) == (1, "", True), ran
        assert f"`steersman sessions show {session}`" in ran.stderr
    (place.folder / "q.toml").write_text('[[items]]\ncontent = "hello?"\n')
    ran = place.run("queue", "import", "q.toml")
    assert (ran.returncode, "the run has succeeded" in ran.stderr) == (1, True), ran
    listed = place.data("queue", "list")
    assert listed["items"] == []


def test_a_session_that_was_finalized_elsewhere_can_be_left_or_followed(
    place: Place, serve
) -> None:
    """Its chat refuses messages, answers each command with the next step, and can start a new session."""
    serve(Text("Hello."))
    chat = place.chat()
    assert place.run("sessions", "finalize", chat.session).returncode == 0
    chat.wait("session_finalized")
    assert chat.causes("hello?", "rejected")["reason"] == "session_finalized"
    told = chat.ask("/queue")
    assert (told["ok"], "/new starts another" in told["text"]) == (False, True)
    assert chat.ask("/new")["ok"]
    chat.completes("hello!")


@pytest.mark.parametrize(
    ("command", "shows", "says"),
    [
        ("busy interrupt", "busy", "A message during a turn now follows `interrupt`."),
        ("mode plan", "mode", "Mode plan: "),
        ("hold write", "holds", "Held for the rest of this session: write "),
        ("hold off", "holds", "1 hold ended."),
        ("permissions allow shell rm *", "permissions", "Allowed for the rest of this session: "),
        ("permissions forget 1", "permissions", "Asked about again: "),
    ],
)
def test_a_setting_that_another_changed_is_told(
    place: Place, command: str, shows: str, says: str
) -> None:
    """Else the next line does something else than before; a look at it is not."""
    chat = place.chat()
    chat.ask("/hold write")
    chat.ask("/permissions allow shell git *")
    for text, begin in ((f"/{command}", f"Elsewhere: {says}"), (f"/{shows}", "")):
        told = done_by_another(chat.causes(text, "result"))
        assert told.startswith(begin)
        assert bool(told) is bool(begin)


def test_what_another_did_to_work_and_queue_is_told(place: Place, serve, gate: Gate) -> None:
    """Else the work seems to begin and end by itself; a look, and what had no effect, are no news."""
    serve(shell(f"echo x > made; {gate.command}"), Text("Done.", times=0))
    chat = place.at_work(gate, "first")
    steps = [
        ("/queue", ""),
        ("/queue add one", "#2: one"),
        ("/queue edit 2 two", "#2 reads now: two"),
        ("/queue add three", "#3: three"),
        ("/queue move 3 1", "#3 is at position 1."),
        ("/queue pop 3", "Removed: #3."),
        ("/queue steer 2", "#2 goes to the running turn at its next boundary."),
        ("/queue off", "Auto-queue is off: "),
        ("/goal", ""),
        ("/goal next x", "Goal set, at most "),
        ("/stop", "Stopping turn t1."),
        ("/stop", ""),
        ("/revert --dry-run", ""),
        ("/revert", "another terminal or program asked for this revert."),
        ("/queue clear", "Removed: "),
        ("/queue clear", ""),
    ]
    told = [done_by_another(chat.causes(step, "result")) for step, _ in steps]
    expected = [f"Elsewhere: {news}" if news else "" for _, news in steps]
    begins = [
        line[: len(news)] if news else line for line, news in zip(told, expected, strict=True)
    ]
    assert begins == expected


def test_who_joins_is_told_what_was_chosen_before(place: Place, serve) -> None:
    """The next line does something else than by the configuration, and the joiner was not there."""
    serve(Text("Hello."))
    chat = place.chat()
    for command in ("/busy queue", "/hold write", "/permissions allow shell git *"):
        chat.ask(command)
    told = place.attach("last").wait("notice")["text"]
    chosen = "busy mode `queue`; held: write '*'; not asked about: shell 'git *'"
    assert told == f"Chosen in this session: {chosen}."
