"""Damaged databases of a home: each fault is named, and what can be read is saved. The damage is real."""

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from steersman.gateway.home.check import Fault, damaged, home_faults
from steersman.gateway.home.salvage import SalvageReport, salvage_home
from steersman.gateway.host.offline_writer import writing
from steersman.journal import entries as e
from steersman.journal.recovery import load_record
from steersman.journal.sqlite import SqliteStore
from steersman.journal.store import Occurrence, SessionRow, StoredEntry, Watch
from steersman.machines.errors import StoreDamaged, UsageError
from steersman.workflows.home_place import Storage
from steersman.workflows.paths import Paths

PAGE = 4096
Journals = dict[str, list[StoredEntry]]


def paths_of(home: Path) -> Paths:
    """The folders of a home."""
    return Paths(config=home, state=home / "state", cache=home / "cache")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home of six sessions with 100 entries each, some of several pages; `s1` has a child."""
    home = tmp_path_factory.mktemp("whole") / "home"
    store = SqliteStore.open(home / "state")
    for number in range(6):
        session, parent = f"s{number}", "s1" if number == 0 else ""
        store.create(SessionRow(session=session, folder="/here", parent=parent, place="host"))
        with writing(store, session) as writer:
            opened = e.SessionOpened(
                session=session,
                folder="/here",
                agent="a",
                model="m",
                system="",
                tools=(),
                parent=parent,
            )
            writer.write(1.0, opened)
            for at in range(2, 101):
                text = f"{session} {at} é" * (900 if at % 20 == 0 else 10)
                writer.write(float(at), e.SessionRenamed(name=text))
        store.post(session, 1, {"text": f"to {session}"}, f"c{number}")
    lease = store.claim("s5", "n1")
    assert lease is not None
    store.answer(lease, 6, {"ok": True})  # it was read: it must not come again
    store.release(lease)
    store.note(
        Watch(schedule="daily", timing="1d", upto=5.0),
        [Occurrence(schedule="daily", planned=1.0, state="begun", noted=1.0)],
    )
    store.close()
    (home / "state" / "output").mkdir()
    (home / "state" / "output" / "long.txt").write_text("long")
    (home / "config.toml").write_text("# mine\n")
    return home


@pytest.fixture
def home(whole: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return shutil.copytree(whole, tmp_path / "home")


def journals(home: Path) -> Journals:
    """Return all entries of a home."""
    store = SqliteStore.open(home / "state", read_only=True)
    found = {row.session: list(store.entries(row.session)) for row in store.sessions()}
    for session in found:
        assert load_record(store, session).seq == len(found[session])
    store.close()
    return found


def spoil(home: Path, change: Callable[[bytearray], None]) -> bytes:
    """Change the bytes of the database, and return them as they are then."""
    file = home / "state" / "journal.db"
    data = bytearray(file.read_bytes())
    change(data)
    file.write_bytes(data)
    return bytes(data)


def execute(home: Path, statement: str) -> int:
    """Run a statement in the database; returns the number that it selects, if any."""
    raw = apsw.Connection(str(home / "state" / "journal.db"))
    rows = list(raw.execute(statement))
    raw.close()
    return int(rows[0][0]) if rows else 0


def faults(home: Path) -> list[Fault]:
    """Check a home as the command does."""
    paths = paths_of(home)
    try:
        store = SqliteStore.open(paths.state, read_only=True)
    except StoreDamaged as error:
        return [damaged(error, "home")]
    found = list(home_faults(store, "home", paths, Storage(folder=paths.state)))
    store.close()
    return found


def salvage(home: Path, before: Journals) -> tuple[SalvageReport, Journals]:
    """Salvage a home; whatever was saved is the beginning of what there was, and the rest is named."""
    target = home.with_name("salvaged")
    content = {file: file.read_bytes() for file in home.rglob("*") if file.is_file()}
    report = salvage_home(paths_of(home), target)
    assert {file: file.read_bytes() for file in home.rglob("*") if file.is_file()} == content
    after = journals(target)
    for session, entries in before.items():
        saved = after.get(session, [])
        assert saved == entries[: len(saved)]
        is_named = any(line.startswith(f"{session}:") for line in report.lost)
        assert is_named or len(saved) == len(entries) or session not in report.saved
    assert report.entries == sum(map(len, after.values()))
    return report, after


def test_a_whole_home_has_no_fault_and_is_saved_whole(home: Path) -> None:
    """With unread messages, schedules, families and other files; a message that was read stays read."""
    before = journals(home)
    assert faults(home) == []
    report, after = salvage(home, before)
    assert (after, report.lost, report.messages) == (before, (), 5)
    target = home.with_name("salvaged")
    store = SqliteStore.open(target / "state", read_only=True)
    assert [watch.schedule for watch in store.watches()] == ["daily"]
    assert [found.state for found in store.occurrences()] == ["begun"]
    row = store.row("s0")
    assert (row.parent, row.root, row.place) == ("s1", "s1", "host")
    assert [message.message["text"] for message in store.unconsumed("s4")] == ["to s4"]
    assert not store.unconsumed("s5")
    store.close()
    assert (target / "config.toml").read_text() == "# mine\n"
    assert (target / "state" / "output" / "long.txt").read_text() == "long"
    with pytest.raises(UsageError, match="is there already"):
        salvage_home(paths_of(home), target)


def test_what_is_only_in_the_log_is_saved(home: Path, tmp_path: Path) -> None:
    """A home whose program was killed has its newest entries in the write-ahead log."""
    store = SqliteStore.open(home / "state")
    with writing(store, "s2") as writer:
        writer.write(200.0, e.SessionRenamed(name="the last one"))
    copy = tmp_path / "copy"
    shutil.copytree(home, copy, ignore=shutil.ignore_patterns("locks", "bells"))
    store.close()
    assert (copy / "state" / "journal.db-wal").stat().st_size
    _, after = salvage(copy, journals(home))
    assert after["s2"][-1].data["name"] == "the last one"


def flip_header(data: bytearray) -> None:
    """Flip every bit of the first bytes."""
    data[:100] = bytes(byte ^ 0xFF for byte in data[:100])


def drop_first_page(data: bytearray) -> None:
    """Overwrite the page that leads to all tables."""
    data[:PAGE] = b"\xa5" * PAGE


@pytest.mark.parametrize("change", [flip_header, drop_first_page])
def test_a_lost_header_loses_nothing(home: Path, change: Callable[[bytearray], None]) -> None:
    """The check says that it is no database, and what to do; every entry is saved."""
    before = journals(home)
    spoil(home, change)
    (fault,) = faults(home)
    assert "damaged or not a database" in fault.what
    assert "steersman home salvage" in fault.next
    report, after = salvage(home, before)
    assert (after, report.lost) == (before, ())


@pytest.mark.parametrize("part", [0.25, 0.5, 0.9])
def test_a_truncated_file_keeps_what_is_before_its_end(home: Path, part: float) -> None:
    """What is lost is named, and some sessions are whole."""
    before = journals(home)
    spoil(home, lambda data: data.__delitem__(slice(int(len(data) * part), None)))
    assert faults(home)
    report, after = salvage(home, before)
    assert report.lost
    assert sum(map(len, after.values())) > 0


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(12))
def test_overwritten_pages_lose_what_was_on_them(home: Path, seed: int) -> None:
    """Of whole pages or of single bytes at their head: nothing is made up, and nothing raises."""
    draw, before = random.Random(seed), journals(home)

    def change(data: bytearray) -> None:
        pages = len(data) // PAGE
        for number in draw.sample(range(1, pages), 1 + seed % 6):
            begin = number * PAGE
            if seed % 2:
                data[begin : begin + PAGE] = draw.randbytes(PAGE)
            else:
                for _ in range(40):
                    data[begin + draw.randrange(40)] ^= 1 << draw.randrange(8)

    spoil(home, change)
    report, after = salvage(home, {})
    for session, entries in after.items():
        for mine, original in zip(entries, before.get(session, ()), strict=False):
            assert mine.seq == original.seq
    assert report.entries > 0


def test_a_lost_index_is_named_and_loses_nothing(home: Path) -> None:
    """An index that is empty although its table is not."""
    before = journals(home)
    root = execute(home, "SELECT rootpage FROM sqlite_schema WHERE name = 'inbox_client'")
    empty = b"\x0a\0\0\0\0\x10\0\0".ljust(PAGE, b"\0")
    spoil(home, lambda data: data.__setitem__(slice((root - 1) * PAGE, root * PAGE), empty))
    found = faults(home)
    assert found
    assert all("inbox_client" in fault.what for fault in found)
    assert all("steersman home salvage" in fault.next for fault in found)
    report, after = salvage(home, before)
    assert (after, report.lost, report.messages) == (before, (), 5)


def test_a_row_that_is_no_json_is_named_and_saved(home: Path) -> None:
    """Its journal makes it again."""
    before = journals(home)
    execute(home, "UPDATE sessions SET row = '{' WHERE session = 's3'")
    (fault,) = faults(home)
    assert (fault.table, fault.row) == ("sessions", "s3")
    assert "`steersman chat --resume s3`" in fault.next
    report, after = salvage(home, before)
    assert (after, report.lost) == (before, ())


@pytest.mark.parametrize(
    ("statement", "what", "why"),
    [
        ("UPDATE entries SET data = '{' WHERE session = 's3' AND seq = 40", "JSON", "be read"),
        ("DELETE FROM entries WHERE session = 's3' AND seq = 40", "missing", "is missing"),
        (
            "UPDATE entries SET data = '{\"kind\": \"flown\"}' WHERE session = 's3' AND seq = 40",
            "flown",
            "be read",
        ),
    ],
)
def test_an_entry_that_is_not_there_is_named(
    home: Path, statement: str, what: str, why: str
) -> None:
    """The session is saved up to it, and what follows is kept as text; all others are whole."""
    before = journals(home)
    execute(home, statement)
    (fault,) = faults(home)
    assert (fault.table, fault.row) == ("entries", "s3 40")
    assert what in fault.what
    report, after = salvage(home, {})
    assert {session: len(entries) for session, entries in after.items()} == {
        session: 39 if session == "s3" else 100 for session in before
    }
    (line,) = report.lost
    assert line.startswith("s3: has 39 of 100 entries, the next one ")
    assert why in line
    rest = (home.with_name("salvaged") / "lost" / "s3.jsonl").read_text().splitlines()
    assert json.loads(rest[-1])["seq"] == 100


def test_other_rows_that_cannot_be_read_are_named(home: Path) -> None:
    """Messages, snapshots, schedules; and entries of no session."""
    execute(home, "UPDATE inbox SET message = '{' WHERE id = 2")
    execute(home, "UPDATE snapshots SET state = 'x' WHERE session = 's1'")
    execute(home, "UPDATE watches SET upto = 'never'")
    execute(home, "UPDATE occurrences SET state = 'flown'")
    execute(home, "DELETE FROM sessions WHERE session = 's4'")
    found = {(fault.table, fault.row.split()[0]) for fault in faults(home)}
    assert found >= {
        ("inbox", "s1"),
        ("watches", "daily"),
        ("occurrences", "daily"),
        ("entries", "s4"),
    }


def test_files_beside_the_database_are_looked_at(home: Path) -> None:
    """A mark of the trash, the devices, a gateway's book, and copies without a session."""
    state = home / "state"
    (state / "trash").mkdir()
    (state / "trash" / "queue-s1.json").write_text("{")
    (state / "devices.json").write_text("[")
    (state / "gateways").mkdir()
    shutil.copy(state / "journal.db", state / "gateways" / "irc.sqlite")
    assert faults(home)[-1].place == str(state / "devices.json")
    (state / "gateways" / "irc.sqlite").write_bytes(b"x" * PAGE)
    store = state / "workspaces" / "folder"
    store.mkdir(parents=True)
    (store / "folder").write_text("/here")
    (store / "ledger-gone.jsonl").write_text("")
    found = [(Path(fault.place).name, fault.what.split()[0]) for fault in faults(home)]
    assert found == [
        ("ledger-gone.jsonl", "the"),
        ("queue-s1.json", "it"),
        ("irc.sqlite", "file"),
        ("devices.json", "it"),
    ]
    assert all(fault.next for fault in faults(home))
