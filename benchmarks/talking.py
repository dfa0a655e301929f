"""What it costs to talk while it works: interrupts, steers, commands, and a start with much saved.

Run it as `python benchmarks/talking.py`, with the package installed. The program is the real one,
as `chat --json`; the model is a server on loopback. Both are driven as the tests drive them. Times
are taken where a line is written to the program and where its answer is read. On a machine that
others use compare with the rows without a limit, which were measured in the same minute.
"""

import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from table import head, row, spread

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.driver import Chat, Gate, Place
from support.model_server import Behaviour, ModelServer, Stall, Text, Tools

RUNS = 15
STARTS = 7
SAVED = 1_000
OBEDIENT = "echo $$ > gate.here; exec sleep 600"
FLOOD = "echo $$ > gate.here; yes 'a line of some length, again and again'"


class Scene:
    """A place, a gate and a model server; `chat` is one that allows everything."""

    def __init__(self, root: Path, *behaviours: Behaviour, top: str = "") -> None:
        self.place = Place(root)
        self.gate = Gate(self.place.folder)
        self.server = ModelServer(behaviours)
        self.place.configure(self.server.base_url, top=top)

    def chat(self, *arguments: str) -> Chat:
        """Start a chat, and wait until it listens."""
        chat = self.place.chat("--yes", *arguments)
        chat.wait("session_started")
        return chat

    def close(self) -> None:
        """End everything."""
        self.place.close()
        self.server.close()
        self.gate.close()


@contextmanager
def scene(*behaviours: Behaviour, top: str = "") -> Generator[Scene]:
    """Set a scene in a temporary folder."""
    with tempfile.TemporaryDirectory() as name:
        made = Scene(Path(name) / "root", *behaviours, top=top)
        try:
            yield made
        finally:
            made.close()


def shell(command: str) -> Tools:
    """A model that wants to run a command, whatever it is asked."""
    return Tools([{"tool": "shell", "arguments": {"command": command}}])


def until(chat: Chat, said: str, kind: str) -> float:
    """Seconds from saying something to an event of this kind."""
    began = time.monotonic()
    chat.send(said)
    return chat.times[chat.events.index(chat.wait(kind))] - began


def show(name: str, seconds: list[float], limit: float | None = None) -> float:
    """Print least and median in milliseconds, as `limit` is, and return the median in seconds."""
    return spread(name, [second * 1e3 for second in seconds], limit) / 1e3


def stops() -> None:
    """Interrupt a stream, and a tool that obeys."""
    stream: list[float] = []
    tool: list[float] = []
    dead: list[float] = []
    rest: list[float] = []
    with scene(Stall("I begin to say ")) as here:
        chat = here.chat()
        for _ in range(RUNS):
            rest.append(until(chat, "/busy", "result"))
            chat.send("work")
            chat.wait("text")
            stream.append(until(chat, "/stop", "turn_ended"))
            chat.wait("stopped")
    with scene(shell(OBEDIENT)) as here:
        chat = here.chat()
        for _ in range(RUNS):
            chat.send("work")
            here.gate.wait()
            began = time.monotonic()
            chat.send("/stop")
            for kind, times in (("turn_ended", tool), ("stopped", dead)):
                event = chat.wait(kind)
                times.append(chat.times[chat.events.index(event)] - began)
    head(f"an interrupt, {RUNS} times")
    still = show("a command at rest, from line to line", rest)
    show("interrupt of a stream, until the turn has ended", stream, 10)
    show("interrupt of a tool, until the turn has ended", tool, 10)
    gone = show("interrupt of a tool that obeys, until it is dead", dead, 20)
    row("the last in commands at rest", gone / still, unit="x")


def next_requests(says: str) -> list[float]:
    """Seconds from a tool's leave to end to the next request, with something said before."""
    found: list[float] = []
    calls: list[Behaviour] = []
    for _ in range(RUNS):
        calls += [shell("echo $$ > gate.here; read word < gate.go"), Text("Done.")]
    with scene(*calls) as here:
        chat = here.chat()
        offset = time.monotonic() - here.server.now()
        for number in range(RUNS):
            chat.send("work")
            here.gate.wait()
            if says:
                chat.send({"text": says, "as": "steer"})
                chat.wait("accepted", **{"as": "steer"})
            began = time.monotonic()
            here.gate.open()
            requests = here.server.wait_requests(2 * number + 2)
            found.append(requests[-1].at + offset - began)
            chat.wait("turn_ended")
    return found


def steers() -> None:
    """Compare the way from a tool's end to the next request, with a steer and without."""
    plain, steered = next_requests(""), next_requests("use tabs")
    head(f"a steer, {RUNS} times")
    without = show("a tool's end, until the model is asked again", plain)
    with_one = show("the same with a steer that waits", steered)
    cost = (with_one - without) * 1e3
    row("what the steer adds", cost, "<= 10 ms", ok=cost <= 10)


def commands() -> None:
    """Ask for the queue at rest, while a model streams, and while a tool floods."""
    found: dict[str, list[float]] = {}
    stream = Text("word " * 20_000, pause=0.005)
    for name, behaviour in {
        "200 tokens/s stream": stream,
        "a tool prints a lot": shell(FLOOD),
    }.items():
        with scene(behaviour) as here:
            chat = here.chat()
            rest = [until(chat, "/queue", "result") for _ in range(RUNS)]
            found.setdefault("at rest", []).extend(rest)
            chat.send("work")
            if isinstance(behaviour, Text):
                chat.wait("text")
            else:
                here.gate.wait()
            found[name] = [until(chat, "/queue", "result") for _ in range(2 * RUNS)]
    head(f"a command, worst of {2 * RUNS}")
    for name, times in found.items():
        show(name, times)
        row(f"{name}, worst", max(times) * 1e3, "<= 100 ms", ok=max(times) <= 0.1)


def saved(here: Scene, count: int) -> None:
    """Leave a session that was killed with so many messages waiting."""
    chat = here.chat()
    if count:
        chat.send("work")
        chat.wait("turn_started")
        chat.send(
            *({"text": f"message {n}", "as": "queue", "client_id": str(n)} for n in range(count))
        )
        chat.wait("accepted", client_id=str(count - 1))
    else:
        chat.wait("notice")
    chat.kill()


def start(here: Scene, *arguments: str) -> float:
    """Seconds from the start of a chat to its answer to a command, when all is shown."""
    began = time.monotonic()
    chat = here.place.chat("--yes", *arguments)
    chat.ask("/busy")
    spent = time.monotonic() - began
    chat.close()
    return spent


def starts() -> None:
    """Start with many messages saved and with none, by turns."""
    top = f"[auto_queue]\nmax_queue_size = {2 * SAVED}"
    with scene(Stall()) as empty, scene(Stall(), top=top) as full:
        saved(empty, 0)
        saved(full, SAVED)
        head(f"a start, best of {STARTS}")
        for name, arguments in {"chat --continue": ["--continue"], "chat": []}.items():
            pairs = [(start(empty, *arguments), start(full, *arguments)) for _ in range(STARTS)]
            none, many = (min(column) for column in zip(*pairs, strict=True))
            row(f"{name}, nothing saved", none * 1e3, unit="ms")
            row(f"{name}, {SAVED:,} messages saved", many * 1e3, unit="ms")
            row("more", many - none, "<= 0.3 s", ok=many - none <= 0.3)


def main() -> None:
    """Print the tables."""
    stops()
    steers()
    commands()
    starts()


if __name__ == "__main__":
    main()
