"""What the tests of processes share: a host on a loop of its own, and hostile programs."""

import asyncio
import os
import sys
import threading
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest

from steersman.ports.process.host import ProcessHost
from steersman.ports.process.process import Process, ProcessResult, ProcessSpec

T = TypeVar("T")

_READY = "import sys, time, os, signal; print('ready', flush=True); "
_DAEMON = """
import os, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        sleep = 'import time; print("ready", flush=True); time.sleep(60)'
        os.execve(sys.executable, [sys.executable, '-c', sleep, sys.argv[1]], {})
    os._exit(0)
import time; time.sleep(60)
"""
_IGNORANT = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);" + _READY
_THREADS = """
import threading, time
threads = [threading.Thread(target=time.sleep, args=(60,)) for _ in range(4)]
[thread.start() for thread in threads]
print('ready', flush=True)
"""
_HOPPER = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    for hop in range(20_000):
        if os.fork():
            os._exit(0)
        os.setsid()
        if hop == 3:
            print('ready', flush=True)
        time.sleep(0.003)
time.sleep(60)
"""
_PYTHON = (sys.executable, "-I", "-S", "-c")

HOSTILE: dict[str, tuple[str, ...]] = {
    "shell with a background job": ("sh", "-c", "sleep 60 & echo ready; sleep 60"),
    "double-forking daemon": (*_PYTHON, _DAEMON),
    "ignores TERM": (*_PYTHON, _IGNORANT + "time.sleep(60)"),
    "threads": (*_PYTHON, _THREADS),
    "forks again every 3 ms": (*_PYTHON, _HOPPER),
}


@dataclass
class Mark:
    """A word that is in the environment and the arguments of one test's processes only."""

    word: str = field(default_factory=lambda: f"mark-{uuid.uuid4().hex}")

    def spec(self, *argv: str, **rest: Any) -> ProcessSpec:
        """Make a command that carries the mark."""
        environment = {"PATH": os.environ["PATH"], "MARK": self.word}
        rest.setdefault("cwd", Path("/"))
        return ProcessSpec((*argv, self.word), environment=environment, **rest)

    def pids(self) -> list[int]:
        """Look through /proc for living processes that carry it."""
        names = [name for name in os.listdir("/proc") if name.isdigit()]
        return [int(name) for name in names if self._is_on(name)]

    def _is_on(self, name: str) -> bool:
        try:
            return any(
                self.word.encode() in Path(f"/proc/{name}/{file}").read_bytes()
                for file in ("environ", "cmdline")
            )
        except OSError:
            return False

    def until_gone(self, seconds: float) -> list[int]:
        """Look until none is left or the time is over; give what is left."""
        pause = threading.Event()
        for _ in range(int(seconds / 0.02)):
            if not self.pids():
                break
            pause.wait(0.02)
        return self.pids()


@dataclass
class Hosting:
    """Runs a test's coroutine with a process host, at most for a minute."""

    def __call__(self, scenario: Callable[[ProcessHost], Awaitable[T]]) -> T:
        """Run it on a loop of its own and close the host."""

        async def bounded() -> T:
            host = ProcessHost()
            try:
                async with asyncio.timeout(60):
                    return await scenario(host)
            finally:
                await host.aclose()

        return asyncio.run(bounded())

    def result(self, spec: ProcessSpec) -> ProcessResult:
        """Run one command to its end."""

        async def scenario(host: ProcessHost) -> ProcessResult:
            return await (await host.spawn(spec)).wait()

        return self(scenario)

    async def ready(self, host: ProcessHost, spec: ProcessSpec) -> Process:
        """Spawn a command and wait until it says that it is ready."""
        is_ready = asyncio.Event()
        said = bytearray()

        def listen(piece: bytes) -> None:
            said.extend(piece)
            if b"ready" in said:
                is_ready.set()

        process = await host.spawn(spec, listen)
        await is_ready.wait()
        return process


@pytest.fixture
def hosting() -> Hosting:
    """A fresh one."""
    return Hosting()


@pytest.fixture
def mark() -> Mark:
    """A fresh one."""
    return Mark()


@pytest.fixture(params=HOSTILE.values(), ids=HOSTILE.keys())
def hostile(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """A program that is hard to end; it says `ready`."""
    program: tuple[str, ...] = request.param
    return program
