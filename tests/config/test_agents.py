"""Definitions of external agents: the shipped ones, a person's own, and mistakes in them."""

from pathlib import Path

import pytest

from steersman.machines.errors import ConfigError, UsageError
from steersman.workflows.agent_definition import BUILT_IN, find_agent, load_agents
from steersman.workflows.paths import Paths

GOOD = """\
[agent]
name = "mine"
aliases = ["my-own"]
start = ["mine"]
resume = ["mine", "--resume", "{session_id}"]
session_env = "MINE_SESSION_ID"
[agent.hooks]
config = "~/.mine/hooks.toml"
format = "toml-tables"
[agent.events]
Begin = "session-start"
"""


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    """A home in which a person has a definition of their own."""
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "mine.toml").write_text(GOOD)
    return Paths.of({"STEERSMAN_HOME": str(tmp_path)})


def test_adding_an_agent_is_adding_a_file(paths: Paths) -> None:
    """A file in `agents/` of the config folder is an agent, under its name and aliases."""
    agents = load_agents(paths)
    assert find_agent(agents, "My-Own").resume_command("x") == ("mine", "--resume", "x")
    assert not agents["mine"].session_end_is_turn_boundary
    (paths.config / "agents" / "mine.toml").unlink()
    with pytest.raises(UsageError, match="there is no agent `mine`"):
        find_agent(load_agents(paths), "mine")


def test_a_person_can_replace_a_shipped_definition(paths: Paths) -> None:
    """Of two files of one name, the person's own counts."""
    text = (BUILT_IN / "hermes.toml").read_text().replace('"hermes", "chat"', '"hermes2"')
    (paths.config / "agents" / "hermes.toml").write_text(text)
    assert load_agents(paths)["hermes"].start == ("hermes2",)


def test_whose_session_end_is_a_turn(paths: Paths) -> None:
    """Grok, antigravity and hermes end a session after every turn; the others once."""
    agents = load_agents(paths)
    found = {name for name, one in agents.items() if one.session_end_is_turn_boundary}
    assert found == {"antigravity", "grok", "hermes"}


@pytest.mark.parametrize(
    ("old", "new", "place", "said"),
    [
        ("aliases", "alias", "3:1", "unknown key `agent.alias`"),
        ("session-start", "session-begin", "11:9", "`agent.events.Begin` must be one of"),
        ("{session_id}", "{id}", "5:10", "where the session's id goes"),
        ('"toml-tables"', '"toml"', "9:10", "`agent.hooks.format` must be one of"),
        ('name = "mine"', 'name = "yours"', "2:8", "must be that of the file"),
        ('["my-own"]', '["agy"]', "3:11", "`agy` is a name of `antigravity` already"),
        ('["mine"]', "[]", "4:9", "must begin with a program"),
        ("MINE_SESSION_ID", "PATH", "6:15", "ends in `_SESSION_ID` or `_THREAD_ID`"),
        ("[agent.events]", "[agent.event]", "1:1", "did you mean `agent.events`?"),
        ("[agent]", "[agent", "1:7", "not valid TOML"),
    ],
)  # fmt: skip
def test_a_mistake_is_reported_with_its_position(
    old: str, new: str, place: str, said: str, paths: Paths
) -> None:
    """A mistake in a definition is reported with file, line, column and the nearest key."""
    file = paths.config / "agents" / "mine.toml"
    file.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(ConfigError) as caught:
        load_agents(paths)
    assert said in str(caught.value)
    assert str(caught.value).startswith(f"{file}:{place}: ")
