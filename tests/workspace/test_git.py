"""A person who goes on working in their repository meanwhile, and what may not be read."""

import os
import shutil
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
from workspace.conftest import Agent, commit, content_of, git
from workspace.test_workspace import fill

from steersman.workspace.git import ShadowGit, find_git
from steersman.workspace.workspace import folds_case

NOBODY = 65534


def as_nobody(work: Callable[[Path], None]) -> None:
    """Run a function in a separate folder, in a fork, as an unprivileged user."""
    root = Path(os.path.realpath(tempfile.mkdtemp()))
    child = os.fork()
    if child == 0:
        status = 1
        try:
            if os.geteuid() == 0:
                os.chown(root, NOBODY, NOBODY)
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            work(root)
            status = 0
        except BaseException:
            traceback.print_exc()
        os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    shutil.rmtree(root, onerror=lambda _, path, __: os.chmod(Path(path).parent, 0o700))
    assert status == 0


@pytest.mark.parametrize("is_repository", [True, False], ids=["repository", "plain folder"])
def test_what_cannot_be_read_is_said_once_and_hinders_nothing(is_repository: bool) -> None:
    """A file and a folder without permission: all others come back, and these are named."""

    def work(root: Path) -> None:
        folder = root / "project"
        folder.mkdir()
        for name in ("a", "secret", "shut/f", "later/f"):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text("0")
        if is_repository:
            git(folder, "init", "-q")
            git(folder, "add", "a", "later")
        (folder / "secret").chmod(0)
        (folder / "shut").chmod(0)
        agent = Agent(root / "state", folder)

        def act() -> None:
            for name in ("a", "later/f"):
                (folder / name).write_text("1")
            (folder / "secret").chmod(0o600)
            (folder / "secret").write_text("1")

        agent.command(act)
        agent.command(lambda: None)
        (told,) = agent.workspace.notices
        assert told.endswith(
            "in `secret`, `shut` cannot be reverted: these folders cannot be read."
        )
        (folder / "later").chmod(0)
        done = agent.revert()
        assert done.restored == ("a",)
        assert dict(done.kept) == {
            "later/f": "its folder may not be entered",
            "secret": "no copy of it was kept: it was not readable",
        }
        (folder / "later").chmod(0o700)
        assert agent.revert().restored == ("later/f",)
        (folder / "shut").chmod(0o700)
        assert (folder / "shut/f").read_text() == "0"

    as_nobody(work)


def test_what_may_not_be_written_stays_and_is_named() -> None:
    """A folder that was closed to us: why is said, and with permission it comes back."""

    def work(root: Path) -> None:
        folder = root / "project"
        (folder / "d").mkdir(parents=True)
        (folder / "d/f").write_text("0")
        (folder / "e").write_text("0")
        agent = Agent(root / "state", folder)
        agent.command(lambda: [(folder / one).write_text("1") for one in ("d/f", "e")])
        (folder / "d").chmod(0o500)
        done = agent.revert()
        assert done.restored == ("e",)
        assert done.kept == (("d/f", "it could not be put in place: Permission denied"),)
        (folder / "d").chmod(0o700)
        assert agent.revert().restored == ("d/f",)
        assert (folder / "d/f").read_text() == "0"

    as_nobody(work)


def standing(folder: Path) -> list[str]:
    """Return what a revert must leave alone: branch, commits, stash, index."""
    return [
        git(folder, "rev-parse", "--abbrev-ref", "HEAD"),
        git(folder, "log", "--all", "--format=%H"),
        git(folder, "stash", "list", "--format=%H"),
        git(folder, "ls-files", "-s"),
    ]


@pytest.mark.parametrize("restarts", [False, True], ids=["same process", "restarted"])
def test_a_gc_between_two_commands_takes_no_copy_away(
    folder: Path, agent: Agent, restarts: bool
) -> None:
    """What was borrowed and is thrown away is copied again while the file still has it."""
    fill(folder)
    git(folder, "init", "-q")
    commit(folder)
    (folder / "staged").write_text("only in the index")
    git(folder, "add", "staged")
    before = content_of(folder)
    agent.command(lambda: (folder / "src/f1.txt").write_text("agent"))
    git(folder, "rm", "-q", "--cached", "staged")
    git(folder, "reflog", "expire", "--expire=now", "--all")
    git(folder, "gc", "-q", "--prune=now")
    if restarts:
        agent.restart()
    agent.command(lambda: (folder / "staged").write_text("agent"))
    assert sorted(agent.revert().restored) == ["src/f1.txt", "staged"]
    assert content_of(folder) == before


def test_a_stash_and_a_checkout_in_the_middle(folder: Path, agent: Agent) -> None:
    """What git brought is the person's, stays, and so does all that git knows."""
    fill(folder)
    git(folder, "init", "-q", "-b", "main")
    commit(folder)
    git(folder, "checkout", "-qb", "other")
    (folder / "src/f1.txt").write_text("on the other branch")
    commit(folder)
    git(folder, "checkout", "-q", "main")
    agent.command(lambda: [(folder / f"src/f{one}.txt").write_text("agent") for one in (1, 2)])
    git(folder, "stash", "-q")
    git(folder, "checkout", "-q", "other")
    agent.command(lambda: (folder / "src/f3.txt").write_text("agent"))
    before = standing(folder)
    done = agent.revert()
    assert done.restored == ("src/f3.txt",)
    assert done.kept == (("src/f1.txt", "it was changed since"),)
    assert (folder / "src/f1.txt").read_text() == "on the other branch"
    assert standing(folder) == before
    git(folder, "checkout", "-q", "main")
    git(folder, "stash", "pop", "-q")
    assert (folder / "src/f2.txt").read_text() == "agent"


def test_a_rebase_that_stopped_in_the_middle(folder: Path, agent: Agent) -> None:
    """The agent resolved a conflict; given back, the conflict is there again, and the rebase goes on."""
    (folder / "a").write_text("0\n")
    git(folder, "init", "-q", "-b", "main")
    commit(folder)
    git(folder, "checkout", "-qb", "other")
    (folder / "a").write_text("other\n")
    commit(folder)
    git(folder, "checkout", "-q", "main")
    (folder / "a").write_text("main\n")
    commit(folder)
    agent.command(lambda: (folder / "mine").write_text("agent"))
    with pytest.raises(Exception, match="rebase"):
        git(folder, "rebase", "-q", "other")
    conflict = (folder / "a").read_bytes()
    agent.command(lambda: (folder / "a").write_text("resolved\n"))
    before = standing(folder)
    assert sorted(agent.revert().restored) == ["a", "mine"]
    assert (folder / "a").read_bytes() == conflict
    assert standing(folder) == before
    git(folder, "rebase", "--abort")
    assert (folder / "a").read_text() == "main\n"


def test_a_submodule_is_left_alone_and_named(tmp_path: Path, folder: Path, agent: Agent) -> None:
    """Its files, its commit and its entry in the index; the files around it come back."""
    inner = tmp_path / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    (inner / "f").write_text("0")
    commit(inner)
    git(folder, "init", "-q")
    (folder / "own").write_text("0")
    git(
        folder, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "sub"
    )
    commit(folder)

    def act() -> None:
        (folder / "sub/f").write_text("agent")
        (folder / "own").write_text("agent")
        (folder / ".gitmodules").write_text("")

    agent.command(act)
    before = standing(folder)
    done = agent.revert()
    assert sorted(done.restored) == [".gitmodules", "own"]
    assert done.notes == ("repositories inside that changed: `sub`",)
    assert (folder / "sub/f").read_text() == "agent"
    assert standing(folder) == before
    within = Agent(tmp_path / "state", folder / "sub")
    within.command(lambda: (folder / "sub/f").write_text("agent in it"))
    assert within.revert().restored == ("f",)
    assert (folder / "sub/f").read_text() == "agent"


@pytest.mark.parametrize(
    ("names", "there", "folds"),
    [
        (["readme"], ["readme", "README"], True),
        (["readme"], ["readme"], False),
        (["readme", "README"], ["readme", "README"], False),
        (["a", "A", "src"], ["a", "A", "src", "SRC"], True),
        (["1", "2"], ["1", "2"], False),
        ([], [], False),
    ],
)
def test_whether_names_that_differ_in_case_are_one(names, there, folds: bool) -> None:
    """A name is asked for in the other case, unless that is listed, too: then they are two."""
    assert folds_case(names, there.__contains__) == folds


def test_names_that_differ_in_case_come_back_apart(folder: Path, agent: Agent) -> None:
    """Where they are two files, each goes its own way."""
    (folder / "a").write_text("a")
    if (folder / "A").exists():
        pytest.skip("this file system takes them for one")
    (folder / "B").write_text("B")
    before = content_of(folder)

    def act() -> None:
        (folder / "a").rename(folder / "A")
        (folder / "b").write_text("b")

    agent.command(act)
    assert sorted(agent.revert().restored) == ["A", "a", "b"]
    assert content_of(folder) == before


def test_a_session_that_begins_rewrites_nothing_that_another_reads(tmp_path: Path) -> None:
    """Git of another session may read the repository's files: they stay, or are replaced in one step."""
    shadow = ShadowGit(find_git(os.environ), tmp_path / "git", tmp_path, tmp_path / "index")
    names = ("HEAD", "config", "info/attributes", "info/exclude", "objects/info/alternates")

    def files() -> dict[str, tuple[int, int]]:
        found = {name: (shadow.folder / name).stat() for name in names}
        return {name: (info.st_ino, info.st_mtime_ns) for name, info in found.items()}

    shadow.create(ignores_case=False, exclude="", borrow=tmp_path)
    before = files()
    with (shadow.folder / "info/exclude").open() as reader:
        shadow.create(ignores_case=False, exclude="", borrow=tmp_path)
        assert files() == before
        shadow.create(ignores_case=False, exclude="more/", borrow=tmp_path)
        assert "more/" not in reader.read()
    assert "more/" in (shadow.folder / "info/exclude").read_text()
    assert {name for name, found in files().items() if found != before[name]} == {"info/exclude"}
