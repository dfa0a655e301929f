"""Every agent that is known, from the installation of our hooks to the end of its session.

The agent is a program of the same name that reads which commands stand in its own configuration, and
calls them at the moments at which the real one does.
"""

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from support.patience import seconds

from steersman.workflows.agent_definition import AgentDefinition, load_agents
from steersman.workflows.paths import Paths

NOWHERE = Path("/nonexistent")
AGENTS = load_agents(Paths(config=NOWHERE, state=NOWHERE, cache=NOWHERE))
EMIT = [sys.executable, "-m", "steersman", "hooks", "emit"]
TELL = [sys.executable, "-m", "steersman", "hooks", "tell"]
SESSION = "5f3c-1"
STRACE = shutil.which("strace")
FAKE = f"""#!{sys.executable}
import json, os, subprocess, sys
hooks, key, session = json.load(open(os.environ["FAKE_AGENT"]))
print(json.dumps(sys.argv[1:]), flush=True)
for line in sys.stdin:
    said = {{key: session, "cwd": os.getcwd(), "pid": os.getpid()}}
    for command in hooks[line.strip()]:
        subprocess.run(command, shell=True, input=json.dumps(said).encode(),
                       stdout=subprocess.DEVNULL, check=True)
    print(line.strip(), flush=True)
"""

Commands = dict[str, list[str]]


def installed(agent: AgentDefinition, path: Path) -> Commands:
    """Read an agent's configuration as the agent does: its events, and the commands for each."""
    text = path.read_text()
    match agent.hooks.format:
        case "claude-json":
            found = json.loads(text)["hooks"].items()
            return {
                name: [hook["command"] for group in groups for hook in group["hooks"]]
                for name, groups in found
            }
        case "copilot-json":
            found = json.loads(text)["hooks"].items()
            return {name: [hook["bash"] for hook in hooks] for name, hooks in found}
        case "antigravity-json":
            groups = json.loads(text).values()
            return {
                name: [hook["command"] for hook in hooks]
                for group in groups
                for name, hooks in group.items()
            }
        case "hermes-yaml":
            reader: Any = YAML(typ="safe", pure=True)
            found = reader.load(text)["hooks"].items()
            return {name: [hook["command"] for hook in hooks] for name, hooks in found}
        case "opencode-plugin":
            rows = re.findall(r'^  ("\S+"): (\[.*\]),$', text, re.MULTILINE)
            return {json.loads(name): [shlex.join(json.loads(words))] for name, words in rows}
        case other:
            raise AssertionError(f"nobody here reads {other}")


class Fake:
    """A running agent; `arguments` are those that it was started with."""

    def __init__(self, command: list[str], environ: dict[str, str], folder: Path) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            command, env=environ, cwd=folder, stdin=pipe, stdout=pipe, text=True
        )
        self.arguments = json.loads(self._line())

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def says(self, event: str) -> None:
        """Come to the moment of an event of its own; returns when its hooks have run."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{event}\n")
        self.process.stdin.flush()
        assert self._line() == f"{event}\n"

    def kill(self) -> None:
        """End it by SIGKILL; idempotent."""
        self.process.kill()
        self.process.communicate()


Start = Callable[..., Fake]


@pytest.fixture
def environ(environ: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """What a shell of this person has in its environment: the agent is on the PATH."""
    path = f"{tmp_path / 'bin'}:{environ['PATH']}"
    return environ | {"PATH": path, "FAKE_AGENT": str(tmp_path / "fake.json")}


@pytest.fixture
def start(environ: dict[str, str], folder: Path) -> Generator[Start]:
    """Start a program that is, or becomes, an agent."""
    made: list[Fake] = []

    def begin(*command: str) -> Fake:
        made.append(Fake(list(command), environ, folder))
        return made[-1]

    yield begin
    for one in made:
        one.kill()


def listed(command: Any) -> list[dict[str, Any]]:
    """Read what `restore list` shows to programs."""
    return json.loads(command("restore", "list", "--json").out)["restore"]


def listen(home: Path, log: Path) -> None:
    """Configure a hook that records its input at ends."""
    run = json.dumps(["sh", "-c", f"cat >> {log}"])
    (home / "config.toml").write_text(f'[[hooks]]\non = "session_finalize"\nrun = {run}\n')


def its_name(agent: AgentDefinition, *ours: str) -> str:
    """Return what an agent calls the first of these events that it has; nothing if it has none."""
    names = {event: name for name, event in reversed(agent.events.items())}
    return next((names[name] for name in ours if name in names), "")


@pytest.mark.nightly
@pytest.mark.parametrize("agent", AGENTS.values(), ids=lambda one: one.name)
def test_an_agent_from_its_installation_to_its_end(
    agent: AgentDefinition,
    start: Start,
    environ: dict[str, str],
    folder: Path,
    home: Path,
    tmp_path: Path,
    command: Any,
) -> None:
    """Three turn ends, kill -9, a resume by its own command, and its end: told once, said twice."""
    path = agent.hooks.path(environ)
    path.parent.mkdir(parents=True)
    assert command("hooks", "install", agent.name).code == 0
    hooks = installed(agent, path)
    assert hooks.keys() == agent.events.keys()
    key = agent.payload.session_id[0] if agent.payload.session_id else "session_id"
    (tmp_path / "fake.json").write_text(json.dumps([hooks, key, SESSION]))
    program = tmp_path / "bin" / agent.start[0]
    program.parent.mkdir()
    program.write_text(FAKE)
    program.chmod(0o755)

    fake = start(*agent.start)
    fake.says(its_name(agent, "session-start"))
    for _ in range(3):
        for event in ("prompt-submit", "agent-response"):
            if event in agent.events.values():
                fake.says(its_name(agent, event))
        if agent.session_end_is_turn_boundary:
            fake.says(its_name(agent, "session-end"))
    fake.kill()
    (record,) = listed(command)
    assert (record["id"], record["agent"], record["cwd"]) == (SESSION, agent.name, str(folder))
    assert record["command"] == [word.replace("{session_id}", SESSION) for word in agent.resume]
    assert (record["alive"], record["state"]) == (False, "waiting")
    assert record["last_boundary"] is not None

    fake = start(sys.executable, "-m", "steersman", "restore", "run", "last")
    assert fake.arguments == record["command"][1:]
    fake.says(its_name(agent, *(["prompt-submit"] if agent.prompt_reopens else ["session-start"])))
    (record,) = listed(command)
    assert (record["id"], record["pid"], record["alive"]) == (SESSION, fake.process.pid, True)
    ends = () if agent.session_end_is_turn_boundary else ("session-end",)
    end = its_name(agent, *ends, "session-finalize")
    for _ in range(2):
        if end:
            fake.says(end)
        else:  # it never tells its end: a person does
            command("restore", "forget", "last")
    assert listed(command) == []
    log = tmp_path / "log"
    listen(home, log)
    assert [command("hooks", "tell").out for _ in range(2)] == [
        "Hooks run: 1.\n",
        "Hooks run: 0.\n",
    ]
    (told,) = [json.loads(line) for line in log.read_text().splitlines()]
    assert told["finalize"] == f"finalize-{agent.name}-{SESSION}-1"
    assert command("hooks", "uninstall", agent.name).code == 0
    assert not path.exists()


@pytest.mark.skipif(STRACE is None, reason="needs strace to stop at a write")
@pytest.mark.parametrize(
    ("agent", "end", "who", "call", "times"),
    [
        ("hermes", "session-finalize", "emit", "write", 1),
        ("claude", "session-end", "emit", "fsync", 1),
        ("hermes", "session-finalize", "tell", "write", 2),  # nobody knows that it was told
        ("claude", "session-end", "tell", "fsync", 1),
    ],
)
def test_a_kill_between_the_steps_of_an_end_leaves_one_end(
    agent: str,
    end: str,
    who: str,
    call: str,
    times: int,
    environ: dict[str, str],
    home: Path,
    tmp_path: Path,
    command: Any,
) -> None:
    """Killed as it is written down, or as its telling is: said again, it is one end under one id."""
    said = json.dumps({"session_id": SESSION}).encode()
    log = tmp_path / "log"

    def emit(event: str, *before: str) -> int:
        words = [*before, *EMIT, agent, event]
        return subprocess.run(words, input=said, env=environ, timeout=seconds(30)).returncode

    assert emit("session-start") == 0
    (file,) = (home / "state" / "agents" / agent).glob("*.jsonl")
    kill = [STRACE or "", "-f", "-qq", "-o", "/dev/null", "-P", str(file), "-e", f"trace={call}"]
    kill += ["-e", f"inject={call}:signal=KILL:when=1"]
    assert (emit(end, *(kill if who == "emit" else ())) == 0) is (who == "tell")
    assert emit(end) == 0
    assert listed(command) == []
    listen(home, log)
    if who == "tell":
        assert subprocess.run([*kill, *TELL], env=environ, timeout=seconds(60)).returncode != 0
    command("hooks", "tell")
    assert command("hooks", "tell").out == "Hooks run: 0.\n"
    told = [json.loads(line)["finalize"] for line in log.read_text().splitlines()]
    assert told == [f"finalize-{agent}-{SESSION}-1"] * times
    assert listed(command) == []
