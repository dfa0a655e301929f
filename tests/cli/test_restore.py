"""Sessions of other agents: kept over turn ends and crashes, gone after their end, resumed by id.

The agents are fakes: shell scripts that call `steersman hooks emit` as the real ones do.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.executed import executed
from support.patience import seconds

EMIT = f"{sys.executable} -m steersman hooks emit"

Emit = Callable[..., str]


@pytest.fixture
def emit(environ: dict[str, str], folder: Path) -> Emit:
    """Call the hook once, as an agent would; returns what it answers."""

    def call(agent: str, event: str, **payload: Any) -> str:
        done = executed(
            [sys.executable, "-m", "steersman", "hooks", "emit", agent, event],
            input=json.dumps(payload),
            env=environ,
            cwd=folder,
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    return call


def listed(command: Any) -> list[dict[str, Any]]:
    """Read what `restore list` shows to programs."""
    return json.loads(command("restore", "list", "--json").out)["restore"]


def run_and_kill(script: Path, environ: dict[str, str], folder: Path) -> None:
    """Run an agent until it has said everything, and pull its plug."""
    process = subprocess.Popen(
        ["sh", str(script)],
        env=environ,
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.read().splitlines()[-1] == "ready"
        process.send_signal(signal.SIGKILL)
    finally:
        process.kill()
        process.communicate()


def test_events_of_unknown_sessions_change_nothing(emit: Emit, command: Any, home: Path) -> None:
    """Events of an unknown session, agent or kind leave no trace, and are answered all the same."""
    for event in (
        "prompt-submit",
        "agent-response",
        "session-end",
        "session-finalize",
        "notification",
    ):
        assert emit("claude", event, session_id="nobody") == "{}\n"
    assert emit("clod", "session-start", session_id="x") == "{}\n"
    assert emit("claude", "session-begin", session_id="x") == "{}\n"
    assert listed(command) == []
    assert not (home / "state").exists()


def test_a_crash_while_hooks_run_repeats_the_end(
    emit: Emit, command: Any, home: Path, tmp_path: Path, environ: dict[str, str]
) -> None:
    """Killed between the hook and the note that it ran, the end is reported again, under its id."""
    log, pid = tmp_path / "log", tmp_path / "pid"
    emit("claude", "session-start", session_id="s-1")
    emit("claude", "session-end", session_id="s-1")
    kill = f"cat >> {log}; while [ ! -s {pid} ]; do :; done; kill -9 $(cat {pid})"
    hook = '[[hooks]]\non = "session_finalize"\nrun = ["sh", "-c", "{}"]\n'
    (home / "config.toml").write_text(hook.format(kill))
    telling = subprocess.Popen([sys.executable, "-m", "steersman", "hooks", "tell"], env=environ)
    pid.write_text(f"{telling.pid}\n")
    assert telling.wait(seconds(30)) == -signal.SIGKILL
    (home / "config.toml").write_text(hook.format(f"cat >> {log}"))
    assert command("hooks", "tell").out == "Hooks run: 1.\n"
    assert command("hooks", "tell").out == "Hooks run: 0.\n"
    first, second = [json.loads(line) for line in log.read_text().splitlines()]
    assert first["finalize"] == second["finalize"]


@pytest.mark.parametrize("event", ["turn_ended", "turn_end"])
def test_hooks_get_the_end_of_another_agents_turn(
    emit: Emit, command: Any, home: Path, tmp_path: Path, event: str
) -> None:
    """A turn's end of another agent reaches hooks automatically, once, and its record stays."""
    log = tmp_path / "log"
    os.mkfifo(log)
    emit("grok", "session-start", session_id="s-1")
    (home / "config.toml").write_text(
        f'[[hooks]]\non = "{event}"\nrun = ["sh", "-c", "cat > {log}"]\n'
    )
    emit("grok", "session-end", session_id="s-1")
    told = json.loads(log.read_text())
    assert (told["event"], told["agent"], told["external"]) == (event, "grok", True)
    assert told["command"] == ["grok", "--resume", "s-1"]
    (record,) = listed(command)
    assert record["last_boundary"] is not None


def test_an_inner_agent_changes_nothing_of_the_outer_one(
    environ: dict[str, str], folder: Path, tmp_path: Path, command: Any
) -> None:
    """Started inside another session, even under the outer id, an agent only has its own record."""
    outer, inner, same = tmp_path / "claude", tmp_path / "hermes", tmp_path / "in" / "claude"
    same.parent.mkdir()
    same.write_text(f'echo \'{{"session_id":"out"}}\' | {EMIT} claude session-end\n')
    inner.write_text(
        "#!/bin/sh\n"
        f'echo \'{{"session_id":"in"}}\' | {EMIT} hermes session-start\n'
        f'echo \'{{"session_id":"out"}}\' | {EMIT} claude session-end\n'  # inherited by mistake
        f"echo '{{}}' | {EMIT} claude session-end\n"
        f'echo \'{{"session_id":"in"}}\' | {EMIT} hermes session-end\n'
    )
    outer.write_text(
        "#!/bin/sh\n"
        f'echo \'{{"session_id":"out"}}\' | {EMIT} claude session-start\n'
        f"sh {inner}\nsh {same}\necho ready\nexec 1>&-\nread forever\n"
    )
    run_and_kill(outer, environ, folder)
    records = {row["id"]: row for row in listed(command)}
    assert set(records) == {"in", "out"}
    assert records["in"]["inside"] == "out"
    assert records["out"]["last_boundary"] is None
    assert records["in"]["last_boundary"] is not None


def test_an_inner_agent_whose_parents_are_gone_is_known_by_its_environment(
    environ: dict[str, str], folder: Path, tmp_path: Path, command: Any
) -> None:
    """Out of the process tree, but with the outer one's id inherited, it changes nothing of it."""
    outer, inner, helper = tmp_path / "claude", tmp_path / "hermes", tmp_path / "helper"
    go, done = tmp_path / "go", tmp_path / "done"
    os.mkfifo(go)
    os.mkfifo(done)
    helper.write_text(
        f'echo \'{{"session_id":"out"}}\' | {EMIT} claude session-start\n'
        f'echo \'{{"session_id":"out"}}\' | {EMIT} claude session-end\n'
    )
    inner.write_text(
        f"read word < {go}\n"  # until nobody is left between it and the first process
        f'echo \'{{"session_id":"in"}}\' | {EMIT} hermes session-start\n'
        f"sh {helper}\nsh {helper}\n"
        f'echo \'{{"session_id":"in"}}\' | {EMIT} hermes session-end\n'
        f"echo done > {done}\n"
    )
    outer.write_text(
        f'echo \'{{"session_id":"out"}}\' | {EMIT} claude session-start\n'
        f"(CLAUDE_CODE_SESSION_ID=out setsid sh {inner} < /dev/null > /dev/null 2>&1 &)\n"
        f"echo go > {go}\nread word < {done}\n"
        "echo ready\nexec 1>&-\nread forever\n"
    )
    run_and_kill(outer, environ, folder)
    records = {row["id"]: row for row in listed(command)}
    assert {name: one["inside"] for name, one in records.items()} == {"in": "out", "out": None}
    assert records["out"]["last_event"] == records["out"]["opened"]
    assert records["in"]["last_boundary"] is not None


def test_run_becomes_the_agents_own_command(
    environ: dict[str, str], folder: Path, tmp_path: Path, emit: Emit, command: Any
) -> None:
    """`restore run` resumes in the session's folder, and over generations under new ids."""
    emit("claude", "session-start", session_id="first")
    programs = tmp_path / "bin"
    programs.mkdir()
    program = programs / "claude"
    program.write_text(
        f'#!/bin/sh\npwd\necho "$@"\necho "{{\\"session_id\\":\\"after-$2\\"}}" | '
        f"{EMIT} claude session-start\n"
    )
    program.chmod(0o755)
    path = f"{programs}:{environ['PATH']}"
    for session in ("first", "after-first"):
        done = executed(
            [sys.executable, "-m", "steersman", "restore", "run", session],
            env={**environ, "PATH": path},
            cwd=tmp_path,
        )
        assert done.stdout.splitlines() == [str(folder), f"--resume {session}", "{}"], done.stderr
        (record,) = listed(command)
        assert record["id"] == f"after-{session}"
    assert record["previous"] == ["first", "after-first"]


@pytest.mark.parametrize("name", ["sub dir", "a;touch OWNED;", "it's", "$(touch OWNED)"])
def test_the_listed_command_can_be_pasted(
    name: str, environ: dict[str, str], tmp_path: Path, emit: Emit, command: Any
) -> None:
    """A shell that runs the listed line is in the session's folder, and runs only the agent."""
    folder = tmp_path / name
    folder.mkdir()
    emit("claude", "session-start", session_id="ccc-3", cwd=str(folder))
    line = "cd " + command("restore", "list", COLUMNS="1000").out.rpartition("  cd ")[2]
    shell = f'claude() {{ printf "%s " "$PWD" "$@"; }}; {line}'
    ran = subprocess.run(["sh", "-c", shell], cwd=tmp_path, capture_output=True, text=True)
    assert ran.stdout == f"{folder} --resume ccc-3 ", ran.stderr
    assert not [*tmp_path.rglob("OWNED")]


def test_what_cannot_be_resumed_is_refused(emit: Emit, command: Any, home: Path) -> None:
    """Without an id, an agent or a folder there is a sentence, and no plain agent is started."""
    emit("claude", "session-start", cwd="/", pid=os.getpid())
    (record,) = listed(command)
    assert record["command"] is None
    done = command("restore", "run", record["id"])
    assert (done.code, done.out) == (1, "")
    assert "never reported the id" in done.err
    emit("claude", "session-start", session_id="gone", cwd=str(home / "not-there"))
    assert "is not there" in command("restore", "run", "gone").err
    emit("codex", "session-start", session_id="alive", pid=os.getpid())
    assert "still runs" in command("restore", "run", "alive").err
    assert "nothing is kept" in command("restore", "run", "nobody").err


def test_forget_is_an_end(emit: Emit, command: Any) -> None:
    """A person can drop a record; what the agent says afterwards does not bring it back."""
    emit("codex", "session-start", session_id="s-1")
    assert command("restore", "forget", "s-").out == "Forgot session s-1 of codex.\n"
    emit("codex", "agent-response", session_id="s-1")
    assert listed(command) == []
    emit("codex", "session-start", session_id="s-1")
    assert [row["id"] for row in listed(command)] == ["s-1"]


def test_an_old_record_expires_once_with_a_notice(
    emit: Emit, command: Any, home: Path, configure: Any, program: Any, tmp_path: Path
) -> None:
    """After `restore.retention_hours` of use a record is stale, and the next chat trashes it.

    After as long again, a chat finalizes it and says so.
    """
    emit("gemini", "session-start", session_id="s-1")
    (file,) = (home / "state" / "agents" / "gemini").glob("*.jsonl")
    old = {**json.loads(file.read_text()), "time": time.time() - 30 * 86_400}
    file.write_text(json.dumps(old) + "\n")
    assert listed(command)[0]["state"] == "waiting"
    starts = home / "state" / "trash" / "starts"
    starts.parent.mkdir()
    starts.write_text("\n".join(str(time.time() - day * 86_400) for day in range(29, 20, -1)))
    (record,) = listed(command)
    assert (record["state"], record["alive"]) == ("stale", True)
    log = tmp_path / "log"
    hook = f'[[hooks]]\non = "session_finalize"\nrun = ["sh", "-c", "grep external >> {log}"]\n'
    configure(more=hook)
    first = program("chat", "hello")
    assert "The record of session s-1 of gemini" in first.err
    assert "is in the trash now" in first.err
    assert [record["state"] for record in listed(command)] == ["stale"]
    (mark,) = starts.parent.glob("agent-*.json")
    since = {**json.loads(mark.read_text()), "since": time.time() - 29 * 86_400}
    mark.write_text(json.dumps(since))
    second, third = program("chat", "hello"), program("chat", "hello")
    assert "Deleted from the trash: the record of session s-1 of gemini" in second.err
    assert "trash" not in third.err
    assert (listed(command), list(starts.parent.glob("*.json"))) == ([], [])
    assert [command("hooks", "tell").out for _ in range(2)] == [
        "Hooks run: 1.\n",
        "Hooks run: 0.\n",
    ]
    (told,) = [json.loads(line) for line in log.read_text().splitlines()]
    assert (told["session"], told["cause"]) == ("s-1", "expired")
    assert told["finalize"] == "finalize-gemini-s-1-1"


def test_an_installation_that_is_out_of_date_is_listed_and_renewed(
    command: Any, home: Path
) -> None:
    """What would be written differently today is `outdated` in the list, until `install` renews it."""
    settings = home.parent / ".claude" / "settings.json"
    settings.parent.mkdir()

    def state() -> str:
        views = json.loads(command("hooks", "list", "--json").out)["hooks"]
        return next(str(view["state"]) for view in views if view["agent"] == "claude")

    assert state() == "not installed"
    assert command("hooks", "install", "claude").code == 0
    assert state() == "installed"
    now = settings.read_text()
    settings.write_text(now.replace("session-end", "notification"))
    assert state() == "outdated"
    assert "outdated" in command("hooks", "list").out
    assert command("hooks", "install", "claude").code == 0
    assert (state(), settings.read_text()) == ("installed", now)
