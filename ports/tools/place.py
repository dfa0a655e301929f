"""Resolves paths of the model, and opens them safely against links that are planted meanwhile.

A path is relative to the session's folder. It is resolved first, symlinks and `..` included; a resolved
path outside the folder needs permission. The resolved path has no symlink, and is opened folder by folder
without following any: a symlink that was planted after the resolution is an error.
"""

import os
import stat
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

from ...machines.errors import ToolError
from ...workflows.durability import make_folder
from ...workflows.spelling import meant
from .text import shown
from .tool import ToolContext

_SEARCH = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Place(NamedTuple):
    """A resolved path; `relative` is how people see it, absolute if it lies outside.

    `is_linked`: a link leads there, so that the path as it was written does not say where it is.
    """

    path: Path
    relative: str
    is_outside: bool
    is_linked: bool = False


def find_place(text: str, folder: Path) -> Place:
    """Resolve a path as the model wrote it. Raises `ToolError` if it is no path."""
    if "\0" in text:
        raise ToolError("a path cannot hold a NUL character")
    if not text:
        raise ToolError("the path is empty", "use `.` for the folder itself")
    root = os.path.realpath(folder)
    expanded = os.path.expanduser(text) if text == "~" or text.startswith("~/") else text
    written = os.path.join(root, meant(expanded, root))
    path = Path(os.path.realpath(written))
    is_linked = os.path.normpath(written) != str(path)
    if path.is_relative_to(root):
        return Place(path, str(path.relative_to(root)), is_outside=False, is_linked=is_linked)
    return Place(path, str(path), is_outside=True, is_linked=is_linked)


def resolve(text: str, context: ToolContext) -> Place:
    """Resolve a path that a tool is about to use. Raises `ToolError` if it may not.

    It must still be the path that was looked at when the call was allowed: a link may have changed.
    """
    place = find_place(text, context.folder)
    if context.path and str(place.path) != context.path:
        raise ToolError(
            f"`{shown(text)}` leads to `{shown(str(place.path))}` now; when it was allowed it led to "
            f"`{shown(context.path)}`",
            "nothing was opened; ask again if that is what you want",
        )
    if place.is_outside and not context.path:
        raise ToolError(
            f"`{shown(text)}` leads outside the session's folder, to `{shown(str(place.path))}`",
            "stay inside the folder, or ask the user for permission",
        )
    if not (place.is_outside or context.folder.is_dir()):
        raise ToolError(
            f"the session's folder `{shown(str(context.folder))}` is gone",
            "nothing was opened or made; ask the user where it is",
        )
    return place


@contextmanager
def open_folder(path: Path, *, create: bool = False) -> Generator[int]:
    """Open a resolved folder step by step; yields its descriptor for `dir_fd`. Raises `OSError`."""
    with ExitStack() as stack:
        here = os.open(path.anchor, _SEARCH)
        stack.callback(os.close, here)
        for name in path.parts[1:]:
            if create:
                make_folder(name, folder=here)
            here = os.open(name, _SEARCH, dir_fd=here)
            stack.callback(os.close, here)
        yield here


@contextmanager
def open_file(place: Place) -> Generator[BinaryIO]:
    """Open a regular file for reading. Raises `ToolError` for anything else, `OSError`."""
    with ExitStack() as stack:
        with open_folder(place.path.parent) as parent:
            # Without O_NONBLOCK the open of a named pipe would block.
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            fd = os.open(place.path.name or ".", flags, dir_fd=parent)
        stack.callback(os.close, fd)
        mode = os.fstat(fd).st_mode
        if stat.S_ISDIR(mode):
            raise ToolError(f"`{shown(place.relative)}` is a folder", "use the tool `list`")
        if not stat.S_ISREG(mode):
            raise ToolError(f"`{shown(place.relative)}` is not a regular file")
        yield stack.enter_context(open(fd, "rb", closefd=False))
