"""What looking inside costs: a session of 100,000 entries at any moment, and 10,000 sessions listed.

Run it as `python benchmarks/looking.py`, with the package installed. Commands are real processes, each
measured beside one that only starts, by turns and in the same minute; of both the fastest run counts.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from table import head, row

from steersman.gateway.host.offline_writer import writing
from steersman.journal import entries as e
from steersman.journal.codec import encode_entry
from steersman.journal.sqlite import SqliteStore
from steersman.journal.store import SessionRow, StoredEntry
from steersman.machines import protocol as m
from steersman.machines.conversation import ChatMessage

TURNS, SESSIONS, RUNS = 20_000, 10_000, 7
COMMAND = (sys.executable, "-m", "steersman")
START = ("machines", "list")
IDLE = 5.0  # seconds in which a watched session does nothing
STORED = (
    ("the newest of 100,000 entries", 300, ("inspect", "long", "--format", "json")),
    ("entry 50,000", 500, ("inspect", "long", "--format", "json", "--at", "50000")),
    ("entry 999", 500, ("inspect", "long", "--format", "json", "--at", "999")),
    ("why, the newest message", 500, ("why", "long")),
    ("10,000 live sessions listed", 500, ("sessions", "list", "--json")),
)
LIVE = (
    ("live, of 100,000 entries", 300, ("inspect", "long", "--format", "json")),
    ("send, until it is acknowledged", 20, ("send", "long", "later", "--as", "queue")),
)


def fill(store: SqliteStore) -> None:
    """Write one session of 100,000 entries, and many that a live process owns."""
    store.create(SessionRow(session="long", folder="/tmp"))
    with writing(store, "long") as offline_writer:
        first = e.SessionOpened(
            session="long", folder="/tmp", agent="assistant", model="m", system="be good"
        )
        batch = [(StoredEntry(seq=1, time=1.0, data=encode_entry(first)), first)]
        for number in range(1, TURNS + 1):
            turn, item, at = f"t{number}", f"m{number}", offline_writer.record.seq + len(batch)
            said = (ChatMessage(role="user", text=f"wish {number}"),)
            answer = (ChatMessage(role="assistant", text=f"answer {number}"),)
            made = (
                e.Queued(item=item, number=1, said=m.Said(text=f"wish {number}")),
                e.TurnStarted(turn=turn, item=item, number=1, epoch=number, messages=said),
                e.ModelCalled(turn=turn, step=1),
                e.Answered(turn=turn, step=1, messages=answer),
                e.TurnEnded(turn=turn, status="completed"),
            )
            batch += [
                (StoredEntry(seq=at + n, time=float(at + n), data=encode_entry(one)), one)
                for n, one in enumerate(made, 1)
            ]
            if len(batch) >= 100:
                offline_writer.keep(batch, with_snapshot=True)
                batch = []
        if batch:
            offline_writer.keep(batch)
    for number in range(SESSIONS):
        store.create(SessionRow(session=f"s{number:05}", folder="/tmp", updated=float(number)))
        store.claim(f"s{number:05}", "n1")


def seconds(home: Path, arguments: Sequence[str]) -> float:
    """Return how long a command takes."""
    began = time.monotonic()
    environ = {**os.environ, "STEERSMAN_HOME": str(home)}
    subprocess.run([*COMMAND, *arguments], env=environ, check=True, capture_output=True)
    return time.monotonic() - began


def compare(home: Path, commands: Sequence[tuple[str, int, Sequence[str]]]) -> None:
    """Print how much longer each command takes than one that only starts."""
    for name, limit, arguments in commands:
        runs = [(seconds(home, START), seconds(home, arguments)) for _ in range(RUNS)]
        start, whole = (min(times) * 1e3 for times in zip(*runs, strict=True))
        aim = f"<= {limit} ms beside the start, which takes {start:.0f} ms"
        row(name, whole - start, aim, ok=whole - start <= limit)


@contextmanager
def owner(home: Path) -> Generator[int]:
    """Let a chat have the long session open, at work on a turn that does not end; yields its pid."""
    script = home / "answers.toml"
    script.write_text('[[answer]]\ntext = "never"\ndelay = inf\n')
    (home / "config.toml").write_text(
        f'[models.main]\nprovider = "scripted"\nscript = "{script}"\n'
        '[agents.assistant]\nmodel = "main"\n[auto_queue]\nmax_queue_size = 100\n'
    )
    command = [*COMMAND, "chat", "--json", "--resume", "long", "--cwd", str(home)]
    environ = {**os.environ, "STEERSMAN_HOME": str(home)}
    pipe = subprocess.PIPE
    chat = subprocess.Popen(command, env=environ, stdin=pipe, stdout=pipe)
    assert chat.stdin
    assert chat.stdout
    try:
        chat.stdin.write(b"work\n")
        chat.stdin.flush()
        while b'"turn_started"' not in chat.stdout.readline():
            pass
        yield chat.pid
    finally:
        chat.kill()
        chat.communicate()


def watched(home: Path, pid: int) -> None:
    """Print what a watched session costs while nothing happens in it: both processes together."""
    environ = {**os.environ, "STEERSMAN_HOME": str(home)}
    command = [*COMMAND, "inspect", "long", "--watch", "--format", "json"]
    watcher = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE)
    assert watcher.stdout
    try:
        for _ in range(2):  # what there is, and what happened before it listened
            watcher.stdout.readline()
        before = cpu_seconds(pid), cpu_seconds(watcher.pid)
        time.sleep(IDLE)
        after = cpu_seconds(pid), cpu_seconds(watcher.pid)
    finally:
        watcher.kill()
        watcher.communicate()
    share = (sum(after) - sum(before)) / IDLE * 100
    row("watched, nothing happens", share, "< 2 % of a core", unit="%", ok=share < 2)


def cpu_seconds(pid: int) -> float:
    """Return the processor time that a process has used, of all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Fill a home, and look at it."""
    head("looking inside")
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "state").mkdir(mode=0o700)
        store = SqliteStore.open(home / "state")
        fill(store)
        compare(home, STORED)
        store.close()
        with owner(home) as pid:
            compare(home, LIVE)
            watched(home, pid)


if __name__ == "__main__":
    main()
