"""What is there after a restart: announced, restored, thrown away, kept for so long."""

import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable
from pathlib import Path

import pytest
from support.driver import Chat, Gate, Place, wait_gone
from support.model_server import Hang, Stall, Text, Tools, shell
from support.nightly import daily
from support.patience import seconds
from support.readable import readable
from support.until import until


def leave_behind(place: Place, *texts: str) -> str:
    """Make a session that was left with these waiting; return its id."""
    chat = place.chat()
    chat.wait("session_started")
    assert chat.close() == 0
    for text in texts:
        assert place.run("queue", "add", text, "--session", chat.session).returncode == 0
    return chat.session


def crash(place: Place, gate: Gate) -> Chat:
    """Kill a chat at work with two messages behind its first."""
    chat = place.at_work(gate, "first")
    chat.send(*({"text": text, "as": "queue", "client_id": text} for text in ("second", "third")))
    chat.wait("accepted", client_id="third")
    chat.kill()
    wait_gone(place.processes())
    return chat


def age(place: Place, session: str, seconds: float) -> None:
    """Make everything of a session so much older."""
    keys = ("created", "updated")
    times = ", ".join(f"'$.{key}', json_extract(row, '$.{key}') - {seconds}" for key in keys)
    change = f"row = json_replace(row, {times}), updated = updated - {seconds}"
    place.alter(f"UPDATE sessions SET {change} WHERE session = '{session}'")


@pytest.mark.parametrize("is_utf8", [True, False])
def test_a_crash_is_announced(place: Place, serve, gate: Gate, is_utf8: bool) -> None:
    """The plain face announces what a crash left, then what an exit left, and runs nothing."""
    server = serve(shell(gate.command))
    crash(place, gate)
    place.environ["PYTHONIOENCODING"] = "utf-8" if is_utf8 else "ascii"
    sign = "📥 " if is_utf8 else ""
    rest = [
        "Last active: just now",
        "Saved items:",
        "#1 [INTERRUPTED]: first",
        "#2 [PENDING]: second",
        "#3 [PENDING]: third",
        "Use `/queue restore` to list, `/queue resume` to continue, or `/queue discard` to delete",
    ]
    for first in (
        "Found saved queue from crashed session (3 items, not auto-resuming)",
        "Found 3 queued items from previous session (not auto-resuming)",
    ):
        ran = place.run("chat", "--plain", "--continue")
        assert ran.returncode == 0
        found = [line for line in ran.stderr.splitlines() if not line.startswith("model main ")]
        assert found[:7] == [f"{sign}{first}", *rest]  # which model is used is said meanwhile
    assert len(server.requests) == 1


def test_the_mirror_follows_the_queue(place: Place, serve, gate: Gate) -> None:
    """The readable copy has what the queue has, private, and it is where the setting says."""
    serve(shell(gate.command), rest=f'[auto_queue.persistence]\npath = "{place.home}/copies"')
    chat = crash(place, gate)
    path = place.home / "copies" / f"{chat.session}.toml"
    for _ in range(20):  # each command writes what the one that was killed had not
        if not path.exists():
            place.run("queue", "list")
    place.run("queue", "add", "fourth")
    data = tomllib.loads(path.read_text())
    assert data["session_id"] == chat.session
    assert [(item["content"], item["status"]) for item in data["items"]][1:] == [
        ("second", "pending"),
        ("third", "pending"),
        ("fourth", "pending"),
    ]
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    place.run("queue", "discard")
    assert tomllib.loads(path.read_text())["items"] == []


@pytest.mark.nightly
def test_another_sessions_queue_is_brought_here(place: Place, serve) -> None:
    """Restoring moves a saved queue; over one that is not empty it asks, and keeps by default."""
    server = serve(Text("Done."))
    old = leave_behind(place, "one", "two")
    chat = place.chat()
    chat.completes("hi")
    nothing = chat.ask("/queue discard")
    assert nothing["data"] == {"withdrawn": []}  # this session's, from now on
    assert f"`/queue discard {old}` deletes them." in nothing["text"]
    saved = chat.ask("/queue restore --list")["data"]["saved"]
    assert [(row["session"], len(row["items"])) for row in saved] == [(old, 2)]
    assert chat.ask(f"/queue restore {old[:6]}")["data"]["restored"] == 2
    data = chat.ask("/queue restore")["data"]
    assert (data["state"], [item["text"] for item in data["items"]]) == ("held", ["one", "two"])
    assert chat.ask("/queue restore --list")["data"]["saved"] == []
    told = place.run("why", old, "1").stdout
    assert f"moved to session {chat.session}" in told
    assert "send it again" not in told

    place.run("queue", "add", "three", "--session", old)
    asked = chat.ask(f"/queue restore {old}")
    assert (asked["ok"], asked["data"]["reason"]) == (False, "not_empty")
    kept = chat.ask(f"/queue restore {old} --keep")
    assert (kept["ok"], kept["data"]) == (True, {"restored": 0, "kept": 2})
    assert chat.ask(f"/queue restore {old} --merge")["ok"]
    assert [item["text"] for item in chat.ask("/queue")["data"]["items"]] == ["one", "two", "three"]
    place.run("queue", "add", "four", "--session", old)
    replaced = chat.ask(f"/queue restore {old} --replace")
    assert "Removed: #1 [PENDING]: one; #2 [PENDING]: two; #3 [PENDING]: three." in replaced["text"]
    assert not chat.ask(f"/queue restore {old} --replace")["ok"]  # nothing is saved there any more
    assert [item["text"] for item in chat.ask("/queue")["data"]["items"]] == ["four"]
    assert len(server.requests) == 1

    place.run("queue", "add", "five", "--session", old)
    assert chat.ask(f"/queue resume {old} --merge")["ok"]
    chat.wait("turn_ended")
    chat.wait("turn_ended")
    assert [request.prompt for request in server.requests] == ["hi", "four", "five"]
    place.run("queue", "add", "six", "--session", old)
    assert chat.ask(f"/queue discard {old}")["data"] == {"session": old, "withdrawn": [1]}
    assert chat.ask("/queue restore nope")["ok"] is False


def at_checkpoint(gate: Gate) -> tuple[str, Tools]:
    """Return how a message is shown at file 23 of 50, and what the model does to get there."""
    done = {"done": 23, "total": 50, "unit": "file"}
    return "(file 23/50)", Tools([{"tool": "progress", "arguments": done}, gate.call])


def test_another_sessions_job_goes_on_at_its_checkpoint(place: Place, serve, gate: Gate) -> None:
    """From a chat in which nothing waits, `/queue resume ID` goes on there, in its conversation."""
    at, work = at_checkpoint(gate)
    server = serve(work, Text("Done."))
    old = crash(place, gate).session
    chat = place.chat("--yes")
    chat.send({"text": f"/queue resume {old[:6]}", "client_id": "go"})
    said = chat.wait("result", client_id="go")["text"]
    assert said == f"Restored 3 items. Processing #1 from checkpoint {at}..."
    # the first turn may be over before the reply is there
    until(lambda: len(chat.seen("turn_ended", session=old, status="completed")) == 3, "three turns")
    assert chat.close() == 0
    assert [request.prompt.splitlines()[-1] for request in server.requests[1:]] == [
        "first",
        "second",
        "third",
    ]
    assert "first" in str(server.requests[1].body["messages"][1])


@pytest.mark.nightly
def test_more_saved_queues_than_are_listed_are_said_to_be_there(place: Place, serve) -> None:
    """Five are listed; that there are more is said, and only then."""
    serve(Text("Done."))
    for _ in range(5):
        leave_behind(place, "one")
    told = place.run("chat", "--plain", said="/queue\n").stderr
    assert "Found saved queues of 5 sessions" in told
    assert "lists all" not in told
    leave_behind(place, "one")
    told = place.run("chat", "--plain", said="/queue\n").stderr
    assert "Found saved queues of more than 5 sessions" in told
    assert "`/queue restore --list` lists all" in told


@pytest.mark.nightly
def test_several_saved_queues_are_chosen_by_session(place: Place, serve) -> None:
    """They are listed with their ids, newest first; a command without one asks which.

    A number is always that of a message.
    """
    serve(Text("Done."))
    first, second = leave_behind(place, "one", "two"), leave_behind(place, "three")
    chat = place.chat()
    chat.wait("session_started")
    told = chat.wait("saved_queues")["saved"]
    assert [found["session"] for found in told] == [second, first]
    lines = [
        f"{second}, left just now, 1 item: #1 [PENDING]: three",
        f"{first}, left just now, 2 items: #1 [PENDING]: one",
    ]
    for verb in ("restore", "resume", "resume 1", "discard", "list", "pop 1"):
        asked = chat.ask(f"/queue {verb}")
        assert (asked["ok"], asked["text"].splitlines()[:2]) == (False, lines)
    assert chat.ask(f"/queue discard {second}")["data"] == {"session": second, "withdrawn": [1]}
    restored = chat.ask("/queue restore")["data"]  # the only one now
    assert [item["text"] for item in restored["items"]] == ["one", "two"]
    assert chat.ask("/queue resume 1")["text"] == "Restored 2 items. Processing #1..."
    chat.wait("turn_ended", session=first)
    assert chat.close() == 0


def test_what_two_stops_cut_off_is_listed_as_it_runs(place: Place, serve, gate: Gate) -> None:
    """The first one first, also if the second was running when its program was killed."""
    serve(shell(gate.command), Hang())
    chat = place.at_work(gate, "first")
    chat.causes("/stop", "stopped")
    chat.causes("second", "turn_started")
    chat.kill()
    listed = [item["text"] for item in place.data("queue", "list", "--session", "last")["items"]]
    again = place.chat("--continue")
    assert [item["text"] for item in again.wait("recovered")["items"]] == listed
    assert listed == ["first", "second"]


def test_the_saved_queue_is_the_queue(place: Place, serve, gate: Gate) -> None:
    """Before anything is said, every command means the queue that was announced, by its numbers."""
    at, wish = at_checkpoint(gate)
    server = serve(wish, Text("Done."))
    old = crash(place, gate).session
    chat = place.chat("--yes")
    active = chat.wait("saved_queues")["saved"][0]["last_active"]
    listed = chat.ask("/queue list")
    assert listed["text"].splitlines()[1:3] == [
        f"#1 [INTERRUPTED]: first {at}",
        "#2 [PENDING]: second",
    ]
    assert (listed["data"]["session"], listed["data"]["state"]) == (old, "held")
    assert chat.ask("/queue edit 2 second, better")["ok"]
    assert chat.ask("/queue move 3 1")["data"]["session"] == old
    assert chat.ask("/queue restore")["data"]["last_active"] == active  # an edit is no sign of life
    texts = [item["text"] for item in chat.ask("/queue")["data"]["items"]]
    assert texts == ["first", "third", "second, better"]
    assert chat.ask("/queue export saved.toml")["data"]["items"] == 3
    assert chat.ask("/queue pop 2")["data"]["withdrawn"] == [2]
    assert not chat.ask("/queue pop 9")["ok"]
    assert len(server.requests) == 1
    assert chat.ask("/queue resume 3")["text"].startswith("Restored")
    assert chat.wait("turn_started", session=old)["number"] == 3
    chat.wait("turn_ended", session=old)
    assert chat.close() == 0
    chat = place.chat()
    chat.wait("saved_queues")
    assert chat.ask("/queue clear")["data"]["withdrawn"]
    assert chat.ask("/queue list")["text"] == "The queue is empty."


@pytest.mark.parametrize(
    ("command", "texts"),
    [
        ("/queue edit 1 first, better", ["first, better", "second", "third"]),
        ("/queue steer 3", ["third"]),
    ],
)
def test_what_only_a_recovered_session_can_do_takes_it_up(
    place: Place, serve, gate: Gate, command: str, texts: list[str]
) -> None:
    """An edit of what was cut off, and a steer, which runs where nothing does: in the old session."""
    server = serve(shell(gate.command), Text("Done."), Text("Done."), Text("Done."))
    old = crash(place, gate).session
    chat = place.chat("--yes")
    chat.wait("saved_queues")
    assert chat.ask(command)["ok"]
    assert chat.ask("/queue resume")["ok"]
    for text in texts:
        chat.wait("turn_started", session=old)
        chat.wait("turn_ended", session=old)
        assert text in str(server.requests[-1].body)
    assert chat.close() == 0


def test_an_interrupted_message_stays_one_in_another_queue(place: Place, serve, gate: Gate) -> None:
    """Where it joins messages that wait, it keeps its state and checkpoint, and runs first."""
    at, wish = at_checkpoint(gate)
    server = serve(wish, Text("Done."))
    old = crash(place, gate).session
    chat = place.chat("--yes")
    chat.wait("session_started")
    (place.folder / "mine.toml").write_text('[[items]]\ncontent = "mine"')
    assert chat.ask("/queue import mine.toml")["ok"]
    assert "mine" in chat.ask(f"/queue restore {old}")["text"]
    assert chat.ask(f"/queue restore {old} --merge")["data"]["restored"] == 3
    listed = chat.ask("/queue")["data"]["items"]
    assert [(item["state"], item["text"]) for item in listed] == [
        ("interrupted", "first"),
        ("pending", "mine"),
        ("pending", "second"),
        ("pending", "third"),
    ]
    said = chat.ask("/queue resume")["text"]
    assert said.endswith(f"from checkpoint {at}...")
    for _ in range(4):
        chat.wait("turn_ended", status="completed")
    assert chat.close() == 0
    prompt = server.requests[1].prompt
    assert prompt.startswith("[You were interrupted at file 23/50.")
    assert prompt.endswith("first")


def test_what_another_terminal_has_open_is_not_taken(place: Place, serve, gate: Gate) -> None:
    """A queue of a live session can be neither brought over nor thrown away."""
    serve(shell(gate.command))
    busy = place.at_work(gate, "first")
    chat = place.chat()
    for verb in ("restore", "resume", "discard"):
        refused = chat.ask(f"/queue {verb} {busy.session}")
        assert (refused["ok"], "another program" in refused["text"]) == (False, True)


def notices(place: Place, starts: Iterable[int]) -> list[str]:
    """Start a chat in a home that was also started so many days ago; return what it says of the trash."""
    days = [time.time() - 86_400 * day for day in starts]
    trash = place.home / "state" / "trash"
    trash.mkdir(exist_ok=True)
    (trash / "starts").write_text("\n".join(map(str, days)))
    chat = place.chat()
    chat.ask("/queue")
    assert chat.close() == 0
    return [event["text"] for event in chat.seen("notice") if "trash" in event["text"]]


def waiting(place: Place, session: str) -> int:
    """Return how many messages wait in a session."""
    return len(place.data("queue", "list", "--session", session)["items"])


@pytest.mark.parametrize("days", daily(30, of=(6.9, 30, 59, 365, -365)))
def test_a_clock_that_leaps_takes_no_saved_queue(place: Place, serve, days: float) -> None:
    """Neither at the first start nor at a second one, however far it is ahead or behind."""
    serve(Text("Done."))
    old = leave_behind(place, "one", "two")
    age(place, old, days * 86_400)
    assert [notices(place, ()) for _ in range(2)] == [[], []]
    assert (waiting(place, old), (place.home / "state/trash/queue-x.json").exists()) == (2, False)


def test_a_saved_queue_goes_to_the_trash_and_comes_back(place: Place, serve) -> None:
    """After eight days of use it is in the trash, named, and no longer announced; it can be restored.

    Eight days of use later it is in the trash again, and only after eight more it is deleted.
    """
    serve(Text("Done."))
    old = leave_behind(place, "one", "two")
    age(place, old, 60 * 86_400)
    (told,) = notices(place, range(58, 50, -1))
    assert f"queue of session {old}" in told
    assert '"one"; "two"' in told
    assert f"`steersman home trash restore queue-{old}`" in told
    assert "queue-" + old in place.run("home", "trash").stdout
    listed = place.chat()
    assert listed.ask("/queue restore --list")["data"]["saved"] == []
    assert listed.close() == 0
    assert place.run("home", "trash", "restore", f"queue-{old}").returncode == 0
    assert notices(place, range(58, 50, -1)) == []
    assert waiting(place, old) == 2
    mark = place.home / "state" / "trash" / f"queue-{old}.json"
    restored = json.loads(mark.read_text())
    mark.write_text(json.dumps(restored | {"since": time.time() - 50 * 86_400}))
    (told,) = notices(place, range(48, 40, -1))
    assert "is in the trash now" in told
    assert waiting(place, old) == 2
    marked = json.loads(mark.read_text())
    mark.write_text(json.dumps(marked | {"since": time.time() - 39 * 86_400}))
    (told,) = notices(place, range(38, 30, -1))
    assert told == f'Deleted from the trash: the saved queue of session {old}: "one"; "two"'
    assert waiting(place, old) == 0


def test_without_persistence_nothing_is_kept_and_that_is_said(place: Place, serve) -> None:
    """In memory only: said at the start, and nothing is on disk."""
    serve(Text("Done."), rest="[auto_queue.persistence]\nenabled = false")
    ran = place.run("chat", "--plain", "hello")
    assert (ran.returncode, "in memory only" in ran.stderr) == (0, True)
    assert not list((place.home / "state").glob("**/*.toml"))
    assert not (place.home / "state" / "journal.db").exists()


def test_nohup_is_respected(place: Place, serve, gate: Gate) -> None:
    """SIGHUP that was ignored when the program started stays ignored."""
    serve(shell(gate.command), Text("Done."))
    chat = place.chat("--yes", prefix=("sh", "-c", "trap '' HUP; exec \"$@\"", "sh"))
    chat.send("work")
    gate.wait()
    chat.process.send_signal(signal.SIGHUP)
    gate.open()
    assert chat.wait("turn_ended")["status"] == "completed"


STARTED = """
import os, signal, sys
signal.signal(signal.SIGINT, lambda number, frame: os._exit(130))
from steersman.cli.main import main
os.write(1, b"started\\n")
sys.argv = ["steersman", "chat", "--json"]
main()
"""
"""The command from its first line on. Before that a signal finds Python, which loses some of them:
one that arrives during an import of its own start is printed, or not even that, and forgotten."""


@pytest.mark.nightly
def test_control_c_while_starting_is_quiet(place: Place, serve) -> None:
    """Ctrl-C at any moment of the start ends with 130 and no trace."""
    serve(Text("Done."))
    del place.environ["PYTHONWARNINGS"]  # an import that is cut off leaves its file to be collected
    for ticks in range(0, 48, 2):  # hundredths of a second of the processor's time
        with subprocess.Popen(
            (sys.executable, "-c", STARTED),
            cwd=place.folder,
            env=place.environ | {"PYTHONUNBUFFERED": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            assert process.stdout is not None
            assert os.read(process.stdout.fileno(), 100) == b"started\n"
            begun = used = spent(process.pid)
            is_up = False
            while used < begun + ticks and not is_up:
                used = spent(process.pid)
                is_up = bool(readable(process.stdout, timeout=0.001))
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=seconds(30))
        assert (process.returncode, err.decode()) == (130, "")


def spent(pid: int) -> int:
    """Return how much of the processor's time a process has used, in hundredths of a second."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11])


@pytest.mark.nightly
def test_what_ended_with_its_session_is_not_brought_anywhere(place: Place, serve) -> None:
    """It is in no list, and no restore gives it a second time; what was said is in its history."""
    serve(Stall("One "), Text("Hello."))
    chat = place.chat()
    chat.send("first")
    chat.wait("text")
    chat.send("/stop")
    chat.wait("stopped")
    old = chat.session
    assert chat.ask("/new --yes")["ok"]
    assert place.data("queue", "list", "--session", old)["items"] == []
    chat.completes("hi")
    for _ in range(2):
        brought = chat.ask(f"/queue restore {old}")
        assert (brought["ok"], "has no saved queue" in brought["text"]) == (False, True)
    assert chat.ask("/queue")["data"]["items"] == []
    assert chat.close() == 0
