"""MCP servers of other programs: `steersman mcp import`, and `.mcp.json` of a project."""

import json
import os
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from blackbox.terminal import Terminal
from support.driver import COMMAND, Place
from support.mcp_servers import SERVER
from support.model_server import Text, Tools
from support.patience import seconds

SECRET = "ghp_abcdefghijklmnopqrst0123"
PLAIN = {"command": "npx", "args": ["-y", "notes"]}
OURS: dict[str, Any] = {"command": sys.executable, "args": ["-I", "-S", str(SERVER)]}
ALLOWED = '[permissions]\nrules = [{ tool = "mcp__odd__*", do = "allow" }]\n'
LOOK = Tools([{"tool": "mcp__odd__environment", "arguments": {}}])

CODE = """{
  // what VS Code writes
  "inputs": [{ "type": "promptString", "id": "api-key", "password": true }],
  "servers": {
    "notes": { /* by
      hand */ "type": "stdio", "command": "npx", "args": ["-y", "notes, }"], "env": {
        "API_KEY": "${input:api-key}", "HERE": "${workspaceFolder}", "N": 3, "OFF": false, },
    },
    "web": { "type": "http", "url": "https://a.example//mcp", "headers": { "X": "${env:WHO}" }, },
  },
}"""


def put(place: Place, text: str | bytes | dict[str, Any], name: str = ".mcp.json") -> Path:
    """Write a file of another program into the project."""
    file = place.folder / name
    file.parent.mkdir(exist_ok=True)
    content = json.dumps(text) if isinstance(text, dict) else text
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def servers(**entries: Any) -> dict[str, Any]:
    """Write servers as most programs do."""
    return {"mcpServers": entries}


def config(place: Place) -> dict[str, Any]:
    """Return what the person's configuration has."""
    file = place.home / "config.toml"
    return tomllib.loads(file.read_text("utf-8")) if file.exists() else {}


def taken(place: Place, *arguments: str) -> dict[str, Any]:
    """Take over what there is, and return the document."""
    ran = place.run("mcp", "import", ".mcp.json", "--json", *arguments)
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


IN_ENV = {"command": "/opt/notes", "env": {"COST": "5$", "A": "${WHO}"}}
IN_HEADER = {"url": "https://h/${userHome}", "headers": {"X": "Bearer ${env:API_TOKEN}"}}
IN_WORDS = {"command": "${X:-npx}", "args": ["${WHO}"], "env": {"B": "${NOT:-$}"}}
OF_CODE = {"API_KEY": "${API_KEY}", "HERE": "FOLDER", "N": "3", "OFF": "false"}
COMMAND_OF = {"command": ["npx", "-y", "notes"]}
FORMS: list[tuple[str, Any, Any]] = [
    (".mcp.json", servers(a={"type": "stdio", **PLAIN}), {"a": COMMAND_OF}),
    (".mcp.json", servers(a={"type": "http", "url": "http://h/"}), {"a": {"url": "http://h/"}}),
    (".mcp.json", servers(a=IN_WORDS), {"a": {"command": ["npx", "ann"], "env": {"B": "$$"}}}),
    ("claude.json", {"n": 3, "projects": {"/p": servers(a=PLAIN), "/q": {}}}, {"a": COMMAND_OF}),
    (
        "claude_desktop_config.json",
        servers(**{"my notes": IN_ENV}),
        {"my-notes": {"command": ["/opt/notes"], "env": {"COST": "5$$", "A": "${WHO}"}}},
    ),
    (
        ".cursor/mcp.json",
        servers(a=IN_HEADER),
        {"a": {"url": "https://h/ROOT", "headers": {"X": "Bearer ${API_TOKEN}"}}},
    ),
    (
        ".vscode/mcp.json",
        CODE,
        {
            "notes": {"command": ["npx", "-y", "notes, }"], "env": OF_CODE},
            "web": {"url": "https://a.example//mcp", "headers": {"X": "${WHO}"}},
        },
    ),
]


@pytest.mark.parametrize(("name", "text", "expected"), FORMS)
@pytest.mark.checks_data("mcp import")
def test_each_form_becomes_tables(place: Place, name: str, text: Any, expected: Any) -> None:
    """The table says what the file says, the rest of the configuration stays, and it is sound."""
    before = "# mine\nbusy_input_mode = 'queue'  # so\n"
    (place.home / "config.toml").write_text(before)
    place.environ["WHO"] = "ann"
    put(place, text, name)
    ran = place.run("mcp", "import", name, "--yes")
    assert ran.returncode == 0, ran.stderr
    wanted = json.dumps(expected).replace("ROOT", place.environ["HOME"])
    assert config(place)["mcp"] == json.loads(wanted.replace("FOLDER", str(place.folder)))
    assert (place.home / "config.toml").read_text().startswith(before)
    assert place.run("config", "check").returncode == 0


def test_a_server_that_was_taken_over_is_called(place: Place, serve: Any) -> None:
    """It runs with its variables, its secret from the environment, and the agent calls its tool."""
    put(
        place, servers(odd={**OURS, "env": {"API_TOKEN": SECRET, "COST": "5$", "OF": "${WHO:-me}"}})
    )
    model = serve(LOOK, Text("So it is."), rest=ALLOWED)
    ran = place.run("mcp", "import", ".mcp.json", "--yes")
    assert (ran.returncode, "`API_TOKEN`, which is not set" in ran.stdout) == (0, True)
    file = place.home / "config.toml"
    assert SECRET not in ran.stdout + ran.stderr + file.read_text()
    waits = f"start_timeout = {seconds(60)}\nwait = {seconds(60)}\n"
    file.write_text(file.read_text().replace("[mcp.odd]\n", f"[mcp.odd]\n{waits}"))
    place.environ["API_TOKEN"] = SECRET
    assert place.run("chat", "look").returncode == 0
    said = json.loads(model.requests[-1].body["messages"][-1]["content"])
    of = {name: said["environment"][name] for name in ("API_TOKEN", "COST", "OF")}
    assert of == {"API_TOKEN": SECRET, "COST": "5$", "OF": "me"}
    assert SECRET not in place.run("sessions", "show", "last").stdout


def test_secrets_are_named_and_not_copied(place: Place) -> None:
    """By their names and by their form; each has a variable of its own, and none is printed."""
    secrets = {"a": "correct-horse", "b": "battery-staple", "c": SECRET, "d": "me:hunter22@"}
    one = {**PLAIN, "env": {"API_KEY": secrets["a"], "X": secrets["c"], "MAX_TOKENS": "50"}}
    two = {**PLAIN, "env": {"API_KEY": secrets["b"], "DB": f"postgres://{secrets['d']}h/x"}}
    web = {"url": "https://h/", "headers": {"Authorization": f"Bearer {secrets['a']}", "Team": "x"}}
    put(place, servers(one=one, two=two, web=web))
    place.environ["X"], place.environ["API_KEY"] = secrets["c"], "another"
    found = taken(place, "--yes")
    tables = config(place)["mcp"].items()
    assert {name: table.get("env") or table["headers"] for name, table in tables} == {
        "one": {"API_KEY": "${API_KEY}", "X": "${X}", "MAX_TOKENS": "50"},
        "two": {"API_KEY": "${TWO_API_KEY}", "DB": "${DB}"},
        "web": {"Authorization": "Bearer ${WEB_AUTHORIZATION}", "Team": "x"},
    }
    first = str(found["servers"][0]["notes"])
    assert "`API_KEY`, which is set to another value" in first
    assert "`X`, which is set to it" in first
    said = json.dumps(found) + (place.home / "config.toml").read_text()
    assert [secret for secret in secrets.values() if secret in said] == []


def test_files_are_named_from_the_root(place: Place) -> None:
    """A session in another folder does not run that folder's file of the same name."""
    (place.folder / "server.js").write_text("")
    words = ["server.js", ".", "--config=server.js", "gone.js"]
    put(place, servers(a={"command": "node", "args": words}, b={"command": "./run"}))
    assert place.run("mcp", "import", ".mcp.json", "--yes").returncode == 0
    file = str(place.folder / "server.js")
    assert {name: table["command"] for name, table in config(place)["mcp"].items()} == {
        "a": ["node", file, ".", f"--config={file}", "gone.js"],
        "b": [str(place.folder / "run")],
    }


# What is shown and asked --------------------------------------------------------------------------


def test_every_character_of_what_would_run_is_shown(place: Place) -> None:
    """Each server has its own lines, whatever stands in its words, and nothing acts on the terminal."""
    args = ["x\n[mcp.safe]\r\x1b[2K\u2028\u202e\u200b", "--token", SECRET]
    put(place, servers(**{"a\x1b[2J": {"command": "sh", "args": args, "env": {"A": "b\x1b\nc"}}}))
    ran = place.run("mcp", "import", ".mcp.json", "--dry-run")
    assert (ran.returncode, config(place)) == (0, {})
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u2028\u200b\u202e]", ran.stdout)
    words = ["sh", r"x\n[mcp.safe]\r\u001b[2K\u2028\u202e\u200b", "--token", SECRET]
    lines = "\n".join(f'      "{word}",' for word in words)
    assert f"\n  command = [\n{lines}\n  ]\n" in ran.stdout
    assert '\n  A = "b\\u001b\\nc"\n' in ran.stdout
    assert "looks like a secret among what is shown" in ran.stdout


def test_a_person_is_asked(place: Place) -> None:
    """Without a terminal nothing is written unless `--yes` says so; on one, only with a yes."""
    put(place, servers(a=PLAIN))
    ran = place.run("mcp", "import", ".mcp.json")
    assert (ran.returncode, "`--yes` writes" in ran.stderr, config(place)) == (2, True, {})
    assert place.run("mcp", "import", ".mcp.json", "--json").returncode == 2
    for said, code in (("\n", 1), ("y\n", 0)):
        terminal = Terminal(place, (*COMMAND, "mcp", "import", ".mcp.json"))
        terminal.wait("[y/N]")
        assert 'command = [ "npx", "-y", "notes", ]' in re.sub(" +", " ", terminal.shown())
        terminal.type(said)
        assert terminal.process.wait(seconds(30)) == code
        terminal.close()
        assert bool(config(place)) == (code == 0)


def test_what_is_there_stays(place: Place) -> None:
    """A server of a name that is there is not replaced; `--name` chooses, also a disabled one."""
    own = '[mcp.a]\ncommand = ["mine"]\n'
    (place.home / "config.toml").write_text(own)
    put(place, servers(a=PLAIN, b={**PLAIN, "disabled": True}, c=PLAIN, d=PLAIN))
    found = taken(place, "--dry-run")
    states = {row["name"]: row["state"] for row in found["servers"]}
    assert states == {"a": "there already", "b": "disabled", "c": "new", "d": "new"}
    chosen = ("--name", "a", "--name", "b", "--name", "c")
    assert taken(place, "--yes", *chosen)["written"] == ["b", "c"]
    assert (place.home / "config.toml").read_text().startswith(own)
    refused = place.run("mcp", "import", ".mcp.json", "--name", "e")
    assert (refused.returncode, "there are: a, b, c, d" in refused.stderr) == (2, True)
    inline = 'mcp = { a = { command = ["mine"] } }\n'
    (place.home / "config.toml").write_text(inline)
    refused = place.run("mcp", "import", ".mcp.json", "--yes")
    assert (refused.returncode, "write into it:" in refused.stderr) == (2, True)
    assert (place.home / "config.toml").read_text() == inline


FAULTS: list[tuple[Any, str]] = [
    ({"type": "sse", "url": "https://h/sse"}, "it speaks SSE"),
    ({"type": "ws", "url": "https://h/"}, '`type` "ws" is not known'),
    ({**PLAIN, "cwd": "/elsewhere"}, "its `cwd` is"),
    ({**PLAIN, "envFile": ".env"}, "its `envFile` is not read"),
    ({**PLAIN, "url": "https://h/"}, "both a `command` and a `url`"),
    ({}, "or none: give it one"),
    (["npx"], "it is not an object"),
    ({"command": ["npx"]}, "`command` is not a text"),
    ({"command": "~/bin/x"}, "write the whole path"),
    ({"command": "npx", "args": "-y"}, "`args` are not a list"),
    ({"command": "npx\ud800"}, "characters that no program takes"),
    ({"command": "npx", "args": ["${input:x}"]}, "others could read it"),
    ({"command": "npx", "args": ["${API_KEY}"]}, "others could read it"),
    ({"url": "https://h/?key=${API_KEY:-x}"}, "others could read it"),
    ({"command": "npx", "args": ["${NOT_SET}"]}, "`NOT_SET` is not set"),
    ({"command": "npx", "args": ["${command:x}"]}, "is known only there"),
    ({**PLAIN, "env": ["A=b"]}, "`env` is not an object"),
    ({**PLAIN, "env": {"A": {}}}, "`env.A` is not a text"),
    ({**PLAIN, "env": {"A=b": "c"}}, "has no valid name"),
    ({"url": "file:///etc/passwd"}, "its `url` is"),
    ({"url": "https://h/\r\nX: y"}, "its `url` is"),
    ({"url": "https://h/", "headers": {"A b": "c"}}, "has no valid name"),
    ({"url": "https://h/", "headers": {"A": "b\r\nC: d"}}, "has control characters"),
]


def test_what_cannot_be_taken_over_is_said(place: Place) -> None:
    """Of each server one sentence with the next step; the others are written."""
    entries = {f"s{number}": entry for number, (entry, _) in enumerate(FAULTS)}
    put(place, servers(**entries, good=PLAIN, **{"go od": PLAIN, "go/od": PLAIN}))
    found = taken(place, "--yes")
    faults = {row["name"]: row["fault"] for row in found["servers"] if row["state"] == "left out"}
    assert "`mcpServers.go od` has its name" in faults.pop("go-od")
    assert {name: fault for name, fault in faults.items() if ": " not in fault} == {}
    found_faults = zip(FAULTS, faults.values(), strict=True)
    assert [said for (_, said), fault in found_faults if said not in fault] == []
    assert found["written"] == ["good", "go-od"]
    put(place, servers(a={**PLAIN, "alwaysAllow": ["x"], "timeout": 3}))
    (row,) = taken(place, "--dry-run")["servers"]
    assert "without `alwaysAllow`, `timeout`" in str(row["notes"])


BROKEN = {
    "nothing": b"",
    "no json": b"{",
    "no text": b"\xff{}",
    "nested": b'{"mcpServers":' * 50_000,
    "no servers": b'{"mcpServers": []}',
    "open text": b'{"a": "' + b'\\"' * 100_000,
    "open comments": b"/*" * 300_000,
    "digits": b'{"mcpServers": {"a": ' + b"9" * 5000 + b"}}",
}


@pytest.mark.parametrize("kind", [*BROKEN, "a pipe"])
def test_a_hostile_file_is_one_sentence(place: Place, kind: str) -> None:
    """For the command an error that names the file, and at a start a notice."""
    put(place, BROKEN[kind]) if kind in BROKEN else os.mkfifo(place.folder / ".mcp.json")
    ran = place.run("mcp", "import", ".mcp.json", "--yes")
    assert (ran.returncode, ran.stdout, config(place)) == (2, "", {})
    assert f"{place.folder}/.mcp.json: it cannot be read: " in ran.stderr
    assert len(ran.stderr) < 1000
    checked = place.run("config", "check")
    assert (checked.returncode, checked.stdout) == (0, "ok\n")
    assert f"{place.folder}/.mcp.json: it is not read: " in checked.stderr


# A project's file ---------------------------------------------------------------------------------


def test_a_trusted_project_brings_its_servers(place: Place, serve: Any) -> None:
    """Before that a line says so; after a change of the file, or of what it names, they are gone."""
    script = put(place, "#!/bin/sh\nexec " + " ".join([OURS["command"], *OURS["args"]]), "run")
    script.chmod(0o755)
    file = put(place, servers(odd={"command": "./run"}, old={"type": "sse", "url": "http://h/"}))
    model = serve(Text("Hello."), LOOK, Text("So it is."), Text("Bye."), rest=ALLOWED)

    def offered() -> bool:
        return "mcp__odd__environment" in str(model.requests[-1].body.get("tools"))

    ran = place.run("chat", "hello")
    assert f"{file} is not trusted: `mcp` not applied, `steersman trust` applies it" in ran.stderr
    assert (ran.returncode, ran.stderr.count(str(file)), offered()) == (0, 1, False)
    shown = place.run("trust", "--yes").stdout
    assert ("./run" in shown, "exec" in shown) == (True, True)
    ran = place.run("chat", "look")
    assert (ran.returncode, offered()) == (0, True)
    assert "`mcpServers.old` is left out: it speaks SSE" in ran.stderr
    assert f'"folder": "{place.folder}"' in model.requests[-1].body["messages"][-1]["content"]
    script.write_text("#!/bin/sh\ntouch stolen\n")
    ran = place.run("chat", "hello")
    assert "is trusted no more, since `run` has changed: `mcp`" in ran.stderr
    assert not offered()
    assert not (place.folder / "stolen").exists()


@pytest.mark.parametrize(
    ("entry", "is_named"),
    [
        ({"command": "node", "args": ["server.js"]}, True),
        ({"command": "npx", "args": ["-y", "notes"], "env": {"TOKEN": "${TOKEN}"}}, False),
        ({"command": "npx", "args": ["--config=${CLAUDE_PROJECT_DIR}/server.js"]}, True),
        ({"command": "npx", "args": ["${X}"]}, True),
        ({"command": "npx", "env": {"NODE_OPTIONS": "--require ./server.js"}}, True),
        ({"command": "python", "args": ["-m", "server"]}, True),
        ({"command": "sh", "args": ["-c", "cd sub && make"]}, True),
    ],
)
def test_trust_covers_what_a_server_names(place: Place, entry: Any, is_named: bool) -> None:
    """Files of the project that a command or its environment names, and all where that is not clear."""
    put(place, "one", "server.js")
    put(place, servers(a=entry))
    assert place.run("trust", "--yes").returncode == 0
    put(place, "two", "server.js")
    state = "not trusted" if is_named else "trusted"
    assert f".mcp.json  ({state})" in place.run("config", "path").stdout


def test_the_projects_own_settings_come_before(place: Place) -> None:
    """steersman.toml comes before `.mcp.json`, and that before the person's configuration."""
    own = '[mcp.a]\ncommand = ["own"]\n'
    (place.home / "config.toml").write_text(own + own.replace("mcp.a", "mcp.b"))
    put(place, servers(a=PLAIN, b=PLAIN, c={**PLAIN, "disabled": True}))
    put(place, '[mcp.a]\ncommand = ["project"]\n', "steersman.toml")
    assert place.run("trust", "--yes").returncode == 0
    found = json.loads(place.run("config", "show", "--json").stdout)["config"]["mcp"]
    assert {name: table["command"] for name, table in found.items()} == {
        "a": ["project"],
        "b": ["npx", "-y", "notes"],
    }
