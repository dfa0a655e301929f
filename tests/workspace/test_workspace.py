"""Every file comes back, and nothing that a person did is touched: on real folders, with real git."""

import os
import shutil
from pathlib import Path

import pytest
from workspace.conftest import Agent, commit, content_of, git

from steersman.workflows.durability import draft_name
from steersman.workspace.change_log import ChangeLog

ODD = ["new\nline", 'quo"te', "-rf", ":(glob)x", "tab\there", " space ", "naïve", "\udcff.bin", "*"]


def fill(folder: Path) -> None:
    """Put all kinds of things into a folder."""
    (folder / "src/deep").mkdir(parents=True)
    for number in range(6):
        (folder / f"src/f{number}.txt").write_bytes(b"line %d\r\nmore\r\n" % number)
    (folder / "src/deep/one.bin").write_bytes(bytes(range(256)))
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "secret").write_text("x")
    (folder / "secret").chmod(0o600)
    (folder / "empty/inner").mkdir(parents=True)
    os.symlink("run.sh", folder / "link")
    os.symlink("/nowhere", folder / "dangling")
    for name in ODD:
        (folder / name).write_text(f"content of {name!r}")


def ruin(folder: Path) -> None:
    """Change, remove, create and replace all kinds of things."""
    for name in ODD[1:]:
        (folder / name).write_bytes(b"ruined")
    (folder / ODD[0]).unlink()
    (folder / "src/f0.txt").unlink()
    (folder / "src/f1.txt").write_bytes(b"line 1\nmore\n")
    shutil.rmtree(folder / "src/deep")
    (folder / "src/deep").write_text("a file now")
    (folder / "src/f2.txt").unlink()
    (folder / "src/f2.txt").mkdir()
    (folder / "src/f2.txt/inside").write_text("x")
    (folder / "run.sh").chmod(0o644)
    (folder / "secret").chmod(0o644)
    shutil.rmtree(folder / "empty")
    (folder / "link").unlink()
    os.symlink("secret", folder / "link")
    (folder / "dangling").unlink()
    (folder / "dangling").write_text("a file now")
    (folder / "made/by/agent").mkdir(parents=True)
    (folder / "made/by/file").write_text("new")
    (folder / "made/-x\n").write_text("new")


@pytest.mark.parametrize("kind", ["plain", "repository", "inside a repository", "ignored"])
def test_all_that_a_command_changed_comes_back(tmp_path: Path, folder: Path, kind: str) -> None:
    """Byte for byte, with modes, links, folders and odd names; undone, it is as it was left."""
    work = folder if kind in ("plain", "repository") else folder / "sub"
    work.mkdir(exist_ok=True)
    fill(work)
    if kind != "plain":
        (folder / ".gitattributes").write_text("*.txt text eol=lf\n* filter=evil\n")
        git(folder, "init", "-q")
        git(folder, "config", "filter.evil.clean", "touch ../evil; cat")
        if kind == "ignored":
            (folder / ".gitignore").write_text("sub/\n")
        commit(folder)
        (tmp_path / "evil").unlink(missing_ok=True)
        (work / "src/f3.txt").write_text("dirty\n")
    agent = Agent(tmp_path / "state", work)
    index = (folder / ".git/index").read_bytes() if kind != "plain" else b""
    before = content_of(work)
    agent.command(lambda: ruin(work))
    after = content_of(work)
    restored = agent.revert()
    assert content_of(work) == before
    assert restored.kept == ()
    assert "src/f0.txt" in restored.restored
    assert "empty" not in restored.restored
    agent.revert("undo")
    assert content_of(work) == after
    agent.revert()
    assert content_of(work) == before
    if kind != "plain":
        assert (folder / ".git/index").read_bytes() == index
        assert not (tmp_path / "evil").exists()
        assert git(folder, "stash", "list") == ""
    assert agent.workspace.notices == []


def test_what_a_kill_left_half_written_does_not_keep_a_folder(folder: Path, agent: Agent) -> None:
    """The draft of a file that never got its name goes with the folder that the turn made."""

    def build() -> None:
        for place in ("out", "theirs"):
            (folder / place).mkdir()
            (folder / place / "made").write_text("x")
            (folder / place / draft_name()).write_text("half")
        (folder / "theirs/.steersman-notes").write_text("a person's")

    agent.command(build)
    agent.revert()
    assert not (folder / "out").exists()
    assert len(os.listdir(folder / "theirs")) == 2  # something else keeps the folder


def test_an_account_without_a_home_has_its_changes_back(
    folder: Path, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`~` is no folder then, least of all one below this one."""

    def unknown(number: int) -> object:
        raise KeyError(number)

    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", unknown)
    monkeypatch.chdir(folder)
    agent.command(lambda: (folder / "a").write_text("1"))
    assert agent.revert().restored == ("a",)
    assert agent.workspace.notices == []


def test_what_a_person_does_is_kept(folder: Path, agent: Agent) -> None:
    """Between two calls, afterwards, on the agent's own paths and elsewhere: kept, and named."""
    for name in "abcdefg":
        (folder / name).write_text(f"{name} 0")
    agent.command(lambda: [(folder / one).write_text("agent 1") for one in "abcde"])
    (folder / "a").write_text("person")  # and the agent writes it again
    (folder / "f").write_text("person")  # never the agent's
    (folder / "new").write_text("person")
    agent.command(lambda: (folder / "a").write_text("agent 2"))
    agent.write("g", b"agent")
    (folder / "b").write_text("person")
    (folder / "c").unlink()
    (folder / "g").write_text("person")
    done = agent.revert()
    assert sorted(done.restored) == ["a", "d", "e"]
    assert sorted(path for path, _ in done.kept) == ["b", "c", "g"]
    assert done.yours == ("a",)
    now = {path.name: path.read_text() for path in folder.iterdir()}
    assert now == {
        "a": "person",
        "b": "person",
        "d": "d 0",
        "e": "e 0",
        "f": "person",
        "g": "person",
        "new": "person",
    }
    forced = agent.revert(force=True)
    assert sorted(forced.restored) == ["b", "c", "g"]
    agent.revert("undo", paths=("b",))
    assert (folder / "b").read_text() == "person"
    assert (folder / "g").read_text() == "g 0"


def test_revert_last_goes_back_change_by_change(folder: Path, agent: Agent) -> None:
    """Each time the newest change that is left, across turns; `since` takes several turns at once."""
    (folder / "a").write_text("0")
    for number, turn in enumerate(("t1", "t1", "t2"), 1):
        agent.write("a", str(number).encode(), turn)
    seen = []
    for _ in range(2):
        agent.revert("last")
        seen.append((folder / "a").read_text())
    assert seen == ["2", "1"]
    agent.revert("undo")
    agent.revert("undo")
    assert (folder / "a").read_text() == "3"
    assert agent.revert(since="t1").restored == ("a",)
    assert (folder / "a").read_text() == "0"


def test_a_dry_run_changes_nothing(folder: Path, agent: Agent) -> None:
    """It says what would be done, and does not do it."""
    agent.write("a/b", b"1")
    before = content_of(folder)
    assert agent.revert(is_dry_run=True).restored == ("a/b",)
    assert content_of(folder) == before
    assert agent.revert().restored == ("a/b",)
    assert content_of(folder) == {}


def test_a_large_file_that_a_command_changes_is_named(folder: Path, agent: Agent) -> None:
    """No copy was kept, so it stays, and that is said."""
    (folder / "big").write_bytes(b"0" * (17 << 20))
    agent.command(lambda: (folder / "big").write_bytes(b"1" * (17 << 20)))
    done = agent.revert()
    assert [path for path, _ in done.kept] == ["big"]
    assert "too large" in done.kept[0][1]


def test_never_through_a_link(tmp_path: Path, folder: Path, agent: Agent) -> None:
    """A folder that became a link leads nowhere: what is behind it stays."""
    (folder / "d").mkdir()
    (folder / "d/f").write_text("0")
    agent.command(lambda: (folder / "d/f").write_text("agent"))
    elsewhere = tmp_path / "elsewhere"
    (folder / "d").rename(elsewhere)
    os.symlink(elsewhere, folder / "d")
    done = agent.revert()
    assert (elsewhere / "f").read_text() == "agent"
    assert [path for path, _ in done.kept] == ["d/f"]


def test_other_repositories_are_left_alone_and_named(folder: Path, agent: Agent) -> None:
    """Their files are another history's."""
    for name in ("inner", "fresh"):
        (folder / name).mkdir()
        git(folder / name, "init", "-q")
        (folder / name / "f").write_text("0")
    commit(folder / "inner")
    (folder / "own").write_text("0")

    def act() -> None:
        (folder / "inner/f").write_text("agent")
        (folder / "fresh/f").write_text("agent")
        (folder / "own").write_text("agent")

    agent.command(act)
    done = agent.revert()
    assert done.restored == ("own",)
    assert done.notes == ("repositories inside that changed: `fresh`, `inner`",)
    assert (folder / "inner/f").read_text() == "agent"


def test_two_sessions_in_one_folder(tmp_path: Path, folder: Path, agent: Agent) -> None:
    """The changes of the other session are foreign ones."""
    other = Agent(tmp_path / "state", folder, "s2")
    (folder / "a").write_text("0")
    (folder / "b").write_text("0")
    agent.command(lambda: (folder / "a").write_text("one"))
    other.command(lambda: (folder / "b").write_text("two"))
    other.command(lambda: (folder / "a").write_text("two"))
    assert [path for path, _ in agent.revert().kept] == ["a"]
    assert sorted(other.revert().restored) == ["a", "b"]
    assert [(folder / name).read_text() for name in "ab"] == ["one", "0"]
    assert agent.revert().restored == ("a",)


def test_a_crash_amid_a_look_makes_nothing_of_another_session_ours(
    monkeypatch, tmp_path: Path, folder: Path, agent: Agent
) -> None:
    """How far the others' logs were read is kept only once the look is entered."""
    other = Agent(tmp_path / "state", folder, "s2")

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    def act() -> None:
        (folder / "a").write_text("ours")
        other.write("b", b"theirs")
        monkeypatch.setattr(ChangeLog, "end", die)

    with pytest.raises(KeyboardInterrupt):
        agent.command(act)
    monkeypatch.undo()
    agent.workspace.heartbeat.beat()
    agent.restart()
    assert agent.revert().restored == ("a",)
    assert (folder / "b").read_text() == "theirs"


def test_a_worktree_a_sparse_checkout_and_flags(tmp_path: Path, folder: Path) -> None:
    """A linked work tree, a sparse checkout, and files marked `assume-unchanged`."""
    fill(folder)
    git(folder, "init", "-q")
    commit(folder)
    git(folder, "worktree", "add", "-q", "../tree")
    tree = tmp_path / "tree"
    git(tree, "sparse-checkout", "set", "src")
    git(tree, "update-index", "--assume-unchanged", "src/f4.txt")
    (tree / "secret").write_text("there after all")
    agent = Agent(tmp_path / "state", tree)
    before = content_of(tree)

    def act() -> None:
        for name in ("src/f4.txt", "src/f5.txt", "secret", "fresh"):
            (tree / name).write_text("agent")

    agent.command(act)
    agent.revert()
    assert content_of(tree) == before


def test_a_persons_gc_takes_nothing_away(folder: Path, agent: Agent) -> None:
    """Copies are our own as soon as a file has changed, whatever becomes of the repository."""
    fill(folder)
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    before = content_of(folder)
    agent.command(lambda: (folder / "src/f1.txt").write_text("agent"))
    shutil.rmtree(folder / ".git")
    agent.command(lambda: (folder / "src/f2.txt").write_text("agent"), "t2")
    agent.restart()
    done = agent.revert(since="t1")
    assert content_of(folder)["src/f1.txt"] == before["src/f1.txt"]
    assert all("gone" in why for _, why in done.kept)


def test_a_conflict_in_the_index_blocks_nothing(folder: Path, agent: Agent) -> None:
    """Unmerged paths are files like others."""
    (folder / "a").write_text("0\n")
    git(folder, "init", "-q", "-b", "main")
    commit(folder)
    git(folder, "checkout", "-qb", "other")
    (folder / "a").write_text("1\n")
    git(folder, "commit", "-qam", "1")
    git(folder, "checkout", "-q", "main")
    (folder / "a").write_text("2\n")
    git(folder, "commit", "-qam", "2")
    with pytest.raises(Exception, match="merge"):
        git(folder, "merge", "-q", "other")
    before = content_of(folder)
    agent.command(lambda: (folder / "a").write_text("agent"))
    assert agent.revert().restored == ("a",)
    assert content_of(folder) == before


def test_without_git_our_own_tools_are_covered(monkeypatch, tmp_path: Path, folder: Path) -> None:
    """It is said once, and what is written and edited still comes back."""
    monkeypatch.setenv("PATH", str(tmp_path))
    agent = Agent(tmp_path / "state", folder)
    (folder / "a").write_text("0")
    agent.command(lambda: (folder / "b").write_text("1"))
    agent.command(lambda: (folder / "b").write_text("2"))
    agent.write("a", b"agent")
    done = agent.revert()
    assert len(agent.workspace.notices) == 1
    assert "git is not installed" in agent.workspace.notices[0]
    assert done.restored == ("a",)
    assert done.notes


def test_the_home_folder_and_the_root_are_refused(monkeypatch, tmp_path: Path) -> None:
    """The home folder and the root are not scanned, and a notice gives the reason."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for place in (tmp_path, Path("/")):
        agent = Agent(tmp_path / "state", place)
        agent.command(lambda: None)
        assert "home folder" in agent.workspace.notices[0]
