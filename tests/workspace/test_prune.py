"""What ended long ago takes no room; what is young, or somebody's, stays and can be reverted."""

import os
from pathlib import Path

from workspace.conftest import Agent

from steersman.journal.workspace.prune import prune, size_of

DAY = 86_400.0


def test_only_what_is_old_and_nobody_s_goes(tmp_path: Path, folder: Path) -> None:
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
    done = prune(tmp_path / "state", lambda name: name == "s1", 3 * DAY, 1.5 * DAY)
    assert done.sessions == ("s2",)
    assert 0 < done.freed < before
    for number in (0, 2):
        agents[number].restart()
        assert agents[number].revert().restored == (f"f{number}",)
        assert (folder / f"f{number}").read_bytes() == b"person %d" % number
    assert prune(tmp_path / "state", lambda name: False, 3 * DAY, 9 * DAY, 0).left == 0
