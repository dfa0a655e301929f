"""The one place that starts a Python: this interpreter again, with a program of ours.

A process may be started in a folder that is anybody's, and what lies there must not stand in for a module
of ours or of the standard library. So `-P`: neither the current folder nor that of the program's file is
searched; and no relative folder of `PYTHONPATH` is, for which there is `search_path`. `hooks emit` reads
this file too, for which every import takes too long.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

INTERPRETER = sys.executable
"""The interpreter of this process, with its installed packages."""


def module_command(name: str, *arguments: str) -> tuple[str, ...]:
    """Return the command that runs a module of ours or of an installed package."""
    return (INTERPRETER, "-P", "-m", name, *arguments)


def file_command(path: "str | Path", *arguments: str) -> tuple[str, ...]:
    """Return the command that runs a file of ours, which may import installed packages."""
    return (INTERPRETER, "-P", str(path), *arguments)


def bare_command(path: "str | Path", *arguments: str) -> tuple[str, ...]:
    """Return the command that runs a file of ours which needs the standard library alone.

    It begins sooner, since no packages are looked for, and no variable of the environment counts.
    """
    return (INTERPRETER, "-I", "-S", str(path), *arguments)


def search_path(environ: "Mapping[str, str]") -> dict[str, str]:
    """Return `PYTHONPATH`, if it is set, without what is another folder in each process."""
    folders = environ.get("PYTHONPATH", "")
    kept = [folder for folder in folders.split(os.pathsep) if os.path.isabs(folder)]
    return {"PYTHONPATH": os.pathsep.join(kept)} if folders else {}
