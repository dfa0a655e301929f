"""Tools that read and change files: read, list, edit and write."""

import os
import stat
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from ...machines import protocol as m
from ...machines.errors import ToolError
from ...workflows.durability import replace_file
from ...workflows.problem import did_you_mean
from ...workflows.spelling import spelled
from .arguments import declare
from .place import Place, open_file, open_folder, resolve
from .text import clip_line, counted, readable, shown
from .thread_tool import StopFlag, ThreadTool
from .tool import ToolContext

# `read` -------------------------------------------------------------------------------------------


_LINES = 2000  # unless `limit` says otherwise
_LINE_BYTES = 2000  # of one line
_SNIFF = 8192


def _read(arguments: dict[str, Any], context: ToolContext, stop: StopFlag) -> m.ToolResult:
    """Read; a result holds about `limit` bytes of the context at most."""
    place = resolve(arguments["path"], context)
    _say_what_is_there(place)
    with open_file(place) as file:
        refuse_binary(file, place)
        offset = arguments.get("offset", 1)
        limit = arguments.get("limit", _LINES)
        text = _excerpt(file, place, offset, limit, context.limit, stop)
        return m.ToolResult(status="ok", text=text, bytes=os.fstat(file.fileno()).st_size)


READ = ThreadTool(
    declare(
        "read",
        f"Read a text file, at most {_LINES} lines; `offset` (from 1) and `limit` choose others.",
        ("path",),
        path={"type": "string", "description": "relative to the folder"},
        offset={"type": "integer", "minimum": 1},
        limit={"type": "integer", "minimum": 1},
    ),
    _read,
)


def _say_what_is_there(place: Place) -> None:
    """Raise `ToolError` for a file that is not there, with the names that are."""
    parent = place.path.parent
    if place.is_outside or place.path.exists() or not parent.is_dir():
        return
    names = sorted(name for name in os.listdir(parent)[:_MOST_SHOWN] if not name.startswith("."))
    names = [shown(name) for name in names]
    folder = shown(str(Path(place.relative).parent))
    there = f"in `{folder}` there is: {', '.join(names[:20]) or 'nothing'}"
    hint = did_you_mean(shown(place.path.name), names, there)
    raise ToolError(f"`{shown(place.relative)}`: No such file or directory", hint)


def refuse_binary(file: BinaryIO, place: Place) -> None:
    """Raise `ToolError` if the file does not hold text; it is at its start afterwards."""
    is_binary = b"\0" in file.read(_SNIFF)
    size = os.fstat(file.fileno()).st_size
    file.seek(0)
    if is_binary:
        raise ToolError(f"`{shown(place.relative)}` is a binary file of {counted(size, 'byte')}")


def _excerpt(
    file: BinaryIO, place: Place, offset: int, limit: int, output_limit: int, stop: StopFlag
) -> str:
    taken: list[str] = []
    size = number = 0
    for number, line in enumerate(_lines(file, stop), 1):
        if number < offset:
            continue
        if len(taken) >= limit or (taken and size + len(line) >= output_limit):
            taken.append(
                f"[lines {offset}-{number - 1}; more follow, read on with offset {number}]"
            )
            break
        taken.append(line)
        size += len(line) + 1
    if taken:
        return "\n".join(taken)
    if number == 0:
        return f"`{shown(place.relative)}` is empty."
    raise ToolError(f"`{shown(place.relative)}` has only {counted(number, 'line')}")


def _lines(file: BinaryIO, stop: StopFlag) -> Iterator[str]:
    """Yield the lines without their ends, long ones cut; a long line is never held in memory."""
    while line := file.readline(_LINE_BYTES):
        stop.check()
        missing = 0
        last = line
        while not last.endswith(b"\n") and (last := file.readline(65_536)):
            stop.check()
            missing += len(last)
        text = readable(line.rstrip(b"\r\n"))
        yield f"{text} [… {counted(missing, 'byte')} more in this line]" if missing > 1 else text


# Changes as diffs ---------------------------------------------------------------------------------


LARGEST = 16 * 1024 * 1024
"""Bytes of a file that is changed, or compared, in memory."""
_LINES_DIFFERENCE = 40
_WIDTH = 200
_COMPARED = 200  # characters of a line; comparing two takes the product of their lengths
_INPUT = 2000  # changed lines beyond which making a diff would take long


def difference(before: bytes, after: bytes) -> list[str]:
    """Return a change as a short unified diff without file names; nothing if it would be long."""
    old, new = (readable(text).splitlines() for text in (before, after))
    start = _shared(old, new)
    end = _shared(old[start:][::-1], new[start:][::-1])
    first = max(0, start - 2)
    old = old[first : len(old) - max(0, end - 2)]
    new = new[first : len(new) - max(0, end - 2)]
    if max(len(old), len(new)) > _INPUT:
        return []
    from difflib import unified_diff  # when a file was changed

    rows = unified_diff(old, new, lineterm="", n=2)
    shown_rows: list[str] = []
    for row in islice(rows, 2, 2 + _LINES_DIFFERENCE + 1):
        if row.startswith("@@"):  # the lines before `first` were not compared
            line = int(row.split("+")[1].split(" ")[0].split(",")[0]) + first
            row = f"@@ line {line} @@"
        shown_rows.append(clip_line(row, _WIDTH))
    if len(shown_rows) > _LINES_DIFFERENCE:
        shown_rows[-1] = "[… diff cut]"
    return shown_rows


def content_before(place: Place) -> bytes | None:
    """Return what a text file holds that is to be replaced; none for a new or large one, or no text."""
    try:
        return _content(place)
    except (OSError, ToolError):
        return None


def _content(place: Place) -> bytes:
    with open_file(place) as file:
        refuse_binary(file, place)
        size = os.fstat(file.fileno()).st_size
        if size > LARGEST:
            raise ToolError(
                f"`{shown(place.relative)}` is too large to edit ({counted(size, 'byte')})"
            )
        return file.read()


def changed_file(
    place: Place, before: bytes, after: bytes, *, is_new: bool = False
) -> m.ChangedFile:
    """Count the lines that a change adds and removes."""
    old, new = Counter(before.splitlines()), Counter(after.splitlines())
    return m.ChangedFile(
        path=spelled(place.relative),
        added=(new - old).total(),
        removed=(old - new).total(),
        is_new=is_new,
    )


def _shared(old: list[str], new: list[str]) -> int:
    """Count the first lines that are the same."""
    pairs = enumerate(zip(old, new, strict=False))
    return next((at for at, (left, right) in pairs if left != right), min(len(old), len(new)))


# `list` -------------------------------------------------------------------------------------------


_MOST_SHOWN = 500
_MOST_SEEN = 100_000  # of an enormous folder, before sorting


def _list(arguments: dict[str, Any], context: ToolContext, stop: StopFlag) -> m.ToolResult:
    place = resolve(arguments.get("path", "."), context)
    name = shown(place.relative)
    if place.path.exists() and not place.path.is_dir():
        raise ToolError(f"`{name}` is a file", "use the tool `read`")
    with open_folder(place.path) as folder:
        here = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    rows: list[str] = []
    try:
        with os.scandir(here) as entries:
            found = sorted(islice(entries, _MOST_SEEN), key=lambda entry: entry.name)
        for entry in found[:_MOST_SHOWN]:
            stop.check()
            rows.append(_row(entry, here))
    finally:
        os.close(here)
    if len(found) > len(rows):
        total = f"{len(found)}" if len(found) < _MOST_SEEN else f"more than {_MOST_SEEN}"
        rows.append(f"[{_MOST_SHOWN} of {total} entries shown]")
    return m.ToolResult(status="ok", text="\n".join(rows) or f"`{name}` is empty.")


def _row(entry: "os.DirEntry[str]", folder: int) -> str:
    name = shown(entry.name)
    try:
        if entry.is_symlink():
            return f"{name} -> {shown(os.readlink(entry.name, dir_fd=folder))}"
        if entry.is_dir():
            return f"{name}/"
        return f"{name}  {counted(entry.stat(follow_symlinks=False).st_size, 'byte')}"
    except OSError:
        return f"{name}  (gone, or unreadable)"


LIST = ThreadTool(
    declare(
        "list",
        "List a folder, `.` if none is given.",
        (),
        path={"type": "string"},
    ),
    _list,
)


_LONG, _MOST_LOST = 20, 0.6
"""A file of so many lines is not replaced at once by one that has lost this share of them."""


# `write` ------------------------------------------------------------------------------------------


def _write(arguments: dict[str, Any], context: ToolContext, stop: StopFlag) -> m.ToolResult:
    place = resolve(arguments["path"], context)
    content: str = arguments["content"]
    data = content.encode()
    before = content_before(place)
    if before == data:
        text = f"Unchanged: `{shown(place.relative)}` has just this content."
        return m.ToolResult(status="ok", text=text)
    _second_look(place, before or b"", data, context)
    is_new = replace_text(place, data)
    lines = content.count("\n") + (content != "" and not content.endswith("\n"))
    size = f"{counted(len(data), 'byte')}, {counted(lines, 'line')}"
    verb = "Created" if is_new else "Replaced"
    head = f"{verb} `{shown(place.relative)}` ({size})."
    rows = [] if before is None else difference(before, data)
    changed = changed_file(place, before or b"", data, is_new=is_new)
    return m.ToolResult(status="ok", text="\n".join([head, *rows]), changed=(changed,))


WRITE = ThreadTool(
    declare(
        "write",
        "Write a text file, with the folders it needs. What the file held before is lost.",
        ("path", "content"),
        path={"type": "string"},
        content={"type": "string"},
    ),
    _write,
    is_mutating=True,
)


def _second_look(place: Place, before: bytes, after: bytes, context: ToolContext) -> None:
    """Refuse once to throw away most of a file: a model that means it writes it again."""
    lines = before.count(b"\n")
    lost = changed_file(place, before, after).removed
    if lines >= _LONG and lost > _MOST_LOST * lines and not context.is_again:
        raise ToolError(
            f"`{shown(place.relative)}` has {counted(lines, 'line')}, and this would drop {lost} of them",
            "nothing was changed: to change a part use `edit`; to replace it all, write it again",
        )


def replace_text(place: Place, data: bytes) -> bool:
    """Replace a file's content by a rename, which keeps its mode; True if the file is new.

    Raises `ToolError` if it is no regular file or may not be written, and `OSError`.
    """
    with open_folder(place.path.parent, create=True) as parent:
        mode = _mode_of(place, parent)
        replace_file(place.path.name, data, mode, parent)
    return mode is None


def _mode_of(place: Place, parent: int) -> int | None:
    """Return the permission bits of the file to replace, none if there is none."""
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


# `edit` -------------------------------------------------------------------------------------------
# It works on bytes, so that the rest of the file stays as it is, whatever its encoding. If a file has
# CR LF and the model writes LF, as the tool `read` shows it, the file keeps CR LF.


def _edit(arguments: dict[str, Any], context: ToolContext, stop: StopFlag) -> m.ToolResult:
    place = resolve(arguments["path"], context)
    name = shown(place.relative)
    before = _content(place)
    old, new = _as_in_file(before, arguments["old"].encode(), arguments["new"].encode())
    number = before.count(old)
    if number == 0:
        near = _nearest(before, old)
        hint = f"the nearest lines are:\n{near}" if near else "read the file again"
        raise ToolError(f"`old` does not occur in `{name}`; nothing was changed", hint)
    if number > 1 and not arguments.get("all", False):
        raise ToolError(
            f"`old` occurs {number} times in `{name}`, in lines {_line_numbers(before, old)}",
            "give more of its surroundings, or set `all`",
        )
    after = before.replace(old, new)
    stop.check()
    replace_text(place, after)
    head = f"Edited `{name}` ({counted(number, 'replacement')})."
    text = "\n".join([head, *difference(before, after)])
    return m.ToolResult(status="ok", text=text, changed=(changed_file(place, before, after),))


EDIT = ThreadTool(  # not idempotent: `new` may contain `old`
    declare(
        "edit",
        "Replace a text in a file. `old` must occur exactly once, unless `all` is true.",
        ("path", "old", "new"),
        path={"type": "string"},
        old={"type": "string", "minLength": 1, "description": "exact, with all blanks"},
        new={"type": "string"},
        all={"type": "boolean"},
    ),
    _edit,
    is_mutating=True,
    is_idempotent=False,
    check=lambda given: "`old` and `new` are the same" if given["old"] == given["new"] else "",
)


def _nearest(content: bytes, wanted: bytes) -> str:
    """Return the lines of a file that are most like the text that was looked for; nothing if none are."""
    from difflib import get_close_matches  # for a mistake only

    lines, want = readable(content).splitlines()[:_INPUT], readable(wanted).splitlines()
    first = next((line for line in want if line.strip()), "")
    begins = [line[:_COMPARED] for line in lines]
    found = get_close_matches(first[:_COMPARED], begins, n=1, cutoff=0.6)
    if not found:
        return ""
    at = begins.index(found[0])
    return "\n".join(clip_line(line, _WIDTH) for line in lines[at : at + max(1, min(len(want), 5))])


def _as_in_file(content: bytes, old: bytes, new: bytes) -> tuple[bytes, bytes]:
    """Return `old` and `new` with the line ends of the file, or of the place if the file mixes them."""
    crlf = content.count(b"\r\n")
    is_mixed = crlf != content.count(b"\n")
    if crlf == 0 or (is_mixed and old in content):
        return old, new
    old, new = (text.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n") for text in (old, new))
    return old, new


def _line_numbers(content: bytes, old: bytes) -> str:
    """List the lines in which `old` begins, the first few of them."""
    numbers: list[str] = []
    at = content.find(old)
    while at >= 0 and len(numbers) < 10:
        numbers.append(str(content.count(b"\n", 0, at) + 1))
        at = content.find(old, at + len(old))
    return ", ".join(numbers) + (", …" if at >= 0 else "")
