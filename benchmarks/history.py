"""What a long history costs: sessions of 100 to a million entries, opened, talked to and looked at.

Run it as `python benchmarks/history.py`, with the package installed; `--full` adds a million entries,
whose journal takes two minutes to write, and `--sizes 100 50000` measures others. Each session has
turns with short messages, every fourth of them with a tool, and sums its oldest messages up as it goes,
so that the conversation that the model sees is about as long in all of them. Programs are real
processes and take turns; what counts is processor time, of which the least is kept, and ratios to the
shortest session.
"""

import argparse
import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import apsw
from table import head, row

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.driver import Place
from support.served import Served

from steersman.gateway.host.offline_writer import OfflineWriter, writing
from steersman.journal import entries as e
from steersman.journal.codec import encode_entry
from steersman.journal.sqlite import SqliteStore
from steersman.journal.store import SessionRow, StoredEntry
from steersman.machines import protocol as m
from steersman.machines.conversation import ChatMessage, ToolRequest, Usage

SIZES, FULL = (100, 10_000, 100_000), 1_000_000
ROUNDS, TURNS, WARM = 3, 40, 10
SUMMED_EACH, SUMMED_BEFORE, KEPT = (
    100,
    5,
    20,
)  # turns between summaries, and after the last; messages
SNAPSHOT_EACH = 100
PAGE = 150  # entries of the newest page
QUIET = 0.5  # seconds in which a server that has nothing to do uses next to nothing
SCRIPT = '[[answer]]\ntext = "The wheel turns, and the ship with it."\n'
CONFIG = """[models.main]
provider = "scripted"
script = "{script}"
[agents.assistant]
model = "main"
"""

Made = tuple[e.Entry, ...]


def turn_of(number: int, is_summed: bool, dropped: int) -> Made:
    """Give a turn: a message, perhaps a summary or a tool, an answer."""
    turn, item, call = f"t{number}", f"m{number}", f"t{number}.c1"
    text = f"Please look at file {number} and tell me what is in it."
    usage = Usage(input=900 + number % 90, output=40)
    asked = (ChatMessage(role="user", text=text),)
    answer = f"File {number} holds a list of names, one a line, in no order that I could see."
    made: list[e.Entry] = [
        e.Queued(
            item=item, number=1, said=m.Said(text=text), routed=m.Routed(rule="run"), is_next=True
        ),
        e.TurnStarted(turn=turn, item=item, number=1, epoch=number, messages=asked),
    ]
    if is_summed:
        words = "[Summary of the conversation so far] " + "Names were looked up in files. " * 20
        sums = (ChatMessage(role="user", text=words), ChatMessage(role="assistant", text="I see."))
        made.append(e.CompactionBegun(turn=turn, step=0, why="full", dropped=dropped))
        made.append(e.Compacted(turn=turn, step=0, dropped=dropped, how="summary", messages=sums))
    if number % 4 == 0:
        wanted = {"path": f"notes/{number}.txt"}
        request = ToolRequest(call=call, tool="read", arguments=wanted)
        asks = (ChatMessage(role="assistant", text="", tool_calls=(request,)),)
        found = (ChatMessage(role="tool", text="ann\nbob\ncarol\ndave\n" * 4, call=call),)
        made += [
            e.ModelCalled(turn=turn, step=1, tokens=900),
            e.Answered(turn=turn, step=1, usage=usage, messages=asks),
            e.ToolIntended(turn=turn, step=1, call=call, tool="read", arguments=wanted),
            e.ToolEnded(
                turn=turn, call=call, tool="read", end=m.CallEnd(status="ok"), messages=found
            ),
        ]
    step = 2 if number % 4 == 0 else 1
    said = (ChatMessage(role="assistant", text=answer),)
    made += [
        e.ModelCalled(turn=turn, step=step, tokens=900),
        e.Answered(turn=turn, step=step, usage=usage, messages=said),
        e.TurnEnded(turn=turn, status="completed"),
    ]
    return tuple(made)


def journal_of(size: int, session: str, folder: str) -> Iterator[e.Entry]:
    """Give a session of about so many entries, as one that was left in order."""
    yield e.SessionOpened(
        session=session, folder=folder, agent="assistant", model="main", system="Be brief."
    )
    turns = (size - 3) // 6
    talk = 0
    for number in range(1, turns + 1):
        is_summed = (turns - number) % SUMMED_EACH == SUMMED_BEFORE and talk > 2 * KEPT
        dropped = talk + 1 - KEPT
        yield from turn_of(number, is_summed, dropped)
        talk = (2 + KEPT - 1 if is_summed else talk) + (4 if number % 4 == 0 else 2)
    yield e.SessionLeaving(reaches=("self",))
    yield e.SessionSuspended()


def fill(store: SqliteStore, size: int, folder: str) -> str:
    """Write a session of so many entries, with a snapshot as often as a live one; return its id."""
    session = f"s{size}"
    store.create(SessionRow(session=session, folder=folder, agent="assistant"))
    with writing(store, session) as writer:
        batch: list[tuple[StoredEntry, e.Entry]] = []
        for seq, entry in enumerate(journal_of(size, session, folder), 1):
            stored = StoredEntry(seq=seq, time=1.7e9 + seq, data=encode_entry(entry))
            batch.append((stored, entry))
            if len(batch) == SNAPSHOT_EACH:
                keep(writer, batch)
        writer.keep(batch)
    return session


def keep(writer: OfflineWriter, batch: list[tuple[StoredEntry, e.Entry]]) -> None:
    """Write what has gathered, with a snapshot."""
    writer.keep(batch, with_snapshot=True)
    batch.clear()


# What the journal takes ---------------------------------------------------------------------------


def bytes_of(database: Path, session: str) -> tuple[float, float]:
    """Return the bytes an entry of a session: of the entries themselves, and of all beside them."""
    with closing(apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)) as connection:

        def number(query: str) -> int:
            ((found,),) = connection.execute(query, (session,))
            return int(found or 0)

        count = number("SELECT count(*) FROM entries WHERE session = ?")
        own = number("SELECT sum(length(CAST(data AS BLOB))) FROM entries WHERE session = ?")
    return own / count, count


# Programs -----------------------------------------------------------------------------------------


def spent(process: int) -> float:
    """Return the seconds of processor time that a live process has used, in all its threads."""
    tasks = Path(f"/proc/{process}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def command(place: Place, session: str) -> subprocess.Popen[str]:
    """Start a chat that goes on with a session."""
    return subprocess.Popen(
        [*place.command, "chat", "--resume", session, "--json"],
        cwd=place.folder,
        env=place.environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def opened(place: Place, session: str) -> tuple[float, float]:
    """Open a session and leave it; return seconds of processor time and the most memory in MiB."""
    process = command(place, session)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    assert process.returncode == 0, f"the chat of `{session}` ended with {process.returncode}"
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def turn_cost(place: Place, session: str) -> float:
    """Return the seconds of processor time that a turn takes in an opened session."""
    with command(place, session) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        before = 0.0
        for number in range(WARM + TURNS):
            if number == WARM:
                before = spent(process.pid)
            process.stdin.write("Hello.\n")
            process.stdin.flush()
            while json.loads(process.stdout.readline())["type"] != "turn_ended":
                continue
        each = (spent(process.pid) - before) / TURNS
        process.stdin.close()
        process.stdout.read()
    return each


def settled(process: int) -> float:
    """Return the processor time that a process has used when it does nothing more."""
    used = spent(process)
    while True:
        time.sleep(QUIET)
        before, used = used, spent(process)
        if used - before < QUIET / 20:
            return used


def first_page(place: Place, session: str, token: str) -> float:
    """Return the seconds of processor time of the requests with which the page shows a session."""
    web = Served(place)
    web.token = token
    connection = http.client.HTTPConnection(web.address, timeout=60)
    try:
        web.ask("GET", "sessions")
        before = settled(web.program.pid)
        upto = web.ask("GET", f"sessions/{session}").data["seq"]
        path = f"sessions/{session}/events?after={max(0, upto - PAGE)}&upto={upto}"
        assert web.ask("GET", path).data["events"], "an empty page"
        headers = {"Authorization": f"Bearer {web.token}", "Last-Event-ID": str(upto)}
        connection.request("GET", f"/api/v1/sessions/{session}/events", headers=headers)
        assert connection.getresponse().status == 200, "no stream"
        web.ask("GET", f"sessions/{session}/queue")
        web.ask("GET", f"sessions/{session}/inspect")
        return settled(web.program.pid) - before
    finally:
        connection.close()
        web.close()


# What is printed ----------------------------------------------------------------------------------


def show_growth(place: Place, sizes: Sequence[int]) -> None:
    """Write each session into a home, and print how many bytes each entry took."""
    database = place.home / "state" / "journal.db"
    head("bytes in the journal for each entry")
    before = 0
    for size in sizes:
        with closing(SqliteStore.open(place.home / "state")) as store:
            session = fill(store, size, str(place.folder))
        after = database.stat().st_size
        own, count = bytes_of(database, session)
        whole, before = (after - before) / count, after
        row(f"{size:,} entries, of their own text", own, unit="B")
        limit = 200 if size >= 10_000 else None
        row(
            f"{size:,} entries, with all that is kept of them",
            whole,
            "<= 200 B" if limit else "B",
            ok=whole <= limit if limit else None,
        )


def show_opening(place: Place, sizes: Sequence[int]) -> None:
    """Print what opening costs, against the shortest session."""
    found: dict[int, list[tuple[float, float]]] = {size: [] for size in sizes}
    for _ in range(ROUNDS):
        for size in sizes:
            found[size].append(opened(place, f"s{size}"))
    best = {size: min(seconds for seconds, _ in runs) for size, runs in found.items()}
    head(f"opened in a chat and left, best of {ROUNDS}")
    for size in sizes:
        memory = max(most for _, most in found[size])
        took = best[size] * 1e3
        row(f"{size:,} entries, processor time", took, "<= 800 ms", ok=took <= 800)
        row(f"{size:,} entries, most memory", memory, "<= 80 MiB", ok=memory <= 80)
    for size in sizes[1:]:
        ratio = best[size] / best[sizes[0]]
        row(f"{size:,} entries, times {sizes[0]:,}", ratio, "<= 1.3", ok=ratio <= 1.3)


def show(title: str, sizes: Sequence[int], measure: Callable[[str], float]) -> None:
    """Print the least cost for a session of each size, and its ratio to that for the shortest."""
    cost: dict[int, list[float]] = {size: [] for size in sizes}
    for _ in range(ROUNDS):
        for size in sizes:
            cost[size].append(measure(f"s{size}"))
    best = {size: min(runs) for size, runs in cost.items()}
    head(f"{title}, best of {ROUNDS}")
    for size, seconds in best.items():
        row(f"{size:,} entries", seconds * 1e3, unit="ms of processor time")
    for size in sizes[1:]:
        ratio = best[size] / best[sizes[0]]
        row(f"{size:,} entries, times {sizes[0]:,}", ratio, "<= 1.3", ok=ratio <= 1.3)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What a long history costs.")
    parser.add_argument("--full", action="store_true", help="also a session of a million entries")
    parser.add_argument("--sizes", type=int, nargs="+", help="other numbers of entries")
    options = parser.parse_args()
    sizes = options.sizes or [*SIZES, *([FULL] if options.full else [])]
    with tempfile.TemporaryDirectory() as name:
        place = Place(Path(name) / "root")
        script = place.home / "script.toml"
        script.write_text(SCRIPT, "utf-8")
        (place.home / "config.toml").write_text(CONFIG.format(script=script), "utf-8")
        show_growth(place, sizes)
        show_opening(place, sizes)
        show("a turn in a chat that goes on", sizes, partial(turn_cost, place))
        ran = place.run("devices", "pair", "bench", "--scope", "look", "--token")
        page = partial(first_page, place, token=ran.stdout.strip())
        show("the first requests of the web page", sizes, page)


if __name__ == "__main__":
    main()
