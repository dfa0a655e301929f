"""Fork and execute the command itself, below its supervisor.

Runs in the supervisor, a single-threaded process, so a plain fork is safe. What goes wrong between
fork and exec comes back through a pipe that closes itself when the exec succeeds.
Only the standard library is imported here.
"""

from __future__ import annotations

import os
import signal

__all__ = ["start"]

_OOM_SCORE = 500  # when memory runs out, the kernel takes the tool and not the runtime
_HIGHEST_FD = 65_536  # whatever lies above closes at exec, as every descriptor here does
_RESET = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ)


def start(
    argv: tuple[bytes, ...],
    cwd: bytes,
    environment: dict[bytes, bytes],
    stdin: int,
    output: int,
    errors: int,
) -> int:
    """Start the command in a session of its own and return its pid. Raises `OSError`.

    `stdin`, `output` and `errors` are file descriptors; no other one reaches the command.
    """
    report_in, report_out = os.pipe()
    pid = os.fork()
    if pid == 0:
        _become(argv, cwd, environment, (stdin, output, errors), report_out)
    os.close(report_out)
    with os.fdopen(report_in, "rb") as report:
        failure = report.read()
    if failure:
        os.waitpid(pid, 0)
        raise OSError(0, failure.decode(errors="replace"))
    return pid


def _become(
    argv: tuple[bytes, ...],
    cwd: bytes,
    environment: dict[bytes, bytes],
    streams: tuple[int, int, int],
    report: int,
) -> None:
    """Turn this forked child into the command; never returns."""
    try:
        os.setsid()
        for number in _RESET:
            signal.signal(number, signal.SIG_DFL)
        for stream, place in zip(streams, range(3), strict=True):
            os.dup2(stream, place)  # the supervisor's own are /dev/null, all else lies above
        os.closerange(3, report)
        os.closerange(report + 1, _HIGHEST_FD)
        _offer_to_oom_killer()
        _enter(cwd)
        _execute(argv, environment)
    except (OSError, ValueError) as error:  # a ValueError is a NUL where none may be
        reason = getattr(error, "strerror", None) or str(error)
        os.write(report, reason.encode(errors="replace"))
    finally:
        os._exit(127)


def _offer_to_oom_killer() -> None:
    try:
        with open("/proc/self/oom_score_adj") as file:
            is_offered = int(file.read()) >= _OOM_SCORE
        if not is_offered:
            with open("/proc/self/oom_score_adj", "w") as file:
                file.write(str(_OOM_SCORE))
    except OSError:
        return  # not Linux, or a container that forbids it: the command matters more


def _enter(cwd: bytes) -> None:
    try:
        os.chdir(cwd)
    except OSError as error:
        text = os.fsdecode(cwd)
        raise OSError(error.errno, f"cannot enter folder `{text}`: {error.strerror}") from error


def _execute(argv: tuple[bytes, ...], environment: dict[bytes, bytes]) -> None:
    name = os.fsdecode(argv[0])
    try:
        os.execvpe(argv[0], argv, environment)
    except FileNotFoundError as error:
        place = "" if "/" in name else " on PATH"
        raise OSError(error.errno, f"`{name}` not found{place}") from error
    except OSError as error:
        raise OSError(error.errno, f"cannot run `{name}`: {error.strerror}") from error
