"""The tool `list`: what lies in a folder."""

import os
from itertools import islice
from typing import Any

from ...machines.errors import ToolError
from .arguments import declare
from .place import open_folder, resolve
from .text import counted, shown
from .thread_tool import Stop, ThreadTool
from .tool import ToolContext, ToolResult

__all__ = ["make_list"]

_MOST_SHOWN = 500
_MOST_SEEN = 100_000  # of an enormous folder, before sorting

_SCHEMA = declare(
    "list",
    "List a folder: folders end in `/`, files are followed by their size in bytes.",
    (),
    path={"type": "string", "description": "path relative to the folder; `.` if not given"},
)


def make_list() -> ThreadTool:
    """Make the tool."""
    return ThreadTool(_SCHEMA, _list, is_mutating=False, is_idempotent=True)


def _list(arguments: dict[str, Any], context: ToolContext, stop: Stop) -> ToolResult:
    place = resolve(arguments.get("path", "."), context)
    name = shown(place.relative)
    if place.path.exists() and not place.path.is_dir():
        raise ToolError(f"`{name}` is a file", "use the tool `read`")
    with open_folder(place.path) as folder:
        here = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        rows = _rows(here, stop)
    finally:
        os.close(here)
    if not rows:
        return ToolResult("ok", f"`{name}` is empty.")
    if len(rows) > _MOST_SHOWN:
        total = f"{len(rows)}" if len(rows) < _MOST_SEEN else f"more than {_MOST_SEEN}"
        rows[_MOST_SHOWN:] = [f"[{_MOST_SHOWN} of {total} entries shown]"]
    return ToolResult("ok", "\n".join(rows))


def _rows(folder: int, stop: Stop) -> list[str]:
    with os.scandir(folder) as entries:
        found = sorted(islice(entries, _MOST_SEEN), key=lambda entry: entry.name)
        rows: list[str] = []
        for entry in found:
            stop.check()
            rows.append(_row(entry, folder) if len(rows) < _MOST_SHOWN else "")
        return rows


def _row(entry: "os.DirEntry[str]", folder: int) -> str:
    name = shown(os.fsencode(entry.name).decode(errors="backslashreplace"))
    try:
        if entry.is_symlink():
            return f"{name} -> {shown(os.readlink(entry.name, dir_fd=folder))}"
        if entry.is_dir():
            return f"{name}/"
        return f"{name}  {counted(entry.stat(follow_symlinks=False).st_size, 'byte')}"
    except OSError:
        return f"{name}  (gone, or unreadable)"
