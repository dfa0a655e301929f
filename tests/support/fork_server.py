"""The installed command, started by a fork: a process of its own whose imports are done already.

Most of a start is imports, and the tests start the command some thousand times. So each process that runs
tests has one server, which imports what a chat imports. For each start it forks a process that takes over
its arguments, environment, folder and pipes, and runs the command. That process may be killed as any
other. Only its `/proc/PID/cmdline` and `/proc/PID/environ` are those of the server.

    python fork_server.py SOCKET PROGRAM [MODULE ...]
"""

import array
import atexit
import functools
import gc
import importlib
import json
import os
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["SETTINGS", "ForkServer", "fork_server", "interpreter_settings"]

LARGEST = 100_000
"""Bytes of a request: what is larger is started in the usual way."""
MORE = (
    "steersman.cli.app",
    "steersman.cli.commands.sessions",
    "steersman.gateway.commands.registry",
    "steersman.gateway.views.tree",
    "steersman.gateway.remote_session",
    "steersman.ports.models.chat",
    "steersman.ports.tools.searching",
    "steersman.workflows.routing",
    "h11",
)
"""What other usual commands, and a chat with a model on a server, import besides."""
_STATUS = struct.Struct("i")


# In the process that runs tests -------------------------------------------------------------------


def interpreter_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what Python reads of an environment only when it starts."""
    return {name: environ[name] for name in environ if re.match("PYTHON|LANG$|LC_", name)}


_KEPT = {name: os.environ[name] for name in ("LANG", "LC_ALL", "PYTHONPATH") if name in os.environ}
SETTINGS = _KEPT | {"PYTHONWARNINGS": "default"}
"""With which settings the server was started: a program with others is not forked from it."""


class ForkServer:
    """Starts the command by asking a process that has imported it."""

    def __init__(self, program: str) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [
            sys.executable,
            __file__,
            str(theirs.fileno()),
            program,
            *_imported(program),
            *MORE,
        ]
        others = os.environ.keys() - interpreter_settings(os.environ)
        environ = {name: os.environ[name] for name in others} | SETTINGS
        with theirs:
            self._process = subprocess.Popen(
                command, pass_fds=[theirs.fileno()], env=environ, stdin=subprocess.DEVNULL
            )
        atexit.register(self.close)

    def fork(
        self, arguments: Sequence[str], folder: str, environ: Mapping[str, str], files: list[int]
    ) -> tuple[int, int] | None:
        """Start the command; return its process id, and a pipe from which its exit status is read.

        `files` become its standard input, output and error. Returns nothing if a request is too large.
        """
        request = {"arguments": arguments, "folder": folder, "environ": dict(environ)}
        data = json.dumps(request).encode()
        if len(data) > LARGEST:
            return None
        status, theirs = os.pipe()
        try:
            rights = array.array("i", [*files, theirs])
            self._socket.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        finally:
            os.close(theirs)
        (pid,) = _STATUS.unpack(self._socket.recv(_STATUS.size))
        sys.audit("subprocess.Popen", *arguments[:1], folder)  # as for any other program
        return pid, status

    def close(self) -> None:
        """End the server."""
        self._socket.close()
        self._process.wait()


@functools.cache
def fork_server(program: str) -> ForkServer:
    """Return the server of this process."""
    return ForkServer(program)


def _imported(program: str) -> list[str]:
    """Return the modules of ours that a chat with one message imports."""
    with tempfile.TemporaryDirectory() as home:
        (Path(home) / "answers.toml").write_text('[[answer]]\ntext = "Hello."\n')
        (Path(home) / "config.toml").write_text(
            f'[models.main]\nprovider = "scripted"\nscript = "{home}/answers.toml"\n'
            '[agents.assistant]\nmodel = "main"\n'
        )
        environ = os.environ | {"STEERSMAN_HOME": home, "PYTHONPROFILEIMPORTTIME": "1"}
        ran = subprocess.run(
            (program, "chat", "--json"), cwd=home, env=environ, input=b"Hi\n", capture_output=True
        )
    return re.findall(r"\| +(steersman[\w.]*)$", ran.stderr.decode(), re.MULTILINE)


# In the server ------------------------------------------------------------------------------------


def serve(server: socket.socket) -> bool:
    """Fork for each request, and report how each process ended, until the socket is closed.

    Returns true in a process that was forked.
    """
    ends: dict[int, tuple[int, int]] = {}  # by pidfd: the process, and the pipe for its status
    while True:
        ready, _, _ = select.select([server.fileno(), *ends], [], [])
        for file in ready:
            if file in ends:
                pid, pipe = ends.pop(file)
                _report(pid, pipe)
                os.close(file)
                continue
            data, files, _, _ = socket.recv_fds(server, LARGEST, 4)
            if not data:
                return False
            *streams, pipe = files
            pid = os.fork()
            if pid == 0:
                for other in (server.fileno(), pipe, *ends, *(end[1] for end in ends.values())):
                    os.close(other)
                server.detach()
                become(json.loads(data), streams)
                return True
            for stream in streams:
                os.close(stream)
            ends[os.pidfd_open(pid)] = (pid, pipe)
            server.send(_STATUS.pack(pid))


def _report(pid: int, pipe: int) -> None:
    """Write the status of a process that has ended; the one who started it may be gone."""
    _, status = os.waitpid(pid, 0)
    try:
        os.write(pipe, _STATUS.pack(status))
    except BrokenPipeError:
        pass
    os.close(pipe)


def become(request: Mapping[str, Any], streams: Sequence[int]) -> None:
    """Take over what the caller of a program gives it."""
    for target, stream in enumerate(streams):
        os.dup2(stream, target)
    for stream in streams:
        os.close(stream)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(request["environ"])
    time.tzset()
    os.chdir(request["folder"])
    sys.argv[1:] = request["arguments"]
    for name, mode, former in (
        ("stdin", "r", sys.stdin),
        ("stdout", "w", sys.stdout),
        ("stderr", "w", sys.stderr),
    ):
        stream = open(
            sys.__dict__[f"__{name}__"].fileno(),
            mode,
            encoding=former.encoding,
            errors=former.errors,
            closefd=False,
        )
        if name == "stderr":
            stream.reconfigure(line_buffering=True)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def main() -> None:
    """Import the command, serve, and run it in each process that was forked."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    number, program, *modules = sys.argv[1:]
    sys.argv = [program]
    sys.path[0] = str(Path(program).parent)
    for name in modules:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=int(number)) as server:
        is_forked = serve(server)
    if is_forked:
        from steersman.cli.main import main as run

        sys.exit(run())


if __name__ == "__main__":
    main()
