"""The tool `write`: a whole file, at once or not at all."""

import os
import secrets
import stat
from contextlib import ExitStack
from typing import Any

from ...machines.errors import ToolError
from .arguments import declare
from .difference import replaced
from .place import Place, open_folder, resolve
from .text import counted, shown
from .thread_tool import Stop, ThreadTool
from .tool import ToolContext, ToolResult

__all__ = ["make_write", "replace_file"]

_SCHEMA = declare(
    "write",
    "Write a text file, with the folders it needs. What the file held before is lost.",
    ("path", "content"),
    path={"type": "string", "description": "path relative to the folder"},
    content={"type": "string", "description": "the whole new content"},
)


def make_write() -> ThreadTool:
    """Make the tool."""
    return ThreadTool(_SCHEMA, _write, is_mutating=True, is_idempotent=True)


def _write(arguments: dict[str, Any], context: ToolContext, stop: Stop) -> ToolResult:
    place = resolve(arguments["path"], context)
    content: str = arguments["content"]
    data = content.encode()
    changed = replaced(place, data)
    is_new = replace_file(place, data)
    lines = content.count("\n") + (content != "" and not content.endswith("\n"))
    size = f"{counted(len(data), 'byte')}, {counted(lines, 'line')}"
    verb = "Created" if is_new else "Replaced"
    head = f"{verb} `{shown(place.relative)}` ({size})."
    return ToolResult("ok", "\n".join([head, *changed]))


def replace_file(place: Place, data: bytes) -> bool:
    """Put `data` into a file by a rename, its mode kept; True if it is new.

    Raises `ToolError` for what is no regular file or may not be written, and `OSError`.
    """
    with ExitStack() as stack:
        parent = stack.enter_context(open_folder(place.path.parent, create=True))
        mode = _mode_of(place, parent)
        draft = f".steersman-{secrets.token_hex(8)}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(draft, flags, 0o666, dir_fd=parent)
        undo = stack.enter_context(ExitStack())
        undo.callback(os.unlink, draft, dir_fd=parent)
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            if mode is not None:
                os.fchmod(fd, mode)
        os.rename(draft, place.path.name, src_dir_fd=parent, dst_dir_fd=parent)
        undo.pop_all()
    return mode is None


def _mode_of(place: Place, parent: int) -> int | None:
    """Give the permission bits of the file that is about to be replaced, none if there is none."""
    name = shown(place.relative)
    try:
        found = os.stat(place.path.name or ".", dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found.st_mode):
        raise ToolError(f"`{name}` is a folder")
    if not stat.S_ISREG(found.st_mode):
        raise ToolError(f"`{name}` is not a regular file")
    if not os.access(place.path.name, os.W_OK, dir_fd=parent):
        raise ToolError(f"`{name}` is read-only")
    return stat.S_IMODE(found.st_mode)
