"""The entry point. `--version` is answered before anything else is imported."""

import sys

from .. import __version__

__all__ = ["main"]


def main() -> None:
    """Run the command line and exit."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        print(f"steersman {__version__}")
        return
    from .app import run

    sys.exit(run(sys.argv[1:]))
