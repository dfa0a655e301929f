"""Hooks of a person on their own sessions: in order, within limits, and never in the session's way."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from support.driver import Place
from support.model_server import Text
from support.patience import seconds

LIFE = ["session_start", "turn_started", "agent_response", "turn_ended", "session_suspend"]


def hook(on: str, *command: str, timeout: float = 10.0) -> str:
    """Write one hook as it stands in a configuration."""
    return f'[[hooks]]\non = "{on}"\nrun = {json.dumps(list(command))}\ntimeout = {timeout}\n'


def keep(on: str, log: Path) -> str:
    """Write a hook that records its input."""
    return hook(on, "sh", "-c", f"cat >> {log}")


def told(log: Path) -> list[dict[str, Any]]:
    """Read what hooks wrote down."""
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def attach(packages: Path, log: Path, event: str = "turn_ended") -> None:
    """Make an installed package whose entry point gets the ends of turns."""
    info = packages / "sample-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: sample\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[steersman.hooks]\n{event}.sample = sample:hear\n")
    (packages / "sample.py").write_text(
        f"import json\ndef hear(told):\n    open({str(log)!r}, 'a').write(json.dumps(told) + '\\n')\n"
    )


def test_hooks_hear_a_sessions_life_in_order(place: Place, serve, tmp_path: Path) -> None:
    """Each event comes as JSON, in order, after it was durable, without secrets; to functions, too."""
    log, point = tmp_path / "log", tmp_path / "point"
    attach(tmp_path / "packages", point)
    place.environ["PYTHONPATH"] = str(tmp_path / "packages")
    events = [*LIFE, "session_resume", "session_finalize"]
    secret = hook("turn_ended", "sh", "-c", "env | grep -c API_KEY; exit 3")
    serve(Text("hello"), Text("again"), rest="".join(keep(event, log) for event in events) + secret)
    place.environ["SOME_API_KEY"] = "sk-0123456789"
    assert place.run("chat", "--json", said="hi\n").returncode == 0
    first = told(log)
    assert [event["event"] for event in first] == LIFE
    assert len({event["session"] for event in first}) == 1
    assert (first[1]["text"], first[2]["text"], first[3]["status"]) == ("hi", "hello", "completed")
    assert [event["event"] for event in told(point)] == ["turn_ended"]
    ran = place.stored()["hooks"]
    assert [event["event"] for event in ran if event["command"].startswith("sh -c 'cat")] == LIFE
    (denied,) = [row for row in ran if "grep" in row["command"]]
    assert (denied["status"], denied["exit_code"], denied["output"]) == ("exited", 3, "0\n")
    chat = place.chat("--continue")
    chat.completes("go on")
    chat.send("/new")
    assert chat.close() == 0
    later = told(log)[len(first) :]
    mine = [event["event"] for event in later if event["session"] == first[0]["session"]]
    assert mine == [
        "session_resume",
        "turn_started",
        "agent_response",
        "turn_ended",
        "session_finalize",
    ]
    (end,) = [event for event in later if event["event"] == "session_finalize"]
    assert (end["finalize"], end["cause"]) == (f"finalize-{end['session']}", "new")


def test_a_bad_hook_harms_no_session(place: Place, serve) -> None:
    """One that is missing, fails, hangs or floods is cut off and noted; the answer does not wait."""
    rest = hook("turn_started", "/not/there")
    rest += hook("turn_started", "sh", "-c", "yes", timeout=0.3)
    rest += hook("turn_started", "sh", "-c", "sleep 60 & sleep 60", timeout=0.3)
    rest += hook("turn_ended", "sh", "-c", "echo last")
    serve(Text("hello"), rest=rest)
    chat = place.chat("hi")
    ended = chat.wait("turn_ended")
    assert ended["status"] == "completed"
    assert chat.close() == 0
    ran = place.stored()["hooks"]
    assert [event["status"] for event in ran] == ["failed", "timed_out", "timed_out", "exited"]
    assert all(len(row.get("output", "")) < 5000 for row in ran)
    assert place.processes() == {}


def test_a_hook_that_cannot_start_is_reported_once(place: Place, serve) -> None:
    """A notice in the chat, on standard error elsewhere; also of one that runs at the end."""
    rest = hook("turn_ended", "notify-send hi") + hook("session_suspend", "not-there")
    serve(Text("hello", times=0), rest=rest)
    chat = place.chat()
    for text in ("one", "two"):
        chat.completes(text)
    assert chat.close() == 0
    wanted = [
        "The hook `'notify-send hi'` on turn_ended could not be started: "
        "`notify-send hi` not found on PATH",
        "The hook `not-there` on session_suspend could not be started: "
        "`not-there` not found on PATH",
    ]
    notices = [event["text"] for event in chat.seen("notice")]
    assert [text for text in notices if text.startswith("The hook")] == wanted
    ran = place.run("chat", "three")
    assert (ran.returncode, ran.stdout) == (0, "hello\n")
    assert [line for line in ran.stderr.splitlines() if line.startswith("The hook")] == wanted


@pytest.mark.parametrize("point", ["turn_ended", "turn_end"])
def test_a_hook_gets_its_event_as_it_is_spelled_there(
    place: Place, serve, tmp_path: Path, point: str
) -> None:
    """Earlier spellings are understood in files and entry points; the journal has today's."""
    spelled = ["turn_started", "turn_start", "turn_ended", "turn_end"]
    names, log, plugged = tmp_path / "names", tmp_path / "log", tmp_path / "plugged"
    attach(tmp_path / "packages", plugged, point)
    place.environ["PYTHONPATH"] = str(tmp_path / "packages")
    keeps = f"echo $STEERSMAN_HOOK >> {names}; cat >> {log}"
    serve(Text("hello"), rest="".join(hook(one, "sh", "-c", keeps) for one in spelled))
    assert place.run("chat", "--json", said="hi\n").returncode == 0
    assert [event["event"] for event in told(log)] == names.read_text().split() == spelled
    assert [(event["event"], event["status"]) for event in told(plugged)] == [(point, "completed")]
    today = ["turn_started"] * 2 + ["turn_ended"] * 3
    assert [event["event"] for event in place.stored()["hooks"]] == today


def test_nothing_runs_at_a_restart_until_a_message(place: Place, serve, tmp_path: Path) -> None:
    """The end of a session whose program died is due: told with the next word, under the same id."""
    log, pid = tmp_path / "log", tmp_path / "pid"
    kill = f"cat >> {log}; while [ ! -s {pid} ]; do :; done; kill -9 $(cat {pid})"
    serve(Text("hello"), rest=hook("session_finalize", "sh", "-c", kill))
    chat = place.chat()
    chat.send("/new")
    pid.write_text(f"{chat.process.pid}\n")
    assert chat.process.wait(seconds(30)) == -signal.SIGKILL
    (first,) = told(log)
    serve(Text("hello"), rest=keep("session_finalize", log) + keep("session_resume", log))
    chat = place.chat("--continue")
    chat.wait("session_started")
    chat.causes("/queue list", "result")
    assert told(log) == [first]
    chat.completes("go on")
    assert chat.close() == 0
    later = told(log)[1:]
    assert sorted(event["event"] for event in later) == ["session_finalize", "session_resume"]
    (again,) = [event for event in later if event["event"] == "session_finalize"]
    assert again == first
