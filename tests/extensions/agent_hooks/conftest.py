"""What the tests of installations share: a person's folder, and an agent's installation in it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from steersman.extensions.agent_hooks.installation import Installation
from steersman.workflows.agent_definition import AgentDefinition, load_agents
from steersman.workflows.paths import Paths

PROGRAM = "/opt/bin/steersman"

Installed = Callable[..., Installation]


@pytest.fixture
def user(tmp_path: Path) -> Path:
    """A person's home folder."""
    folder = tmp_path / "user"
    folder.mkdir()
    return folder


@pytest.fixture
def agents(tmp_path: Path) -> dict[str, AgentDefinition]:
    """The shipped definitions."""
    return load_agents(Paths.of({"STEERSMAN_HOME": str(tmp_path / "home")}))


@pytest.fixture
def installed(user: Path, tmp_path: Path, agents: dict[str, AgentDefinition]) -> Installed:
    """Make the installation of an agent; `program` is what its hooks call."""

    def make(agent: str | AgentDefinition, program: str = PROGRAM) -> Installation:
        known = agents[agent] if isinstance(agent, str) else agent
        return Installation(known, [program], tmp_path / "home" / "state", {"HOME": str(user)})

    return make
