"""What the tests of processes share: a host on a loop of its own, and hostile programs."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from operator import methodcaller
from pathlib import Path
from typing import Any, TypeVar

import pytest
from support.hostile import HOSTILE, Mark
from support.patience import seconds

from steersman.ports.process.host import ProcessHost
from steersman.ports.process.process import Process, ProcessResult, ProcessSpec

T = TypeVar("T")


class Marking(Mark):
    """A mark that makes commands which carry it."""

    def spec(self, *argv: str, **rest: Any) -> ProcessSpec:
        """Make a command that carries the mark."""
        environment = {"PATH": os.environ["PATH"], "MARK": self.word}
        rest.setdefault("cwd", Path("/"))
        return ProcessSpec(argv=(*argv, self.word), environment=environment, **rest)

    @contextmanager
    def runtime(self, *argv: str, **more: float) -> Generator[subprocess.Popen[str]]:
        """Start a runtime of its own with a command that carries the mark, which has said `ready`."""
        spec, pipe = self.spec(*argv), subprocess.PIPE
        wanted = {"argv": spec.argv, "environment": spec.environment, **more}
        program = [sys.executable, Path(__file__).with_name("runtime.py")]
        with subprocess.Popen(program, stdin=pipe, stdout=pipe, text=True) as runtime:
            assert runtime.stdin is not None
            assert runtime.stdout is not None
            print(json.dumps(wanted), file=runtime.stdin, flush=True)
            assert "ready" in runtime.stdout.readline()
            yield runtime


@dataclass
class Hosting:
    """Runs a test's coroutine with a process host, at most for a minute."""

    def __call__(self, scenario: Callable[[ProcessHost], Awaitable[T]]) -> T:
        """Run it on a loop of its own and close the host."""

        async def bounded() -> T:
            host = ProcessHost()
            try:
                async with asyncio.timeout(seconds(60)):
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

    def ended(
        self, mark: Mark, spec: ProcessSpec, end: Callable[[Process], object] = methodcaller("stop")
    ) -> tuple[ProcessResult, list[int]]:
        """End a command that is ready; return its result, and what is left when that is there."""

        async def scenario(host: ProcessHost) -> tuple[ProcessResult, list[int]]:
            process = await self.ready(host, spec)
            end(process)
            return await process.wait(), mark.pids()

        return self(scenario)


@pytest.fixture
def hosting() -> Hosting:
    """A fresh one."""
    return Hosting()


@pytest.fixture
def mark() -> Marking:
    """A fresh one."""
    return Marking()


@pytest.fixture(params=HOSTILE.values(), ids=HOSTILE.keys())
def hostile(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """A program that is hard to end; it says `ready`."""
    program: tuple[str, ...] = request.param
    return program
