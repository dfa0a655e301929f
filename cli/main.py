"""The entry point. `--version` is answered before anything else is imported."""

import gc
import sys

from .. import __version__

__all__ = ["main"]


def main() -> None:
    """Run the command line and exit."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        print(f"steersman {__version__}")
        return
    gc.disable()  # what imports make is no garbage; a chat turns it on again
    from .app import run

    sys.exit(run(sys.argv[1:]))
