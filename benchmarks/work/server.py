"""llama.cpp's own server for one file of weights, as a process of its own.

As a program: `python server.py WEIGHTS`. It prints its address when the model is loaded, and ends when
its standard input ends.
"""

import importlib
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any

WINDOW = 32768
"""Tokens of prompt and answer: some harnesses begin with 20,000."""
_LOAD = 180.0  # seconds


class ModelServer:
    """The process, from `with` to its end. Raises `RuntimeError` if the weights cannot be loaded."""

    def __init__(self, weights: Path) -> None:
        pipe = subprocess.PIPE
        command = [sys.executable, "-P", __file__, str(weights)]
        self._process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL
        )
        timer = threading.Timer(_LOAD, self._process.kill)
        timer.start()
        assert self._process.stdout
        self.url = self._process.stdout.readline().decode().strip()
        timer.cancel()
        if not self.url:
            raise RuntimeError(f"`{weights}` cannot be served: is `xllamacpp` installed?")

    def __enter__(self) -> "ModelServer":
        """Return the running server."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End it."""
        assert self._process.stdin
        self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def main() -> None:
    """Load, serve, and end with standard input."""
    address = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever the native code prints is no address
    native: Any = importlib.import_module("xllamacpp")
    params = native.CommonParams()
    params.model.path = sys.argv[1]
    params.n_ctx = WINDOW
    params.n_parallel = 1
    params.cache_ram_mib = 2048  # of prompts that others, as a maker of titles, have pushed out
    params.n_batch = params.n_ubatch = 256  # a call that is given up ends within a batch
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = os.cpu_count() or 1
    params.port = 0
    params.use_jinja = True
    server = native.Server(params)
    print(server.listening_address, file=address, flush=True)
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    main()
