"""A revert says that all is as it was only if it is; what is not, and was not looked at, is named."""

import os
import shutil
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from workspace.conftest import Agent, commit, content_of, git

from steersman.workspace import surroundings
from steersman.workspace.scan import look_at
from steersman.workspace.surroundings import join_rules

Act = Callable[[Path], object]


def sh(text: str) -> Act:
    """Return what runs a shell command in a folder."""
    return lambda folder: subprocess.run(["sh", "-c", text], cwd=folder, check=True)


def fill(folder: Path, kind: str) -> None:
    """Put in files, rules of each kind, and what they hide."""
    for name in ("src/deep", "build", "sub"):
        (folder / name).mkdir(parents=True)
    for name in ("a.txt", "src/b.txt", "src/deep/c.txt", "sub/f", "build/o", "mine.log"):
        (folder / name).write_text("0")
    (folder / "own.me").write_text("0")
    (folder / ".gitignore").write_text("*.log\nbuild/\n")
    (folder / "src/.gitignore").write_text("/deep/*.tmp\n!keep.log\n")
    os.mkfifo(folder / "pipe")
    git(folder / "sub", "init", "-q")
    commit(folder / "sub")
    if kind == "repository":
        git(folder, "init", "-q")
        git(folder, "add", "src", "a.txt", ".gitignore")
        git(folder, "commit", "-qm", "x")
        (folder / ".git/info/exclude").write_text("*.me\n")


KINDS = pytest.mark.parametrize("kind", ["repository", "plain folder"])


@KINDS
@pytest.mark.parametrize(
    "commands",
    [
        ["mkdir gen; echo 1 > gen/o; echo gen/ >> .gitignore"],
        ["echo '*' > .gitignore; echo 1 > new; echo 1 > a.txt"],
        ["rm .gitignore; echo 1 > a.txt", "echo '*' > .gitignore; echo 1 > new"],
        ["mkdir gen; echo '*' > gen/.gitignore; echo 1 > gen/o"],
        ["mkdir -p new/gen; echo gen > new/.gitignore; echo 1 > new/gen/o; echo 1 > new/x"],
        ["echo '*' > src/.gitignore; echo 1 > src/new; rm src/b.txt"],
        ["rm src/.gitignore; echo 1 > src/deep/c.txt", "echo 1 > src/late.txt"],
        ["git init -q new && echo 1 > a.txt && rm -rf new"],
        ["git status; git diff; git -C sub status; echo 1 > a.txt; cat pipe & echo > pipe"],
    ],
    ids=lambda commands: commands[-1][:20],
)
def test_all_is_as_it_was_whatever_became_of_the_rules(
    folder: Path, agent: Agent, kind: str, commands: list[str]
) -> None:
    """The rules are those of the turn's beginning; what only new ones hide is a change like others."""
    fill(folder, kind)
    before = content_of(folder)
    for command in commands:
        agent.command(lambda command=command: sh(command)(folder))
        agent.restart()
    done = agent.revert()
    assert content_of(folder) == before
    assert (done.kept, done.notes, done.is_original) == ((), (), True)


@pytest.mark.parametrize(
    ("command", "restored"),
    [
        ("mkdir -p a/b", ("a/b/",)),
        ("rmdir empty", ("empty/",)),
        ("mkdir a; rmdir empty; echo 1 > f", ("f", "a/", "empty/")),
    ],
)
def test_empty_folders_are_named(
    folder: Path, agent: Agent, command: str, restored: tuple[str, ...]
) -> None:
    """They were changed, and are as they were; that is said of them as of files, and undone."""
    (folder / "empty").mkdir()
    before = content_of(folder)
    agent.command(lambda: sh(command)(folder))
    after = content_of(folder)
    done = agent.revert()
    assert content_of(folder) == before
    assert (done.restored, done.notes, done.is_original) == (restored, (), True)
    agent.revert("undo")
    assert content_of(folder) == after


def test_what_an_earlier_revert_gave_back_is_no_change_by_others(
    folder: Path, agent: Agent
) -> None:
    """Unless somebody has changed it since."""
    agent.command(lambda: sh("true")(folder))
    for name in ("f1", "f2", "f3", "f4"):
        agent.write(name, b"1")
    agent.revert("last")
    agent.revert("last")
    (folder / "f4").write_text("a person's")
    done = agent.revert()
    assert content_of(folder).keys() == {"f4"}
    assert done.notes == ("changes by others: `f4`",)
    (folder / "f4").unlink()


def test_a_part_that_is_brought_back_and_reverted_again_is_the_turn_still(
    folder: Path, agent: Agent
) -> None:
    """What it goes on from began before the turn in between, whose change is there."""
    agent.command(lambda: sh("echo 1 > first")(folder))
    agent.write("between", b"1", "t2")
    agent.write("second", b"1", "t3")
    links = (("t3", "t1"),)
    for undone in ("", "second"):
        if undone:
            agent.revert("undo", paths=(undone,))
        done = agent.revert(resumed=links)
        assert content_of(folder).keys() == {"between"}
        assert (done.notes, done.is_original) == (("changes of other turns: `between`",), False)


def test_rules_outside_the_tree_are_fixed_too(folder: Path, agent: Agent) -> None:
    """What a command writes into git's own rules hides nothing from the revert."""
    fill(folder, "repository")
    agent.command(lambda: sh("echo new > .git/info/exclude; echo 1 > new")(folder))
    done = agent.revert()
    assert done.restored == ("new",)
    assert done.notes == ("commits, branches or what is staged, which changed: `.git`",)
    agent.command(lambda: sh("echo 1 > new2; echo 1 > new")(folder), "t2")
    assert agent.revert().restored == ("new2",)
    assert (folder / "new").exists()  # it was ignored when the turn began


def test_rules_that_a_tool_wrote_do_not_hide_what_a_command_makes(
    folder: Path, agent: Agent
) -> None:
    """The turn began before its first command."""
    agent.write(".gitignore", b"gen/\n")
    agent.command(lambda: sh("mkdir gen; echo 1 > gen/o")(folder))
    assert agent.revert().is_original
    assert content_of(folder) == {}


@KINDS
@pytest.mark.nightly
@pytest.mark.parametrize(
    ("command", "note"),
    [
        ("echo 1 > sub/f", "repositories inside that changed: `sub`"),
        (
            "git -C sub -c user.name=a -c user.email=b commit -q --allow-empty -m x",
            "repositories inside that changed: `sub`",
        ),
        ("git init -q src/deep", "repositories inside that changed: `src/deep`"),
        ("git init -q new; echo 1 > new/f", "repositories inside that changed: `new`"),
        ("mv sub moved", "repositories inside that changed: `moved`, `sub`"),
        ("rm -rf sub", "repositories inside that changed: `sub`"),
        ("echo 1 > mine.log", "ignored files that changed: `mine.log`"),
        ("echo 1 > build/o", "ignored files that changed: `build/`"),
        ("touch build/new", "ignored files that changed: `build/`"),
        ("rm build/o", "ignored files that changed: `build/`"),
        ("rm mine.log", "ignored files that changed: `mine.log`"),
        (
            "mkdir -p src/node_modules/x; touch src/node_modules/x/y",
            "ignored files that changed: `src/node_modules/`",
        ),
        ("rm .gitignore; echo 1 > mine.log", "ignored files that changed: `mine.log`"),
        ("mkfifo src/p", "pipes, sockets or devices that changed: `src/p`"),
        ("rm pipe", "pipes, sockets or devices that changed: `pipe`"),
        ("chmod 600 pipe", "pipes, sockets or devices that changed: `pipe`"),
        ("chmod 700 src", "permissions of folders, which changed: `src`"),
        (
            "chmod 700 . src",
            "permissions of folders, which changed: `.`, `src`",
        ),
        ("mkdir d; echo 1 > d/x.log", "ignored files that changed: `d/`"),
        ("mkdir d; mkfifo d/p", "pipes, sockets or devices that changed: `d/p`"),
    ],
)
def test_what_lies_outside_and_changed_is_named(
    folder: Path, agent: Agent, kind: str, command: str, note: str
) -> None:
    """Repositories inside, ignored files and special files are not restored, and it is not claimed."""
    fill(folder, kind)
    agent.command(lambda: sh(f"{command}; echo 1 > a.txt")(folder))
    agent.restart()
    done = agent.revert()
    assert "a.txt" in done.restored
    assert (done.notes, done.is_original) == ((note,), False)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "command",
    [
        "git add -N a2.txt; git add a.txt",
        "git commit -qam y",
        "git stash -q",
        "git branch b",
        "git rm -q --cached a.txt",
    ],
)
def test_what_a_command_did_to_the_repository_is_named(
    folder: Path, agent: Agent, command: str
) -> None:
    """Commits, branches, stashes and what is staged stay."""
    fill(folder, "repository")
    git(folder, "config", "user.name", "ann")
    git(folder, "config", "user.email", "ann@example.org")
    agent.command(
        lambda: sh(f"echo 1 > a.txt; touch a2.txt; {command}; echo 2 > src/b.txt")(folder)
    )
    done = agent.revert()
    assert done.notes == ("commits, branches or what is staged, which changed: `.git`",)
    assert not done.is_original


def test_changes_by_others_are_named(folder: Path, agent: Agent) -> None:
    """Between two commands, after the last one, and by what a command left running."""
    (folder / "a").write_text("0")
    (folder / "far").mkdir()
    agent.command(lambda: (folder / "a").write_text("1"))
    (folder / "between").write_text("x")
    agent.command(lambda: None)
    (folder / "far/after").write_text("x")
    done = agent.revert()
    assert done.notes == ("changes by others: `between`, `far/after`",)
    assert (done.restored, done.is_original) == (("a",), False)
    agent.command(lambda: (folder / "a").write_text("1"), "t2")
    assert agent.revert().is_original


@KINDS
def test_a_folder_that_a_person_emptied_stays(folder: Path, agent: Agent, kind: str) -> None:
    """Its files were known before the turn; that it is empty now is no change of the agent."""
    fill(folder, kind)
    (folder / "mine/deep").mkdir(parents=True)
    (folder / "mine/deep/f").write_text("1")
    agent.command(lambda: sh("echo 1 > first")(folder))
    (folder / "mine/deep/f").unlink()
    agent.write("own.txt", b"1", "t2")
    agent.command(lambda: sh("echo 1 > second")(folder), "t2")
    done = agent.revert()
    assert {*done.restored} == {"own.txt", "second"}
    assert done.is_original
    assert (folder / "mine/deep").is_dir()


def test_what_others_put_back_is_no_change(folder: Path, agent: Agent) -> None:
    """A file that came and went, and one that was written and has its content again."""
    (folder / "a").write_text("0")
    (folder / "kept").write_text("0")
    agent.command(lambda: (folder / "a").write_text("1"))
    (folder / "kept").write_text("x")
    (folder / "passing").write_text("x")
    agent.command(lambda: None)
    (folder / "kept").write_text("0")
    (folder / "passing").unlink()
    done = agent.revert()
    assert (done.restored, done.notes, done.is_original) == (("a",), (), True)


def test_what_is_in_the_index_only_was_not_there(folder: Path, agent: Agent) -> None:
    """Outside of a sparse checkout, deleted, or flagged: a file that a command makes there goes again."""
    for name in ("in/f", "out/f", "gone", "flagged", "skipped", "there"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("committed")
    git(folder, "init", "-q")
    commit(folder)
    git(folder, "sparse-checkout", "set", "--cone", "in")
    git(folder, "update-index", "--assume-unchanged", "flagged", "there")
    git(folder, "update-index", "--skip-worktree", "skipped")
    for name in ("gone", "flagged", "skipped"):
        (folder / name).unlink()
    before = content_of(folder)
    made = "mkdir out; for f in out/f gone flagged skipped; do echo agent > $f; done; rm there"
    agent.command(lambda: sh(made)(folder))
    done = agent.revert()
    assert content_of(folder) == before
    assert done.is_original


def test_where_nothing_can_be_restored_it_is_named_too(folder: Path, agent: Agent) -> None:
    """A command that made nothing but a pipe."""
    agent.command(lambda: os.mkfifo(folder / "p"))
    done = agent.revert(turns=("t1",))
    assert (done.restored, done.is_original) == ((), False)
    assert done.notes == ("pipes, sockets or devices that changed: `p`",)


def test_a_socket_is_named(folder: Path, agent: Agent) -> None:
    """It cannot be made again, so it stays."""
    (folder / "a").write_text("0")
    with socket.socket(socket.AF_UNIX) as server:
        agent.command(
            lambda: [server.bind(os.fspath(folder / "s")), (folder / "a").write_text("1")]
        )
    assert agent.revert().notes == ("pipes, sockets or devices that changed: `s`",)


def test_a_clock_that_was_set_back_proves_nothing(
    monkeypatch: pytest.MonkeyPatch, folder: Path, agent: Agent
) -> None:
    """Then times of change are not believed."""
    fill(folder, "plain folder")
    agent.command(lambda: (folder / "a.txt").write_text("1"))
    moment, drift = surroundings.clock()
    monkeypatch.setattr("steersman.workspace.scanner.clock", lambda: (moment, drift - 3600))
    done = agent.revert()
    assert done.notes == ("not looked at: `build/`, `mine.log`, `sub`",)
    assert not done.is_original


def test_a_folder_that_cannot_be_looked_at_is_not_said_to_be_original(
    tmp_path: Path, folder: Path, agent: Agent
) -> None:
    """Where the record of the beginning is lost, the sentence is not said."""
    (folder / "a").write_text("0")
    agent.command(lambda: (folder / "a").write_text("1"))
    (look,) = agent.workspace._ledger.looks
    agent.restart()
    for copy in (tmp_path / "state").glob(f"*/git/objects/{look.around[:2]}/{look.around[2:]}"):
        copy.unlink()
    done = agent.revert()
    assert done.restored == ("a",)
    assert done.notes[0].startswith("not looked at: `the folder")


def test_names_with_bytes_have_one_spelling(folder: Path, agent: Agent) -> None:
    """In what is restored, kept and noted, and where one is named."""
    name = os.fsdecode(b"bad\xff.txt")
    (folder / name).write_text("0")
    agent.command(lambda: (folder / name).write_text("1"))
    assert [change.path for change in agent.workspace.diff(("t1",))] == [r"bad\xff.txt"]
    assert agent.revert().restored == (r"bad\xff.txt",)
    assert agent.revert("undo", paths=(r"bad\xff.txt",)).restored == (r"bad\xff.txt",)
    assert look_at(folder, name) is not None


@pytest.mark.nightly
@pytest.mark.parametrize(
    "rules",
    [
        "*.log\n", "/top\n", "a/b\n", "dir/\n", "!keep\n*.x\n!y.x\n", "**/z\n", "q/**\n", "\\#hash\n",
        "# comment\n\nsp ace\n", "trail   \n", "kept\\ \n", "a\\*b\n", "[ab]c\n", "end\r\n",
        "\ufeffbom\n", "/\n", "!\n",
    ],
)  # fmt: skip
def test_rules_of_a_folder_mean_the_same_at_the_top(
    tmp_path: Path, folder: Path, rules: str
) -> None:
    """Git ignores the same files by the joined rules as by those that lie in the folders."""
    here = "de [e]p/in"
    names = (
        "a.log", "top", "a/b", "dir/f", "keep", "y.x", "n.x", "w/z", "q/r", "#hash", "sp ace", "trail",
        "kept ", "a*b", "ab", "ac", "end", "bom", "sub/top", "sub/a/b", "sub/dir/f", "sub/ac",
    )  # fmt: skip
    for start in ("", f"{here}/"):
        for name in names:
            (folder / f"{start}{name}").parent.mkdir(parents=True, exist_ok=True)
            (folder / f"{start}{name}").touch()
    git(folder, "init", "-q")
    (folder / here / ".gitignore").write_text(rules, newline="")
    listing = ("ls-files", "-o", "-z", "--exclude-per-directory=.gitignore")
    expected = git(folder, *listing)
    joined = tmp_path / "rules"
    joined.write_bytes(join_rules((), [(f"{here}/.gitignore", rules.encode())]))
    assert git(folder, *listing[:-1], f"--exclude-from={joined}") == expected
    shutil.rmtree(folder)
