"""The program of the tool `search`, executed in a separate process that can be killed.

A regular expression can take forever, and Python holds its interpreter lock all that time: in a
thread it would stop the whole runtime. Reads one JSON object from stdin: `pattern`, `root` (where
to look, resolved), `folder` (what paths are shown relative to), `glob`, `hidden` (patterns in order,
each with whether it hides a file: the first that matches decides). Prints `path:line: text`.
Only the standard library is imported here.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SKIPPED = frozenset({".git", ".hg", ".svn", "__pycache__", "node_modules"})
_LARGEST = 8 * 1024 * 1024  # bytes of a file that is looked into
_LARGEST_NAMED = 64 * 1024 * 1024  # of one that is searched alone, such as a kept output
_MATCHES = 200
_FEW = 5  # matches that are counted at a glance
_WIDTH = 300
_SNIFF = 8192


def files_below(root: str) -> Iterator[str]:
    """Walk below `root` in order; symlinks are not followed."""
    if not os.path.isdir(root):
        yield root
    for folder, names, files in os.walk(root):
        names[:] = sorted(name for name in names if name not in _SKIPPED)
        for name in sorted(files):
            yield os.path.join(folder, name)


def content_of(path: str, largest: int) -> bytes:
    """Read a text file; empty for what is large, binary, unreadable or no regular file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(fd, "rb") as file:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode) or found.st_size > largest:
                return b""
            content = file.read()
    except OSError:
        return b""
    return b"" if b"\0" in content[:_SNIFF] else content


def is_hidden(path: str, relative: str, hidden: list[list[Any]]) -> bool:
    """Whether the permission rules hide a file."""
    for pattern, is_denied in hidden:
        if fnmatchcase(relative, pattern) or fnmatchcase(path, pattern):
            return bool(is_denied)
    return False


def _search(request: dict[str, Any]) -> str:
    """Print the matches as they are found; return the last line."""
    pattern = re.compile(request["pattern"])
    glob = request["glob"].removeprefix("**/")
    matches = looked_into = 0
    largest = _LARGEST if os.path.isdir(request["root"]) else _LARGEST_NAMED
    for path in files_below(request["root"]):
        relative = os.path.relpath(path, request["folder"])
        names = (relative, os.path.basename(relative))
        if request["glob"] and not any(fnmatchcase(name, glob) for name in names):
            continue
        if is_hidden(path, relative, request["hidden"]):
            continue
        content = content_of(path, largest)
        looked_into += bool(content)
        shown = os.fsencode(relative).decode(errors="backslashreplace")
        shown = shown if shown.isprintable() else json.dumps(shown)
        for number, line in enumerate(content.decode(errors="replace").split("\n"), 1):
            text = line.rstrip("\r")
            if not pattern.search(text):
                continue
            if matches == _MATCHES:
                return f"[{_MATCHES} matches shown; there are more, narrow the pattern or the path]"
            matches += 1
            cut = " […]" if len(text) > _WIDTH else ""
            print(f"{shown}:{number}: {text[:_WIDTH]}{cut}", flush=True)
    files = f"{looked_into} file{'' if looked_into == 1 else 's'}"
    if matches > _FEW:
        return f"[{matches} matches in {files}]"
    return "" if matches else f"No match in {files}."


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
    print(_search(json.load(sys.stdin.buffer)), end="")
