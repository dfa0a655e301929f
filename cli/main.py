"""The entry point. `--version` and `hooks emit` are answered before anything else is imported."""

import gc
import os
import signal
import sys
from types import FrameType

from .. import __version__

COLLECTS = (100_000, 20, 50)
"""After how many new objects garbage is collected: seldom, since hardly any is part of a circle.

Imports make fewer, so that they are not held up.
"""


def main() -> None:
    """Run the command line and exit."""
    _fill_gaps()
    if sys.argv[1:] in (["--version"], ["-V"]):
        print(f"steersman {__version__}")
        return
    if sys.argv[1:3] == ["hooks", "emit"] and "--help" not in sys.argv:
        from .emit import emit

        emit(sys.argv[3:])
    _leave_folder_out()
    signal.signal(signal.SIGINT, _leave)  # while importing there is nothing to save
    gc.set_threshold(*COLLECTS)
    from .program import run

    signal.signal(signal.SIGINT, _interrupt)
    try:
        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)


def _fill_gaps() -> None:
    """Replace closed standard streams (`>&-`) by empty ones, so that no other file gets their numbers."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
            setattr(sys, name, open(number, mode))


def _leave_folder_out() -> None:
    """Import nothing from the current folder, where `python -m` looks first: it may be anybody's.

    Ends the program where that folder is gone: nothing could be found from there.
    """
    try:
        os.getcwd()
    except OSError as error:
        print(
            f"steersman: the current folder is gone ({error.strerror})\n  `cd` into another one",
            file=sys.stderr,
        )
        sys.exit(2)
    if not sys.flags.safe_path and sys.path and sys.path[0] in ("", os.path.abspath("")):
        del sys.path[0]


def _leave(number: int, frame: FrameType | None) -> None:
    os._exit(128 + number)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise `KeyboardInterrupt`; during an import leave at once: its locks' callbacks lose exceptions."""
    at = frame
    while at is not None:
        if at.f_code.co_filename.startswith("<frozen importlib"):
            _leave(number, frame)
        at = at.f_back
    signal.default_int_handler(number, frame)
