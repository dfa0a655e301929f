"""The readable copy of a queue: it follows, it is private, and it never does harm."""

import tomllib
from pathlib import Path
from queue import SimpleQueue

import pytest
from gateway.test_queue_file import queue
from support.patience import seconds

from steersman.gateway.host import offline_writer
from steersman.gateway.host.offline_writer import QueueMirror
from steersman.workflows.paths import write_private


def test_the_newest_is_written(tmp_path: Path) -> None:
    """After many changes the file holds the last; an emptied queue leaves an empty list."""
    folder = tmp_path / "queues"
    for texts in (("a",), ()):
        mirror = QueueMirror(folder, lambda text: None)
        for n in range(50):
            mirror.put("abc", queue(*(f"{text}{n}" for text in texts)), 0.0)
        mirror.close()
        data = tomllib.loads((folder / "abc.toml").read_text())
        assert [item["content"] for item in data["items"]] == [f"{text}49" for text in texts]
    assert [path.name for path in folder.iterdir()] == ["abc.toml"]
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "abc.toml").stat().st_mode & 0o777 == 0o600


def test_a_copy_that_would_stay_as_it_is_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A queue that is the same after a short turn costs no write; a copy that was removed comes back."""
    path = tmp_path / "queues" / "abc.toml"
    mirror = QueueMirror(path.parent, lambda text: None)
    wrote: SimpleQueue[str] = SimpleQueue()

    def write_and_tell(file: Path, data: bytes) -> None:
        write_private(file, data)
        wrote.put(file.name)

    monkeypatch.setattr(offline_writer, "write_private", write_and_tell)

    def written(after: float, *texts: str) -> float:
        mirror.put("abc", queue(*texts), after)
        mirror.put("other", queue(f"{after}"), after)
        while wrote.get(timeout=seconds(10.0)) != "other.toml":
            continue  # that of the queue itself, which comes first
        return tomllib.loads(path.read_text())["saved_at"]

    first = written(1.0, "a")
    mirror.put("abc", queue("a", "b"), 2.0)
    assert written(3.0, "a") == first
    path.unlink()
    assert written(4.0, "a") > first
    assert written(5.0, "b") > written(4.0, "a")
    mirror.close()


def test_what_was_never_there_is_not_made(tmp_path: Path) -> None:
    """An empty queue without a copy gets none."""
    mirror = QueueMirror(tmp_path / "queues", lambda text: None)
    mirror.put("abc", queue(), 0.0)
    mirror.close()
    assert not (tmp_path / "queues").exists()


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    """A symbolic link in the copy's place does not lead anywhere."""
    other = tmp_path / "precious"
    other.write_text("mine")
    folder = tmp_path / "queues"
    folder.mkdir()
    (folder / "abc.toml").symlink_to(other)
    mirror = QueueMirror(folder, lambda text: None)
    mirror.put("abc", queue("a"), 0.0)
    mirror.close()
    assert other.read_text() == "mine"
    assert not (folder / "abc.toml").is_symlink()


def test_a_failed_write_is_reported_once(tmp_path: Path) -> None:
    """A path that cannot be written is reported once, with its name, and has no other effect."""
    (tmp_path / "file").write_text("no folder")
    told: SimpleQueue[str] = SimpleQueue()
    mirror = QueueMirror(tmp_path / "file", told.put)
    mirror.put("abc", queue("a"), 0.0)
    assert "abc.toml` cannot be written" in told.get(timeout=seconds(10.0))
    mirror.put("abc", queue("b"), 0.0)
    mirror.close()
    assert told.empty()
