"""A runtime that the tests kill: runs the command it reads from stdin, says when it is ready."""

import asyncio
import json
import signal
import sys
from pathlib import Path

from steersman.ports.process.host import ProcessHost
from steersman.ports.process.process import ProcessSpec
from steersman.ports.process.wire import deadline_clock


async def main() -> None:
    """Spawn, pass the output on, and wait for ever."""
    wanted = json.loads(sys.stdin.readline())
    spec = ProcessSpec(argv=tuple(wanted["argv"]), cwd=Path("/"), environment=wanted["environment"])
    host = ProcessHost()
    if wanted.get("seconds"):
        host.set_deadline(deadline_clock() + wanted["seconds"])
    process = await host.spawn(spec, lambda data: print(data.decode(), flush=True))
    await process.wait()


if __name__ == "__main__":
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    asyncio.run(main())
