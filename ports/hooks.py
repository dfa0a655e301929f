"""Runs hooks: commands of a person, or Python entry points, which receive an event as JSON on stdin.

A hook has a time limit, and all processes that it started end with it; part of its output is kept, and
its environment has no secrets. A failure is a result, never an exception. An entry point (group
`steersman.hooks`, named after the event, or `EVENT.ANYTHING`) also runs in a separate process, so that
it cannot block or crash this one.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..machines.errors import ToolError
from ..machines.value import Value
from .process.process import Processes, ProcessSpec
from .tools.environment import clean_environment

GROUP = "steersman.hooks"
KEEP = 2048
"""Bytes of the output's head, and of its tail."""


class HookSpec(Value):
    """A hook: its event and its command; `timeout` in seconds."""

    on: str
    run: tuple[str, ...]
    timeout: float = 10.0


class HookCall(Value):
    """One event: the payload for hooks, and the folder in which they run."""

    event: str
    payload: Mapping[str, Any]
    folder: Path
    about: int = 0
    finalize: str = ""


class HookResult(Value):
    """How a hook ended; `status` as in `journal.entries.HookRan`."""

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
    event = json.dumps({"event": call.event, **call.payload}, ensure_ascii=False, default=str)
    begun = time.monotonic()
    try:
        process = await processes.spawn(
            ProcessSpec(
                argv=spec.run,
                cwd=folder,
                environment=environment,
                timeout=spec.timeout,
                keep=KEEP,
                stdin=event.encode("utf-8", "replace") + b"\n",
            )
        )
        result = await process.wait()
    except ToolError as error:
        return HookResult(status="skipped", output=error.message)
    output = (result.head + result.tail).decode(errors="replace")
    seconds = round(time.monotonic() - begun, 3)
    return HookResult(
        status=result.status,
        exit_code=result.exit_code,
        seconds=seconds,
        output=output or result.reason,
    )


def entry_point_hooks(timeout: float = 10.0) -> list[HookSpec]:
    """Find the installed entry points; reads files, so not for the loop's thread."""
    from importlib.metadata import entry_points

    path = os.environ.get("PYTHONPATH", "")
    python = ("env", f"PYTHONPATH={path}", sys.executable) if path else (sys.executable,)
    found = sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value))
    return [
        HookSpec(
            on=point.name.partition(".")[0],
            run=(*python, "-m", "steersman.ports.hooks", point.name, point.value),
            timeout=timeout,
        )
        for point in found
    ]


def run_entry_point(arguments: Sequence[str]) -> int:
    """Call an entry point with the event on standard input; for a separate process."""
    from importlib.metadata import EntryPoint

    name, value = arguments
    sys.path[:] = [path for path in sys.path if path not in ("", os.getcwd())]
    EntryPoint(name, value, GROUP).load()(json.load(sys.stdin))
    return 0


if __name__ == "__main__":
    sys.exit(run_entry_point(sys.argv[1:]))
