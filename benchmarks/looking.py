"""What looking inside costs: a session of 100,000 entries at any moment, and 10,000 sessions listed.

Run it as `python benchmarks/looking.py`, with the package installed. Commands are real processes; beside
them stands the start of one that looks at nothing, in the same minute.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from table import head, row

from steersman.gateway.scribe import writing
from steersman.journal import entries as e
from steersman.journal.codec import encode_entry
from steersman.journal.sqlite import SqliteStore
from steersman.journal.store import SessionRow, StoredEntry
from steersman.machines.conversation import ChatMessage

TURNS, SESSIONS, RUNS = 20_000, 10_000, 5
COMMAND = (sys.executable, "-m", "steersman")


def fill(store: SqliteStore) -> None:
    """Write one session of 100,000 entries, and many that a live process owns."""
    store.create(SessionRow("long", "/project"))
    with writing(store, "long") as scribe:
        first = e.SessionOpened("long", "/project", "assistant", "m", "be good")
        batch = [(StoredEntry(1, 1.0, encode_entry(first)), first)]
        for number in range(1, TURNS + 1):
            turn, item, at = f"t{number}", f"m{number}", scribe.record.seq + len(batch)
            said = (ChatMessage("user", f"wish {number}"),)
            answer = (ChatMessage("assistant", f"answer {number}"),)
            made = (
                e.Queued(item, 1, f"wish {number}", "turn"),
                e.TurnStarted(turn, item, 1, number, messages=said),
                e.ModelCalled(turn, 1),
                e.Answered(turn, 1, messages=answer),
                e.TurnEnded(turn, "completed"),
            )
            batch += [
                (StoredEntry(at + n, float(at + n), encode_entry(one)), one)
                for n, one in enumerate(made, 1)
            ]
            if len(batch) >= 100:
                scribe.keep(batch, with_snapshot=True)
                batch = []
        if batch:
            scribe.keep(batch)
    for number in range(SESSIONS):
        store.create(SessionRow(f"s{number:05}", "/project", updated=float(number)))
        store.claim(f"s{number:05}", "n1")


def seconds(home: Path, *arguments: str) -> float:
    """Return the median of some runs of a command."""
    found: list[float] = []
    for _ in range(RUNS):
        began = time.monotonic()
        environ = {**os.environ, "STEERSMAN_HOME": str(home)}
        subprocess.run([*COMMAND, *arguments], env=environ, check=True, capture_output=True)
        found.append(time.monotonic() - began)
    return statistics.median(found)


def main() -> None:
    """Fill a home, and look at it."""
    head("looking inside, start of the program included")
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "state").mkdir(mode=0o700)
        store = SqliteStore.open(home / "state")
        fill(store)
        start = seconds(home, "machines", "list")
        row("start alone", start * 1e3, unit="ms")
        for name, limit, arguments in (
            ("the newest of 100,000 entries", 300, ("inspect", "long", "--format", "json")),
            ("entry 50,000", 500, ("inspect", "long", "--format", "json", "--at", "50000")),
            ("entry 999", 500, ("inspect", "long", "--format", "json", "--at", "999")),
            ("why, the newest message", 500, ("why", "long")),
            ("10,000 live sessions listed", 500, ("sessions", "list", "--json")),
        ):
            took = (seconds(home, *arguments) - start) * 1e3
            row(name, took, f"<= {limit} ms beside the start", ok=took <= limit)
        store.close()


if __name__ == "__main__":
    main()
