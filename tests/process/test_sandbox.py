"""Commands in a sandbox: what they can't do, what they can, and that they end like all others.

Where bubblewrap can't run (it is not installed, or a container forbids it) only the refusals are tested.
"""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from steersman.machines.errors import ToolError
from steersman.ports.process.process import ProcessResult, ProcessSpec
from steersman.ports.tools.sandbox import Sandbox, SandboxPolicy, bubblewrap, git_folders

FAULT = bubblewrap()[1]
boxed = pytest.mark.skipif(bool(FAULT), reason=FAULT or "it works")


class Box:
    """A home with a key, a session's folder, and one beside it; `run` runs a shell line boxed."""

    def __init__(self, root: Path, hosting) -> None:
        self.home, self.folder, self.other = root / "home", root / "work", root / "other"
        for one in (self.home / ".ssh", self.folder, self.other, self.home / "state"):
            one.mkdir(parents=True)
        (self.home / ".ssh/key").write_text("4711")
        (self.home / ".netrc").write_text("4711")
        (self.home / "notes").write_text("plain")
        (self.home / "state/journal").write_text("4711")
        self.place = root / "tmp"
        self._hosting = hosting

    def sandbox(self, **policy) -> Sandbox:
        """Make one; it is required, if nothing else is said."""
        given = {"mode": "required", "hidden": (self.home / "state",), "writable": (sys.prefix,)}
        policy = given | policy  # the interpreter itself may lie in /tmp
        return Sandbox(SandboxPolicy(**policy), self.folder, self.place, {"HOME": str(self.home)})

    def run(self, line: str, **policy) -> ProcessResult:
        """Run a line to its end."""
        argv = self.sandbox(**policy).wrap(("/bin/sh", "-c", line))
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.home)}
        return self._hosting.result(
            ProcessSpec(argv=argv, cwd=self.folder, environment=environment)
        )


@pytest.fixture
def box(hosting) -> Generator[Box]:
    """A fresh one, outside of /tmp, which a sandbox replaces."""
    with TemporaryDirectory(dir="/var/tmp") as root:
        yield Box(Path(root), hosting)


@boxed
def test_it_writes_in_the_folder_and_its_own_tmp_only(box):
    """Elsewhere nothing can be written; what is in its /tmp stays until it is cleared, apart."""
    line = f"echo in > made; touch {box.home}/no; touch {box.other}/no; echo kept > /tmp/kept; pwd"
    result = box.run(line)
    assert result.head.decode().splitlines()[-1] == str(box.folder)
    assert (box.folder / "made").read_text() == "in\n"
    assert not (box.home / "no").exists()
    assert not (box.other / "no").exists()
    assert not Path("/tmp/kept").exists()
    assert box.run("cat /tmp/kept").head == b"kept\n"
    box.sandbox().clear()
    assert box.run("cat /tmp/kept").exit_code == 1


@boxed
def test_its_own_processes_are_not_reported(box):
    """What was left running is the command's, and is named; the sandbox around it is not."""
    assert box.run("echo done").killed == ()
    assert len(box.run("sleep 1000 & echo done").killed) == 1


@boxed
def test_it_sees_no_secrets_and_no_other_process(box):
    """Keys and this program's own state are not there; the rest of the home can be read."""
    seen = box.run(
        'cat ~/notes ~/.ssh/key ~/.netrc ~/state/journal 2>/dev/null; ls ~/.ssh ~/state; echo "$$"'
    )
    assert seen.head.decode().replace("plain", "").split()[-1].isdigit()
    assert b"plain" in seen.head
    assert b"4711" not in seen.head
    assert box.run(f"kill -0 {os.getpid()}").exit_code != 0


@boxed
def test_a_command_has_no_capabilities(box):
    """Also of root: without them it can neither mount nor make devices, whatever it starts."""
    status = box.run("grep ^Cap /proc/self/status; sh -c 'exec grep ^Cap /proc/self/status'")
    held = [line for line in status.head.decode().splitlines() if not line.startswith("CapBnd")]
    assert [int(line.partition(":")[2], 16) for line in held] == [0] * 8
    assert box.run("grep NoNewPrivs /proc/self/status").head.split() == [b"NoNewPrivs:", b"1"]


@boxed
@pytest.mark.parametrize("network", [True, False])
def test_the_network_can_be_taken_away(box, network):
    """Without it there is no interface but an own loopback."""
    links = box.run("cat /proc/net/dev | tail -n +3 | wc -l", network=network)
    here = len(Path("/proc/net/dev").read_text().splitlines()) - 2
    assert int(links.head) == (here if network else 1)


@boxed
def test_sockets_of_services_are_not_there(box):
    """Neither in `/run`, with or without `XDG_RUNTIME_DIR`, nor a container program's in the home."""
    (box.home / ".colima" / "default").mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(box.home / ".colima/default/docker.sock"))
        seen = box.run("find -L /run ~/.colima -type s; ls -d /run/user/*").head.decode()
    assert not [line for line in seen.splitlines() if line.startswith("/")]


@boxed
def test_more_folders_can_be_opened(box):
    """`writable` lets a cache be written."""
    box.run(f"touch {box.other}/yes", writable=(str(box.other),))
    assert (box.other / "yes").exists()


def git(folder: Path, *words: str) -> str:
    """Run git on its own."""
    name = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    ran = subprocess.run(["git", *name, *words], cwd=folder, capture_output=True, check=True)
    return ran.stdout.decode()


@boxed
def test_git_works_but_for_what_acts_later(box):
    """Commits are made, also below the top and in a work tree; hooks and configuration stay."""
    git(box.other, "init", "-q")
    git(box.other, "commit", "-q", "--allow-empty", "-m", "first")
    below = box.other / "below"
    below.mkdir()
    tree = box.home / "tree"
    git(box.other, "worktree", "add", "-q", str(tree))
    commit = "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m second"
    for folder in (box.other, below, tree):
        box.folder = folder
        assert box.run(commit).exit_code == 0, folder
        assert git(folder, "log", "-1", "--format=%s") == "second\n"
        place = box.other / ".git"
        for line in (f"echo x > {place}/hooks/post-commit", f"echo x >> {place}/config"):
            assert box.run(line).exit_code != 0
        assert not (place / "hooks" / "post-commit").exists()
        assert "x" not in (place / "config").read_text().split()


EVERYDAY = (
    "echo 1 > a; git add a; git commit -qm one; git branch b; git checkout -q b",
    "echo 2 > b; git add b; git commit -qm two; git checkout -q -",
    "echo 3 > c; git add c; git commit -qm three; git merge -q -m merged b; git rebase -q b",
    "echo 4 >> a; git stash -q; git stash pop -q; git commit -qam four; git tag t; git reset -q --hard",
    "git worktree add -q tree2; git -C tree2 commit -q --allow-empty -m five; git worktree remove tree2",
    "git gc -q; git pack-refs --all; git fsck; git status; git -C sub commit -q --allow-empty -m six",
)
WAYS_OUT = (
    "mv .git g && cp -r g .git && echo '[alias] x' >> .git/config",
    "rm -rf .git/hooks; mkdir -p .git/hooks && echo x > .git/hooks/pre-commit",
    "echo '[alias] x' > .git/config.worktree",
    "rm -f .git/commondir; mkdir evil; echo ../evil > .git/commondir",
    "mv .git/worktrees w && cp -r w .git/worktrees && echo /tmp > .git/worktrees/tree/commondir",
    "mv .git/worktrees/tree w && cp -r w .git/worktrees/tree && echo > .git/worktrees/tree/commondir",
    "mv .git/modules m && cp -r m .git/modules && echo '[alias] x' >> .git/modules/deep/sub/config",
    "mv .git/modules/deep m && cp -r m .git/modules/deep && echo x > .git/modules/deep/sub/hooks/x",
    "git config alias.x '!evil'",
)


@pytest.fixture
def repository(box) -> Path:
    """A repository in the session's folder: without hooks, with a work tree and a module."""
    git(box.other, "init", "-q")
    git(box.other, "commit", "-q", "--allow-empty", "-m", "first")
    git(box.folder, "init", "-q", "--template=")
    for key, value in (("user.name", "a"), ("user.email", "a@example.org")):
        git(box.folder, "config", key, value)
    git(box.folder, "commit", "-q", "--allow-empty", "-m", "first")
    git(box.folder, "worktree", "add", "-q", str(box.home / "tree"))
    local = ("-c", "protocol.file.allow=always")
    git(box.folder, *local, "submodule", "add", "-q", "--name", "deep/sub", str(box.other), "sub")
    for key, value in (("user.name", "a"), ("user.email", "a@example.org")):
        git(box.folder / "sub", "config", key, value)
    return box.folder / ".git"


@boxed
def test_everyday_work_with_git(box, repository):
    """It goes on, in the sandbox and outside of it afterwards; also in modules and work trees."""
    for line in EVERYDAY:
        ran = box.run(f"set -ex; {line.replace('; ', chr(10))}")
        assert ran.exit_code == 0, (line, ran.head)
    for folder in (box.folder, box.folder / "sub", box.home / "tree"):
        git(folder, "status")
        git(folder, "commit", "-q", "--allow-empty", "-m", "outside")
        assert git(folder, "log", "-1", "--format=%s") == "outside\n"
    assert "four" in git(box.folder, "log", "--format=%s")


def acting(repository: Path) -> dict[str, str]:
    """Return what git acts on."""
    names = {"config", "config.worktree", "commondir", "hooks"}
    return {
        str(file): file.read_text()
        for file in repository.rglob("*")
        if file.is_file() and {file.name, file.parent.name} & names
    }


@boxed
@pytest.mark.parametrize("line", WAYS_OUT)
def test_what_acts_later_cannot_be_changed(box, repository, line):
    """Neither written, nor made where it is missing, nor replaced with all that is around it."""
    box.run("true")
    before = acting(repository)
    assert box.run(line).exit_code != 0
    assert acting(repository) == before


@boxed
@pytest.mark.parametrize("name", ["hooks", "config", "modules", "worktrees"])
def test_a_repository_with_links_is_only_read(box, name):
    """A link cannot be mounted on, so it could be replaced; nothing that it leads to is opened."""
    git(box.folder, "init", "-q", "--template=")
    place = box.folder / ".git" / name
    if place.exists():
        place.rename(box.other / name)
    else:
        (box.other / name).mkdir()
    place.symlink_to(box.other / name)
    assert box.run(f"rm .git/{name}").exit_code != 0
    assert box.run(f"touch .git/{name}/x {box.other}/x").exit_code != 0
    assert not (box.other / "x").exists()


@boxed
def test_the_mark_of_a_work_tree_stays(box):
    """The `.git` file of a work tree cannot be made to lead elsewhere."""
    git(box.other, "init", "-q")
    git(box.other, "commit", "-q", "--allow-empty", "-m", "first")
    box.folder = box.home / "tree"
    git(box.other, "worktree", "add", "-q", str(box.folder))
    assert box.run("mv .git g").exit_code != 0
    assert box.run("echo 'gitdir: evil' > .git").exit_code != 0


@boxed
def test_a_folder_cannot_claim_another_repository(box):
    """What its `.git` file says counts only if the repository knows of the folder."""
    git(box.other, "init", "-q")
    (box.folder / ".git").write_text(f"gitdir: {box.other}/.git\n")
    (box.folder / "gitdir").write_text(f"{box.folder}/.git\n")
    box.run(f"touch {box.other}/.git/stolen")
    assert not (box.other / ".git" / "stolen").exists()
    assert git_folders(str(box.folder)) == []


@boxed
def test_stop_is_a_proof_in_here_too(box, hosting, mark, hostile):
    """What hides in the sandbox, daemons in sessions of their own included, is dead at the stop."""
    spec = mark.spec(*box.sandbox().wrap((*hostile, mark.word)), grace=0.05, cwd=box.folder)
    result, left = hosting.ended(mark, spec)
    assert left == []
    assert (result.status, result.survivors) == ("killed", ())


@boxed
def test_the_end_of_the_runtime_is_the_end_of_the_sandbox(box, mark, hostile):
    """After kill -9 of the runtime nothing in a sandbox is left a second later."""
    with mark.runtime(*box.sandbox().wrap((*hostile, mark.word))) as runtime:
        runtime.send_signal(signal.SIGKILL)
    assert mark.until_gone(1.0) == []


def test_required_and_not_to_be_had(box, monkeypatch):
    """Without bubblewrap a required sandbox refuses and says what to do; `auto` and `off` run."""
    monkeypatch.setenv("PATH", str(box.folder))
    bubblewrap.cache_clear()
    try:
        argv = ("/bin/true",)
        assert box.sandbox(mode="off").wrap(argv) == argv
        assert box.sandbox(mode="auto").wrap(argv) == argv
        with pytest.raises(ToolError, match="a sandbox is required, but bubblewrap") as refused:
            box.sandbox().wrap(argv)
        assert "install bubblewrap" in refused.value.hint
        assert "commands are refused" in SandboxPolicy(mode="required").notice()
        assert not SandboxPolicy(mode="auto").notice()
        assert not SandboxPolicy(mode="auto").is_in_force
        assert not SandboxPolicy().notice()
    finally:
        bubblewrap.cache_clear()
