"""Any tree, any changes by an agent, any by a person: each path as it was, or as the person has it."""

import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from workspace.conftest import Agent, content_of, git

pytestmark = pytest.mark.nightly

NAMES = (
    *("a", "b", "A", "d", "d/f", "d/g", "d/e", "d/e/h", "x y", "-n", ":(top)z", "q\nr", "l.log"),
    *("ends", ":(glob)*", 'quo"te', "d/e/*", ":(exclude)d/y", "\udcfe", "-d/--", ":(exclude)d/x"),
)
MEMORY = "/dev/shm"
DATA = (b"", b"1", b"2", b"1\r\n", b"2\r\n", b"\x00\xff")

path = st.integers(0, 2)
"""One of the few names that a story is about, so that person and agent meet."""
write = st.tuples(st.just("write"), path, st.sampled_from(DATA))
mode = st.tuples(st.just("mode"), path, st.sampled_from((0o600, 0o644, 0o755)))
remove = st.tuples(st.just("remove"), path, st.none())
link = st.tuples(st.just("link"), path, st.sampled_from(("a", "d", "/nowhere")))
bare = st.tuples(st.just("folder"), path, st.none())
move = st.tuples(st.just("move"), path, path)
change = st.one_of(write, write, write, mode, remove, link, bare, move)
step = st.tuples(
    st.sampled_from(("command", "command", "tool", "person", "person")),
    st.lists(change, min_size=1, max_size=4),
)


def apply(folder: Path, what: str, name: str, value: object) -> None:
    """Make one change, whatever is in its way; a file in the place of a folder makes room."""
    target = folder / name
    for parent in reversed(target.relative_to(folder).parents[:-1]):
        here = folder / parent
        if here.is_symlink() or here.is_file():
            here.unlink()
        here.mkdir(exist_ok=True)
    if what == "mode":
        if target.is_file() and not target.is_symlink():
            target.chmod(value)  # type: ignore[arg-type]
        return
    if what == "move":
        with suppress(OSError):
            target.rename(folder / str(value))
        return
    if target.is_dir() and not target.is_symlink():
        shutil.rmtree(target)
    elif os.path.lexists(target):
        target.unlink()
    if what == "write":
        target.write_bytes(value)  # type: ignore[arg-type]
    elif what == "link":
        os.symlink(str(value), target)
    elif what == "folder":
        target.mkdir()


@dataclass
class Model:
    """What each file should go back to: the state before the agent's last unbroken row of changes."""

    base: dict[str, object] = field(default_factory=dict)
    left: dict[str, object] = field(default_factory=dict)

    def changed(self, before: dict[str, object], after: dict[str, object]) -> None:
        """Take note of what one call did."""
        for name in before.keys() | after.keys():
            old, new = before.get(name), after.get(name)
            if old == new:
                continue
            if name not in self.left or self.left[name] != old:
                self.base[name] = old
            self.left[name] = new

    def expected(self, now: dict[str, object]) -> dict[str, object]:
        """Say what each path should hold after the revert."""
        wanted = dict(now)
        for name, left in self.left.items():
            if now.get(name) == left:
                wanted[name] = self.base[name]
        return {name: state for name, state in wanted.items() if state is not None}


def files(folder: Path) -> dict[str, object]:
    """Return the files and links alone: folders come and go with what is in them."""
    return files_of(content_of(folder))


def files_of(content: dict[str, object]) -> dict[str, object]:
    """Return the files and links of a content."""
    return {name: one for name, one in content.items() if one != "folder"}


def folders(content: dict[str, object]) -> set[str]:
    """Return the folders alone."""
    return {name for name, one in content.items() if one == "folder"}


@pytest.mark.timeout(300)
@settings(
    max_examples=150,
    phases=(Phase.generate,),  # to shrink a story of real files takes longer than to read it
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(
    st.lists(st.sampled_from(NAMES), min_size=3, max_size=3, unique=True),
    st.lists(change, max_size=8),
    st.lists(step, min_size=2, max_size=7),
    st.sampled_from(("plain", "repository", "attributes")),
    st.booleans(),
)
def test_each_path_as_before_the_turn_or_as_the_person_has_it(
    names, start, steps, kind, restarts
) -> None:
    """And a revert that is undone leaves what was there before it."""
    start = named(start, names)
    steps = [(who, named(changes, names)) for who, changes in steps]
    root = Path(tempfile.mkdtemp(dir=MEMORY if os.path.isdir(MEMORY) else None))
    folder = root / "project"
    folder.mkdir()
    try:
        check(root, folder, start, steps, kind, restarts)
    finally:
        shutil.rmtree(root)


def named(changes, names):
    """Put names for their numbers, those of moves, too."""
    return [
        (what, names[at], names[value] if what == "move" else value) for what, at, value in changes
    ]


def check(root: Path, folder: Path, start, steps, kind: str, restarts: bool) -> None:
    """Play one story and compare it with the model."""
    (folder / "ends").write_bytes(b"1\r\n2\r\n")
    for one in start:
        apply(folder, *one)
    if kind == "attributes":
        (folder / ".gitattributes").write_text("* text eol=crlf\n")
        (folder / ".gitignore").write_text("nothing-here\n")
    first = content_of(folder)
    if kind != "plain":
        git(folder, "init", "-q")
        git(folder, "add", "-A")
    agent, model = Agent(root / "state", folder), Model()
    for who, changes in steps:
        before = content_of(folder)
        if who == "person":
            for one in changes:
                apply(folder, *one)
        elif who == "command":
            agent.command(lambda changes=changes: [apply(folder, *change) for change in changes])
            model.changed(before, content_of(folder))
        else:
            name, data = changes[0][1], str(changes[0][2]).encode()
            if any((folder / one).is_symlink() for one in (name, "d", "d/e")):
                continue  # a tool of ours follows links before it says what it writes
            if any((folder / one).is_file() for one in ("d", "d/e")) or (folder / name).is_dir():
                continue
            agent.write(name, data)
            model.changed(before, content_of(folder))
        if restarts:
            agent.restart()
    now = content_of(folder)
    wanted = files_of(model.expected(now))
    dry = agent.revert(is_dry_run=True)
    assert content_of(folder) == now
    done = agent.revert()
    blocked = {one for one, why in done.kept if why == "something else is in its place"}
    found = files(folder)
    for name in wanted.keys() | found.keys():
        if name not in blocked:
            assert found.get(name) == wanted.get(name), (name, done)
    changed = {
        name for name in found.keys() | files_of(now).keys() if found.get(name) != now.get(name)
    }
    assert {name for name in done.restored if now.get(name) != "folder"} >= changed - folders(now)
    assert set(done.restored) | blocked >= set(dry.restored)
    if all(who != "person" for who, _ in steps):
        assert content_of(folder) == first  # folders, too
        assert done.kept == ()
    agent.revert("undo")
    assert content_of(folder) == now
