"""The seam to other machines: where the command of a workflow's step runs, with what it needs there.

A placement keeps to the rules of a tool: a command is handed over once and never repeated here; its
result comes when nothing that it started is left, or it is `unknown` where that can't be known; `stop`
may be called at any time. The files that it declares are written into the folder here, by this program,
before the result is there: so what a step changed is looked at and brought back as if the command had
run here.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from msgspec import field

from ..machines.errors import ToolError
from ..machines.value import Value
from .process.process import Process, Processes, ProcessResult, ProcessSpec
from .tools.place import find_place


class RemoteCommand(Value):
    """A command that may run on another machine.

    `process` is the command as it would run here; `added` is what the step adds to the environment of
    the machine on which it runs. `folder` is the run's folder, and `cwd` the command's, relative to it;
    `inputs` and `outputs` are paths in it. `call` is a function's call in place of a command
    (`calling.py`), its `folder` relative as well. `memory` is bytes; 0 reserves none.
    """

    process: ProcessSpec
    folder: Path
    added: Mapping[str, str] = field(default_factory=dict[str, str])
    cwd: str = ""
    call: Mapping[str, Any] | None = None
    cpus: float = 1.0
    gpus: float = 0.0
    memory: int = 0
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()


class PlacedResult(ProcessResult):
    """How a command ended; `missing` are declared files that it did not make."""

    missing: tuple[str, ...] = ()


class Placement(Protocol):
    """Where the remote steps of a run are executed; one for the whole program."""

    async def start(
        self, command: RemoteCommand, on_output: Callable[[bytes], None] | None = None
    ) -> Process:
        """Hand over a command on the running asyncio loop; its result is a `PlacedResult`.

        `on_output` is called with pieces of at most 16 KiB. Raises `ToolError` if it cannot begin.
        """
        ...

    async def aclose(self) -> None:
        """End everything that still runs. Idempotent."""
        ...


async def start_here(command: RemoteCommand, processes: Processes) -> Process:
    """Start a command on this machine, in the folder itself; see `Placement.start`."""
    await asyncio.to_thread(_make_room, command)
    return await processes.spawn(command.process)


def _make_room(command: RemoteCommand) -> None:
    """Make the folders in which declared files are to be made. Raises `ToolError`."""
    for name in command.outputs:
        place = find_place(name, command.folder)
        if place.is_outside:
            raise ToolError(f"the output `{name}` leads outside the folder, to `{place.path}`")
        try:
            place.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ToolError(f"the output `{name}` cannot be made: {error.strerror}") from error


def missing_of(outputs: Iterable[str], folder: Path) -> Iterable[str]:
    """Name the declared files and folders that are not in the run's folder."""
    for name in outputs:
        try:
            place = find_place(name, folder)
        except ToolError:
            yield name
            continue
        if place.is_outside or not os.path.exists(place.path):
            yield name
