"""How cost grows: of a model call with its transcript, of a message with the queue, of a list of entries.

Run it as `python benchmarks/curves.py`, with the package installed. Each curve has two points, measured
by turns in the same run, and the ratio between them counts. Processor time is that of the process alone,
or of the thread of its event loop.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from looking import COMMAND, cpu_seconds
from table import head, row

from steersman.gateway.host.offline_writer import writing
from steersman.journal import entries as e
from steersman.journal.codec import encode_entry
from steersman.journal.sqlite import SqliteStore
from steersman.journal.store import SessionRow, StoredEntry
from steersman.machines import protocol as m
from steersman.machines.conversation import ChatMessage

LIMIT = 20_000
"""Messages that a queue may hold."""
ADDED = 100
"""Messages added to a queue."""
STEPS, ROUNDS = 20, 3
"""Model calls of a turn, and turns with each transcript."""
LETTERS = 5_000
"""Characters of a message of the transcripts."""
LOOP = "steersman-loop"
"""The name of the thread of the event loop."""


# Sessions to look at ------------------------------------------------------------------------------


def opened(session: str) -> e.SessionOpened:
    """Begin a session."""
    return e.SessionOpened(
        session=session, folder="/tmp", agent="assistant", model="main", system="Be brief."
    )


def turns(count: int, letters: int = 0) -> Generator[e.Entry]:
    """Give the entries of turns of one model call, five each, with messages of so many characters."""
    for number in range(1, count + 1):
        turn, item = f"t{number}", f"m{number}"
        said = (ChatMessage(role="user", text=f"wish {number} ".ljust(letters, "x")),)
        answer = (ChatMessage(role="assistant", text=f"answer {number} ".ljust(letters, "y")),)
        yield e.Queued(item=item, number=1, said=m.Said(text=f"wish {number}"))
        yield e.TurnStarted(turn=turn, item=item, number=1, epoch=number, messages=said)
        yield e.ModelCalled(turn=turn, step=1)
        yield e.Answered(turn=turn, step=1, messages=answer)
        yield e.TurnEnded(turn=turn, status="completed")


def waiting(count: int) -> Generator[e.Entry]:
    """Give the entries of a held queue with so many messages."""
    yield e.QueueHeld()
    for number in range(1, count + 1):
        yield e.Queued(
            item=f"m{number}",
            number=number,
            said=m.Said(text=f"wish {number}"),
            routed=m.Routed(said_as="queue"),
        )


def fill(home: Path, session: str, entries: Iterable[e.Entry]) -> None:
    """Write a session."""
    (home / "state").mkdir(mode=0o700, exist_ok=True)
    store = SqliteStore.open(home / "state")
    store.create(SessionRow(session=session, folder=str(home)))
    with writing(store, session) as offline_writer:
        batch: list[tuple[StoredEntry, e.Entry]] = []
        for seq, entry in enumerate((opened(session), *entries), 1):
            batch.append((StoredEntry(seq=seq, time=float(seq), data=encode_entry(entry)), entry))
            if len(batch) == 1000:
                offline_writer.keep(batch)
                batch = []
        offline_writer.keep(batch, with_snapshot=True)
    store.close()


def fill_turns(home: Path, session: str, count: int) -> None:
    """Write a session of so many turns."""
    fill(home, session, turns(count))


# A model call, by the length of the transcript ----------------------------------------------------


async def serve(steps: int) -> None:
    """Answer each request with a tool call, and each `steps`th with a text; print the port."""
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    asked = 0

    def answer() -> bytes:
        function = {"name": "note", "arguments": '{"text": "seen"}'}
        call = {"index": 0, "id": f"call_{asked}", "type": "function", "function": function}
        is_last = asked % steps == 0
        delta: dict[str, Any] = {"content": "Done."} if is_last else {"tool_calls": [call]}
        choice = {"index": 0, "delta": delta, "finish_reason": "stop" if is_last else "tool_calls"}
        body = f"data: {json.dumps({'choices': [choice], 'usage': usage})}\n\ndata: [DONE]\n\n"
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: {len(body)}"
        return f"{head}\r\nConnection: close\r\n\r\n{body}".encode()

    async def receive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().lower().splitlines()
        sizes = [line.partition(":")[2] for line in lines if line.startswith("content-length:")]
        left = int(sizes[0]) if sizes else 0
        while left:
            left -= len(await reader.read(min(left, 1 << 20)))
        if lines[0].startswith("post"):
            asked += 1
            writer.write(answer())
        else:
            writer.write(
                b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            )
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(receive, "127.0.0.1", 0, limit=1 << 22)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def sent(port: int, size: int) -> float:
    """Send a request of so many bytes over a bare socket: the least of its milliseconds."""
    times: list[float] = []
    head = f"POST / HTTP/1.1\r\nContent-Length: {size}\r\n\r\n".encode()
    body = bytes(size)
    for _ in range(STEPS * ROUNDS):
        with socket.create_connection(("127.0.0.1", port)) as connection:
            began = time.thread_time()
            connection.sendall(head)
            connection.sendall(body)
            times.append((time.thread_time() - began) * 1e3)
            connection.recv(1 << 16)
    return min(times)


async def call(home: str) -> dict[str, float]:
    """Ask in sessions with a short and a long transcript by turns: milliseconds of the loop a call."""
    import steersman

    @steersman.tool
    def note(text: str) -> str:
        """Keep a note."""
        return text

    agent = steersman.Agent(model="main", instructions="Be brief.", tools=[note])
    spent: dict[str, list[float]] = {}
    async with steersman.open(home) as runtime:
        sessions = {name: await runtime.resume(name, agent=agent) for name in ("short", "long")}
        loop = next(thread for thread in threading.enumerate() if thread.name == LOOP)
        assert loop.ident is not None
        clock = time.pthread_getcpuclockid(loop.ident)
        for _ in range(ROUNDS + 1):
            for name, session in sessions.items():
                began = time.clock_gettime(clock)
                answer = await session.ask("Note it.")
                assert answer.status == "done", answer
                spent.setdefault(name, []).append((time.clock_gettime(clock) - began) * 1e3)
    first = {f"{name}, first turn": times[0] for name, times in spent.items()}
    return first | {name: min(times[1:]) / STEPS for name, times in spent.items()}


def calls() -> None:
    """Print what a model call costs the event loop at 0.1 and at 10 MB."""
    play = (sys.executable, __file__, "--play")
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        fill(home, "short", turns(10, LETTERS))
        fill(home, "long", turns(1_000, LETTERS))
        with subprocess.Popen([*play, "serve"], stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout
                port = int(server.stdout.readline())
                (home / "config.toml").write_text(
                    f'[models.main]\nprovider = "openai"\nmodel = "bench"\n'
                    f'base_url = "http://127.0.0.1:{port}/v1"\n'
                )
                done = subprocess.run(
                    [*play, "call", "--home", folder],
                    stdout=subprocess.PIPE,
                    env=environ_of(home),
                    check=True,
                )
                floor = sent(port, 10_000_000)
            finally:
                server.kill()
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    short, long = found["short"], found["long"]
    head("a model call, on the event loop")
    row("0.1 MB of transcript", short, unit="ms")
    row("10 MB of transcript", long, unit="ms")
    row("what 10 MB add", long - short, "<= 5 ms", ok=long - short <= 5)
    row("10 MB sent over a bare socket", floor, unit="ms")
    row("the ratio", long / short, unit="x")
    first = found["long, first turn"] - found["short, first turn"]
    row("once, after the session was opened: 10 MB add", first, unit="ms")


# A message, by the length of the queue ------------------------------------------------------------


@contextmanager
def chat(home: Path, session: str) -> Generator[subprocess.Popen[bytes]]:
    """Open a session with a held queue."""
    command = [*COMMAND, "chat", "--json", "--resume", session, "--cwd", str(home)]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, env=environ_of(home), stdin=pipe, stdout=pipe)
    try:
        assert process.stdout
        while b'"recovered"' not in (line := process.stdout.readline()):
            assert line, "the chat ended"
        yield process
    finally:
        process.kill()
        process.communicate()


def add(process: "subprocess.Popen[bytes]", count: int) -> tuple[float, float]:
    """Add messages one by one; return milliseconds of processor time and bytes of output for each."""
    assert process.stdin
    assert process.stdout
    size, before = 0, cpu_seconds(process.pid)
    for number in range(count):
        line = json.dumps({"text": f"one more wish {number}", "as": "queue"})
        process.stdin.write(line.encode() + b"\n")
        process.stdin.flush()
        is_seen: set[str] = set()
        while is_seen != {"accepted", "queue"}:
            out = process.stdout.readline()
            assert out, "the chat ended"
            size += len(out)
            kind = json.loads(out)["type"]
            assert kind != "rejected", out[:1000]
            is_seen |= {kind} & {"accepted", "queue"}
    return (cpu_seconds(process.pid) - before) / count * 1e3, size / count


def settle(pid: int) -> None:
    """Wait until a process does nothing any more: it has written what its start left to be written."""
    before = -1.0
    while (now := cpu_seconds(pid)) != before:
        before = now
        time.sleep(0.3)


def queues(many: int) -> None:
    """Print what a message costs in a queue of ten and in one of ten thousand."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "config.toml").write_text(
            f'[models.main]\nprovider = "openai"\nbase_url = "http://127.0.0.1:9/v1"\nmodel = "bench"\n'
            f'[agents.assistant]\nmodel = "main"\n[auto_queue]\nmax_queue_size = {LIMIT}\n'
        )
        fill(home, "short", waiting(10))
        fill(home, "long", waiting(many))
        found: dict[str, list[tuple[float, float]]] = {"short": [], "long": []}
        for _ in range(ROUNDS):
            for name, runs in found.items():
                with chat(home, name) as process:
                    add(process, 5)
                    settle(process.pid)
                    runs.append(add(process, ADDED))
    (short, few), (long, much) = (min(runs) for runs in found.values())
    head("a message added to a queue")
    row("processor time in a queue of 10", short, unit="ms")
    row(f"processor time in a queue of {many:,}", long, unit="ms")
    row("the ratio", long / short, "<= 2", unit="x", ok=long <= 2 * short)
    row("bytes of events in a queue of 10", few, unit="bytes")
    row(f"bytes of events in a queue of {many:,}", much, "<= 1,024", ok=much <= 1024)


# The entries of a journal -------------------------------------------------------------------------


def listed(home: Path, arguments: Sequence[str]) -> tuple[float, float, float]:
    """Run a command: seconds of processor time, MiB at most, seconds to the first byte."""
    began = time.monotonic()
    process = subprocess.Popen([*COMMAND, *arguments], env=environ_of(home), stdout=subprocess.PIPE)
    assert process.stdout
    os.read(process.stdout.fileno(), 1)
    first = time.monotonic() - began
    while process.stdout.read(1 << 20):
        pass
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, first


def journals(most: int) -> None:
    """Print what the entries of a journal cost, each, in a short one and in a long one."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        # in a process of its own: what it needs counts as the memory of whatever is started here later
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            pool.starmap(fill_turns, [(home, "short", 200), (home, "long", most // 5)])
        for name, arguments in (
            ("inspect --events", ("inspect", "{}", "--events")),
            ("inspect --events --format json", ("inspect", "{}", "--events", "--format", "json")),
            ("inspect --events --format toml", ("inspect", "{}", "--events", "--format", "toml")),
            ("sessions export", ("sessions", "export", "{}")),
        ):
            head(f"steersman {name}")
            short, long = (
                listed(home, [part.format(session) for part in arguments])
                for session in ("short", "long")
            )
            cost = (long[0] - short[0]) / (most - 1000) * 1e6
            row(f"an entry of {most:,}, processor time", cost, "<= 43 µs", ok=cost <= 43)
            row("memory, 1,000 entries", short[1], unit="MiB")
            row(f"memory, {most:,} entries", long[1], "<= 80 MiB", ok=long[1] <= 80)
            row("the first byte, 1,000 entries", short[2], unit="s")
            aim = long[2] <= 2 * short[2]
            row(f"the first byte, {most:,} entries", long[2], "<= 2x", unit="s", ok=aim)


# Measuring ----------------------------------------------------------------------------------------


def environ_of(home: Path) -> dict[str, str]:
    """Return the environment of a program with this home."""
    return {**os.environ, "STEERSMAN_HOME": str(home)}


def main() -> None:
    """Draw the curves, or one of them; or play a part of one."""
    parser = argparse.ArgumentParser()
    parser.add_argument("curves", nargs="*", help="calls, queues, journals; none for all")
    parser.add_argument("--queue", type=int, default=10_000, help="messages of the long queue")
    parser.add_argument("--entries", type=int, default=100_000, help="entries of the long journal")
    parser.add_argument("--play", default="")
    parser.add_argument("--home", default="")
    given = parser.parse_args()
    if given.play == "serve":
        asyncio.run(serve(STEPS))
    elif given.play:
        print(json.dumps(asyncio.run(call(given.home))))
    for name, draw in (
        ("calls", calls),
        ("queues", lambda: queues(given.queue)),
        ("journals", lambda: journals(given.entries)),
    ):
        if not given.play and (name in given.curves or not given.curves):
            draw()


if __name__ == "__main__":
    main()
