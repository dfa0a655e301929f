"""What delegation costs: many children in one process, their stop, and a steer to who waits for a child.

Run it as `python benchmarks/delegation.py [COMMANDS]`, with the package installed. The children are real
sessions on a real store; their model never answers, or has run a command that sleeps, which so many (100,
400 and 1,000 unless told) do at once. Beside each measure stands the same without delegation, or a bare
kill of as many processes, from the same run.
"""

import asyncio
import gc
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

from table import head, row

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.driver import Gate, Place
from support.model_server import Behaviour, ModelServer, Text, Tools

from steersman.actors.agent_profile import AgentProfile
from steersman.actors.live_session import LiveSession
from steersman.actors.runtime import Runtime
from steersman.cli.main import COLLECTS
from steersman.journal.sqlite import SqliteStore
from steersman.machines import protocol as m
from steersman.machines.conversation import ToolRequest, Usage
from steersman.machines.delivery import Cause
from steersman.machines.disposition import Intent
from steersman.machines.policy import DelegationPolicy
from steersman.ports.models.model import ModelAnswer
from steersman.ports.tools.permission import Permissions
from steersman.workflows.home_place import Storage

CHILDREN = 1_000
COMMANDS = (100, 400, 1_000)
SLEEPS = {
    "a sleep": "echo; exec sleep 600",
    "a sleep in a session of its own": "setsid sh -c 'echo; exec sleep 600' & wait",
}
STOP_ROUNDS = 3
RUNS = 15
WAIT = 120.0


class Deaf:
    """A model that delegates to as many as it is told to; those never get an answer."""

    name = "deaf"

    def __init__(self, command: str = "") -> None:
        self.command = command
        self.asked = 0
        self._change = threading.Condition()

    async def window(self) -> int:
        """Say nothing."""
        return 0

    async def answer(self, request: Any, listener: Any) -> ModelAnswer:
        """Delegate, or hang."""
        said = request.messages[-1].text
        if said.startswith("delegate"):
            calls = tuple(
                ToolRequest(
                    call=f"{request.call_prefix}{n}",
                    tool="delegate",
                    arguments={"task": f"task {n}"},
                )
                for n in range(int(said.split()[1]))
            )
            return ModelAnswer(text="", tool_calls=calls, usage=Usage(), stop_reason="tool_calls")
        if self.command and said.startswith("task"):
            wanted = ToolRequest(
                call=f"{request.call_prefix}1", tool="shell", arguments={"command": self.command}
            )
            return ModelAnswer(
                text="", tool_calls=(wanted,), usage=Usage(), stop_reason="tool_calls"
            )
        with self._change:
            self.asked += 1
            self._change.notify_all()
        await asyncio.Event().wait()
        raise AssertionError

    def wait(self, count: int) -> None:
        """Wait until so many hang."""
        with self._change:
            assert self._change.wait_for(lambda: self.asked >= count, WAIT), self.asked


class StopObserver:
    """Notes that something was stopped."""

    def __init__(self) -> None:
        self.stopped = threading.Event()

    def observe_entry(self, entry: Any, *_rest: Any) -> Callable[[], None] | None:
        """Note an entry once it is durable."""
        return self.stopped.set if type(entry).__name__ == "Stopped" else None

    def observe_fact(self, fact: Any) -> None:
        """Publish nothing."""


class Home:
    """A runtime on a store in a folder of its own."""

    def __init__(self, folder: Path, command: str = "") -> None:
        self.model = Deaf(command)
        self.runtime = Runtime(SqliteStore.open(folder), storage=Storage(folder=folder))
        self.profile = AgentProfile(
            name="assistant",
            model=self.model,
            system="",
            tools=("delegate", "shell"),
            permissions=Permissions((), default_yes=True),
            delegation=DelegationPolicy(agents=("assistant",), max_children=CHILDREN),
        )
        self.runtime.child_setup.profile_of = lambda *_: self.profile
        self.runtime.child_setup.observers_of = lambda session, parent: (StopObserver(),)
        self.folder = folder

    def open(self) -> tuple[LiveSession, StopObserver]:
        """Begin a session."""
        observer = StopObserver()
        session = self.runtime.open_new(self.folder, self.profile, lambda _: (observer,))
        return self.runtime.sessions[session], observer

    def say(self, live: LiveSession, text: str) -> None:
        """Say something to it."""
        self.runtime.tell(
            live.id, m.UserMessage(type="normal", said=m.Said(text=text), intent=Intent.CONVERSE)
        )


def measured(begin: Callable[[], None]) -> tuple[float, float]:
    """Return the seconds that something took, and the bytes that are held since."""
    gc.collect()
    before, _ = tracemalloc.get_traced_memory()
    started = time.monotonic()
    begin()
    spent = time.monotonic() - started
    gc.collect()
    return spent, tracemalloc.get_traced_memory()[0] - before


def crowd() -> None:
    """Weigh a thousand children and a thousand sessions beside each other, then stop them."""
    with tempfile.TemporaryDirectory() as name:
        for title, work in {"children": children, "plain sessions": plain}.items():
            folder = Path(name) / title.split()[0]
            folder.mkdir(mode=0o700)
            spent: dict[bool, float] = {}
            for is_traced in (False, True):  # tracing slows: time and memory are apart
                home = Home(folder / str(is_traced))
                if is_traced:
                    tracemalloc.start()
                seconds, held, stop = work(home)
                tracemalloc.stop()
                spent[is_traced] = held
                if not is_traced:
                    head(f"{CHILDREN:,} {title}, each with a turn that waits for its model")
                    row("milliseconds to begin one", seconds / CHILDREN * 1e3)
                    row("seconds until all are stopped, and it is durable", stop)
                home.runtime.close()
            row("kilobytes of one", spent[True] / CHILDREN / 1e3)


def children(home: Home) -> tuple[float, float, float]:
    """One agent, a thousand subagents, one stop."""
    live, observer = home.open()

    def begin() -> None:
        home.say(live, f"delegate {CHILDREN}")
        home.model.wait(CHILDREN)

    seconds, held = measured(begin)
    started = time.monotonic()
    home.runtime.ask(live.id, m.Interrupt(order=m.StopOrder(cause=Cause.STOP)), WAIT)
    assert observer.stopped.wait(WAIT)
    return seconds, held, time.monotonic() - started


def plain(home: Home) -> tuple[float, float, float]:
    """A thousand sessions that nobody owns, each stopped by itself."""
    opened: list[tuple[LiveSession, StopObserver]] = []

    def begin() -> None:
        for _ in range(CHILDREN):
            opened.append(home.open())
            home.say(opened[-1][0], "work")
        home.model.wait(CHILDREN)

    seconds, held = measured(begin)
    started = time.monotonic()
    for live, _ in opened:
        home.runtime.tell(live.id, m.Interrupt(order=m.StopOrder(cause=Cause.STOP)))
    assert all(observer.stopped.wait(WAIT) for _, observer in opened)
    return seconds, held, time.monotonic() - started


def commands(counts: tuple[int, ...]) -> None:
    """Stop children that each have a command; from the stop to the proof that all are dead."""
    for title, command in SLEEPS.items():
        head(f"/stop of children with {title}, least and median of {STOP_ROUNDS}")
        for count in counts:
            rounds = [stopped(count, command) for _ in range(STOP_ROUNDS)]
            bare = [killed(count) for _ in range(STOP_ROUNDS)]
            limit = 1.5 if count == CHILDREN else None
            show(f"{count:,} children, until all are dead", [one for one, _ in rounds], limit)
            show("  processor time of this program for that", [one for _, one in rounds])
            show("  a bare kill and wait of as many", bare)
            ratio = min(one for one, _ in rounds) / min(bare)
            row("  against the bare kill", ratio, unit="x")


def show(name: str, seconds: list[float], limit: float | None = None) -> None:
    """Print the least, which the limit is about, and the median."""
    least = min(seconds)
    ok = None if limit is None else least <= limit
    row(name, least, "" if limit is None else f"<= {limit:g} s", "s, least", ok)
    row("", statistics.median(seconds), unit="s, median")


def stopped(count: int, command: str) -> tuple[float, float]:
    """Seconds from the stop to the proof that all is dead, and those of this program's processor."""
    with tempfile.TemporaryDirectory() as name:
        home = Home(Path(name), command)
        live, observer = home.open()
        home.say(live, f"delegate {count}")
        sessions = home.runtime.sessions
        pids: set[int] = set()
        until = time.monotonic() + 5 * WAIT
        while len(pids) < count:
            assert time.monotonic() < until, len(pids)
            time.sleep(0.05)
            pids = {
                pid for session in list(sessions.values()) for pid in session.executor.pids.values()
            }
        time.sleep(1.0)  # the commands of the last ones have begun then, too
        used, began = time.process_time(), time.monotonic()
        home.runtime.ask(live.id, m.Interrupt(order=m.StopOrder(cause=Cause.STOP)), WAIT)
        assert observer.stopped.wait(WAIT)
        found = time.monotonic() - began, time.process_time() - used
        assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]
        home.runtime.close()
        return found


def killed(count: int) -> float:
    """Seconds to kill so many processes, and to wait for them."""
    processes = [subprocess.Popen(["sleep", "600"]) for _ in range(count)]
    began = time.monotonic()
    for process in processes:
        process.kill()
    for process in processes:
        process.wait()
    return time.monotonic() - began


def steers() -> None:
    """Steer a plain turn, and a turn that waits for a child, at the same kind of boundary."""
    head(f"a steer, median of {RUNS}")
    found = {name: steered(is_child) for name, is_child in (("turn", False), ("child", True))}
    row("a plain turn: from the boundary to the request with it", found["turn"] * 1e3, unit="ms")
    value = found["child"] * 1e3
    row("through the parent: the same, at the child", value, "<= 50 ms", ok=value <= 50)


def steered(is_child: bool) -> float:
    """Seconds from the end of a tool to the request that has the steer."""
    work = Tools(
        [{"tool": "shell", "arguments": {"command": "echo $$ > gate.here; read w < gate.go"}}]
    )
    calls: list[Behaviour] = []
    for _ in range(RUNS):
        if is_child:
            calls.append(Tools([{"tool": "delegate", "arguments": {"task": "the work"}}]))
        calls += [work, Text("Done.")] + ([Text("All done.")] if is_child else [])
    found: list[float] = []
    with tempfile.TemporaryDirectory() as name, ModelServer(calls) as server:
        place = Place(Path(name) / "root")
        place.configure(server.base_url)
        gate = Gate(place.folder)
        chat = place.chat("--yes")
        offset = time.monotonic() - server.now()
        for _ in range(RUNS):
            chat.send("work")
            gate.wait()
            chat.send({"text": "use tabs", "as": "steer"})
            accepted = chat.wait("accepted", session=chat.session, **{"as": "steer"})
            if is_child:
                chat.wait("accepted", client_id=f"{chat.session}:{accepted['id']}")
            asked, began = len(server.requests), time.monotonic()
            gate.open()
            request = server.wait_requests(asked + 1)[asked]
            assert "use tabs" in request.prompt
            found.append(request.at + offset - began)
            chat.wait("turn_ended", session=chat.session)
        place.close()
        gate.close()
    return statistics.median(found)


def main() -> None:
    """Print the tables."""
    gc.set_threshold(*COLLECTS)  # as the program does
    counts = tuple(map(int, sys.argv[1:])) or COMMANDS
    crowd()
    commands(counts)
    steers()


if __name__ == "__main__":
    main()
