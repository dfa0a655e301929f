"""Runs hooks: commands of a person, or Python entry points, told of an event as JSON on stdin.

A hook has a time limit and everything it started ends with it; its output is kept in part, its
environment holds no secrets. Whatever it does, there is a result and nothing is raised. An entry point
(group `steersman.hooks`, named after the event, or `EVENT.ANYTHING`) is run by a process of its own,
too, so that it can hang or fail no better and no worse than a command.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..machines.errors import ToolError
from .process.process import Processes, ProcessSpec
from .tools.environment import clean_environment

GROUP = "steersman.hooks"
KEEP = 2048
"""Bytes of the output's head, and of its tail."""


@dataclass(frozen=True, slots=True)
class HookSpec:
    """A hook: what it is run for, and how; `timeout` in seconds."""

    on: str
    run: tuple[str, ...]
    timeout: float = 10.0


@dataclass(frozen=True, slots=True)
class HookCall:
    """One event: what hooks are told of it, and the folder in which they run."""

    event: str
    payload: Mapping[str, Any]
    folder: Path
    about: int = 0
    finalize: str = ""


@dataclass(frozen=True, slots=True)
class HookResult:
    """How a hook ended; `status` as in `journal/hook_entry.py`."""

    status: str
    exit_code: int | None = None
    seconds: float = 0.0
    output: str = ""


async def run_hook(
    spec: HookSpec, call: HookCall, processes: Processes, environ: Mapping[str, str]
) -> HookResult:
    """Run one hook to its end, or to its time limit."""
    environment = clean_environment(environ)
    environment["STEERSMAN_HOOK"] = call.event
    if home := environ.get("STEERSMAN_HOME"):
        environment["STEERSMAN_HOME"] = home
    folder = call.folder if call.folder.is_dir() else Path.home()
    said = json.dumps({"event": call.event, **call.payload}, ensure_ascii=False, default=str)
    begun = time.monotonic()
    try:
        process = await processes.spawn(
            ProcessSpec(
                spec.run,
                folder,
                environment,
                timeout=spec.timeout,
                keep=KEEP,
                stdin=said.encode("utf-8", "replace") + b"\n",
            )
        )
        result = await process.wait()
    except ToolError as error:
        return HookResult("skipped", output=error.message)
    output = (result.head + result.tail).decode(errors="replace")
    seconds = round(time.monotonic() - begun, 3)
    return HookResult(result.status, result.exit_code, seconds, output or result.reason)


def entry_point_hooks(timeout: float = 10.0) -> list[HookSpec]:
    """Find the entry points that are installed; reads files, so not for the loop's own thread."""
    from importlib.metadata import entry_points

    path = os.environ.get("PYTHONPATH", "")
    python = ("env", f"PYTHONPATH={path}", sys.executable) if path else (sys.executable,)
    found = sorted(entry_points(group=GROUP), key=lambda one: (one.name, one.value))
    return [
        HookSpec(
            one.name.partition(".")[0],
            (*python, "-m", "steersman.ports.hooks", one.name, one.value),
            timeout,
        )
        for one in found
    ]


def run_entry_point(arguments: Sequence[str]) -> int:
    """Call an entry point with what comes on standard input; in a process of its own."""
    from importlib.metadata import EntryPoint

    name, value = arguments
    sys.path[:] = [path for path in sys.path if path not in ("", os.getcwd())]
    EntryPoint(name, value, GROUP).load()(json.load(sys.stdin))
    return 0


if __name__ == "__main__":
    sys.exit(run_entry_point(sys.argv[1:]))
