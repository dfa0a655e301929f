"""The process that serves the embedded model; executed as a file, imports nothing of ours.

The first line of standard input is a JSON object {weights, window, threads, prompts, key}: the key is
in no argument list and in no environment. Then a thread waits for the end of standard input, which comes
also when the parent is killed, and ends this process. When the model is loaded, its address is printed.
"""

import importlib
import json
import os
import threading
from typing import Any


def _end_with_parent() -> None:
    while os.read(0, 4096):
        continue
    os._exit(0)  # the native server has threads of its own that would hold up a usual exit


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
    params.cpuparams.n_threads = settings["threads"]
    params.cpuparams_batch.n_threads = settings["threads"]
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
