"""What the copies of sessions take, and what their deletion leaves."""

import os
from pathlib import Path

from workspace.conftest import Agent

from steersman.workspace.prune import beyond, forget, kept_in, size_of

DAY = 86_400.0


def age(state: Path, session: str, days: float) -> None:
    """Let a session's copies be last used so many days after the epoch, and all copies be older."""
    (ledger,) = state.glob(f"*/ledger-{session}.jsonl")
    os.utime(ledger, (days * DAY, days * DAY))
    for file in state.glob("*/git/objects/??/*"):
        os.utime(file, (0, 0))


def test_the_deletion_of_one_sessions_copies_leaves_those_of_others(
    tmp_path: Path, folder: Path
) -> None:
    """The others can still be reverted, and with the last session all goes."""
    state = tmp_path / "state"
    agents = [Agent(state, folder, name) for name in ("s1", "s2", "s3")]
    for number, agent in enumerate(agents):
        (folder / f"f{number}").write_bytes(b"person %d" % number)
        agent.command(lambda number=number: (folder / f"f{number}").write_bytes(b"agent"))
        age(state, f"s{number + 1}", number)
    before = size_of(state)
    assert 0 < forget(state, ["s2"]) < before
    for number in (0, 2):
        agents[number].restart()
        assert agents[number].revert().restored == (f"f{number}",)
        assert (folder / f"f{number}").read_bytes() == b"person %d" % number
    forget(state, ["s1", "s3"])
    assert size_of(state) == 0


def test_a_budget_has_no_room_for_the_oldest_copies(tmp_path: Path, folder: Path) -> None:
    """What is counted as freed is what the deletion frees; what is spared stays, though it is oldest."""
    state = tmp_path / "state"
    agents = [Agent(state, folder, f"s{number}") for number in range(4)]
    for number, agent in enumerate(agents):
        (folder / f"f{number}").write_bytes(b"person %d" % number * 5000)
        agent.command(lambda number=number: (folder / f"f{number}").write_bytes(b"agent"))
        if number == 1:
            agent.revert()
        age(state, f"s{number}", number)
    kept, size = kept_in(state), size_of(state)
    assert [(found.session, found.can_undo) for found in kept] == [
        ("s0", False),
        ("s1", True),
        ("s2", False),
        ("s3", False),
    ]

    def over(budget: int) -> set[str]:
        return beyond(state, kept, lambda found: found.session == "s0" or found.can_undo, budget)

    assert over(size) == set()
    assert over(size - 1) == {"s2"}
    assert over(1) == {"s2", "s3"}
    freed = forget(state, ["s2"])
    assert freed > 5000
    assert over(size - freed) == set()
    agents[1].restart()
    agents[1].revert("undo")
    assert (folder / "f1").read_bytes() == b"agent"


def test_a_new_copy_that_no_log_names_yet_stays(tmp_path: Path, folder: Path) -> None:
    """Another process may just have written it; an old one goes with the session that needed it."""
    state = tmp_path / "state"
    for name in ("s1", "s2"):
        (folder / name).write_bytes(b"person")
        Agent(state, folder, name).command(lambda name=name: (folder / name).write_bytes(b"agent"))
    age(state, "s1", 1)
    age(state, "s2", 2)
    (store,) = state.iterdir()
    copies = store / "git" / "objects" / "00"
    copies.mkdir(exist_ok=True)
    for name in ("old", "new"):
        (copies / name).write_bytes(b"x")
    os.utime(copies / "old", (0, 0))
    forget(state, ["s1"])
    assert {file.name for file in copies.iterdir()} >= {"new"}
    assert not (copies / "old").exists()


def test_what_another_program_deletes_meanwhile_is_passed_over(tmp_path: Path) -> None:
    """A name that leads nowhere any more hinders nothing."""
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "ledger-gone.jsonl").symlink_to("nowhere")
    assert kept_in(tmp_path) == []
