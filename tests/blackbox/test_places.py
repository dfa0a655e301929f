"""A session on two machines with one folder: its copies of files and its long outputs."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.driver import Place
from support.model_server import Text, Tools, shell

from steersman.journal.lock import host_name
from steersman.workflows.home_place import URL

LINES = 100_000
WORK = (
    Tools([{"tool": "write", "arguments": {"path": "a.txt", "content": "new"}}]),
    shell(f"seq {LINES}"),
)


@pytest.fixture
def other(place: Place, tmp_path: Path, postgres_url: str) -> Iterator[Place]:
    """Another machine of the home of `place`: a state folder of its own, the same project."""
    made = Place(tmp_path / "other")
    made.folder = place.folder
    for machine in (place, made):
        machine.environ[URL] = postgres_url
    yield made
    made.close()


def settle(place: Place, other: Place) -> None:
    """Give the other machine the configuration of the first."""
    (other.home / "config.toml").write_bytes((place.home / "config.toml").read_bytes())


def worked(place: Place) -> str:
    """A session that wrote a file and a long output."""
    (place.folder / "a.txt").write_text("old")
    chat = place.chat("--yes", "go")
    chat.wait("turn_ended")
    assert chat.close() == 0
    return chat.session


def test_what_cannot_be_reverted_here_is_said(place: Place, other: Place, serve) -> None:
    """Its copies of files are on the first machine: the revert names it, and changes nothing."""
    serve(*WORK, Text("Done.", times=0))
    settle(place, other)
    session = worked(place)
    ran = other.run("chat", "--resume", session, "/revert")
    assert "There is nothing to revert." in ran.stderr
    where = f"{place.home / 'state'}"
    assert f"Not restored: turns whose copies of files are at {host_name()}:{where}." in ran.stderr
    assert (place.folder / "a.txt").read_text() == "new"
    ran = place.run("chat", "--resume", session, "/revert")
    assert ("Reverted 1 file" in ran.stderr, "Not restored" in ran.stderr) == (True, False)
    assert (place.folder / "a.txt").read_text() == "old"


def test_shared_storage_lets_each_machine_revert(
    place: Place, other: Place, serve, tmp_path: Path
) -> None:
    """Copies and outputs are where both can read them; nothing of them is in the state folders."""
    shared = tmp_path / "shared"
    rest = f'[home]\nstorage = "{shared}"'
    serve(*WORK, Text("Done.", times=0), rest=rest)
    settle(place, other)
    session = worked(place)
    [output] = (shared / "output" / session).glob("*.txt")
    assert output.read_text().splitlines()[-1] == str(LINES)
    ran = other.run("chat", "--resume", session, "/revert")
    assert ("Reverted 1 file" in ran.stderr, "Not restored" in ran.stderr) == (True, False), ran
    assert (place.folder / "a.txt").read_text() == "old"
    for machine in (place, other):
        assert not (machine.home / "state" / "workspaces").exists()
    assert other.run("sessions", "delete", session, "--yes").returncode == 0
    assert not output.exists()


@pytest.mark.parametrize("storage", ["relative/folder", 7])
def test_a_wrong_storage_is_refused(place: Place, serve, storage: str | int) -> None:
    """The message names the place of the key; nothing begins."""
    serve(Text("Done."), rest=f"[home]\nstorage = {storage!r}")
    for command in (("chat", "hello"), ("config", "check")):
        ran = place.run(*command)
        assert ran.returncode == 2
        assert "home" in ran.stdout + ran.stderr
        assert "storage" in ran.stdout + ran.stderr
        assert "Traceback" not in ran.stderr


def test_a_storage_that_is_no_folder_is_refused(place: Place, serve) -> None:
    """The message names the file and the key to correct; what only reads makes no folder."""
    file = place.folder / "file"
    serve(Text("Done."), rest=f'[home]\nstorage = "{file}"')
    assert place.run("sessions", "list", "--size").returncode == 0
    assert not file.exists()
    file.touch()
    ran = place.run("chat", "hello")
    assert ran.returncode == 2
    assert str(file) in ran.stderr
    assert "name a folder that you own as `home.storage`" in ran.stderr
