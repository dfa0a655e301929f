"""Keeps the configured gateways running while a home is served: each is a program of its own.

A gateway that ends is started again after a pause that grows; one that says that its table is wrong (exit
code 2) only when the server is started again. What it prints goes to `gateways/NAME.log`.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from ...ports.process.own_python import module_command, search_path
from ...workflows.home_folder import home_folder
from ...workflows.paths import make_private
from .platform_parts import BackgroundTasks, pauses

log = logging.getLogger("steersman.chat")

WRONG = 2
"""The exit code of a program whose settings are wrong."""
_PARTING = 10.0  # seconds in which a gateway has to end


@asynccontextmanager
async def gateways_running(
    names: Sequence[str], state: Path, environ: Mapping[str, str]
) -> AsyncGenerator[None]:
    """Run gateways meanwhile; at the end, end them, and wait until they have ended."""
    tasks = BackgroundTasks()
    for name in names:
        tasks.start(_keep(name, state, environ))
    try:
        yield
    finally:
        await tasks.aclose()


async def _keep(name: str, state: Path, environ: Mapping[str, str]) -> None:
    for pause in pauses():
        code = await _run(name, state, environ)
        if code == WRONG:
            log.error("gateway %s: its settings are wrong: see gateways/%s.log", name, name)
            return
        log.warning("gateway %s ended with %s, and is started again", name, code)
        await asyncio.sleep(pause)


async def _run(name: str, state: Path, environ: Mapping[str, str]) -> int:
    """Run a gateway to its end, and return its exit code; a cancel ends it."""
    folder = make_private(state / "gateways")
    place = os.open(folder / f"{name}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(place, "wb") as output:
        command = module_command("steersman", "gateway", "run", name, "--ends-with-input")
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,  # it ends when this program does, however that ends
            stdout=output,
            stderr=output,
            env={**environ, **search_path(environ)},
            cwd=home_folder(),
            start_new_session=True,
        )
    try:
        return await process.wait()
    finally:
        if process.returncode is None:
            await _end(process)


async def _end(process: asyncio.subprocess.Process) -> None:
    """End a program: with a signal, and with force if it does not go."""
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        await asyncio.wait_for(process.wait(), _PARTING)
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
