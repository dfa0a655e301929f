"""Runs many command lines, each in a fork of one process that has imported the command.

    python many_commands.py PATIENCE < COMMANDS > RESULTS

COMMANDS is a JSON list of lists of words, RESULTS a list of {code, output, silent}: the exit code (the
negative number of a signal: SIGALRM after PATIENCE seconds), what was printed, and the addresses to which
a command connected before it had printed anything. It is started by any user, with any environment.
"""

import json
import os
import pkgutil
import signal
import sys
import traceback
from importlib import import_module
from typing import Any

QUICK = [("127.0.0.1", port) for port in (8080, 11434)]
"""Where a server is looked for, for some milliseconds."""


def run(words: list[str], patience: int) -> dict[str, Any]:
    """Run one command, without a terminal, to its end."""
    output, notes = os.memfd_create("output"), os.memfd_create("notes")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(patience)
            _take_over(output)
            sys.addaudithook(lambda event, args: _look(event, args, notes))
            sys.argv[1:] = words
            from steersman.cli.main import main

            main()
            code = 0
        except SystemExit as done:
            code = done.code if isinstance(done.code, int) else int(done.code is not None)
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    _, status = os.waitpid(child, 0)
    told = [os.pread(file, 1 << 20, 0).decode(errors="replace") for file in (output, notes)]
    os.close(output)
    os.close(notes)
    return {
        "code": os.waitstatus_to_exitcode(status),
        "output": told[0],
        "silent": told[1].splitlines(),
    }


def _take_over(output: int) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    for target, file in enumerate((nothing, output, output)):
        os.dup2(file, target)
    sys.stdin = open(0)
    sys.stdout = open(1, "w")
    sys.stderr = open(2, "w", buffering=1)


def _look(event: str, args: tuple[Any, ...], notes: int) -> None:
    """Note a connection that nobody was told of."""
    if event == "socket.connect" and isinstance(args[1], tuple):
        sys.stdout.flush()
        if args[1][:2] not in QUICK and not os.fstat(1).st_size:
            os.write(notes, f"{args[1][0]}:{args[1][1]}\n".encode())


def main() -> None:
    """Import what commands import, and run them."""
    import steersman.cli

    for module in pkgutil.walk_packages(steersman.cli.__path__, "steersman.cli."):
        try:
            import_module(module.name)
        except Exception:  # of an extra that is not installed
            continue
    commands = json.load(sys.stdin)
    json.dump([run(words, int(sys.argv[1])) for words in commands], sys.stdout)


if __name__ == "__main__":
    main()
