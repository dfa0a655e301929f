"""Two sessions in one folder: each reverts what is its own; and what a person has claimed stays."""

from pathlib import Path

import pytest
from workspace.conftest import Agent

killed = pytest.mark.parametrize("is_killed", [False, True])


@pytest.fixture
def other(agent: Agent, folder: Path) -> Agent:
    """A second session in the folder."""
    return Agent(agent.state, folder, "s2")


@killed
def test_what_another_session_writes_during_a_command_is_its_own(
    agent: Agent, other: Agent, folder: Path, is_killed: bool
) -> None:
    """Its `write` is known for certain: the command's session does not take it."""
    (folder / "a.txt").write_text("old\n")

    def both() -> None:
        (folder / "a.txt").write_text("new\n")
        other.write("b.txt", b"of the other\n")

    agent.command(both, is_killed=is_killed)
    done = agent.revert()
    assert done.restored == ("a.txt",)
    assert (folder / "b.txt").read_text() == "of the other\n"
    assert other.revert().restored == ("b.txt",)
    assert not (folder / "b.txt").exists()


def test_of_two_commands_the_one_that_ends_first_has_the_change(
    agent: Agent, other: Agent, folder: Path
) -> None:
    """A short command within a long one."""
    agent.command(lambda: other.command(lambda: (folder / "b.txt").write_text("short\n")))
    assert agent.revert().restored == ()
    assert (folder / "b.txt").exists()
    assert other.revert().restored == ("b.txt",)


@killed
def test_a_command_over_what_another_session_wrote_goes_back_to_that(
    agent: Agent, other: Agent, folder: Path, is_killed: bool
) -> None:
    """Both changed one file: the other's version is what is restored."""

    def both() -> None:
        other.write("b.txt", b"of the other\n")
        (folder / "b.txt").write_text("of the command\n")

    agent.command(both, is_killed=is_killed)
    assert agent.revert().restored == ("b.txt",)
    assert (folder / "b.txt").read_text() == "of the other\n"


@killed
def test_what_another_session_reverts_during_a_command_is_not_the_commands(
    agent: Agent, other: Agent, folder: Path, is_killed: bool
) -> None:
    """Its revert is no change of this session."""
    (folder / "b.txt").write_text("first\n")
    other.write("b.txt", b"second\n")
    agent.command(other.revert, is_killed=is_killed)
    assert agent.revert().restored == ()
    assert (folder / "b.txt").read_text() == "first\n"


@killed
def test_what_another_session_did_before_is_nothing(
    agent: Agent, other: Agent, folder: Path, is_killed: bool
) -> None:
    """An equal content that it left earlier claims nothing."""
    other.command(lambda: (folder / "out").write_text("same\n"))
    (folder / "out").unlink()
    agent.command(lambda: (folder / "out").write_text("same\n"), is_killed=is_killed)
    assert agent.revert().restored == ("out",)


def test_a_file_that_a_person_took_back_stays(agent: Agent, folder: Path) -> None:
    """`/revert undo PATH` says that a change was a person's; a later revert leaves it alone."""

    def act() -> None:
        (folder / "agent.txt").write_text("by the command\n")
        (folder / "mine.txt").write_text("by a person\n")

    agent.command(act)
    assert set(agent.revert().shared) == {"agent.txt", "mine.txt"}
    taken = agent.revert("undo", paths=("mine.txt",))
    assert (taken.restored, taken.shared) == (("mine.txt",), ("mine.txt",))
    agent.restart()
    agent.revert("undo")
    done = agent.revert()
    assert done.restored == ("agent.txt",)
    assert (folder / "mine.txt").read_text() == "by a person\n"
