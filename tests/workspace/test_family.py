"""Calls of a family overlap in one folder: all that they changed comes back, and nothing twice."""

import asyncio
from pathlib import Path

import pytest
from workspace.conftest import Agent, content_of, git
from workspace.test_workspace import fill

from steersman.machines import protocol as m
from steersman.ports.workspace import Checkpoints, ChildWorkspace
from steersman.workspace.restore import RestoreFailed
from steersman.workspace.workspace import OWN_LARGEST


class Family(Agent):
    """What the calls of a family do to the folder, in the order of the test."""

    def begin(self, call: str, path: str | None = None) -> None:
        """Begin a call, named `TURN.NAME`: a command, or a write of `path`."""
        tool = "shell" if path is None else "write"
        self.workspace.begin(call.split(".")[0], call, tool, path)

    def put(self, path: str, text: str) -> None:
        """Write a file, as any of the sessions."""
        (self.folder / path).write_text(text)


@pytest.fixture
def family(tmp_path: Path, folder: Path) -> Family:
    """A family in a folder that holds three files."""
    for name in "abc":
        (folder / name).write_text(f"{name}0\n")
    return Family(tmp_path / "state", folder)


@pytest.mark.parametrize("is_repository", [True, False], ids=["repository", "plain folder"])
@pytest.mark.parametrize("first", ["t1.a", "t1.b"])
def test_overlapping_commands_all_come_back(
    family: Family, folder: Path, is_repository: bool, first: str
) -> None:
    """Whichever ends first; what was there before, between and after them stays as it was."""
    fill(folder)
    if is_repository:
        git(folder, "init", "-q")
        git(folder, "add", "-A", "src")
    family.put("b", "mine, before")
    before = content_of(folder)
    last = "t1.b" if first == "t1.a" else "t1.a"
    family.begin("t1.a")
    family.put("a", "by a")
    family.begin("t1.b")
    family.put("b", "by b")
    family.put("made", "by a or b")
    family.workspace.end(first)
    family.put("a", "again")
    family.put("c", "late")
    family.put("made", "longer")
    family.workspace.end(last)
    (folder / "mine").write_text("after")
    done = family.revert(turns=("t1",))
    assert sorted(done.restored) == ["a", "b", "c", "made"]
    assert (done.kept, done.yours) == ((), ())
    assert content_of(folder) == before | {"mine": ("file", b"after", 0o644)}
    family.revert("undo")
    assert (folder / "a").read_text() == "again"


def test_a_write_while_a_command_runs_is_its_own(family: Family, folder: Path) -> None:
    """It is entered once, for the call that wrote it; the command keeps what it did itself."""
    family.begin("t1.a")
    family.put("a", "by the command")
    family.begin("t2.w", "b")
    family.put("b", "by the tool")
    family.workspace.end("t2.w")
    family.workspace.end("t1.a")
    assert [one.path for one in family.workspace.diff(("t1",))] == ["a"]
    assert [one.path for one in family.workspace.diff(("t2",))] == ["b"]
    assert family.revert(turns=("t2",)).restored == ("b",)
    assert family.revert(turns=("t1",)).restored == ("a",)
    assert content_of(folder)["a"] == ("file", b"a0\n", 0o644)


def test_what_no_look_sees_comes_back_when_written_meanwhile(family: Family, folder: Path) -> None:
    """An ignored file and a large one: their copies are made when our own tools begin."""
    assert OWN_LARGEST > 17 << 20
    family.put(".gitignore", "hidden\n")
    family.put("hidden", "0")
    (folder / "large").write_bytes(b"0" * (17 << 20))
    before = content_of(folder)
    family.begin("t1.a")
    for number, path in enumerate(("hidden", "large")):
        family.begin(f"t1.w{number}", path)
        family.put(path, "1")
        family.workspace.end(f"t1.w{number}")
    family.workspace.end("t1.a")
    assert family.revert(turns=("t1",)).restored == ("hidden", "large")
    assert content_of(folder) == before


def test_looks_may_meet_files_half_written(family: Family, folder: Path) -> None:
    """A file that grows under the looks of others goes back to what it was before all of them."""
    before = content_of(folder)
    family.begin("t1.long")
    for number in range(3):
        family.begin(f"t1.s{number}")
        family.put("a", "x" * number)
        family.begin(f"t1.w{number}", "b")
        family.put("b", "half")
        family.workspace.end(f"t1.s{number}")
        family.put("b", f"whole {number}")
        family.workspace.end(f"t1.w{number}")
    family.workspace.end("t1.long")
    done = family.revert(turns=("t1",))
    assert (done.restored, done.yours) == (("a", "b"), ())
    assert content_of(folder) == before


def test_two_writes_of_one_file_at_the_same_time(family: Family, folder: Path) -> None:
    """What one of them found half done is not a person's."""
    family.begin("t1.v", "a")
    family.put("a", "by v")
    family.begin("t1.w", "a")
    family.put("a", "by w")
    family.workspace.end("t1.v")
    family.workspace.end("t1.w")
    assert family.revert(turns=("t1",)).yours == ()
    assert (folder / "a").read_text() == "a0\n"


def test_a_person_s_version_between_two_rows_of_calls_stays(family: Family, folder: Path) -> None:
    """Only within one series of overlapping calls the author of a change is not known."""
    for number in range(2):
        family.put("a", f"mine {number}")
        family.begin(f"t1.a{number}")
        family.begin(f"t1.b{number}")
        family.put("a", f"theirs {number}")
        family.workspace.end(f"t1.a{number}")
        family.workspace.end(f"t1.b{number}")
    done = family.revert(turns=("t1",))
    assert (done.restored, done.yours) == (("a",), ("a",))
    assert (folder / "a").read_text() == "mine 1"


def test_a_later_turn_does_not_take_what_was_before_it(family: Family, folder: Path) -> None:
    """A command of an earlier turn runs on: up to the later one's begin it is the earlier one's."""
    family.begin("t1.a")
    family.put("a", "t1")
    family.begin("t2.b")
    family.put("b", "t2, or so it seems")
    family.workspace.end("t2.b")
    family.put("c", "t1")
    family.workspace.end("t1.a")
    assert family.revert().restored == ("b",)
    assert family.revert().restored == ("a", "c")


def test_all_that_a_dead_program_left_open_is_unsure(family: Family, folder: Path) -> None:
    """Two commands and a write: kept and named, and back only when that is demanded."""
    before = content_of(folder)
    family.begin("t1.a")
    family.begin("t1.b")
    family.begin("t1.w", "c")
    for name in "abc":
        family.put(name, "who?")
    family.restart()
    done = family.revert(turns=("t1",))
    assert sorted(path for path, _ in done.kept) == ["a", "b", "c"]
    family.restart()
    family.begin("t2.a")
    family.put("new", "x")
    family.workspace.end("t2.a")
    family.revert(turns=("t1",), force=True)
    family.revert(turns=("t2",))
    assert content_of(folder) == before


async def test_children_share_a_folder_and_no_names(tmp_path: Path, folder: Path) -> None:
    """Calls with the same name in root, child and grandchild are one turn's, and all come back."""
    before = content_of(folder)
    root = Checkpoints(tmp_path / "state", folder, "s1")
    child = ChildWorkspace(root, "s1-1", lambda: "t7")
    grandchild = ChildWorkspace(child, "s1-1-1", lambda: "t1")
    spaces = {"root": root, "child": child, "grandchild": grandchild}
    turns = {"root": "t7", "child": "t1", "grandchild": "t2"}
    for name, space in spaces.items():
        await space.begin(turns[name], "t1.s1.c1", "shell", None)
        (folder / name).write_text(name)
    order = m.RestoreFiles(id="r1", scope="turn", turns=("t7",))
    back = asyncio.ensure_future(root.revert(order))
    grandchild.end("t1.s1.c1")
    root.end("t1.s1.c1")
    assert [one.path for one in await root.diff(("t7",))] == ["child", "grandchild", "root"]
    with pytest.raises(RestoreFailed, match="parent"):
        await child.revert(order)
    await child.aclose()
    await root.diff(())  # behind whatever was asked for before
    assert not back.done()  # a call is at work
    child.end("t1.s1.c1")
    assert set((await back).restored) == set(spaces)
    assert content_of(folder) == before
    await root.aclose()
