"""The program that is Ray's driver for a run, in a process of its own; `placement.py` starts it.

Ray brings threads and signal handlers, and ends its process when it loses the head. None of that is for
the program that owns the session. So that program has this one under a supervisor, like any command:
with it ends a cluster that it started, too.

It reads orders from standard input and writes what became of them to standard output, one JSON object a
line; bytes are texts of Base64. At the end of its input it ends.

    {"do": "run", "id", "argv", "call", "env", "stdin", "cwd", "timeout", "grace", "keep", "keep_errors",
     "needs": [cpus, gpus, memory], "inputs": [[path, source], …], "outputs", "staging", "is_followed"}
    {"do": "stop", "id", "grace"}

    {"is": "ready"}, {"is": "broken", "reason"}                     once, as the first
    {"is": "given", "ids"}                                          from now on it may be unknown
    {"is": "output", "id", "data"}
    {"is": "ended", "id", "status", "exit_code", "head", …}         as an `EndedCommand` (`placement.py`)
    {"is": "notice", "text"}
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import os
import re
import socket
import sys
from pathlib import Path
from typing import Any

import msgspec

_OBJECTS = 256 << 20  # bytes of the object store of a cluster that is started here
_LONGEST = 64 << 20
_PROBE = 10.0  # seconds for a connection
_ADDRESS = re.compile(r"(ray://)?(?P<host>[^\s:/\[\]@]+|\[[0-9a-fA-F:.]+\]):(?P<port>[0-9]{1,5})")
_LAST_PORT = 65_535
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Answers:
    """Standard output, which nothing else in this process writes to."""

    def __init__(self) -> None:
        self._fd = os.dup(1)
        os.dup2(2, 1)

    def send(self, message: dict[str, Any]) -> None:
        """Write a message; the owner reads as fast as this writes."""
        data = msgspec.json.encode(message) + b"\n"
        while data:
            data = data[os.write(self._fd, data) :]


def endpoint_of(address: str) -> tuple[str, int] | None:
    """Return host and port of an address, none where Ray finds it out. Raises `ValueError`."""
    if address in ("auto", "local"):
        return None
    found = _ADDRESS.fullmatch(address)
    if found is None or not 0 < int(found["port"]) <= _LAST_PORT:
        raise ValueError(f"`{address}` is no host with a port")
    return found["host"].strip("[]"), int(found["port"])


def probe(address: str) -> None:
    """Look whether anything listens, which takes Ray long to find out. Raises `OSError`, `ValueError`."""
    endpoint = endpoint_of(address)
    if endpoint is None:
        return
    with socket.create_connection(endpoint, _PROBE):
        pass
    host, port = endpoint
    if host in _LOOPBACK and "://" not in address:
        # Ray takes loopback for the address that others see; a cluster on loopback alone is not there.
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as looking:
            try:
                looking.connect(("192.0.2.1", 1))  # nothing is sent
                with socket.create_connection((looking.getsockname()[0], port), _PROBE):
                    return
            except OSError:
                os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"


def connect(address: str, folder: Path) -> None:
    """Connect to a cluster; without an address start one, in a folder. Raises what Ray raises."""
    if address:
        probe(address)
    from .library import ray

    common: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address:
        ray.init(address, **common)
        return
    ray.init(
        include_dashboard=False,
        object_store_memory=_OBJECTS,
        _node_ip_address="127.0.0.1",
        _temp_dir=str(folder),
        **common,
    )


async def serve(answers: Answers, settings: dict[str, Any]) -> None:
    """Carry out orders until the end of the input."""
    from ... import __version__
    from .pool import Pool

    pool = Pool(answers.send, __version__, settings)
    reader = asyncio.StreamReader(limit=_LONGEST)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    answers.send({"is": "ready"})
    while line := await reader.readline():
        order = json.loads(line)
        match order.pop("do"):
            case "run":
                order["stdin"] = base64.b64decode(order["stdin"])
                pool.run(order)
            case _:
                pool.stop(order["id"], order["grace"])
    await pool.close()


def first_sentence(error: Exception) -> str:
    """Return what Ray says without its advice, which is about calls and options of its own.

    Of a traceback, which is the server's, the last line is left.
    """
    said, traceback, rest = str(error).partition("Traceback (most recent call last):")
    lines = [*said.splitlines(), *(rest.splitlines()[-1:] if traceback else ())]
    text = " ".join(line.strip() for line in lines if line.strip())
    return (text or type(error).__name__).partition(". ")[0].rstrip(".:")[:500]


def main() -> None:
    """Connect, serve, disconnect. The only argument are the settings, as JSON."""
    settings = json.loads(sys.argv[1])
    answers = Answers()
    try:
        connect(settings["address"], Path(settings["folder"]))
    except OSError as error:
        reason = f"nothing answers there: {error.strerror or first_sentence(error)}"
        answers.send({"is": "broken", "reason": reason})
        sys.exit(1)
    except (ImportError, RuntimeError, ValueError) as error:  # of others, the last line is reported
        answers.send({"is": "broken", "reason": first_sentence(error)})
        sys.exit(1)
    asyncio.run(serve(answers, settings))
    from .library import ray

    ray.shutdown()


if __name__ == "__main__":
    main()
