"""A run whose end is awaited."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.patience import seconds

from steersman.cli.runs.watch import RunWatch
from steersman.gateway.client import SessionClient
from steersman.gateway.host.host import Host
from steersman.gateway.launch_options import LaunchOptions
from steersman.gateway.running import RunPlan, start_run
from steersman.journal.memory import MemoryStore
from steersman.journal.store import Commit
from steersman.workflows.config import load
from steersman.workflows.flow.reading import load_workflow
from steersman.workflows.paths import Paths

JOB = '[workflow]\nname = "job"\n[[step]]\nid = "only"\nrun = ["true"]\n'
LATE = 1.0
"""Seconds by which the end of a run is written late; the test waits for it, however slow the machine."""


class LateStore(MemoryStore):
    """Writes the end of a turn late, as a slow disk does; `is_late` is set when it has begun to."""

    def __init__(self) -> None:
        super().__init__()
        self.is_late = threading.Event()

    def commit(self, commits: Sequence[Commit]) -> list[bool]:
        """Write."""
        kinds = {entry.data["kind"] for commit in commits for entry in commit.entries}
        if "turn_ended" in kinds:
            self.is_late.set()
            threading.Event().wait(LATE)
        return super().commit(commits)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[tuple[Host, LateStore, SessionClient]]:
    """A run that has been opened."""
    (tmp_path / "job.toml").write_text(JOB)
    environ: dict[str, Any] = {"STEERSMAN_HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin"}
    paths, store = Paths.of(environ), LateStore()
    host = Host(paths, load(paths, tmp_path, environ), environ, LaunchOptions(), store)
    with closing(host):
        plan = RunPlan(spec=load_workflow(tmp_path / "job.toml"))
        yield host, store, host.begin(tmp_path, plan)


def test_the_end_of_a_run_is_known_when_the_wait_for_it_is_over(
    run: tuple[Host, LateStore, SessionClient],
) -> None:
    """Also where the run is over by its record, and the event about it still waits for the disk."""
    host, store, conversation = run
    watch = RunWatch()
    host.event_bus.subscribe(watch.hear)
    start_run(conversation, "job")
    assert store.is_late.wait(seconds(30))
    assert conversation.is_quiet()

    watch.wait(conversation)

    assert watch.ended is not None
    assert watch.ended["status"] == "succeeded"
    assert watch.exit_code == 0
