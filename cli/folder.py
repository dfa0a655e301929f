"""The folder that a command works in, as somebody named it."""

from pathlib import Path

from ..machines.errors import UsageError


def work_folder(named: Path) -> Path:
    """Return it whole, without links. Raises `UsageError` where there is none."""
    folder = named.expanduser().resolve()
    if not folder.is_dir():
        raise UsageError(f"`{folder}` is not a folder", "give --cwd an existing one")
    return folder
