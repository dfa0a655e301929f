"""What an agent's hooks call: it answers `{}` and exits 0, whatever is wrong, and takes no time."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from support.executed import executed
from support.patience import seconds

from steersman.cli import emit
from steersman.ports.external_agent import DRIVEN
from steersman.workflows.agent_definition import EventName
from steersman.workflows.paths import Paths

COMMAND = [sys.executable, "-m", "steersman", "hooks", "emit"]


def call(environ: dict[str, str], said: bytes, *arguments: str) -> tuple[int, bytes, bytes]:
    """Call the hook with this on standard input."""
    done = subprocess.run(
        [*COMMAND, *arguments], input=said, env=environ, capture_output=True, timeout=seconds(30)
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "said",
    [b"", b"{", b"[1, 2]", b'"text"', b"\xff\xfe", b"[" * 100_000, b'{"session_id": {}}',
     b'{"session_id": "-rf"}', b'{"session_id": "a\\nb"}', b'{"session_id": "' + b"x" * 300 + b'"}'],
    ids=["nothing", "half", "list", "text", "bytes", "deep", "table", "option", "newline", "long"],
)  # fmt: skip
def test_senseless_input_is_answered(said: bytes, environ: dict[str, str], home: Path) -> None:
    """Whatever comes on standard input, the answer is `{}`, and nothing is written of it."""
    assert call(environ, said, "claude", "session-start") == (0, b"{}\n", b"")
    assert not list(home.rglob("*.jsonl"))


@pytest.mark.parametrize(
    "arguments", [(), ("claude",), ("claude", "what"), ("../x", "session-start")]
)
def test_senseless_arguments_are_answered(
    arguments: tuple[str, ...], environ: dict[str, str], home: Path
) -> None:
    """An unknown agent or event is no error for the caller."""
    assert call(environ, b'{"session_id": "s"}', *arguments) == (0, b"{}\n", b"")
    assert not list(home.rglob("*.jsonl"))


def test_a_home_that_cannot_be_written_fails_no_caller(
    environ: dict[str, str], tmp_path: Path
) -> None:
    """Where the home is a file, or full, the event is lost and the agent goes on."""
    blocked = tmp_path / "file"
    blocked.write_text("")
    said = b'{"session_id": "s"}'
    environ = {**environ, "STEERSMAN_HOME": str(blocked)}
    assert call(environ, said, "claude", "session-start") == (0, b"{}\n", b"")

    def no_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    environ["STEERSMAN_HOME"] = str(tmp_path / "full")
    done = subprocess.run(
        [*COMMAND, "claude", "session-start"],
        input=said,
        env=environ,
        stdout=subprocess.PIPE,
        preexec_fn=no_room,
        timeout=seconds(30),
    )
    assert (done.returncode, done.stdout) == (0, b"{}\n")


def test_input_that_never_ends_is_given_up(environ: dict[str, str], home: Path) -> None:
    """An agent that keeps the pipe open gets its answer after the patience, and the event counts."""
    process = subprocess.Popen(
        [*COMMAND, "claude", "session-start"],
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b'{"session_id": "s"}')
    process.stdin.flush()
    assert process.stdout.read() == b"{}\n"
    assert process.wait(seconds(30)) == 0
    process.communicate()
    assert len(list(home.rglob("*.jsonl"))) == 1


def test_a_long_input_is_drained(environ: dict[str, str], home: Path) -> None:
    """A transcript of megabytes is read to its end, so that the agent's write never breaks."""
    said = json.dumps({"session_id": "s", "text": "x" * 5_000_000}).encode()
    assert call(environ, said, "hermes-agent", "session-start") == (0, b"{}\n", b"")
    (file,) = home.rglob("*.jsonl")
    assert file.parent.name == "hermes"
    assert file.stat().st_size < 5000
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("agent", "said"),
    [
        ("claude", {"session_id": "s"}),
        ("grok", {"sessionId": "s"}),
        ("opencode", {"session": {"id": "s"}}),
        ("antigravity", {"conversationId": "s"}),
    ],
)
def test_an_id_is_found_under_its_names(
    agent: str, said: dict[str, object], environ: dict[str, str], home: Path
) -> None:
    """An id counts under the usual names, and under those that the definition adds."""
    assert call(environ, json.dumps(said).encode(), agent, "session-start") == (0, b"{}\n", b"")
    (file,) = home.rglob("*.jsonl")
    assert json.loads(file.read_text())["session"] == "s"


def test_an_agent_that_a_session_drives_has_no_record(environ: dict[str, str], home: Path) -> None:
    """Its work is in the session; another agent that it starts has a record as everywhere."""
    assert DRIVEN == emit.DRIVEN
    environ = {**environ, DRIVEN: "opencode"}
    assert call(environ, b'{"session_id": "s"}', "opencode", "session-start")[0] == 0
    assert not list(home.rglob("*.jsonl"))
    assert call(environ, b'{"session_id": "s"}', "claude", "session-start")[0] == 0
    assert len(list(home.rglob("*.jsonl"))) == 1


def test_events_are_those_of_definitions() -> None:
    """The events that are taken are the ones that a definition can name."""
    assert emit.EVENTS == EventName.__args__  # type: ignore[attr-defined]


@pytest.mark.parametrize("variables", [{}, {"XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "/s"}])
def test_places_are_those_of_the_program(
    variables: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is written down lies where the rest of the program looks for it."""
    for name in ("STEERSMAN_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    program = "import sys; from steersman.cli import emit; print(emit._state(), emit._folders()[0])"
    done = executed([sys.executable, "-c", program])
    paths = Paths.of(os.environ)
    assert done.stdout.split() == [str(paths.state), str(paths.config / "agents")]


def test_nothing_of_the_program_is_imported(environ: dict[str, str]) -> None:
    """An agent does not wait for a parser, a database, or the packages that they need."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *COMMAND[1:], "claude", "session-start"],
        input=b'{"session_id": "s"}',
        env=environ,
        capture_output=True,
        timeout=seconds(30),
    )
    names = {line.rpartition(b"|")[2].strip().decode() for line in done.stderr.splitlines()}
    heavy = {"typer", "pydantic", "apsw", "prompt_toolkit", "transitions", "asyncio", "dataclasses"}
    assert names & heavy == set()
    assert {name for name in names if name.startswith("steersman.")} == {
        "steersman.cli",
        "steersman.cli.main",
        "steersman.cli.emit",
        "steersman.restore",
        "steersman.restore.hook_log",
        "steersman.ports",
        "steersman.ports.process",
        "steersman.ports.process.ancestry",
        "steersman.workflows",
        "steersman.workflows.durability",
        "steersman.workflows.home_folder",
    }
