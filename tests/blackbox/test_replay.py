"""A recorded session is decided again without doing anything twice."""

import json
import re
import shutil
import subprocess
import sys
from getpass import getuser
from pathlib import Path
from typing import Any

import pytest
from support.driver import COMMAND, Gate, Place
from support.model_server import Text, Tools

STRACE = shutil.which("strace")
LIST = {"tool": "list", "arguments": {}}


def shell(command: str) -> dict[str, Any]:
    """Return the call of a command."""
    return {"tool": "shell", "arguments": {"command": command}}


def replayed(place: Place, session: str, *options: str, code: int = 0) -> dict[str, Any]:
    """Replay a session."""
    return place.data("sessions", "replay", session, *options, code=code)


def fifty(place: Place, serve: Any) -> str:
    """Record a session of 50 calls that read, write and run, two at a time; return its id."""
    calls = [
        [
            shell(f"echo {number} >> log.txt"),
            {"tool": "read", "arguments": {"path": "log.txt"}},
        ]
        for number in range(25)
    ]
    serve(*(Tools(pair) for pair in calls), Text("All fifty are done."))
    chat = place.chat("--yes")
    chat.completes("do them")
    assert chat.close() == 0
    return chat.session


@pytest.mark.checks_data("sessions replay")
def test_another_answer_parts_from_the_record(place: Place, serve: Any) -> None:
    """As recorded it is the same; with the question denied the call does not begin."""
    serve(Tools([shell("echo blue > colour")]), Text("Blue."))
    chat = place.chat()
    chat.send("which colour?")
    chat.answer(chat.wait("question"), "allow")
    chat.wait("turn_ended", status="completed")
    assert chat.close() == 0
    (place.folder / "colour").unlink()

    found = replayed(place, chat.session)
    assert (found["is_same"], found["common"]) == (True, found["entries"])
    assert "Blue." in place.run("sessions", "show", found["session"]).stdout
    assert not (place.folder / "colour").exists()
    compared = place.run("sessions", "diff", chat.session, found["session"])
    assert compared.stdout.startswith("The same in all"), compared.stdout
    other = replayed(place, chat.session, "--answer", "q1=deny", code=1)["difference"]
    assert (other["recorded"]["kind"], other["replayed"]["kind"]) == (
        "tool_intended",
        "tool_refused",
    )
    assert not place.data("queue", "list", "--session", "last")["items"]
    forked = place.data("sessions", "fork", chat.session)["session"]
    assert replayed(place, forked)["is_same"]
    newest = place.data("sessions", "list")["sessions"]
    assert {row["id"] for row in newest if not row["parent"]} == {chat.session, forked}
    wrong = place.run("sessions", "replay", chat.session, "--answer", "q1=foo")
    assert "`foo` is no answer to `q1`" in wrong.stderr
    acts = place.data("sessions", "audit")["acts"]
    assert [act["session"] for act in acts if act["act"] == "call"] == [chat.session]
    said = place.run("sessions", "replay", chat.session, "--answer", "q1=deny")
    assert "The first difference is at entry" in said.stdout
    assert 'recorded  called: shell {"command": "echo blue > colour"}' in said.stdout


@pytest.mark.skipif(not STRACE, reason="strace is not installed")
def test_fifty_calls_have_no_effect(place: Place, serve: Any) -> None:
    """No program is started, nothing is connected, and only the home is written."""
    session = fifty(place, serve)
    shutil.rmtree(place.folder)  # nothing of it is needed
    place.folder.mkdir()
    traced = place.home / "trace"
    ran = subprocess.run(
        [
            *(STRACE or "", "-f", "-qq", "-o", str(traced)),
            *("-e", "trace=execve,connect,openat,unlink,rename,mkdir"),
            *(*COMMAND, "sessions", "replay", session, "--yes", "--json"),
        ],
        cwd=place.folder,
        env=place.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found["is_same"]
    assert found["entries"] > 150
    done = [line.partition(" ")[2].lstrip() for line in traced.read_text().splitlines()]
    programs = [call for call in done if call.startswith("execve(") and call.endswith(" = 0")]
    assert len(programs) == 1, programs
    assert not [call for call in done if call.startswith("connect(") and "AF_INET" in call]
    written = re.compile(r'openat\([^"]*"([^"]*)", [^)]*O_(?:WRONLY|RDWR|CREAT)[^)]*\) = \d')
    paths = [match[1] for call in done if (match := written.match(call))]
    assert paths
    own = (str(place.home), "/dev/", "/tmp/")
    outside = [path for path in paths if not path.startswith(own) and not path.endswith(".lock")]
    assert not outside, outside
    assert not list(place.folder.iterdir())


def test_what_people_did_comes_at_its_place(place: Place, serve: Any, gate: Gate) -> None:
    """A steer, messages that waited, a stop amid two calls, and what went on then."""
    serve(
        Tools([gate.call]),
        Text("Steered."),
        Text("The second."),
        Tools([gate.call, gate.call]),
        Text("Gone on."),
    )
    chat = place.at_work(gate, "begin")
    chat.send("/steer and look at the log")
    chat.send("/queue add what is next?")
    chat.send("/queue add gone before it began")
    chat.ask("/queue pop 3")
    gate.open()
    chat.wait("turn_ended", turn="t2")
    chat.send("once more")
    gate.wait()
    chat.causes("stop", "turn_ended", turn="t3", status="interrupted")
    chat.causes("/queue resume", "turn_ended", turn="t4")
    assert chat.close() == 0
    found = replayed(place, chat.session, "--yes")
    assert found["is_same"], found["difference"]
    without = place.run("sessions", "replay", chat.session)
    assert "if it was run with `--yes`" in without.stdout


def test_whose_session_it_is_is_known_from_the_record(place: Place, serve: Any) -> None:
    """Its owner has no name before a message, whichever way it came; another person has."""
    server = serve(Text("Hello.", times=0))
    chat = place.chat()
    chat.wait("session_started")
    for user in (getuser(), "ann"):
        other = place.attach("last", "--user", user)
        other.wait("session_started")
        other.causes("good morning", "turn_ended", status="completed")
        assert other.close() == 0
    assert chat.close() == 0
    said = [request.prompt for request in server.requests]
    assert [text for text in said if "morning" in text] == [
        "good morning",
        "[New message from ann] good morning",
    ]
    found = replayed(place, chat.session)
    assert found["is_same"], found["difference"]


def test_another_sentence_and_another_model(place: Place, serve: Any) -> None:
    """A model is asked where the record is over, or from a turn on; tools answer as recorded."""
    serve(
        Tools([LIST]),
        Text("Two files."),
        Text("A sum of it."),
        Tools([LIST]),
        Text("Otherwise said."),
        Tools([shell("cat a")]),
        Tools([shell("cat a")]),
    )
    chat = place.chat("--yes")
    chat.completes("what is here?")
    assert chat.close() == 0
    more = replayed(place, chat.session, "--say", "Sum it up.")
    assert (more["asked"], more["common"]) == (1, more["entries"])
    assert "A sum of it." in place.run("sessions", "show", more["session"]).stdout
    other = replayed(place, chat.session, "--model", "main")
    assert other["asked"] == 2
    assert "Otherwise said." in place.run("sessions", "show", other["session"]).stdout
    for option, what in (("--yes", "the tool `shell` is called"), ("", "a question is open")):
        options = ("--model", "main", *filter(None, (option,)))
        strange = replayed(place, chat.session, *options, code=1)["difference"]
        assert strange["why"] == f"{what}, and the record has no answer"


def test_it_goes_on_in_a_copy_as_the_folder_was(place: Place, serve: Any) -> None:
    """Another answer stops it amid a turn, and the copy has what was done before, and no more."""
    (place.folder / "notes.txt").write_text("old\n")
    serve(
        Tools([shell("echo first > notes.txt; mkdir new; echo 1 > new/one")]),
        Tools([shell("echo second > notes.txt; rm new/one")]),
        Text("Both are done."),
        Tools([shell("touch other.txt")]),
        Text("Done otherwise."),
        rest='[permissions]\nrules = [{ tool = "shell", match = "touch *", do = "allow" }]\n',
    )
    chat = place.chat()
    chat.send("go")
    chat.answer(chat.wait("question"), "allow")
    chat.answer(chat.wait("question"), "allow")
    chat.wait("turn_ended", status="completed")
    assert chat.close() == 0
    options = ("--answer", "q2=deny", "--live", "--json")
    ran = place.run("sessions", "replay", chat.session, *options)
    assert ran.returncode == 0, ran.stderr
    assert "Done otherwise." in ran.stderr
    found = json.loads(ran.stdout)
    copy = Path(found["folder"])
    assert (copy / "notes.txt").read_text() == "first\n"
    assert (copy / "new/one").read_text() == "1\n"
    assert (copy / "other.txt").exists()
    assert found["lost"] == []
    assert (place.folder / "notes.txt").read_text() == "second\n"
    assert not (place.folder / "other.txt").exists()
    assert place.run("sessions", "delete", found["session"], "--yes").returncode == 0
    assert not copy.exists()


def test_another_agent_or_table_of_a_file(place: Place, serve: Any) -> None:
    """A configuration file has the agent that decides, a table's file the rows."""
    session = fifty(place, serve)
    (place.folder / "careful.toml").write_text(
        '[agents.careful]\nsystem = "Be careful."\n[permissions]\n'
        'rules = [{ tool = "shell", match = "echo *", do = "deny" }]\n'
    )
    other = replayed(place, session, "--yes", "--agent", "./careful.toml", code=1)
    assert other["difference"]["replayed"]["status"] == "denied"


def test_what_cannot_be_replayed_is_said(place: Place, serve: Any) -> None:
    """A wrong turn, question, answer, table; a session in which another one worked; a run."""
    serve(Text("Hello."))
    chat = place.chat()
    chat.completes("hello")
    assert chat.close() == 0
    for options, why in (
        (("--from", "9"), "has no turn `t9`"),
        (("--answer", "q1=deny"), "there was no question `q1`"),
        (("--answer", "deny"), "`deny` is no answer"),
        (("--routes", "nothing"), "nothing"),
        (("--agent", "nobody"), "nobody"),
        (("--model", "nothing"), "nothing"),
    ):
        ran = place.run("sessions", "replay", chat.session, *options)
        assert (ran.returncode, why in ran.stderr) == (2, True), (options, ran.stderr)
    (place.folder / "w.toml").write_text(
        '[workflow]\nname = "w"\n[[step]]\nid = "a"\nrun = ["true"]\n'
    )
    assert place.run("run", "w.toml").returncode == 0
    ran = place.run("sessions", "replay", "last")
    assert (ran.returncode, "is a run of a workflow" in ran.stderr) == (2, True)


def test_an_exported_session_is_a_test_of_an_agent(place: Place, serve: Any) -> None:
    """Three lines of a program: they pass as recorded, and name what another agent would not do."""
    session = fifty(place, serve)
    exported = place.folder / "session.json"
    assert place.run("sessions", "export", session, str(exported)).returncode == 0
    program = place.folder / "regression.py"
    program.write_text(
        "import steersman\n"
        "from steersman.testing import Parted, replay\n"
        "tools = ['shell', 'read', 'write']\n"
        "same = replay('session.json', steersman.Agent(tools=tools), yes=True)\n"
        "assert same.is_same and same.entries > 150, same\n"
        "careful = steersman.Agent(tools=tools, permissions={'shell': 'deny'})\n"
        "try:\n"
        "    replay('session.json', careful, yes=True)\n"
        "except Parted as parted:\n"
        "    print(parted)\n"
    )
    ran = subprocess.run(
        [sys.executable, str(program)],
        cwd=place.folder,
        env=place.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "replayed  ended: shell: denied" in ran.stdout
    assert 'recorded  called: shell {"command": "echo 0 >> log.txt"}' in ran.stdout


def test_what_was_discarded_at_once_is_so_again(place: Place, serve) -> None:
    """A steer of a stopped turn, another stopped turn, and then all of it is taken back."""
    serve(Tools([{"tool": "shell", "arguments": {"command": "sleep 600"}}], times=0))
    chat = place.chat("--yes")
    chat.causes("build it", "tool_started")
    chat.causes("with tests", "accepted", text="with tests")
    for order in ("/stop", "/queue add something else"):
        chat.send(order)
    chat.wait("stopped")
    chat.causes("/queue resume 3", "tool_started")
    chat.causes("/stop", "stopped")
    assert chat.ask("/queue discard")["data"]["withdrawn"] == [1, 3, 2]
    assert chat.close() == 0
    again = place.run("sessions", "replay", chat.session, "--yes")
    assert again.returncode == 0, again.stdout
    assert "decided as recorded" in again.stdout
