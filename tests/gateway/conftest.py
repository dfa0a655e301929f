"""A host with a scripted model, reachable through its control socket."""

from collections.abc import Callable, Generator
from contextlib import ExitStack
from pathlib import Path

import pytest

from steersman.gateway.host.host import Host
from steersman.gateway.launch_options import LaunchOptions
from steersman.workflows.config import load
from steersman.workflows.paths import Paths

SCRIPT = '[[answer]]\ntext = "Yes."\n'

Begin = Callable[..., Host]


@pytest.fixture
def begin(tmp_path: Path) -> Generator[Begin]:
    """Make a host on this test's home; keywords are added to its configuration."""
    (tmp_path / "answers.toml").write_text(SCRIPT * 200)
    (tmp_path / "project").mkdir()
    with ExitStack() as closing:

        def make(more: str = "") -> Host:
            script = f'[models.main]\nprovider = "scripted"\nscript = "{tmp_path}/answers.toml"\n'
            home = tmp_path / "home"
            home.mkdir(exist_ok=True)
            text = f'{more}\n{script}[agents.assistant]\nmodel = "main"\n'
            (home / "config.toml").write_text(text)
            environ = {"STEERSMAN_HOME": str(home)}
            paths = Paths.of(environ)
            folder = tmp_path / "project"
            host = Host(paths, load(paths, folder, environ), environ, LaunchOptions())
            closing.callback(host.close)
            return host

        yield make
