"""Old sessions free their space; young or owned ones keep their copies and can be reverted."""

import os
import time
from pathlib import Path

from workspace.conftest import Agent

from steersman.journal.workspace.prune import prune, size_of

DAY = 86_400.0


def test_only_old_copies_without_an_owner_are_deleted(tmp_path: Path, folder: Path) -> None:
    """By age, and then by a budget, the oldest first; the others lose nothing."""
    agents = [Agent(tmp_path / "state", folder, name) for name in ("s1", "s2", "s3")]
    for number, agent in enumerate(agents):
        (folder / f"f{number}").write_bytes(b"person %d" % number)
        agent.command(lambda number=number: (folder / f"f{number}").write_bytes(b"agent"))
        (ledger,) = (tmp_path / "state").glob(f"*/ledger-s{number + 1}.jsonl")
        os.utime(ledger, (number * DAY, number * DAY))
    for file in (tmp_path / "state").glob("*/git/objects/??/*"):
        os.utime(file, (0, 0))
    before = size_of(tmp_path / "state")
    done = prune(tmp_path / "state", lambda name: name == "s1", 3 * DAY, 1 << 40, 1.5 * DAY)
    assert done.sessions == ("s2",)
    assert 0 < done.freed < before
    for number in (0, 2):
        agents[number].restart()
        assert agents[number].revert().restored == (f"f{number}",)
        assert (folder / f"f{number}").read_bytes() == b"person %d" % number
    assert prune(tmp_path / "state", lambda name: False, time.time(), 0, -1.0).left == 0


def test_a_budget_deletes_the_oldest_copies_without_an_owner(tmp_path: Path, folder: Path) -> None:
    """Not what is open, not what is fresh, and not the last revert of a folder, which can be undone."""
    agents = [Agent(tmp_path / "state", folder, f"s{number}") for number in range(5)]
    for number, agent in enumerate(agents):
        (folder / f"f{number}").write_bytes(b"person %d" % number)
        agent.command(lambda number=number: (folder / f"f{number}").write_bytes(b"agent"))
        if number == 1:
            agent.revert()
        (ledger,) = (tmp_path / "state").glob(f"*/ledger-s{number}.jsonl")
        os.utime(ledger, (number * DAY, number * DAY))
    for file in (tmp_path / "state").glob("*/git/objects/??/*"):
        os.utime(file, (0, 0))
    size = size_of(tmp_path / "state")
    now = 4 * DAY + 60.0

    def is_needed(session: str) -> bool:
        return session == "s0"

    assert prune(tmp_path / "state", is_needed, now, size).sessions == ()
    assert prune(tmp_path / "state", is_needed, now, size - 1).sessions == ("s2",)
    assert prune(tmp_path / "state", is_needed, now, 1).sessions == ("s3",)
    agents[1].restart()
    agents[1].revert("undo")
    assert (folder / "f1").read_bytes() == b"agent"
    os.utime(next((tmp_path / "state").glob("*/ledger-s1.jsonl")), (DAY, DAY))
    assert prune(tmp_path / "state", is_needed, now, 1).sessions == ("s1",)
    for number in (0, 4):
        agents[number].restart()
        assert agents[number].revert().restored == (f"f{number}",)


def test_what_another_program_deletes_meanwhile_is_passed_over(tmp_path: Path) -> None:
    """A name that leads nowhere any more hinders nothing."""
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "ledger-gone.jsonl").symlink_to("nowhere")
    assert prune(tmp_path, lambda name: False, DAY, 0).sessions == ()
