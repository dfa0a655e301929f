"""Each failure of docs/troubleshooting.md happens here, with its message, its next step, its exit code.

No documented failure is without a test, and none ends in a traceback.
"""

import json
import re
import resource
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.model_server import ModelServer, Status
from support.patience import seconds
from support.ports import HeldPort

DOC = Path(__file__).resolve().parents[2] / "docs" / "troubleshooting.md"
DOCUMENTED = re.findall(r"^### `(.+)`$", DOC.read_text("utf-8"), re.MULTILINE)

LS = '[[answer]]\n[[answer.tool_calls]]\ntool = "shell"\narguments = { command = "ls" }\n'
ASKS = LS + '[[answer]]\ntext = "Well."\n'


@dataclass(frozen=True)
class Case:
    """A command that fails: `config` stands instead of the scripted model's, `said` is its input."""

    arguments: tuple[str, ...]
    next_step: str
    code: int = 2
    config: str | None = None
    more: str = ""
    script: str = ASKS
    said: str = ""
    environ: tuple[tuple[str, str], ...] = ()
    largest: int = -1
    """Bytes that no file may exceed, as on a full disk; -1: any."""
    spoils: str = ""
    """A statement that damages the journal before the command, or `HEADER`."""


def server(status: int, body: str, step: str) -> Case:
    """A chat with a server that answers so."""
    text = json.dumps({"error": {"message": body}})
    return Case(("chat", "hi"), step, 1, f"SERVER {status} {text}")


CHAT = ("chat", "hi")
Happen = Callable[["Case"], tuple[int, str]]
CASES: dict[str, Case] = {
    "answered 401: …": server(401, "no", "set `A_KEY` in the environment"),
    "answered 404: …": server(404, "model m not found", "correct `model`"),
    "answered 429: …": server(429, "insufficient_quota", "top it up or choose a model"),
    "no server listens at …: connection refused": Case(
        ("models", "check"), "start the model server, or correct `base_url`", 1, "NOBODY"
    ),
    "the weights of the embedded model … are not here": Case(
        (*CHAT, "--model", "qwen2.5-coder-0.5b"),
        "run `steersman models fetch qwen2.5-coder-0.5b`",
        1,
        "",
    ),
    "no model is called …": Case((*CHAT, "--model", "mian"), "did you mean `main`?"),
    "the catalogue has no model …": Case(("models", "fetch", "gpt9"), "it has: qwen2.5-coder-0.5b"),
    "the script … cannot be read: …": Case(
        CHAT,
        "correct `script`",
        config='[models.main]\nprovider = "scripted"\nscript = "/no"\n'
        '[agents.assistant]\nmodel = "main"\n',
    ),
    "unknown key …": Case(
        ("config", "check"), "did you mean `busy_input_mode`", config='busy_input_mod = "x"'
    ),
    "… must be one of …, not …": Case(CHAT, "`steer`", config='busy_input_mode = "sometimes"'),
    "not valid TOML: …": Case(CHAT, "config.toml:1:1", config="x = [\n"),
    "can only be false: …": Case(
        CHAT, "`/queue resume` continues", config="[auto_queue.persistence]\nauto_resume = true"
    ),
    "names the model …, which is not there": Case(
        CHAT, "add a table `[models.best]`", config='[agents.assistant]\nmodel = "best"'
    ),
    "the file can't be read: it is not there": Case(
        CHAT, "correct the path", environ=(("STEERSMAN_CONFIG", "/no.toml"),)
    ),
    "there is no agent …": Case((*CHAT, "--agent", "nobody"), "known agents: assistant"),
    "… cannot be used: …": Case(
        (*CHAT, "--model", "acme"), "update or uninstall `acme`", script="PACKAGE"
    ),
    "there is no gateway …": Case(("gateway", "run", "irk"), "did you mean `irc`?"),
    "is not trusted: … not applied": Case(
        ("config", "check"), "`steersman trust` applies it", 0, script="PROJECT"
    ),
    "has changed since it was trusted: … not applied": Case(
        ("config", "check"), "`steersman trust` applies it", 0, script="CHANGED"
    ),
    "cannot set …: only your own files do": Case(
        ("config", "check"), "cannot set `restore`", 0, script="PROJECT"
    ),
    "there is no terminal, so nobody can be asked": Case(
        ("trust",), "`steersman trust --yes`", script="PROJECT"
    ),
    "there is nothing to trust in …": Case(("trust",), "nothing in `.steersman`"),
    "was not trusted": Case(("trust", "--forget"), "`steersman trust --list` shows"),
    "it needs permission (…) and no person can be asked": Case(CHAT, "`--yes` or a rule", 4),
    "a rule forbids it: …": Case(
        CHAT, 'shell "*": deny', 0, more='[permissions]\nrules = [{ tool = "shell", do = "deny" }]'
    ),
    "tools.sandbox is required, but …": Case(
        (*CHAT, "--yes"),
        "install bubblewrap",
        0,
        more='[tools]\nsandbox = "required"',
        environ=(("PATH", "/nowhere"),),
    ),
    "there is no tool …": Case(("permissions", "explain", "x", "--tool", "fly"), "there are read"),
    "Not attached: …": Case(("chat", "see @./none"), "there is no such file", 4),
    "no session …": Case(("sessions", "show", "zzz"), "`steersman sessions list` shows them"),
    "no session of … can be continued": Case(
        (*CHAT, "--continue"), "`steersman chat` starts one", 1
    ),
    "another program has session … open": Case(
        ("chat", "--resume", "last", "hi"), "`steersman attach ", 1, script="OWNED"
    ),
    "queue_full": Case(
        ("chat", "--json"),
        "two",
        0,
        more="[auto_queue]\nmax_queue_size = 1",
        said="".join(
            json.dumps({"text": one, "as": "queue"}) + "\n" for one in ("go", "one", "two")
        ),
    ),
    "No queued item #…": Case(("chat", "--json"), "No queued item #5", 0, said="/queue steer 5\n"),
    "no question … is open": Case(
        ("chat", "--json"), "it was not answered", 0, said='{"answer": "q9", "choice": "allow"}\n'
    ),
    "it cannot be read: …": Case(
        ("queue", "import", "/no.toml"), "name another file", 1, script="TALKED"
    ),
    "… cannot be used (…)": Case(
        ("chat", "--json"),
        "nothing accepted is lost",
        1,
        said=f"{'word ' * 4000}\n" * 40,
        largest=300_000,
    ),
    "1 session cannot be read: …": Case(
        ("sessions", "list"),
        "`steersman home check` says more",
        0,
        script="TALKED",
        spoils="UPDATE sessions SET row = '{'",
    ),
    "… is damaged or not a database": Case(
        ("sessions", "list"), "`steersman home salvage TO`", 1, script="TALKED", spoils="HEADER"
    ),
    "… is not in the trash": Case(
        ("home", "trash", "restore", "x"), "`steersman home trash` lists"
    ),
    "the folder can't be created: …": Case(
        CHAT,
        "set STEERSMAN_HOME to a folder that you own",
        environ=(("STEERSMAN_HOME", "/dev/null"),),
    ),
    "is not a folder": Case((*CHAT, "--cwd", "/no"), "give --cwd an existing one"),
    "No such command …": Case(("nonsense",), "try `steersman --help`"),
    "there is no machine …": Case(("machines", "show", "no"), "known: session"),
    "there is no routing table …": Case(("routes", "use", "no"), "known: steersman"),
}


def model_at(url: str) -> str:
    """Write a configuration whose one model is at `url`."""
    model = f'[models.main]\nprovider = "openai"\nbase_url = "{url}"\nmodel = "m"'
    return f'{model}\napi_key_env = "A_KEY"\n[agents.assistant]\nmodel = "main"\n'


def configured(case: Case, servers: list[ModelServer], closed: HeldPort) -> str | None:
    """Give the text of the configuration that a case has, if it is not the scripted model's."""
    if case.config == "NOBODY":
        return model_at(f"http://127.0.0.1:{closed.number}/v1")
    if case.config is None or not case.config.startswith("SERVER"):
        return case.config
    _, status, body = case.config.split(" ", 2)
    servers.append(ModelServer([Status(int(status), body=body)]))
    return model_at(servers[-1].base_url)


def damage(journal: Path, how: str) -> None:
    """Run a statement in a journal, or take its header away."""
    if how == "HEADER":
        journal.write_bytes(b"\xa5" * 4096 + journal.read_bytes()[4096:])
    else:
        connection = sqlite3.connect(journal)
        with connection:
            connection.execute(how)
        connection.close()


@pytest.fixture
def happen(
    home: Path, folder: Path, environ: dict[str, str], configure: Callable[..., None], command: Any
) -> Iterator[Happen]:
    """Make a case happen; give its exit code and all that it printed, on one line."""
    servers: list[ModelServer] = []

    def start(*arguments: str, largest: int = -1, **more: str) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))  # noqa: E731
        run = [sys.executable, "-m", "steersman", *arguments]
        given = {"stdin": pipe, "stdout": pipe, "stderr": subprocess.STDOUT, "text": True}
        return subprocess.Popen(run, cwd=folder, env=environ | more, preexec_fn=limit, **given)  # type: ignore[call-overload,no-any-return]

    def make(case: Case) -> tuple[int, str]:
        configure(case.script if case.script.startswith("[[") else ASKS, case.more)
        if (text := configured(case, servers, closed)) is not None:
            (home / "config.toml").write_text(text)
        if case.script in ("PROJECT", "CHANGED"):
            file = folder / "steersman.toml"
            file.write_text("tools.grace = 9\nrestore.retention_hours = 1\n")
        if case.script == "CHANGED":
            assert command("trust", "--yes").code == 0
            file.write_text("tools.grace = 8\n")
        if case.script == "PACKAGE":
            info = folder.with_name("site") / "acme-1.0.dist-info"
            info.mkdir(parents=True)
            (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
            (info / "entry_points.txt").write_text("[steersman.models]\nacme = not_there:model\n")
            environ["PYTHONPATH"] = str(info.parent)
        owner = start("chat", "--json") if case.script in ("OWNED", "TALKED") else None
        if owner is not None:
            assert owner.stdout is not None
            owner.stdout.readline()
        if owner is not None and case.script == "TALKED":
            owner.communicate("", seconds(30))
        if case.spoils:
            damage(home / "state" / "journal.db", case.spoils)
        if case.arguments[0] != "chat" and not case.said:
            ran_here = command(*case.arguments, **dict(case.environ))
            return ran_here.code, " ".join((ran_here.out + ran_here.err).split())
        ran = start(*case.arguments, largest=case.largest, **dict(case.environ))
        said, _ = ran.communicate(case.said, seconds(60))
        if owner is not None and owner.returncode is None:
            owner.communicate("", seconds(30))
        return ran.returncode, " ".join(said.split())

    with HeldPort() as closed:
        yield make
    for one in servers:
        one.close()


ROWS = [
    pytest.param(*row, marks=pytest.mark.nightly if number % 6 else ())
    for number, row in enumerate(CASES.items())
]


@pytest.mark.parametrize(("failure", "case"), ROWS, ids=CASES)
def test_a_failure_names_the_next_step(failure: str, case: Case, happen: Happen) -> None:
    """The message is as documented, the next step is there, the exit code fits, and no traceback."""
    code, said = happen(case)
    assert re.search(".*".join(map(re.escape, failure.split("…"))), said), said
    assert case.next_step in said, said
    assert "Traceback" not in said
    assert code == case.code, said


def test_every_documented_failure_has_a_case() -> None:
    """The page and the table name the same failures."""
    assert DOCUMENTED == list(CASES)
