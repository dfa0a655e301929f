"""A host with a scripted model, reachable through its control socket."""

import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from support.patience import seconds

from steersman.gateway.client import SessionClient
from steersman.gateway.commands.command import Reply
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


@pytest.fixture
def conversation(begin: Begin, tmp_path: Path) -> SessionClient:
    """A session that has begun in the project's folder."""
    return begin().begin(tmp_path / "project")


def replied(conversation: SessionClient, line: str) -> Reply:
    """Say a slash command, and return its reply."""
    reply = conversation.say(line)
    assert reply is not None
    return reply


@contextmanager
def awaited(conversation: SessionClient, kind: str) -> Iterator[None]:
    """Wait, at the end of the block, for an event of this kind of a session, or of a subagent's."""
    came = threading.Event()
    leave = conversation.host.event_bus.subscribe(
        lambda event: came.set() if event["type"] == kind else None, conversation.session
    )
    yield
    assert came.wait(seconds(60)), f"no `{kind}` has come"
    leave()
