"""What a killed owner had written of a remote command's files counts as the command's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from support.until import until

OWNER = """
import asyncio, sys
from pathlib import Path
from steersman.extensions.ray.placement import RayPlacement
from steersman.ports.placement import RemoteCommand
from steersman.ports.process.host import ProcessHost
from steersman.ports.process.process import ProcessSpec
from steersman.workflows.config import load
from steersman.workflows.paths import Paths

async def main(folder: Path) -> None:
    environ = {"STEERSMAN_HOME": str(folder)}
    config = load(Paths.of(environ), folder, environ)
    placement = RayPlacement("ray:127.0.0.1:1", config, environ, ProcessHost(), print)
    process = ProcessSpec(argv=("true",), cwd=folder, alive=folder / "alive")
    await placement.start(RemoteCommand(process=process, folder=folder))
    print("begun", flush=True)
    await asyncio.Event().wait()

asyncio.run(main(Path(sys.argv[1])))
"""


def test_who_is_gone_is_attested(tmp_path: Path) -> None:
    """When it has been killed, the time until which commands ran is set: not before, and no earlier."""
    alive = tmp_path / "alive"
    alive.touch()
    os.utime(alive, (0, 0))
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    with owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "begun\n"
        assert alive.stat().st_mtime == 0
        (tmp_path / "output").write_text("its last")
        owner.kill()

    written = (tmp_path / "output").stat().st_ctime_ns
    until(lambda: alive.stat().st_mtime_ns >= written, "the owner's end was not attested")
