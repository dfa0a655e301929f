"""The power goes at any moment of a run of the real program: what it had said is on the disk."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import pytest
from blackbox.recorded_run import (
    MODELS,
    STATE,
    STRACE,
    Run,
    conversation,
    fault_of,
    told,
    work_on_files,
    wrong_file,
)
from support.power_loss import Disk, Model, disks
from support.recording import Operation

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.timeout(300),
    pytest.mark.skipif(STRACE is None, reason="needs strace to see the writes"),
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A recorded conversation."""
    return conversation(tmp_path_factory.mktemp("recorded"))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A recorded life with work on files."""
    return work_on_files(tmp_path_factory.mktemp("files"))


@pytest.mark.parametrize("model", MODELS)
def test_a_file_that_a_tool_wrote_is_whole_and_stays(files: Run, model: Model) -> None:
    """At any moment a file is its old or its new self; once a call or a revert is done, the new."""
    states = files.disks(model)
    found = [wrong_file(state, told(files.operations[: state.moment])) for state in states]
    assert [one for one in found if one] == []
    assert len(states) > 100
    assert {event["type"] for event in told(files.operations)} >= {"tool_ended", "reverted"}


@pytest.mark.parametrize("model", MODELS)
def test_the_replay_sees_a_file_that_is_not_synced(files: Run, model: Model) -> None:
    """Without the syncs of the files and folders of the project the same run breaks some."""
    careless = [
        replace(operation, kind="nothing")
        if (operation.kind, operation.name[:7]) == ("sync", "project")
        else operation
        for operation in files.operations
    ]
    states = disks(careless, files.before, model)
    assert any(wrong_file(state, told(careless[: state.moment])) for state in states)


def faults(run: Sequence[Operation], states: Iterable[Disk]) -> Iterator[str]:
    """Look at each disk; tell the moment and what is missing where something is."""
    for state in states:
        fault = fault_of(state, told(run[: state.moment]))
        if fault:
            yield f"{state.moment}: {fault}"


@pytest.mark.parametrize("model", MODELS)
def test_a_power_cut_loses_nothing_acknowledged(run: Run, model: Model) -> None:
    """Whatever the disk kept of what was not synced: each event that was printed is in the journal."""
    states = run.disks(model)
    assert len(states) > 500
    assert list(faults(run.operations, states)) == []
    assert len(told(run.operations)) > 40


@pytest.mark.parametrize(
    "name", [f"{STATE}/journal", STATE, "far"], ids=["files", "folder", "home"]
)
def test_the_replay_sees_a_sync_that_is_missing(run: Run, name: str) -> None:
    """Without its syncs the same run loses acknowledged entries: so the test can fail."""
    careless = [
        replace(operation, kind="nothing")
        if operation.kind == "sync" and (operation.name == name or f"{name}.db" in operation.name)
        else operation
        for operation in run.operations[:150]
    ]
    states = list(disks(careless, run.before))
    assert next(faults(careless, reversed(states)), "")
