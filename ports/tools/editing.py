"""The tool `edit`: replace a text in a file by another, exactly.

Works on bytes, so that what is not touched stays as it is, whatever its encoding. Where a file ends
its lines with CR LF and the model writes LF, as it was shown, the file's way is kept.
"""

import os
from typing import Any

from ...machines.errors import ToolError
from .arguments import declare, fault_of
from .difference import LARGEST, difference
from .place import open_file, resolve
from .reading import refuse_binary
from .text import counted, shown
from .thread_tool import Stop, ThreadTool
from .tool import ToolContext, ToolResult
from .writing import replace_file

__all__ = ["EditTool", "make_edit"]

_SCHEMA = declare(
    "edit",
    "Replace a text in a file. `old` must occur exactly once, unless `all` is true.",
    ("path", "old", "new"),
    path={"type": "string", "description": "path relative to the folder"},
    old={"type": "string", "minLength": 1, "description": "the text to replace, exactly"},
    new={"type": "string", "description": "what to put in its place"},
    all={"type": "boolean", "description": "replace every occurrence"},
)


class EditTool(ThreadTool):
    """The tool `edit`; also refuses a change that changes nothing."""

    def fault(self, arguments: dict[str, Any]) -> str:
        """Say what is wrong with the arguments; empty when nothing is."""
        fault = fault_of(self.schema, arguments)
        if not fault and arguments["old"] == arguments["new"]:
            return "`old` and `new` are the same"
        return fault


def make_edit() -> EditTool:
    """Make the tool. It is not idempotent: `new` may contain `old`."""
    return EditTool(_SCHEMA, _edit, is_mutating=True, is_idempotent=False)


def _edit(arguments: dict[str, Any], context: ToolContext, stop: Stop) -> ToolResult:
    place = resolve(arguments["path"], context)
    name = shown(place.relative)
    with open_file(place) as file:
        refuse_binary(file, place)
        size = os.fstat(file.fileno()).st_size
        if size > LARGEST:
            raise ToolError(f"`{name}` is too large to edit ({counted(size, 'byte')})")
        before = file.read()
    old, new = _as_in_file(before, arguments["old"].encode(), arguments["new"].encode())
    number = before.count(old)
    if number == 0:
        raise ToolError(f"`old` does not occur in `{name}`", "read the file again")
    if number > 1 and not arguments.get("all", False):
        raise ToolError(
            f"`old` occurs {number} times in `{name}`, in lines {_line_numbers(before, old)}",
            "give more of its surroundings, or set `all`",
        )
    after = before.replace(old, new)
    stop.check()
    replace_file(place, after)
    head = f"Edited `{name}` ({counted(number, 'replacement')})."
    return ToolResult("ok", "\n".join([head, *difference(before, after)]))


def _as_in_file(content: bytes, old: bytes, new: bytes) -> tuple[bytes, bytes]:
    """Give `old` and `new` with the line ends of the file, or of the place if it mixes them."""
    crlf = content.count(b"\r\n")
    is_mixed = crlf != content.count(b"\n")
    if crlf == 0 or (is_mixed and old in content):
        return old, new
    return _with_crlf(old), _with_crlf(new)


def _with_crlf(text: bytes) -> bytes:
    return text.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


def _line_numbers(content: bytes, old: bytes) -> str:
    """List the lines in which `old` begins, the first few of them."""
    numbers: list[str] = []
    at = content.find(old)
    while at >= 0 and len(numbers) < 10:
        numbers.append(str(content.count(b"\n", 0, at) + 1))
        at = content.find(old, at + len(old))
    return ", ".join(numbers) + (", …" if at >= 0 else "")
