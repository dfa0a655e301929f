"""Our hooks in other agents' configurations: added, renewed and taken out, and nothing else touched."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from extensions.agent_hooks.conftest import Installed
from msgspec.structs import replace

from steersman.machines.errors import ConfigError, SteersmanError
from steersman.workflows.agent_definition import AgentDefinition

JSONC = """\
{
    // mine
    "model": "opus",  /* the big one */
    "hooks": {
        "Stop": [
            { "hooks": [ { "type": "command", "command": "say done" } ] } // keep
        ],
        "PreToolUse": [],
    },
}
"""
YAML = """\
# my config
model: x   # here
hooks:
  # first
  on_session_end:
  - command: "notify-send done"   # mine
    timeout: 5
display:
  busy_input_mode: queue
"""
TOML = 'model = "x" # here\n\n[[hooks]]\nevent = "Stop"\ncommand = "say done"\n'

BEFORE: list[tuple[str, str | None]] = [
    ("claude", None),
    ("claude", ""),
    ("claude", "{}\n"),
    ("claude", '{"a": 1}'),
    ("claude", '{"hooks": {"Stop": [{"hooks": []}]}}'),
    ("jsonc", JSONC),
    ("jsonc", JSONC.replace("\n", "\r\n")),
    ("copilot", None),
    ("copilot", '{\n\t"version": 1,\n\t"hooks": {}\n}\n'),
    ("antigravity", '{"lint": {"Stop": [{"command": "make lint"}]}}\n'),
    ("hermes", None),
    ("hermes", "# nothing yet\n"),
    ("hermes", "model: x"),
    ("hermes", "hooks: {}  # none\nmodel: x\n"),
    ("hermes", "hooks:\nmodel: x\n"),
    ("hermes", "hooks:\n  on_session_end: []\nmodel: x\n"),
    ("hermes", YAML),
    ("toml", None),
    ("toml", TOML),
    ("toml", TOML.rstrip("\n")),
    ("toml", "\ufeff" + TOML.replace("\n", "\r\n")),
    ("hermes", YAML.replace("\n", "\r\n")),
    ("claude", '{\r\n  "a": 1\r\n}\r\n'),
    ("opencode", None),
]


@pytest.fixture
def agents(agents: dict[str, AgentDefinition]) -> dict[str, AgentDefinition]:
    """The shipped definitions, and two of a person's own: in JSON with comments, and in TOML."""
    claude = agents["claude"]
    jsonc = replace(claude.hooks, json_dialect="jsonc")
    toml = replace(claude.hooks, config="~/.own/config.toml", format="toml-tables", home="")
    agents["jsonc"] = replace(claude, hooks=jsonc)
    agents["toml"] = replace(claude, name="toml", hooks=toml)
    return agents


def write(path: Path, text: str | None) -> None:
    """Put a text into a file, or none: then only its folder is there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if text is not None:
        path.write_bytes(text.encode())


def read(path: Path) -> Any:
    """Read what an agent would, comments aside."""
    text = path.read_text("utf-8-sig")
    if path.suffix == ".json":
        from steersman.extensions.agent_hooks.json_file import parse

        return parse(text).value
    if path.suffix == ".yaml":
        from ruamel.yaml import YAML

        reader: Any = YAML(typ="safe", pure=True)
        return reader.load(text) or {}
    return tomllib.loads(text) if path.suffix == ".toml" else text


def strip(data: Any) -> Any:
    """Leave out whatever calls us, and what is empty without it."""
    if isinstance(data, list):
        inner = [strip(one) for one in data]
        return [one for one in inner if one not in (None, {}, [])]
    if isinstance(data, dict):
        if any(isinstance(one, str) and "steersman hooks emit" in one for one in data.values()):
            return None
        found = {key: strip(one) for key, one in data.items()}
        return {key: one for key, one in found.items() if one not in (None, {}, [])}
    return data


@pytest.mark.parametrize(("name", "text"), BEFORE)
def test_install_and_uninstall(name: str, text: str | None, installed: Installed) -> None:
    """Everything else stays as it was, twice is once, and taking out gives back every byte."""
    installation = installed(name)
    path = installation.path
    write(path, text)
    before = read(path) if text else {}
    assert installation.status() == "not installed"
    installation.apply(installation.install(), is_install=True)
    assert installation.status() == "installed"
    assert installation.install() == []
    if path.suffix != ".js":
        kept = {key: value for key, value in strip(read(path)).items() if key != "version"}
        assert kept == {k: v for k, v in strip(before).items() if k != "version"}
    comments = [
        word
        for word in ("// mine", "// keep", "# here", "# first", "# mine")
        if text and word in text
    ]
    assert all(word in path.read_text() for word in comments)
    installation.apply(installation.uninstall(), is_install=False)
    assert (path.read_bytes() if path.exists() else None) == (
        None if text is None else text.encode()
    )
    assert installation.uninstall() == []


@pytest.mark.parametrize(("name", "text"), [row for row in BEFORE if row[0] != "opencode"])
def test_ours_are_cut_out_of_a_file_that_others_changed(
    name: str, text: str | None, installed: Installed
) -> None:
    """After a foreign change only our hooks are removed; the others stay, with every comment."""
    installation = installed(name)
    path = installation.path
    write(path, text)
    installation.apply(installation.install(), is_install=True)
    changed = (
        path.read_text() + {".json": "\n", ".yaml": "# late\n", ".toml": "# late\n"}[path.suffix]
    )
    path.write_text(changed)
    before = strip(read(path))
    installation.apply(installation.uninstall(), is_install=False)
    assert "steersman" not in path.read_text()
    assert (strip(read(path)) or {}) == before
    assert ("# late" in changed) == ("# late" in path.read_text())


@pytest.mark.parametrize("name", ["claude", "jsonc", "hermes", "toml"])
def test_the_line_ends_of_a_file_are_kept(name: str, installed: Installed) -> None:
    """What is added has them, too; where both kinds are, each line keeps its own."""
    installation = installed(name)
    text = {"jsonc": JSONC, "hermes": YAML, "toml": TOML}.get(name, '{\n  "a": 1,\n  "b": 2\n}\n')
    for before in (text.replace("\n", "\r\n"), text.replace("\n", "\r\n", 1)):
        write(installation.path, before)
        installation.apply(installation.install(), is_install=True)
        after = installation.path.read_bytes()
        if before.count("\r\n") == before.count("\n"):
            assert after.count(b"\r\n") == after.count(b"\n") > before.count("\n")
        assert after.startswith(before.partition("\n")[0].encode() + b"\n")
        write(installation.path, after.decode() + "\r\n")  # no copy: the hooks are cut out
        installation.apply(installation.uninstall(), is_install=False)
        left = installation.path.read_bytes()
        assert (left.count(b"\r\n") < left.count(b"\n")) == ("\n" in before.replace("\r\n", ""))


def test_another_mapping_is_out_of_date_and_renewed(installed: Installed, user: Path) -> None:
    """Where the program moved or the mapping changed, `install` renews, and the first copy holds."""
    write(user / ".claude" / "settings.json", JSONC)
    old = installed("jsonc", "/old/bin/steersman")
    old.apply(old.install(), is_install=True)
    new = installed("jsonc")
    assert new.status() == "outdated"
    new.apply(new.install(), is_install=True)
    assert new.status() == "installed"
    assert "/old/bin" not in new.path.read_text()
    new.apply(new.uninstall(), is_install=False)
    assert new.path.read_text() == JSONC


@pytest.mark.parametrize(
    ("name", "text", "place", "said"),
    [
        ("claude", '{"hooks": [1]}', "1:11", "`hooks` is not an object"),
        ("claude", '{\n "hooks": {"Stop": {}}\n}', "2:20", "`hooks.Stop` is not a list"),
        ("claude", '{"a": 1,, }', "1:9", "a key in quotes is expected"),
        ("claude", "\ufeff{}", "1:1", "a byte order mark"),
        ("claude", "[]", "1:1", "not a JSON object"),
        ("claude", "{\n // mine\n}", "2:2", "reads JSON without comments and trailing commas"),
        ("claude", '{"a": 1,}', "1:9", "reads JSON without comments and trailing commas"),
        ("gemini", '{"a": "//", /* b */ "c": 1,}', "1:28", "reads JSON without trailing commas"),
        ("hermes", "hooks: {on_session_start: [{command: x}]}\n", "1:8", "write it as a block"),
        ("hermes", "a: [1\nb: 2\n", "2:2", "not valid YAML"),
        ("hermes", "- a\n", "1:1", "not a YAML mapping"),
        ("toml", "hooks = 1\n", "1:1", "not an array of tables"),
        ("toml", "a = \n", "1:5", "not valid TOML"),
        ("opencode", "export const Mine = 1\n", "1:1", "another program wrote this file"),
    ],
)
def test_what_is_not_understood_is_refused(
    name: str, text: str, place: str, said: str, installed: Installed
) -> None:
    """A file that an edit would have to guess about stays as it is, and the place is named."""
    installation = installed(name)
    write(installation.path, text)
    with pytest.raises(ConfigError) as caught:
        installation.install()
    assert said in caught.value.message
    assert str(caught.value).startswith(f"{installation.path}:{place}: ")
    assert installation.path.read_text() == text


def test_a_missing_folder_is_made_only_if_the_definition_says_so(
    installed: Installed, user: Path
) -> None:
    """An agent that was never started is no place for hooks, unless it makes its folder late."""
    with pytest.raises(SteersmanError, match="was never started here"):
        installed("claude").install()
    hermes = installed("hermes")
    hermes.apply(hermes.install(), is_install=True)
    assert (user / ".hermes" / "config.yaml").stat().st_mode & 0o777 == 0o600


def test_a_link_stays_a_link_and_a_mode_a_mode(installed: Installed, user: Path) -> None:
    """A configuration that is kept elsewhere is changed there."""
    kept = user / "dotfiles" / "claude.json"
    write(kept, "{}")
    kept.chmod(0o644)
    installation = installed("claude")
    installation.path.parent.mkdir(parents=True)
    installation.path.symlink_to(kept)
    installation.apply(installation.install(), is_install=True)
    assert installation.path.is_symlink()
    assert "steersman" in kept.read_text()
    assert kept.stat().st_mode & 0o777 == 0o644


def test_a_change_in_between_is_noticed(installed: Installed, user: Path) -> None:
    """What was decided for one text is not done to another."""
    write(user / ".claude" / "settings.json", "{}")
    installation = installed("claude")
    changes = installation.install()
    installation.path.write_text('{"late": 1}')
    with pytest.raises(ConfigError, match="another program is changing it"):
        installation.apply(changes, is_install=True)
    assert json.loads(installation.path.read_text()) == {"late": 1}


def test_scripts_are_files_of_their_own(
    installed: Installed, agents: dict[str, AgentDefinition], user: Path
) -> None:
    """A folder of scripts gets one for each event; a user's own script is not replaced."""
    hooks = replace(agents["claude"].hooks, config="~/.own/hooks", format="scripts", home="")
    agent = replace(agents["claude"], name="own", hooks=hooks, create_config_dir_if_missing=True)
    installation = installed(agent)
    installation.apply(installation.install(), is_install=True)
    assert installation.status() == "installed"
    stop = user / ".own" / "hooks" / "Stop"
    assert (
        stop.read_text().splitlines()[-1] == "exec /opt/bin/steersman hooks emit own agent-response"
    )
    assert stop.stat().st_mode & 0o777 == 0o755
    installation.apply(installation.uninstall(), is_install=False)
    assert list((user / ".own" / "hooks").iterdir()) == []
    stop.write_text("#!/bin/sh\necho mine\n")
    with pytest.raises(ConfigError, match="another program wrote this file"):
        installation.install()
