"""Queue files: what is written reads back; what is not one is refused with its place, whole."""

import os
import tomllib
from pathlib import Path

import pytest
from msgspec.structs import replace

from steersman.gateway.views.queue_file import document, item_text, parse, read_file, write_file
from steersman.journal.queue_record import ItemRecord, QueueRecord
from steersman.machines import protocol as m
from steersman.machines.errors import ConfigError

ODD = 'two\nlines "quoted" \\ back ' + "'''" + """ é 日本 \u0007 \ud800 end"""


def queue(*texts: str) -> QueueRecord:
    """A queue of these, all waiting."""
    items = {
        f"m{n}": ItemRecord(
            id=f"m{n}", number=n, said=m.Said(text=text, user="ann"), created=1_800_000_000.0
        )
        for n, text in enumerate(texts, 1)
    }
    return QueueRecord(items=items, order=tuple(items))


def copy_of(record: QueueRecord, now: float) -> bytes:
    """The document of a queue."""
    return document("abc", [item_text(item) for item in record.live()], now)


def test_what_is_written_reads_back() -> None:
    """A document has the promised fields, in UTC, and is imported as it was."""
    record = queue("first", ODD)
    progress = {"done": 23, "total": 50, "unit": "file"}
    first = replace(record.items["m1"], state="interrupted", progress=progress)
    record = replace(record, items={**record.items, "m1": first})
    text = copy_of(record, 1_800_000_100.0).decode()
    data = tomllib.loads(text)
    assert list(data) == ["session_id", "saved_at", "items"]
    assert list(data["items"][0]) == ["id", "content", "status", "created_at", "progress", "user"]
    assert (data["session_id"], data["items"][0]["progress"]) == ("abc", "file 23/50")
    assert data["saved_at"].isoformat() == "2027-01-15T08:01:40+00:00"
    assert parse(text.encode(), "q.toml") == [
        m.ImportedItem(said=m.Said(text="first", user="ann")),
        m.ImportedItem(said=m.Said(text=ODD.replace("\ud800", "?"), user="ann")),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("items = [", "q.toml:1:1: this is not a queue file: not valid TOML"),
        ('a = 1\nb = "x\n', "q.toml:2:7: this is not a queue file: not valid TOML"),
        ("", "q.toml: this is not a queue file: it has no [[items]]"),
        ("items = 3", "it has no [[items]]"),
        ("items = [1]", "item 1 is not a table"),
        ('[[items]]\ncontent = "a"\n[[items]]\nstatus = "pending"', "item 2 has no `content`"),
        ('[[items]]\ncontent = "  "', "item 1 has no `content`"),
        ('[[items]]\ncontent = "a"\nuser = 3', "item 1: `status` and `user` must be texts"),
    ],
)
def test_damaged_and_foreign_files(text: str, said: str) -> None:
    """A file that is something else is refused with its place."""
    with pytest.raises(ConfigError) as caught:
        parse(text.encode(), "q.toml")
    assert said in str(caught.value)
    assert "nothing was imported" in caught.value.hint


def test_a_file_of_another_editor_is_read(tmp_path: Path) -> None:
    """A byte order mark, and carriage returns at the ends of lines, are no part of a queue."""
    file = tmp_path / "q.toml"
    file.write_bytes(b'\xef\xbb\xbf[[items]]\r\ncontent = "a"\r\n')
    assert [item.said.text for item in read_file(file)] == ["a"]


def test_what_has_ended_is_left_out() -> None:
    """Items that are done, failed or withdrawn are no part of what waits."""
    text = "\n".join(
        f'[[items]]\ncontent = "{one}"\nstatus = "{one}"'
        for one in ("done", "pending", "withdrawn", "interrupted", "running", "failed")
    )
    assert [one.said.text for one in parse(text.encode(), "q")] == [
        "pending",
        "interrupted",
        "running",
    ]


def test_links_pipes_and_large_files_are_not_read(tmp_path: Path) -> None:
    """Only a regular file of a sensible size is read; nothing is followed, nothing blocks."""
    real = tmp_path / "real.toml"
    real.write_bytes(copy_of(queue("a"), 0.0))
    (tmp_path / "link.toml").symlink_to(real)
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "large.toml").write_bytes(b"# \n" * 3_000_000)
    (tmp_path / "bytes.toml").write_bytes(b'a = 1\nb = "\xff"')
    assert read_file(real) == [m.ImportedItem(said=m.Said(text="a", user="ann"))]
    for name, why in {
        "link": "symbolic link",
        "pipe": "not a regular file",
        "large": "more than 8,388,608 bytes",
        "bytes": "bytes.toml:2:6: this is not a queue file: the text is not UTF-8",
        "missing": "No such file",
    }.items():
        with pytest.raises(ConfigError) as caught:
            read_file(tmp_path / f"{name}.toml")
        assert why in str(caught.value)


def test_what_runs_is_no_message_again_in_its_own_session() -> None:
    """Anywhere else it is: there it may be what a crash cut off."""
    running = replace(queue("a").live()[0], state="running")
    content = document("abc", [item_text(running), item_text(queue("b").live()[0])], 0.0)
    for session, texts in (("abc", ["b"]), ("other", ["a", "b"]), ("", ["a", "b"])):
        assert [one.said.text for one in parse(content, "q.toml", session)] == texts


def test_an_export_replaces_only_queue_files(tmp_path: Path) -> None:
    """An export is private, may be renewed, and never overwrites something else."""
    path, other, link = tmp_path / "q.toml", tmp_path / "notes.txt", tmp_path / "link.toml"
    assert write_file(path, "abc", queue("a", "b"), 0.0) == 2
    assert write_file(path, "abc", queue("c"), 0.0) == 1
    assert path.stat().st_mode & 0o777 == 0o600
    assert [one.said.text for one in read_file(path)] == ["c"]
    other.write_text("dear diary")
    link.symlink_to(other)
    for target in (other, link, tmp_path / "no" / "such.toml"):
        with pytest.raises(ConfigError):
            write_file(target, "abc", queue("a"), 0.0)
    assert other.read_text() == "dear diary"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.toml", "notes.txt", "q.toml"]
