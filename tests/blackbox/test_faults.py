"""What a stranger gets wrong, and what the world does: each has a clear message and a way on."""

import json
import re
import resource
import sqlite3
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from support.driver import Gate, Place, Ran
from support.model_server import Behaviour, Cut, ModelServer, Raw, Status, Text, Tools, shell
from support.ports import HeldPort

MODELS: dict[str, tuple[list[Behaviour], int, str]] = {
    "401": ([Status(401, {"error": {"message": "bad key"}})], 1, "401"),
    "404": ([Status(404, {"error": {"message": "no such model"}})], 1, "no such model"),
    "429 and then well": (
        [Status(429, headers={"Retry-After": "0.1"}), Text("Hello.")],
        0,
        "retry",
    ),
    "500 and then well": ([Status(500, headers={"Retry-After": "0"}), Text("Hello.")], 0, "retry"),
    "500 for ever": ([Status(500, headers={"Retry-After": "0"})], 1, "gave up after"),
    "a web page": ([Raw("<html><body>Log in</body></html>", "text/html")], 1, "127.0.0.1"),
    "nonsense": ([Raw('data: {"what": 1}\n\n')], 1, "what"),
    "cut in the middle": ([Cut("Half of an")], 1, "in the middle"),
    "nothing said": ([Text("")], 1, "empty|nothing|no answer"),
}
CONFIGS: dict[str, tuple[str, str]] = {
    "an unknown key": (
        'busy_imput_mode = "queue"',
        r"(?m)^/\S+config\.toml:1:1: .*\n(.*\n)*.*busy_input_mode",
    ),
    "a wrong type": ("[goals]\nmax_turns = 'many'", r"config\.toml:2:\d+: .*max_turns"),
    "a wrong value": ('busy_input_mode = "shout"', r"config\.toml:1:\d+: .*`steer`"),
    "no TOML": ("busy_input_mode = \n[", r"config\.toml:1:\d+"),
    "auto resume": (
        "[auto_queue.persistence]\nauto_resume = true",
        r"config\.toml:2:\d+: .*auto_resume",
    ),
    "a missing model": ('[agents.assistant]\nmodel = "mian"', "mian"),
    "a missing agent": ('default_agent = "nobody"', "nobody"),
}


def run_all(root: Path, urls: dict[str, str], configs: dict[str, str]) -> dict[str, Ran]:
    """Ask once in each place, several at a time."""

    def one(name: str) -> Ran:
        place = Place(root / re.sub(r"\W", "-", name))
        place.configure(urls.get(name, ""))
        if name in configs:
            (place.home / "config.toml").write_text(configs[name])
        return place.run("chat", "hi")

    with ThreadPoolExecutor(4) as pool:
        names = [*urls, *configs]
        return dict(zip(names, pool.map(one, names), strict=True))


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Generator[dict[str, Ran]]:
    """Run one message against each bad model, and with each bad configuration."""
    servers = {name: ModelServer(behaviours) for name, (behaviours, _, _) in MODELS.items()}
    configs = {name: text for name, (text, _) in CONFIGS.items()}
    with HeldPort() as closed:
        urls = {"down": f"http://127.0.0.1:{closed.number}/v1"}
        urls |= {name: server.base_url for name, server in servers.items()}
        found = run_all(tmp_path_factory.mktemp("faults"), urls, configs)
    yield found
    for server in servers.values():
        server.close()


@pytest.mark.nightly
@pytest.mark.parametrize("kind", MODELS)
def test_a_bad_model_is_reported_with_the_next_step(answers: dict[str, Ran], kind: str) -> None:
    """A failing model ends with 1, says why and what to do; one that recovers is waited for."""
    _, code, says = MODELS[kind]
    ran = answers[kind]
    assert ran.returncode == code, ran.stderr
    assert re.search(says, ran.stderr, re.IGNORECASE), ran.stderr
    assert "Traceback" not in ran.stderr
    if code:
        assert re.search(r"^steersman: .+\n  .+", ran.stderr, re.MULTILINE), ran.stderr
    else:
        assert ran.stdout == "Hello.\n"


def test_a_server_that_is_down_is_named(answers: dict[str, Ran]) -> None:
    """A refused connection is reported with the address and the next step."""
    ran = answers["down"]
    assert ran.returncode == 1
    assert re.search(r"^steersman: .*127\.0\.0\.1.*\n  .+", ran.stderr, re.MULTILINE), ran.stderr
    assert ran.stdout == ""


@pytest.mark.parametrize("kind", CONFIGS)
def test_a_bad_configuration_is_placed(answers: dict[str, Ran], kind: str) -> None:
    """A mistake in the configuration ends with 2 before anything runs, and says where it is."""
    ran = answers[kind]
    assert ran.returncode == 2, ran.stderr
    assert ran.stdout == ""
    assert re.search(CONFIGS[kind][1], ran.stderr), ran.stderr
    assert "Traceback" not in ran.stderr


def test_bad_tool_calls_are_answered_not_obeyed(place: Place, serve) -> None:
    """Each impossible call gets a result that says what was wrong, and the turn goes on."""
    (place.folder / "blob.bin").write_bytes(bytes(range(256)) * 40)
    (place.folder / "notes.txt").write_text("one\n")
    outside = place.folder.parent / "secret.txt"
    outside.write_text("hidden treasure\n")
    calls = {
        "no JSON": {"tool": "read", "arguments": '{"path": '},
        "no field": {"tool": "write", "arguments": {"path": "a.txt"}},
        "wrong type": {"tool": "read", "arguments": {"path": 7}},
        "no tool": {"tool": "teleport", "arguments": {}},
        "no file": {"tool": "read", "arguments": {"path": "none.txt"}},
        "a folder": {"tool": "read", "arguments": {"path": "."}},
        "outside": {"tool": "read", "arguments": {"path": "../secret.txt"}},
        "binary": {"tool": "read", "arguments": {"path": "blob.bin"}},
        "no match": {
            "tool": "edit",
            "arguments": {"path": "notes.txt", "old": "two", "new": "three"},
        },
        "odd name": {"tool": "read", "arguments": {"path": "a\0b"}},
    }
    server = serve(
        Tools(list(calls.values())),
        Text("I see."),
        rest='[permissions]\nrules = [{ tool = "edit", do = "allow" }]',
    )
    ran = place.run("chat", "do it all")
    assert (ran.returncode, ran.stdout) == (4, "I see.\n")  # what lies outside needs a person
    asked, *said = server.requests[1].body["messages"][-len(calls) - 1 :]
    assert [message["role"] for message in said] == ["tool"] * len(calls)
    by_call = {message["tool_call_id"]: message["content"] for message in said}
    ids = [call["id"] for call in asked["tool_calls"]]
    results = {name: by_call[call] for name, call in zip(calls, ids, strict=True)}
    assert "hidden treasure" not in str(results)
    for name, word in {
        "no field": "content",
        "no tool": "teleport",
        "no file": "none.txt",
        "outside": "permission",
        "no match": "notes.txt",
    }.items():
        assert word in results[name], results[name]
    assert all(result.startswith("[") or len(result) < 2000 for result in results.values())


def test_a_second_program_on_a_session_is_refused(place: Place, serve, gate: Gate) -> None:
    """Two programs never run one session: the second gets an error, and the first continues."""
    serve(shell(gate.command), Text("Done."))
    first = place.at_work(gate)
    second = place.run("chat", "--continue", "--json")
    assert second.returncode == 1
    assert re.search(r"another program.*\n  .+", second.stderr)
    gate.open()
    first.wait("turn_ended", status="completed")
    assert first.close() == 0


def spoil(place: Place, how: str) -> None:
    """Damage the journal of a place, or make it of a version to come."""
    (file,) = (place.home / "state").glob("*.db")
    if how == "newer":
        with sqlite3.connect(file) as connection:
            connection.execute("PRAGMA user_version = 9999")
        connection.close()
    else:
        data = bytearray(file.read_bytes())
        start = 0 if how == "not a database" else 4096
        data[start : start + 9000] = b"\xa5" * len(data[start : start + 9000])
        file.write_bytes(data)


@pytest.mark.parametrize(
    "how", ["newer", "damaged", pytest.param("not a database", marks=pytest.mark.nightly)]
)
def test_a_bad_journal_is_left_alone(place: Place, serve, how: str) -> None:
    """A damaged or newer journal is named, not touched; nothing is asked of the model."""
    server = serve(Text("Hello."))
    assert place.run("chat", "hi").returncode == 0
    spoil(place, how)
    (file,) = (place.home / "state").glob("*.db")
    before = file.read_bytes()
    ran = place.run("chat", "again")
    assert ran.returncode == 1, ran.stderr
    assert "Traceback" not in ran.stderr
    assert re.search(r"^(steersman|error): .+\n  .+", ran.stderr, re.MULTILINE), ran.stderr
    assert file.read_bytes() == before
    assert len(server.requests) == 1


def test_a_newer_home_names_both_versions(place: Place, serve) -> None:
    """A program that is too old says which versions, reads and writes nothing, and says what to do."""
    serve(Text("Hello."))
    assert place.run("chat", "hi").returncode == 0
    (file,) = (place.home / "state").glob("*.db")
    with closing(sqlite3.connect(file)) as connection:
        (known,) = connection.execute("PRAGMA user_version").fetchone()
        connection.execute(f"PRAGMA user_version = {known + 1}")
    before = file.read_bytes()
    for command in (
        ("chat", "again"),
        ("sessions", "list"),
        ("send", "last", "x"),
        ("home", "check"),
    ):
        ran = place.run(*command)
        assert ran.returncode == 1, ran
        assert ran.stderr == (
            f"steersman: `{file}` has version {known + 1}; this program knows versions up to {known}\n"
            "  Install the newest steersman, or set STEERSMAN_HOME to another folder.\n"
        )
    assert file.read_bytes() == before


def test_a_session_of_a_newer_version_keeps_no_other_out(place: Place, serve) -> None:
    """An entry of a kind to come has its session refused, which is named as newer; others work."""
    serve(Text("Hello.", times=0))
    sessions = []
    for text in ("one", "two"):
        assert place.run("chat", text).returncode == 0
        sessions.append(place.stored()["id"])
    (file,) = (place.home / "state").glob("*.db")
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(
            "UPDATE entries SET data = ? WHERE session = ? AND seq = 3",
            (json.dumps({"kind": "dreamt"}), sessions[0]),
        )
        connection.execute("DELETE FROM snapshots WHERE session = ?", (sessions[0],))
    ran = place.run("chat", "--resume", sessions[0], "more")
    assert ran.returncode == 1
    assert "entry of unknown kind `dreamt`\n  a later version of steersman wrote it" in ran.stderr
    assert place.run("chat", "--resume", sessions[1], "more").returncode == 0


def test_a_home_that_cannot_be_written_is_reported(place: Place, serve) -> None:
    """Where no state can be kept, nothing is accepted, and the folder is named."""
    server = serve(Text("Hello."))
    (place.home / "state").write_text("in the way")
    ran = place.run("chat", "hi")
    assert ran.returncode == 2, ran.stderr
    assert str(place.home / "state") in ran.stderr
    assert "Traceback" not in ran.stderr
    assert not server.requests


def test_output_that_cannot_be_written_is_a_failure(place: Place) -> None:
    """A script that writes a list to a full disk learns of it."""
    with open("/dev/full", "w") as full:
        ran = place.run("machines", "list", "--json", stdout=full)
    assert (ran.returncode, "cannot be written" in ran.stderr) == (1, True)


def test_a_project_file_is_not_obeyed_before_it_is_trusted(place: Place, serve) -> None:
    """Permissions of a project file are withheld, which is said, until `trust` is given."""
    server = serve(
        shell("touch made"),
        Text("Well."),
        shell("touch made"),
        Text("Well."),
    )
    (place.folder / "steersman.toml").write_text(
        '[permissions]\nrules = [{ tool = "shell", do = "allow" }]\n'
    )
    ran = place.run("chat", "hi")
    assert ran.returncode == 4
    assert "steersman trust" in ran.stderr
    assert not (place.folder / "made").exists()
    assert place.run("trust", "--yes").returncode == 0
    ran = place.run("chat", "hi")
    assert "steersman trust" not in ran.stderr
    assert (place.folder / "made").exists()
    assert len(server.requests) == 4


@pytest.mark.parametrize(
    ("kind", "limits", "what"),
    [
        (resource.RLIMIT_NOFILE, (8, 9, 12, 16), "(few|many) open files"),
        (resource.RLIMIT_AS, (40 << 20, 60 << 20, 127 << 20), "memory"),
    ],
    ids=["open files", "address space"],
)
@pytest.mark.nightly
def test_a_limit_of_the_system_is_named(
    place: Place, serve, kind: int, limits: tuple[int, ...], what: str
) -> None:
    """A program that the system gives too little of something says what, in one line, and a hint."""
    serve(Text("Hello."))
    del place.environ["PYTHONWARNINGS"]  # as people run it
    for limit in limits:
        ran = place.run(
            "chat",
            "--json",
            said="hi\n",
            preexec_fn=lambda limit=limit: resource.setrlimit(kind, (limit, limit)),
        )
        assert ran.returncode == 1, (limit, ran)
        assert re.fullmatch(f"steersman: .*({what}).*\n  .+\n", ran.stderr), (limit, ran.stderr)
