"""The process that serves the embedded model; executed as a file, imports nothing of ours.

The first line of standard input is a JSON object {weights, window, prompts, key}: the key is
in no argument list and in no environment. Then a thread waits for the end of standard input, which comes
also when the parent is killed, and ends this process. When the model is loaded, its address is printed.

Threads of llama.cpp wait for each other by spinning, after every layer. If one of them has no core, all
the others spin for a time slice. On two cores, a model of 0.5 billion parameters wrote 14 tokens in a
second with one thread and 1 with two while other work ran; on a quiet machine two were faster than one.
"""

import importlib
import json
import os
import threading
import time
from pathlib import Path
from typing import Any

_MOST = 8  # threads; more of them wait for the memory
_LOOK = 0.3  # seconds


def threads(cores: float, load: float) -> int:
    """Return the number of threads for so many cores, of which others keep `load` busy on average."""
    return max(1, min(_MOST, round(cores - load)))


def load() -> float:
    """Return how many cores others keep busy: on average of the last minute, and still.

    The average alone also has what has ended since, such as the model of the last chat.
    """
    average = os.getloadavg()[0]
    if average < 0.5:  # one thread for each core in any case
        return average
    try:
        before, begun = _busy_seconds(), time.monotonic()
        time.sleep(_LOOK)
        return min(average, (_busy_seconds() - before) / (time.monotonic() - begun))
    except (OSError, ValueError):  # not on macOS
        return average


def _busy_seconds() -> float:
    """Return for how long all cores together have been busy since the start of the machine.

    https://www.kernel.org/doc/html/latest/filesystems/proc.html#miscellaneous-kernel-statistics-in-proc-stat
    """
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, *interrupts = map(int, file.readline().split()[1:8])
    return (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")


def _end_with_parent() -> None:
    while os.read(0, 4096):
        continue
    os._exit(0)  # the native server has threads of its own that would hold up a usual exit


def _cores() -> float:
    """Return the cores that this process, or the container that this is, may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS
    cores = float(len(affinity(0)) if affinity else os.cpu_count() or 1)
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text("ascii").split()
    except (OSError, ValueError):
        return cores
    return min(cores, int(quota) / int(period)) if quota.isdecimal() else cores


def main() -> None:
    """Load, serve, and end with the parent."""
    with open(0, "rb", buffering=0, closefd=False) as unbuffered:  # the thread reads the rest
        settings = json.loads(unbuffered.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    address = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever the native code prints is no address
    native: Any = importlib.import_module("xllamacpp")  # compiled, and without types
    params = native.CommonParams()
    params.model.path = settings["weights"]
    params.n_ctx = settings["window"]
    params.n_parallel = 1
    # A request that was cancelled ends between two batches. On a processor, small ones are as fast as
    # large ones: 19 tokens in a second with 16 or 128, but the end came after 0.3 s instead of 7.
    params.n_batch = params.n_ubatch = 16
    params.cache_ram_mib = 256  # for the conversations of other sessions
    params.slot_save_path = settings["prompts"]
    number = threads(_cores(), load())
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = number
    params.port = 0
    params.api_keys = [settings["key"]]
    params.cors_origins = ""
    params.cors_origins_explicit = True
    params.endpoint_slots = False
    server = native.Server(params)
    print(server.listening_address, file=address, flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
