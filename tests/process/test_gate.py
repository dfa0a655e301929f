"""A goal's gates: the report of each end of a command, and that no process is left."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from steersman.machines import protocol as m
from steersman.ports.judging import KEEP, run_gate
from steersman.ports.process.host import ProcessHost
from steersman.ports.process.process import Process


def run(
    hosting: Any, mark: Any, *argv: str, timeout: float = 30.0, folder: Path = Path("/")
) -> m.GateResult:
    """Run a gate whose processes carry the mark."""
    environment = {"PATH": os.environ["PATH"], "MARK": mark.word}

    async def scenario(host: ProcessHost) -> m.GateResult:
        result, _ = await run_gate(argv, folder, environment, timeout, host, lambda process: None)
        return result

    result: m.GateResult = hosting(scenario)
    return result


@pytest.mark.parametrize(
    ("script", "passed", "status", "code", "output"),
    [
        ("pwd", True, "exited", 0, "/tmp\n"),
        ("echo to stderr >&2; exit 3", False, "exited", 3, "to stderr\n"),
        ("kill -9 $$", False, "exited", -9, ""),
        ("printf '\\377'", True, "exited", 0, "\N{REPLACEMENT CHARACTER}"),
    ],
)
def test_how_a_gate_ends_is_how_its_command_does(
    hosting, mark, script: str, passed: bool, status: str, code: int, output: str
) -> None:
    """It passes with exit code 0 and with no other; what it printed is there, from both streams."""
    result = run(hosting, mark, "sh", "-c", script, folder=Path("/tmp"))
    assert (result.passed, result.status, result.exit_code) == (passed, status, code)
    assert result.output == output


def test_a_gate_is_no_shell(hosting, mark) -> None:
    """Its words reach the command as they are."""
    assert run(hosting, mark, "echo", "$HOME;", "*").output == "$HOME; *\n"


@pytest.mark.parametrize("command", ["no-such-command-anywhere", "/etc/passwd"])
def test_a_gate_that_cannot_be_run_fails_and_says_why(hosting, mark, command: str) -> None:
    """A command that is missing, or is none, is a gate that fails, with the reason as its output."""
    result = run(hosting, mark, command)
    assert (result.passed, result.status, result.exit_code) == (False, "failed", None)
    assert command in result.output


def test_a_gate_that_hangs_is_ended_with_all_that_it_started(hosting, mark, hostile) -> None:
    """At its time limit it has failed, and its whole tree is dead, however it resists."""
    result = run(hosting, mark, *hostile, mark.word, timeout=0.5)
    assert (result.passed, result.status) == (False, "timed_out")
    assert mark.pids() == []


def test_a_gate_that_is_stopped_leaves_nothing(hosting, mark) -> None:
    """A stop returns the gate's end, and no process of it runs."""
    environment = {"PATH": os.environ["PATH"], "MARK": mark.word}

    async def scenario(host: ProcessHost) -> tuple[m.GateResult, list[int]]:
        began = asyncio.get_running_loop().create_future()
        argv = ("sh", "-c", "sleep 60 & sleep 60")
        gate = run_gate(argv, Path("/"), environment, 60.0, host, began.set_result)
        running = asyncio.ensure_future(gate)
        process: Process = await began
        process.stop()
        result, _ = await running
        return result, mark.pids()

    result, left = hosting(scenario)
    assert (result.passed, result.status, left) == (False, "killed", [])


def test_of_megabytes_the_end_is_kept(hosting, mark) -> None:
    """However much a gate prints, what it said last is kept, and no more than that."""
    script = "print('x' * 5_000_000); print('two tests fail'); raise SystemExit(1)"
    result = run(hosting, mark, sys.executable, "-c", script)
    assert len(result.output) <= KEEP
    assert result.output.endswith("two tests fail\n")
    assert (result.passed, result.exit_code) == (False, 1)
