"""The tool `read`: some lines of a text file."""

import os
from collections.abc import Iterator
from typing import Any, BinaryIO

from ...machines.errors import ToolError
from .arguments import declare
from .place import Place, open_file, resolve
from .text import counted, readable, shown
from .thread_tool import Stop, ThreadTool
from .tool import ToolContext, ToolResult

__all__ = ["make_read", "refuse_binary"]

_LINES = 2000  # unless `limit` says otherwise
_LINE_BYTES = 2000  # of one line
_SNIFF = 8192

_SCHEMA = declare(
    "read",
    f"Read a text file. Gives at most {_LINES} lines; `offset` and `limit` choose others.",
    ("path",),
    path={"type": "string", "description": "path relative to the folder"},
    offset={"type": "integer", "minimum": 1, "description": "first line, counted from 1"},
    limit={"type": "integer", "minimum": 1, "description": "how many lines"},
)


def make_read(output_limit: int) -> ThreadTool:
    """Make the tool; a result holds about `output_limit` bytes at most."""

    def read(arguments: dict[str, Any], context: ToolContext, stop: Stop) -> ToolResult:
        place = resolve(arguments["path"], context)
        with open_file(place) as file:
            refuse_binary(file, place)
            offset = arguments.get("offset", 1)
            limit = arguments.get("limit", _LINES)
            text = _excerpt(file, place, offset, limit, output_limit, stop)
            return ToolResult("ok", text, bytes=os.fstat(file.fileno()).st_size)

    return ThreadTool(_SCHEMA, read, is_mutating=False, is_idempotent=True)


def refuse_binary(file: BinaryIO, place: Place) -> None:
    """Raise `ToolError` if the file does not hold text; it is at its start afterwards."""
    is_binary = b"\0" in file.read(_SNIFF)
    size = os.fstat(file.fileno()).st_size
    file.seek(0)
    if is_binary:
        raise ToolError(f"`{shown(place.relative)}` is a binary file of {counted(size, 'byte')}")


def _excerpt(
    file: BinaryIO, place: Place, offset: int, limit: int, output_limit: int, stop: Stop
) -> str:
    taken: list[str] = []
    size = number = 0
    for number, line in enumerate(_lines(file, stop), 1):
        if number < offset:
            continue
        if len(taken) >= limit or (taken and size + len(line) > output_limit):
            taken.append(
                f"[lines {offset}-{number - 1}; more follow, read on with offset {number}]"
            )
            break
        taken.append(line)
        size += len(line)
    if taken:
        return "\n".join(taken)
    if number == 0:
        return f"`{shown(place.relative)}` is empty."
    raise ToolError(f"`{shown(place.relative)}` has only {counted(number, 'line')}")


def _lines(file: BinaryIO, stop: Stop) -> Iterator[str]:
    """Give the lines without their ends, long ones cut, and never hold a long one in memory."""
    while line := file.readline(_LINE_BYTES):
        stop.check()
        missing = 0
        last = line
        while not last.endswith(b"\n") and (last := file.readline(65_536)):
            stop.check()
            missing += len(last)
        text = readable(line.rstrip(b"\r\n"))
        yield f"{text} [… {counted(missing, 'byte')} more in this line]" if missing > 1 else text
