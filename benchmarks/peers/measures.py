"""What is measured of each contender, and how: each measure returns numbers, or raises `Missing`."""

import json
import os
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from contenders import CACHE, OURS, PATIENCE, Contender, Live, Missing
from peer_server import Asked, PeerServer
from screen import Pty

LONGEST = 3.0
"""Seconds after a stop in which a process has to be dead; later counts as never."""
NEVER = float("inf")
_TICK = os.sysconf("SC_CLK_TCK")


@dataclass
class Seat:
    """One contender with its own home and folder, and the server."""

    contender: Contender
    home: Path
    folder: Path
    server: PeerServer

    @property
    def environ(self) -> dict[str, str]:
        """Its settings, written anew, and its environment."""
        return self.contender.configure(self.home, self.server.url)

    def start(self, *arguments: str) -> "subprocess.Popen[bytes]":
        """Start a command of it."""
        quiet = subprocess.DEVNULL
        return subprocess.Popen(
            self.contender.command(*arguments),
            cwd=self.folder,
            env=self.environ,
            stdin=quiet,
            stdout=quiet,
            stderr=quiet,
        )

    def one_shot(self, prompt: str) -> tuple[float, list[Asked]]:
        """Run one prompt to its end; return when it began, and what was asked. Raises `Missing`."""
        start = len(self.server.asked)
        began = time.perf_counter()
        process = self.start(*self.contender.one_shot, prompt)
        _wait(process)
        asked = self.server.asked[start:]
        if not any(one.has_tools for one in asked):
            raise Missing(f"it asked nothing; its exit code is {process.returncode}")
        return began, asked

    def live(self) -> Live:
        """Start a conversation. Raises `Missing`."""
        if self.contender.live is None:
            raise Missing("no headless conversation")
        return self.contender.live(self.contender.command(), self.folder, self.environ)


def _wait(process: "subprocess.Popen[bytes]") -> None:
    """Wait for its end; a wait with a time limit looks seldom, and would add up to twice its time."""
    late, limit = time.monotonic() + PATIENCE, threading.Timer(PATIENCE, process.kill)
    limit.start()
    process.wait()
    limit.cancel()
    if time.monotonic() >= late:
        raise Missing(f"it did not end within {PATIENCE:g} s")


# Processes ----------------------------------------------------------------------------------------


def _family(pid: int) -> list[int]:
    """Return a process and all below it that are there."""
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with suppress(OSError, ValueError, IndexError):
                fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
                parents.setdefault(int(fields[1]), []).append(int(name))
    found = [pid]
    for one in found:
        found += parents.get(one, [])
    return found


def _pss(pids: list[int]) -> float:
    """Return the memory of processes in MiB, each shared page counted once."""
    total = 0
    for pid in pids:
        with suppress(OSError):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1])
    return total / 1024


def _cpu(pids: list[int]) -> float:
    """Return the seconds of CPU that processes, and those of their children that ended, have used."""
    total = 0
    for pid in pids:
        with suppress(OSError, ValueError, IndexError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += sum(int(field) for field in fields[11:15])
    return total / _TICK


def _wakes(pids: list[int]) -> int:
    """Return how often the threads of processes have slept, each time to be woken."""
    total = 0
    for pid in pids:
        for status in Path(f"/proc/{pid}/task").glob("*/status"):
            with suppress(OSError):
                words = status.read_text().split("\nvoluntary_ctxt_switches:")[1].split()
                total += int(words[0])
    return total


def _is_dead(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return True
    return state in "ZX"


def _pid_in(file: Path) -> int:
    """Wait until a command has written a process id. Raises `Missing`."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        with suppress(OSError, ValueError):
            return int(file.read_text())
        time.sleep(0.005)
    raise Missing("its tool did not start")


# One shot -----------------------------------------------------------------------------------------


def bare_python() -> float:
    """Return the seconds that the interpreter of our installation takes to start and end."""
    program = CACHE / OURS / "bin" / "python"
    began = time.perf_counter()
    subprocess.run([program, "-c", "pass"], check=True)
    return time.perf_counter() - began


def version(seat: Seat) -> float:
    """Return how often python could have started while it prints its version."""
    python = bare_python()
    began = time.perf_counter()
    _wait(seat.start(*seat.contender.version))
    return (time.perf_counter() - began) / python


def first_request(seat: Seat) -> float:
    """Return the milliseconds from its start until the model is asked."""
    began, asked = seat.one_shot("hi")
    return (next(one.came for one in asked if one.has_tools) - began) * 1e3


def memory(seat: Seat) -> float:
    """Return the most memory of all its processes during one prompt, in MiB."""
    process = seat.start(*seat.contender.one_shot, "hi")
    most = 0.0
    until = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < until:
        most = max(most, _pss(_family(process.pid)))
        time.sleep(0.02)
    _wait(process)
    return most


def keys(seat: Seat) -> float:
    """Return the milliseconds from a chat's start until it shows a key. Raises `Missing`."""
    if not seat.contender.chat:
        raise Missing("its screen is not read here")
    words, sign = seat.contender.chat
    one = Pty(seat.contender.command(*words), seat.folder, dict(seat.environ))
    try:
        one.until(sign)
        one.type("Z")
        return (one.until("Z") - one.began) * 1e3
    finally:
        one.close()


def tokens(seat: Seat) -> float:
    """Return the tokens that all requests for "hi" take, by four bytes each."""
    return sum(one.size for one in seat.one_shot("hi")[1]) / 4


def tokens_of_output(seat: Seat) -> float:
    """Return the tokens that 589 kB of a tool's output add to the next request."""
    _, asked = seat.one_shot("RUN[seq 1 100000]")
    own = [one for one in asked if one.has_tools]
    if len(own) < 2:
        raise Missing("it did not run the tool")
    return (own[1].size - own[0].size) / 4


def prefix(seat: Seat) -> float:
    """Return the least share of a request that the next one begins with, in per cent."""
    _, asked = seat.one_shot("CALLS[4]")
    own = [_parts(one.body) for one in asked if one.has_tools]
    if len(own) < 5:
        raise Missing(f"it made {len(own) - 1} of 4 calls")
    shares: list[float] = []
    for before, after in pairwise(own):
        shared = 0
        for left, right in zip(before, after, strict=False):
            if left != right:
                break
            shared += len(left)
        shares.append(100 * shared / sum(map(len, before)))
    return min(shares)


def _parts(body: dict[str, Any]) -> list[str]:
    """Return what a server's cache is keyed by, in its order: tools, instructions, messages."""
    said = body.get("messages") or body.get("input") or []
    system = [body.get("instructions", ""), body.get("system", "")]
    return [json.dumps(_unmarked(part)) for part in [body.get("tools", []), *system, *said]]


def _unmarked(part: Any) -> Any:
    """Take out the marks of where a cache may end, which move on and are no text."""
    if isinstance(part, list):
        return [_unmarked(one) for one in part]
    if isinstance(part, dict):
        return {key: _unmarked(one) for key, one in part.items() if key != "cache_control"}
    return part


# In a conversation --------------------------------------------------------------------------------


def warm_turn(seat: Seat, live: Live) -> float:
    """Return the milliseconds of a turn, without those of the server."""
    start = len(seat.server.asked)
    began = time.perf_counter()
    live.say("hi")
    took = live.ended() - began
    own = [one for one in seat.server.asked[start:] if one.has_tools]
    return (took - sum(one.done - one.came for one in own if one.done)) * 1e3


def interrupt(seat: Seat, live: Live, number: int) -> tuple[float, float, float]:
    """Return the milliseconds from a stop until the turn has ended, its tool and its daemon are dead."""
    tool, daemon = (seat.folder / f"{name}-{number}" for name in ("tool", "daemon"))
    script = f"setsid sh -c 'echo $$ > {daemon}; exec sleep 300' & echo $$ > {tool}; exec sleep 300"
    live.say(f"RUN[{script}]")
    pids = [_pid_in(tool), _pid_in(daemon)]
    time.sleep(0.3)
    dead: dict[int, float] = {}
    began = time.perf_counter()

    def watch() -> None:
        while len(dead) < len(pids) and time.perf_counter() < began + LONGEST:
            for pid in pids:
                if pid not in dead and _is_dead(pid):
                    dead[pid] = time.perf_counter()
            time.sleep(0.0005)

    watching = threading.Thread(target=watch)
    watching.start()
    live.interrupt()
    ended = live.ended()
    watching.join()
    for pid in pids:
        if pid not in dead:
            with suppress(OSError):
                os.kill(pid, 9)
    times = [(dead[pid] - began) * 1e3 if pid in dead else NEVER for pid in pids]
    return (ended - began) * 1e3, times[0], times[1]


def steer(seat: Seat, live: Live, number: int) -> float:
    """Return the milliseconds from the end of a tool until the model is asked with the new message."""
    begun, over = (seat.folder / f"{name}-{number}" for name in ("begun", "over"))
    live.say(f"RUN[echo $$ > {begun}; sleep 1; date +%s%N > {over}]")
    _pid_in(begun)
    start = len(seat.server.asked)
    word = f"and-mind-this-{number}"
    live.steer(word)
    try:
        asked = seat.server.wait(start, seconds=20, text=word)
    except TimeoutError as error:
        raise Missing(str(error)) from error
    now = time.time() - time.perf_counter()
    took = asked.came + now - _pid_in(over) / 1e9
    live.ended()
    return took * 1e3


def idle(seat: Seat, live: Live) -> float:
    """Return how often a second all its threads wake up, of themselves, while nothing happens."""
    seconds = 3.0
    time.sleep(1.0)
    before, began = _wakes(_family(live.pid)), time.perf_counter()
    time.sleep(seconds)
    woken, took = _wakes(_family(live.pid)) - before, time.perf_counter() - began
    return woken / took


def streaming(seat: Seat, live: Live) -> float:
    """Return the share of one processor that it takes while 200 words a second stream, in per cent."""
    seconds = 4.0
    start = len(seat.server.asked)
    live.say(f"STREAM[{seconds}]")
    asked = seat.server.wait(start)
    time.sleep(0.3)
    before, began = _cpu(_family(live.pid)), time.perf_counter()
    time.sleep(seconds - 1.0)
    used, took = _cpu(_family(live.pid)) - before, time.perf_counter() - began
    live.ended()
    assert asked.has_tools
    return 100 * used / took
