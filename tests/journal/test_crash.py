"""Kills at every write: what was acknowledged is stored, and the journal has no holes."""

import random
import shutil
from pathlib import Path

import pytest
from support.patience import seconds

from steersman.journal.sqlite import SqliteStore

STRACE = shutil.which("strace")
ENTRIES = 12
KILLED_CALLS = ("pwrite64", "write", "fdatasync", "fsync", "ftruncate", "unlink", "mkdir")


def check(folder: Path, out: str) -> int:
    """Compare acknowledgements with the store, claim it again; returns the number of entries."""
    acks = [int(line.split()[1]) for line in out.splitlines() if line.startswith("ACK")]
    store = SqliteStore.open(folder)
    try:
        if not store.sessions():
            assert not acks
            return 0
        stored = [entry.seq for entry in store.entries("s1")]
        assert stored == list(range(1, len(stored) + 1))
        assert set(acks) <= set(stored)
        assert store.claim("s1", "after")
        return len(stored)
    finally:
        store.close()


def test_a_kill_at_any_moment_loses_nothing(home, children):
    """A writer that is killed again and again, and starts again, has all it acknowledged."""
    chance = random.Random(7)
    stored = 0
    for _ in range(6):
        child = children.start("append", home, 10_000)
        lines = [child.stdout.readline() for _ in range(chance.randrange(1, 60))]
        child.kill()
        out = "".join(lines) + child.stdout.read()  # ends when the child has
        store = SqliteStore.open(home)
        after = store.load("s1").row.seq
        assert [entry.seq for entry in store.entries("s1")] == list(range(1, after + 1))
        store.close()
        acks = [int(line.split()[1]) for line in out.splitlines() if line.startswith("ACK")]
        assert acks == list(range(stored + 1, stored + len(acks) + 1))
        assert acks[-1] <= after <= acks[-1] + 1
        stored = after


def traced(children, home: Path, call: str, injection: str = "") -> tuple[str, int, list[str]]:
    """Run the appending child under strace; give its output, exit code and such calls it made."""
    log = home.with_suffix(".log")
    inject = ("-e", f"inject={call}:{injection}") if injection else ()
    before = (STRACE, "-f", "-qq", "-y", "-o", str(log), "-e", f"trace={call}", *inject)
    child = children.start("append", home, ENTRIES, before=before)
    out, _ = child.communicate(timeout=seconds(60))
    calls = [line for line in log.read_text().splitlines() if f"{call}(" in line]
    return out, child.returncode, calls


@pytest.mark.nightly
@pytest.mark.timeout(900)
@pytest.mark.skipif(STRACE is None, reason="strace is not installed")
@pytest.mark.parametrize("call", KILLED_CALLS)
def test_a_kill_at_every_system_call_loses_nothing(tmp_path, children, call):
    """Killed at its n-th call of a kind, for each n, a writer has all that it acknowledged."""
    _, code, calls = traced(children, tmp_path / "whole", call)
    assert (code, check(tmp_path / "whole", "")) == (0, ENTRIES)
    for n in range(1, len(calls) + 1):
        home = tmp_path / f"home-{n}"
        out, code, _ = traced(children, home, call, f"signal=KILL:when={n}")
        assert code != 0
        if home.exists():
            check(home, out)


@pytest.mark.nightly
@pytest.mark.timeout(900)
@pytest.mark.skipif(STRACE is None, reason="strace is not installed")
@pytest.mark.parametrize(
    ("call", "fault"),
    [
        ("pwrite64", "EIO"),
        ("pwrite64", "ENOSPC"),
        ("fdatasync", "EIO"),
        ("fsync", "EIO"),
        ("ftruncate", "EIO"),
    ],
)
def test_a_failing_call_is_never_passed_over(tmp_path, children, call, fault):
    """Each single write or sync that fails is a loud failure, and nothing acknowledged is lost.

    SQLite passes over its own sync of a folder; the store syncs the folder itself.
    """
    _, _, calls = traced(children, tmp_path / "whole", call)
    for n, _ in enumerate(calls, 1):
        home = tmp_path / f"home-{n}"
        out, code, made = traced(children, home, call, f"error={fault}:when={n}")
        [failed] = [line for line in made if "INJECTED" in line]
        is_of_folder = call == "fdatasync" and f"<{home}>" in failed
        assert (code != 0) or is_of_folder, failed
        if home.exists():
            check(home, out)
