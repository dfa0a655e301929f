"""`steersman uninstall`: what it lists is what is there, and it removes that and nothing else."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from stories.terminal import Terminal
from support.driver import Place
from support.model_server import Text


@pytest.fixture
def used(place: Place, serve: Callable[..., Any]) -> Path:
    """A home with a session, weights, a completion, and hooks in another agent; returns HOME."""
    serve(*[Text("Hello.")] * 3)
    assert place.run("chat", "hi").returncode == 0
    home = place.home.parent
    (home / ".claude").mkdir()
    assert place.run("hooks", "install", "claude").returncode == 0
    # else the shell is that of whoever runs the tests
    place.environ["_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION"] = "1"
    assert place.run("--install-completion", "bash").returncode == 0
    (home / ".bashrc").write_bytes(b"caf\xe9=1\n" + (home / ".bashrc").read_bytes())
    (place.home / "cache" / "models").mkdir(parents=True)
    (place.home / "cache" / "models" / "small.gguf").write_bytes(b"0" * 5000)
    (place.home / "notes.txt").write_text("mine")
    return home


def left(home: Path) -> set[str]:
    """The files below the home folder, but those by which SQLite reads a database."""
    paths = (path for path in home.rglob("*") if path.is_file())
    names = {path.relative_to(home).as_posix() for path in paths}
    return {name for name in names if not name.endswith(("-wal", "-shm"))}


@pytest.mark.checks_data("uninstall")
def test_what_is_listed_is_removed_and_nothing_else(place: Place, used: Path) -> None:
    """The list changes nothing and has sizes; then all is gone but what is a person's own."""
    before = left(used)
    found = place.data("uninstall", "--dry-run")["items"]
    assert left(used) == before
    by_what = {item["what"]: item for item in found}
    assert list(by_what) == [
        *("hooks in claude", "completion", "weights of models", "cache"),
        *("state: sessions, queues, keys, trust", "settings", "program"),
    ]
    assert by_what["weights of models"]["bytes"] == 5000
    assert by_what["hooks in claude"]["command"] == "steersman hooks uninstall claude"
    shown = place.run("uninstall", "--dry-run").stdout
    assert all(item["where"] in shown and item["command"] in shown for item in found)

    assert place.run("uninstall").returncode == 2  # nobody can be asked
    assert left(used) == before
    done = place.data("uninstall", "--yes")
    assert [item["what"] for item in done["removed"]] == list(by_what)[:-1]
    assert [item["what"] for item in done["left"]] == ["program"]
    kept = {path for path in left(used) if not path.startswith("project/")}
    assert kept == {".bashrc", "home/notes.txt"}
    assert b".bash_completions" not in (used / ".bashrc").read_bytes()
    assert (used / ".bashrc").read_bytes().startswith(b"caf\xe9=1\n")


def test_a_home_in_use_stays(place: Place, used: Path) -> None:
    """While a program has a session open, its state is not removed, and that is said."""
    chat = place.chat("--json")
    chat.wait("session_started")
    ran = place.run("uninstall", "--yes")
    assert ran.returncode == 1
    assert f"process {chat.process.pid} has sessions open: end it first" in ran.stderr
    assert "left: state: sessions" in ran.stdout
    assert (place.home / "state" / "journal.db").exists()
    assert chat.close() == 0


def test_a_person_confirms_each(place: Place, used: Path) -> None:
    """What is not confirmed stays, and is named with what removes it."""
    environ = place.environ | {"LANG": "C.UTF-8"}
    terminal = Terminal((*place.command, "uninstall"), place.folder, environ, (200, 40))
    try:
        terminal.shows("Remove the hooks in claude")
        terminal.presses("y\r")
        terminal.shows("Remove the completion")
        for _ in range(5):
            terminal.presses("\r")
        terminal.shows("left: settings")
        assert terminal.ended() == 0
    finally:
        terminal.abandon()
    assert "hooks emit" not in "".join(path.read_text() for path in (used / ".claude").glob("*"))
    assert (place.home / "config.toml").exists()
    assert (place.home / "state" / "journal.db").exists()


def test_a_folder_in_which_a_session_worked_stays(place: Place, used: Path) -> None:
    """Also if it is one of this program's own: what is in it may be a person's."""
    inside = place.home / "state" / "mine"
    inside.mkdir()
    assert place.run("chat", "hi", "--cwd", str(inside)).returncode == 0
    ran = place.run("uninstall", "--yes")
    assert ran.returncode == 0, ran.stderr
    assert (
        f"left: state: sessions, queues, keys, trust, and {inside}, where a session" in ran.stdout
    )
    assert inside.exists()
    assert (place.home / "state" / "journal.db").exists()
    assert not (place.home / "config.toml").exists()
