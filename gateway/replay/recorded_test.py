"""A recorded session as a test of an agent: `steersman.testing.replay`."""

from __future__ import annotations

import os
import tempfile
from contextlib import closing
from pathlib import Path

from msgspec.structs import replace

from ...journal.memory import MemoryStore
from ...simulator.replay.script import Script
from ...workflows.config import load
from ...workflows.paths import Paths
from ..host.host import Host
from ..launch_options import LaunchOptions
from ..library import Agent
from ..views.session_file import exported_entries
from ..wording.redaction import redactor_of
from .at_home import introduce
from .replay import Replay, Replayer, ReplayOptions
from .wording import replay_text


class Parted(AssertionError):
    """An agent decides otherwise than was recorded; `replay` says where."""

    def __init__(self, replay: Replay, text: str) -> None:
        super().__init__(text)
        self.replay = replay


def replay(file: str | Path, agent: Agent | None = None, *, yes: bool = False) -> Replay:
    """Decide a recorded session again by an agent's tools, permissions and limits.

    `file` is what `steersman sessions export ID session.json` wrote. Its model and its tools answer from
    the file, so nothing is run and no model is asked. Without `agent` it is that of the record, as far as
    this program knows it. `yes`: it was run with `--yes`.

    Raises `Parted`, an `AssertionError`, at the first difference, and `UsageError` for what is no such
    file or cannot be replayed. Call it outside of a running asyncio loop.
    """
    entries = exported_entries(Path(file))
    with tempfile.TemporaryDirectory("-steersman") as scratch:
        environ = {name: text for name, text in os.environ.items() if name != "STEERSMAN_CONFIG"}
        paths = replace(Paths.of(environ), state=Path(scratch), config=Path(scratch))
        config = load(paths, Path(scratch), environ)
        with closing(Host(paths, config, environ, LaunchOptions(), MemoryStore())) as host:
            name = ""
            if agent is not None:
                name = Script(entries).opened.agent
                introduce(host, name, agent)
            found, _ = Replayer(host).play(entries, ReplayOptions(agent=name, is_yes=yes))
    if found.difference is not None:
        raise Parted(found, replay_text(found, redactor_of(environ)))
    return found
