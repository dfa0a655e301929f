r"""The one spelling of file names, for people, models and JSON: a byte that is no UTF-8 is `\xff`.

Where a name stands in a line of text it is quoted besides, as in JSON, if it would not print. Both are
read back: a tool accepts what another one printed.
"""

import json
import os
from collections.abc import Collection

from ..machines.pattern import lazy_pattern

_BYTE = lazy_pattern("[\udc80-\udcff]")
_SPELLED = lazy_pattern(r"\\x([89a-f][0-9a-f])")


def spelled(path: str) -> str:
    """Write a path, in the form of `os.fsdecode`, as text that is UTF-8."""
    return _BYTE.sub(lambda found: f"\\x{ord(found[0]) - 0xDC00:x}", path)


def meant(path: str, folder: str) -> str:
    """Return the path, in a folder, that a text names; a file of that very name goes first."""
    if "\\x" not in path and not path.endswith('"'):
        return path
    whole = _unquoted(path)
    ways = (_walked(text, folder) for text in (path, whole) if text)
    there = (way for way in ways if os.path.lexists(os.path.join(folder, way)))
    return next(there, _walked(path, folder))


def _walked(path: str, folder: str) -> str:
    """Follow a path as far as there is something under the names that its parts may spell."""
    found = ""
    for number, part in enumerate(path.split("/")):
        names = (part, _decoded(part), _unquoted(part), _decoded(_unquoted(part)))
        here = os.path.join(folder, found)
        there = (name for name in names if name and os.path.lexists(os.path.join(here, name)))
        found += next(there, part) if number == 0 else f"/{next(there, part)}"
    return found


def _decoded(text: str) -> str:
    return _SPELLED.sub(lambda byte: chr(0xDC00 + int(byte[1], 16)), text)


def _unquoted(text: str) -> str:
    """Return what stands in quotes, as in JSON; nothing where there are none."""
    if text[:1] != '"' or text[-1:] != '"':
        return ""
    try:
        name = json.loads(text)
    except ValueError:
        return ""
    return name if isinstance(name, str) and "\0" not in name else ""


def counted_paths(paths: Collection[str]) -> str:
    """Count paths, of which those of folders end in a slash: `2 files and 1 folder`."""
    folders = sum(path.endswith("/") for path in paths)
    counts = ((len(paths) - folders, "file"), (folders, "folder"))
    parts = [f"{count} {noun}{'s' * (count != 1)}" for count, noun in counts if count]
    return " and ".join(parts) or "0 files"
