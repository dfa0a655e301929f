"""Start the command itself, below its supervisor.

Runs in the supervisor, a process of its own for this one command: so the folder that is entered and the
score for the kernel's choice are set here, and inherited. `posix_spawn` copies no memory, says itself
what went wrong, and costs a third of a fork of this interpreter.
Only the standard library is imported here.
"""

from __future__ import annotations

import os
import signal

_OOM_SCORE = 500  # when memory runs out, the kernel takes the tool and not the runtime
_OOM_FILE = "/proc/self/oom_score_adj"
_RESET = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ)


def start(
    argv: tuple[bytes, ...],
    cwd: bytes,
    environment: dict[bytes, bytes],
    streams: tuple[int, int, int],
) -> int:
    """Start the command in a session of its own and return its pid. Raises `OSError`.

    `streams` are the file descriptors of its stdin, output and standard error; no other one reaches the
    command, since all that are above these close when it is executed.
    """
    try:
        os.chdir(cwd)
    except OSError as error:
        text = os.fsdecode(cwd)
        raise OSError(error.errno, f"cannot enter folder `{text}`: {error.strerror}") from error
    score = _own_score()
    is_offered = score is not None and score.raise_it()
    try:
        return _spawn(argv, environment, streams)
    except ValueError as error:
        raise OSError(0, "it contains a NUL character") from error
    finally:
        if is_offered and score is not None:
            score.restore()


class _OomScore:
    """This process's own score, which children inherit. Raises `OSError` where there is none."""

    def __init__(self) -> None:
        self._file = os.open(_OOM_FILE, os.O_RDWR)
        self._own = int(os.pread(self._file, 16, 0))

    def raise_it(self) -> bool:
        """Take the score of a command; False if a container forbids it, or it is as high already."""
        return self._own < _OOM_SCORE and self._set(_OOM_SCORE)

    def restore(self) -> None:
        """Take back the score that it had."""
        self._set(self._own)

    def _set(self, score: int) -> bool:
        try:
            return os.pwrite(self._file, str(score).encode(), 0) > 0
        except OSError:
            return False  # the command matters more


_scores: list[_OomScore | None] = []
"""The score, once it is known: of this process, for it is first asked after the fork."""


def _own_score() -> _OomScore | None:
    if not _scores:
        try:
            _scores.append(_OomScore())
        except OSError:
            _scores.append(None)  # not Linux, or not allowed
    return _scores[0]


def _spawn(
    argv: tuple[bytes, ...], environment: dict[bytes, bytes], streams: tuple[int, int, int]
) -> int:
    """Execute the first file of that name on the command's own PATH."""
    name = os.fsdecode(argv[0])
    is_path = os.path.dirname(argv[0])
    search = environment.get(b"PATH", os.fsencode(os.defpath))
    folders = [b""] if is_path else search.split(os.fsencode(os.pathsep))
    actions = [(os.POSIX_SPAWN_DUP2, stream, place) for place, stream in enumerate(streams)]
    refusal: OSError | None = None
    for folder in folders:
        try:
            return os.posix_spawn(
                os.path.join(folder, argv[0]),
                argv,
                environment,
                file_actions=actions,
                setsigdef=_RESET,
                setsid=True,
            )
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            refusal = refusal or error
    if refusal is None:
        if any(os.path.isfile(os.path.join(folder, argv[0])) for folder in folders):
            raise FileNotFoundError(0, f"cannot run `{name}`: its interpreter is missing")
        place = "" if is_path else " on PATH"
        raise FileNotFoundError(0, f"`{name}` not found{place}")
    raise OSError(refusal.errno, f"cannot run `{name}`: {refusal.strerror}") from refusal
