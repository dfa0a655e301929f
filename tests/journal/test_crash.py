"""Kills at every write: what was acknowledged is stored, and the journal has no holes."""

import random
import shutil
from pathlib import Path

import pytest

from steersman.journal.sqlite import SqliteStore

STRACE = shutil.which("strace")
CALLS = ("pwrite64", "write", "fdatasync", "fsync", "ftruncate", "unlink", "mkdir")


def check(folder: Path, out: str) -> int:
    """Compare acknowledgements with the store, claim it anew; returns the number of entries."""
    acks = [int(line.split()[1]) for line in out.splitlines() if line.startswith("ACK")]
    store = SqliteStore.open(folder)
    try:
        if not store.sessions():
            assert not acks
            return 0
        stored = [entry.seq for entry in store.entries("s1")]
        assert stored == list(range(1, len(stored) + 1))
        assert set(acks) <= set(stored)
        assert len(stored) <= len(acks) + 1
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
        rest, _ = child.communicate(timeout=30)
        out = "".join(lines) + rest
        store = SqliteStore.open(home)
        after = store.load("s1").row.seq
        assert [entry.seq for entry in store.entries("s1")] == list(range(1, after + 1))
        store.close()
        acks = [int(line.split()[1]) for line in out.splitlines() if line.startswith("ACK")]
        assert acks == list(range(stored + 1, stored + len(acks) + 1))
        assert acks[-1] <= after <= acks[-1] + 1
        stored = after


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(STRACE is None, reason="strace is not installed")
@pytest.mark.parametrize("call", CALLS)
def test_a_kill_at_every_system_call_loses_nothing(tmp_path, children, call):
    """For each n, a writer is killed at its n-th call of this kind, and nothing acknowledged goes.

    The sweep ends where the writer lives to its end.
    """
    kills = 0
    for n in range(1, 400):
        home = tmp_path / f"home-{n}"
        out, code = strace(children, home, f"{call}:signal=KILL:when={n}")
        entries = check(home, out) if home.exists() else 0
        if code == 0:
            assert entries == 12
            break
        kills += 1
    assert kills


def strace(children, home: Path, injection: str) -> tuple[str, int]:
    """Run the appending child with a fault injected into its system calls."""
    call = injection.partition(":")[0]
    before = (STRACE, "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e")
    child = children.start("append", home, 12, before=(*before, f"inject={injection}"))
    out, _ = child.communicate(timeout=60)
    return out, child.returncode


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(STRACE is None, reason="strace is not installed")
@pytest.mark.parametrize("fault", ["EIO", "ENOSPC"])
@pytest.mark.parametrize("call", ["pwrite64", "fdatasync", "fsync", "ftruncate"])
def test_a_failing_call_is_never_passed_over(tmp_path, children, call, fault):
    """A write or sync that fails once is a loud failure, or nothing is lost by it."""
    failures = 0
    for n in range(1, 400):
        home = tmp_path / f"home-{n}"
        out, code = strace(children, home, f"{call}:error={fault}:when={n}")
        entries = check(home, out) if home.exists() else 0
        if code == 0:
            assert entries == 12
            break
        failures += 1
    assert failures
