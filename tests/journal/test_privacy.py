"""No other user can read what the journal writes."""

import os
import stat
from pathlib import Path

import pytest

from steersman.journal.folder import PrivateFolder
from steersman.journal.sqlite import SqliteStore
from steersman.machines.errors import SteersmanError, StoreError


def modes(folder: Path) -> dict[str, int]:
    """Permission bits of a folder and everything beneath it."""
    found = {path: path.lstat() for path in (folder, *folder.rglob("*"))}
    return {str(path.relative_to(folder)): stat.S_IMODE(one.st_mode) for path, one in found.items()}


def test_an_open_umask_opens_nothing(home, children):
    """With umask 000 folders are 0700; files, logs, locks and sockets are 0600."""
    child = children.start("make", home)
    while (line := child.stdout.readline()) != "READY\n":
        assert line, "the child ended early"
    assert modes(home.parent) == {
        ".": 0o700,
        "state": 0o700,
        "state/bells": 0o700,
        "state/bells/here.sock": 0o600,
        "state/journal.db": 0o600,
        "state/journal.db-shm": 0o600,
        "state/journal.db-wal": 0o600,
        "state/journal.lock": 0o600,
        "state/locks": 0o700,
        "state/locks/s1.lock": 0o600,
    }


def test_what_was_open_is_shut(home, opened, make):
    """A folder and a database with wide permissions are narrowed when opened for writing."""
    opened().close()
    home.chmod(0o755)
    (home / "journal.db").chmod(0o644)
    opened()
    assert (modes(home)["."], modes(home)["journal.db"]) == (0o700, 0o600)


@pytest.mark.parametrize(
    "name", ["journal.db", "journal.db-wal", "journal.db-shm", "journal.lock", "locks", "bells"]
)
@pytest.mark.parametrize("is_there", [True, False])
def test_a_planted_link_is_not_followed(tmp_path, home, make, name, is_there):
    """A symbolic link at a path that is written is refused, and its target stays as it was."""
    home.mkdir(parents=True)
    target = tmp_path / "target"
    if is_there and name in ("locks", "bells"):
        target.mkdir()
    elif is_there:
        target.write_bytes(b"")
    (home / name).symlink_to(target)
    with pytest.raises(SteersmanError, match=name.partition("-")[0]):
        use(home, make)
    assert target.exists() == is_there
    assert (home / name).is_symlink()
    if target.is_dir():
        assert not list(target.iterdir())
    elif is_there:
        assert target.read_bytes() == b""


def use(home: Path, make) -> None:
    """Make everything that a store makes."""
    store = SqliteStore.open(home)
    try:
        store.create(make.row("s1"))
        store.claim("s1", "n1")
        store.wait("n1", 0)
    finally:
        store.close()


@pytest.mark.parametrize("name", ["locks/s1.lock", "bells/n1.sock"])
def test_a_link_in_place_of_a_lock_or_bell_is_harmless(tmp_path, home, opened, make, name):
    """A planted lock is refused, a planted bell replaced; the target is never touched."""
    target = tmp_path / "target"
    target.write_text("mine")
    planted = home / name
    planted.parent.mkdir(parents=True)
    planted.symlink_to(target)
    store = opened()
    store.create(make.row("s1"))
    if planted.suffix == ".lock":
        with pytest.raises(StoreError, match=r"s1\.lock"):
            store.claim("s1", "n1")
    else:
        store.wait("n1", 0)
        assert stat.S_ISSOCK(planted.lstat().st_mode)
    assert target.read_text() == "mine"


def test_a_linked_home_is_refused(tmp_path, opened):
    """The folder itself must not be a link, for someone else may have made it."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(StoreError, match="link") as caught:
        opened(tmp_path / "link")
    assert "STEERSMAN_HOME" in caught.value.hint
    assert not list((tmp_path / "real").iterdir())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_refused(home, opened):
    """A folder of another user is not written to."""
    home.mkdir(parents=True)
    os.chown(home, 65534, 65534)
    with pytest.raises(StoreError, match="belongs to user id 65534"):
        opened()
    assert not list(home.iterdir())


def test_descriptors_do_not_leak(home, make):
    """Opening, using and closing leaves no descriptor behind, nor does a failed opening."""
    use(home, make)
    before = sorted(os.listdir("/proc/self/fd"))
    use_again = SqliteStore.open(home)
    use_again.claim("s1", "n1")
    use_again.wait("n1", 0)
    use_again.close()
    (home / "journal.db").write_bytes(b"garbage" * 1000)
    with pytest.raises(StoreError):
        SqliteStore.open(home)
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_no_descriptor_is_inherited(home, opened, make):
    """Everything the store holds open is closed on exec, so that no tool keeps a lock alive."""
    before = set(os.listdir("/proc/self/fd"))
    store = opened()
    store.create(make.row("s1"))
    store.claim("s1", "n1")
    store.wait("n1", 0)
    fds = {int(fd) for fd in set(os.listdir("/proc/self/fd")) - before}
    held = [fd for fd in fds if Path(f"/proc/self/fd/{fd}").exists()]
    assert len(held) > 4
    assert not any(os.get_inheritable(fd) for fd in held)


def test_a_folder_is_made_with_its_parents(tmp_path):
    """Missing parents are made private too; existing ones stay as they are."""
    (tmp_path / "old").mkdir(mode=0o755)
    (tmp_path / "old").chmod(0o755)
    PrivateFolder.open(tmp_path / "old" / "a" / "b", create=True).close()
    assert modes(tmp_path / "old") == {".": 0o755, "a": 0o700, "a/b": 0o700}
