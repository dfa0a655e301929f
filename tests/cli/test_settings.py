"""Configuration, models and the doctor: what is set, what is chosen, what is wrong."""

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.patience import seconds
from support.ports import HeldPort

TESTS = Path(__file__).resolve().parents[1]


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port of loopback without a listener."""
    with HeldPort() as held:
        yield held.number


def serve(configure: Callable[..., None], port: int) -> None:
    """Configure a model server as the assistant's model."""
    configure(
        "[[answer]]\ntext = 'x'\n",
        f'[models.served]\nprovider = "openai"\nbase_url = "http://127.0.0.1:{port}/v1"\n'
        'model = "test-model"\n[agents.other]\nmodel = "served"\n',
    )


def test_config_show_is_toml_with_sources(
    command: Any, configure: Callable[..., None], home: Path
) -> None:
    """The merged configuration parses, and behind each key stands the file that set it."""
    configure(more='[permissions]\nrules = [{ tool = "shell", match = "git *", do = "allow" }]\n')
    done = command("config", "show")
    data = json.loads(command("config", "show", "--json").out)
    assert tomllib.loads(done.out) == data["config"]
    assert f'model = "main"  # {home}/config.toml' in done.out
    assert 'busy_input_mode = "steer"  # shipped config.toml' in done.out
    assert data["sources"]["agents.assistant.model"] == f"{home}/config.toml"
    assert data["config"]["permissions"]["rules"][0]["match"] == "git *"


def test_config_path_names_what_is_used(command: Any, home: Path, folder: Path) -> None:
    """Every file and folder is named, with what is not there and what is not trusted."""
    (folder / "steersman.toml").write_text('default_agent = "assistant"\n')
    out = command("config", "path", STEERSMAN_CONFIG="/nowhere/x.toml").out
    assert out.splitlines() == [
        f"user     {home}/config.toml  (not there)",
        f"project  {folder}/steersman.toml  (not trusted)",
        "named    /nowhere/x.toml  (STEERSMAN_CONFIG, not there)",
        f"state    {home}/state  (not there)",
        f"cache    {home}/cache  (not there)",
    ]


def test_config_check_is_content(command: Any) -> None:
    """Where nothing is wrong it says so in a word."""
    done = command("config", "check")
    assert (done.code, done.out, done.err) == (0, "ok\n", "")


def test_config_check_tells_every_fault(command: Any, home: Path, folder: Path) -> None:
    """All mistakes of all files are reported with their position, as by compilers, and nothing else."""
    (home / "config.toml").write_text("[auto_queue]\nmax_queue_sise = 5\n")
    (folder / "steersman.toml").write_text('busy_input_mode = "loud"\n')
    done = command("config", "check")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"{home}/config.toml:2:1: ")
    assert f"{folder}/steersman.toml:1:19: " in done.err


def test_trust_makes_a_project_file_count(command: Any, folder: Path) -> None:
    """What an untrusted folder may not set is said, and applied once it is trusted."""
    (folder / "steersman.toml").write_text("[tools]\ngrace = 1.5\n")
    before = command("config", "show", "--json")
    assert json.loads(before.out)["config"]["tools"]["grace"] == 0.2
    assert "`tools` not applied" in before.err
    assert command("trust", "--yes").code == 0
    after = command("config", "show", "--json")
    assert json.loads(after.out)["config"]["tools"]["grace"] == 1.5
    assert after.err == f"{folder}/steersman.toml sets `tools`\n"


def test_a_file_that_no_chat_could_begin_with_is_not_trusted(command: Any, folder: Path) -> None:
    """What contradicts the other files is told before it counts; what was trusted before stays."""
    file = folder / "steersman.toml"
    wrong = '[agents.x]\nmodel = "nowhere"\n'
    file.write_text(wrong)
    refused = command("trust", "--yes")
    assert (refused.code, "names the model `nowhere`" in refused.err) == (2, True)
    assert "nothing more was trusted" in refused.err
    assert command("trust", "--list").out == "No folder is trusted.\n"
    file.write_text("[tools]\ngrace = 1.5\n")
    assert command("trust", "--yes").code == 0
    file.write_text(wrong)
    assert command("trust", "--yes").code == 2
    file.write_text("[tools]\ngrace = 1.5\n")
    assert command("trust", "--list").out == f"{folder}\n"


def test_models_list(command: Any, configure: Callable[..., None]) -> None:
    """Configured models, the catalogue with sizes and licences, and the choice with its reason."""
    configure()
    data = json.loads(command("models", "list", "--json").out)
    assert [model["name"] for model in data["models"]] == ["main"]
    assert data["catalogue"][0]["name"] == "qwen2.5-coder-0.5b"
    assert data["catalogue"][0]["fetched"] is False
    assert (data["choice"]["name"], data["choice"]["provider"]) == ("main", "scripted")
    out = command("models", "list").out
    assert "qwen2.5-coder-0.5b  to fetch  491 MB  900 MB  Apache-2.0" in out
    assert "A chat here would use main: the agent's `model` in the configuration." in out


def test_a_key_in_the_environment_is_a_choice_and_not_shown(command: Any) -> None:
    """A key makes its provider the choice; only its name is printed."""
    done = command("models", "list", ANTHROPIC_API_KEY="hunter2hunter2")
    assert "would use anthropic" in done.out
    assert "`ANTHROPIC_API_KEY` is set" in done.out
    assert "hunter2" not in done.out


def test_models_check_says_what_works(program: Any, configure: Callable[..., None]) -> None:
    """A few requests are enough to see all that matters."""
    configure('[[answer]]\ntext = "it is ready"\n[[answer.tool_calls]]\ntool = "report"\n')
    done = program("models", "check")
    assert (done.code, done.err) == (0, "some short requests, each of at most 60 s\n")
    lines = done.out.splitlines()
    assert lines[0].startswith("model main: ")
    assert lines[1].startswith("answer     `it is ready` in ")
    assert lines[2:4] == ["streaming  works (3 pieces)", "tools      works"]
    assert lines[4].startswith("usage      works (")


def test_models_check_asks_a_real_server(
    program: Any, configure: Callable[..., None], tmp_path: Path
) -> None:
    """Over HTTP, too: streamed, with a tool, cut off, and with the server's own counts."""
    script = tmp_path / "behaviours.json"
    call = {"tool": "report", "arguments": {"word": "ready"}}
    behaviours = [
        {"do": "tools", "text": "I am ready.", "calls": [call]},
        {"do": "text", "text": '{"colour": "green"}', "match": "red or green"},
        {"do": "stall", "text": "one two", "match": "Count from"},
    ]
    script.write_text(json.dumps(behaviours))
    command = [sys.executable, "-m", "support.model_server", "--script", str(script)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=TESTS) as process:
        assert process.stdin
        assert process.stdout
        serve(configure, int(process.stdout.readline()))
        done = program("models", "check", "served")
        process.stdin.close()
    assert (done.code, done.err) == (0, "some short requests, each of at most 60 s\n")
    assert "streaming  works (3 pieces)\ntools      works\n" in done.out
    assert "usage      works (100 tokens in, 20 out, 60 from the cache)" in done.out
    assert "form       works\ncancel     works (cut off in " in done.out
    assert "window     not known\n           older turns are summed up when" in done.out


@pytest.mark.parametrize(
    ("script", "line"),
    [
        ('[[answer]]\ntext = "ready"\n', "streaming  not seen"),
        ('[[answer]]\ntext = "ready"\n', "tools      not called"),
        ('[[answer]]\ntext = "ready"\n', 'tool_dialect = "json"'),
        ('[[answer]]\ntext = "ready"\n', "form       not kept: the answer is no JSON"),
        (
            "[[answer]]\ntext = 'x'\nusage = { input = 0 }\n",
            "usage      not reported by the server",
        ),
    ],
)
def test_models_check_says_what_does_not(
    script: str, line: str, command: Any, configure: Callable[..., None]
) -> None:
    """What a model did not do is said in its line."""
    configure(script)
    assert line in command("models", "check", "main").out


def test_a_failing_model_is_reported_with_a_hint(
    command: Any, configure: Callable[..., None]
) -> None:
    """A model's error ends with exit code 1, and the next step."""
    configure('[[answer]]\nerror = "the model is out of order"\n')
    done = command("models", "check")
    assert done.code == 1
    assert "steersman: the model is out of order\n  " in done.err


def test_fetch_if_needed_does_nothing_where_another_model_is_found(
    command: Any, configure: Callable[..., None], home: Path
) -> None:
    """With a configured model, or a key, nothing is downloaded and nothing said."""
    done = command("models", "fetch", "--if-needed", OPENAI_API_KEY="k")
    assert (done.code, done.out, done.err) == (0, "", "")
    configure()
    done = command("models", "fetch", "--if-needed")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert not (home / "cache").exists()


def checks(done: Any) -> dict[str, dict[str, str]]:
    """Read the doctor's document, by name."""
    return {check["name"]: check for check in json.loads(done.out)["checks"]}


def test_the_doctor_is_content(command: Any, told: Path) -> None:
    """On a sound home nothing is bad, and every line has a name and a verdict."""
    done = command("doctor", "--json")
    found = checks(done)
    assert done.code == 0
    assert {"python", "packages", "sqlite", "terminal", "state", "disk", "model"} <= set(found)
    assert {check["verdict"] for check in found.values()} <= {"ok", "warn"}
    assert all(check["hint"] for check in found.values() if check["verdict"] != "ok")
    assert found["sessions"]["text"] == "1, 0 of them running"


def test_the_doctor_reads_like_a_report(command: Any, told: Path) -> None:
    """For people there is a line for each finding."""
    lines = command("doctor").out.splitlines()
    assert lines[0].startswith("ok    python    3.")
    assert any(line.startswith("ok    model     model main: ") for line in lines)


def test_open_folders_are_noticed(command: Any, told: Path) -> None:
    """A folder that others can read is a warning, with the command that shuts it."""
    told.chmod(0o755)
    found = checks(command("doctor", "--json"))["config"]
    assert (found["verdict"], found["hint"]) == ("warn", f"chmod 700 {told}")


def test_a_home_that_cannot_be_made_is_bad(command: Any, tmp_path: Path) -> None:
    """Where no folder can be made the doctor says so before anything fails for it."""
    (tmp_path / "file").write_text("")
    done = command("doctor", "--json", STEERSMAN_HOME=str(tmp_path / "file" / "home"))
    found = checks(done)["state"]
    assert (done.code, found["verdict"]) == (1, "bad")
    assert f"cannot be created: {tmp_path / 'file'} is not writable" in found["text"]


def test_a_server_that_does_not_answer_is_bad(
    command: Any, configure: Callable[..., None], closed_port: int, home: Path
) -> None:
    """The chosen model's server is knocked at, and its silence ends with exit code 1."""
    serve(configure, closed_port)
    with (home / "config.toml").open("a") as file:
        file.write('[agents.judge]\nmodel = "served"\n')
    text = (home / "config.toml").read_text()
    (home / "config.toml").write_text(f'default_agent = "other"\n{text}')
    done = command("doctor", "--json")
    assert done.code == 1
    found = checks(done)["model"]
    assert found["verdict"] == "bad"
    assert f"127.0.0.1:{closed_port} does not answer" in found["text"]


def test_another_model_that_is_silent_is_only_a_warning(
    command: Any, configure: Callable[..., None], closed_port: int
) -> None:
    """Models that a chat here would not use are looked at, too, and none of them makes it fail."""
    serve(configure, closed_port)
    done = command("doctor", "--json")
    found = checks(done)
    assert (done.code, found["model"]["verdict"], found["models"]["verdict"]) == (0, "ok", "warn")
    assert f"127.0.0.1:{closed_port} does not answer" in found["models"]["text"]


def test_the_doctor_names_what_takes_room(command: Any, told: Path) -> None:
    """The session's id stands in the line of what is used on disk."""
    (one,) = json.loads(command("sessions", "list", "--json").out)["sessions"]
    assert (
        f"the largest sessions: {one['id']} " in checks(command("doctor", "--json"))["use"]["text"]
    )


@pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")
def test_a_process_of_a_dead_program_is_named(command: Any, tmp_path: Path) -> None:
    """A supervisor whose program is gone is named with who started it and how to end it; else not."""
    script = tmp_path / "ports" / "process" / "__main__.py"
    script.parent.mkdir(parents=True)
    script.write_text("import os\nos.read(0, 1)\n")
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait(seconds(30))
    start = [sys.executable, "-I", "-S", str(script), "3"]
    orphan = subprocess.Popen([*start, str(gone.pid)], stdin=subprocess.PIPE)
    kept = subprocess.Popen([*start, str(os.getpid())], stdin=subprocess.PIPE)
    try:
        found = json.loads(command("doctor", "--json").out)["checks"]
    finally:
        for process in (orphan, kept):
            process.communicate(b".")
    said = [row for row in found if row["name"] == "processes"]
    (mine,) = [row for row in said if row["hint"] == f"kill -9 {orphan.pid}"]
    assert mine["verdict"] == "warn"
    assert f"started by process {gone.pid}, which is dead" in mine["text"]
    assert not [row for row in said if str(kept.pid) in row["hint"].split()]


def test_broken_files_are_bad(command: Any, home: Path) -> None:
    """A mistake in the configuration and a broken store are reported and do not stop the other checks."""
    (home / "config.toml").write_text("busy_input_mode = 5\n")
    (home / "state").mkdir(mode=0o700)
    (home / "state" / "journal.db").write_bytes(b"this is no database" * 100)
    done = command("doctor", "--json")
    found = checks(done)
    assert done.code == 1
    assert (found["settings"]["verdict"], found["sessions"]["verdict"]) == ("bad", "bad")


def test_consent_shows_every_character(command: Any, folder: Path) -> None:
    """Nothing of what would run is covered as a secret, removed, or hidden by what a terminal obeys."""
    hidden = "echo CI_TOKEN=ok;touch${IFS}/tmp/pwn;true password=hunter22 \u202e\x1b[8mdone"
    (folder / "steersman.toml").write_text(
        f"[[hooks]]\non = 'turn_ended'\nrun = ['sh', '-c', {json.dumps(hidden)}]\n"
    )
    (folder / ".steersman" / "prompts").mkdir(parents=True)
    (folder / ".steersman" / "prompts" / "fix.md").write_text("TOKEN=abcdefgh\x1b[2K\u200bdo it")
    done = command("trust", "--yes")
    assert done.code == 0
    assert "echo CI_TOKEN=ok;touch${IFS}/tmp/pwn;true password=hunter22 " in done.out
    assert ".steersman/prompts/fix.md:\n  TOKEN=abcdefgh\\x1b[2K\\u200bdo it\n" in done.out
    assert not {"\u202e", "\x1b", "\u200b"} & set(done.out)
    assert "\\u202e" in done.out.lower()
