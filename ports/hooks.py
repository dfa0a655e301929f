"""Runs hooks: commands of a person, or Python entry points, which receive an event as JSON on stdin.

A hook has a time limit, and all processes that it started end with it; part of its output is kept, and
its environment has no secrets. A failure is a result, never an exception. A plug-in (group
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

from ..machines.delivery import current_spelling
from ..machines.errors import PlugInError, ToolError
from ..machines.value import Value
from ..workflows.home_folder import home_folder
from ..workflows.plugins import PREFIX, EntryPoints, PlugIn
from ..workflows.problem import did_you_mean
from .process.own_python import module_command, search_path
from .process.process import Processes, ProcessSpec
from .tools.environment import clean_environment

KEEP = 2048
"""Bytes of the output's head, and of its tail."""


UNUSABLE = 78
"""Exit code of the process of a plug-in that cannot be used; its output says why."""


class HookSpec(Value):
    """A hook: its event as it was written, and its command; `timeout` in seconds.

    `is_plug_in`: see `UNUSABLE`.
    """

    on: str
    run: tuple[str, ...]
    timeout: float = 10.0
    is_plug_in: bool = False

    @property
    def event(self) -> str:
        """The event in its current spelling."""
        return current_spelling(self.on)


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
    """Run one hook to its end, or to its time limit; it gets the event in its own spelling."""
    environment = clean_environment(environ)
    environment["STEERSMAN_HOOK"] = spec.on
    if home := environ.get("STEERSMAN_HOME"):
        environment["STEERSMAN_HOME"] = home
    folder = call.folder if call.folder.is_dir() else home_folder()
    event = json.dumps({"event": spec.on, **call.payload}, ensure_ascii=False, default=str)
    begun = time.monotonic()
    command = ProcessSpec(
        argv=spec.run,
        cwd=folder,
        environment=environment,
        timeout=spec.timeout,
        keep=KEEP,
        stdin=event.encode("utf-8", "replace") + b"\n",
    )
    try:
        result = await (await processes.spawn(command)).wait()
    except ToolError as error:
        return HookResult(status="skipped", output=error.message)
    output = (result.head + result.tail).decode(errors="replace")
    return HookResult(
        status=result.status,
        exit_code=result.exit_code,
        seconds=round(time.monotonic() - begun, 3),
        output=output or result.reason,
    )


# Plug-ins -----------------------------------------------------------------------------------------


def _name_fault(name: str) -> str:
    """Say why a hook may not have a name."""
    from ..workflows.settings import HOOK_EVENTS

    event = name.partition(".")[0]
    if current_spelling(event) in HOOK_EVENTS:
        return ""
    known = did_you_mean(event, HOOK_EVENTS) or f"there are {', '.join(HOOK_EVENTS)}"
    return f"there is no event `{event}`; {known}"


HOOKS = EntryPoints(
    f"{PREFIX}hooks", "hook", called_with=("event",), check_name=_name_fault, is_many=True
)


def installed_hooks() -> list[HookSpec]:
    """Find the hooks of installed packages; reads files, so not for the loop's thread."""
    path = [f"{name}={value}" for name, value in search_path(os.environ).items()]
    begin = ("env", *path) if path else ()
    return [
        HookSpec(
            on=plug_in.name.partition(".")[0],
            run=(
                *begin,
                *module_command("steersman.ports.hooks", plug_in.name, plug_in.place),
                *(plug_in.distribution, plug_in.version),
            ),
            is_plug_in=True,
        )
        for plug_in in HOOKS.plug_ins
        if not plug_in.fault
    ]


def run_plug_in(arguments: Sequence[str]) -> int:
    """Call a plug-in with the event on standard input; for a separate process."""
    name, place, distribution, version = arguments
    plug_in = PlugIn(
        noun="hook", name=name, place=place, distribution=distribution, version=version
    )
    try:
        function = HOOKS.checked(plug_in)
    except PlugInError as error:
        print(f"{error.message}; {error.hint}", file=sys.stderr)
        return UNUSABLE
    function(json.load(sys.stdin))
    return 0


if __name__ == "__main__":
    sys.exit(run_plug_in(sys.argv[1:]))
