"""Files that a message names: `look at @src/main.py and @"my notes.txt"`; and resources, `@server:uri`.

The files are read when the message is sent, and journalled with it, so that a queued or replayed message
has the text that the person meant. A word with an `@` that names no file and does not look like one, or
inside code marks, stays as it is. A path outside the folder needs a rule that allows to read it; a deny
rule holds, too. Blocks: not for the actors' loop.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from ..machines.conversation import Attachment, Picture
from ..machines.errors import ToolError
from ..machines.pattern import lazy_pattern
from .picture import HEAD, LARGEST_PICTURE, PICTURES, TOO_LARGE, media_type, picture, size_of
from .tools.file_tools import refuse_binary
from .tools.permission import PermissionDecision
from .tools.place import Place, find_place, open_file, open_folder
from .tools.text import counted, readable, shown

LARGEST = 64 * 1024
"""Bytes of one file; of a longer one the beginning is attached."""
FILES = 4
"""How many of that size the attachments of a message have in all."""
FEW = 8 * 1024
"""The same for a small model, which reads slowly and has a small window."""
_NAMES = 200  # of a folder
_MOST_SEEN = 10_000
_FULL = "the message brings as much along as it may"
_NAMED = lazy_pattern(r"""(?:(?<=[\s(\[{,;:])|^)@(?:"([^"\n]+)"|'([^'\n]+)'|([^\s"'`@]+))""")
_CODE = lazy_pattern(r"```.*?(?:```|$)|`[^`\n]*`", re.DOTALL)
_FILE = lazy_pattern(
    r"[^\n]*\.(?:c|cfg|cpp|css|csv|go|h|html|ini|ipynb|java|js|json|jsx|lock|log|md|pdf|php|png|py|rb|rs|rst"
    r"|sh|sql|toml|ts|tsv|tsx|txt|xml|ya?ml)"
)
AFTER = ".,;:!?)]}>*_"
"""Characters that may follow a name without being part of it."""

Ask = Callable[[str, dict[str, str]], PermissionDecision]
"""Returns the decision of the permission rules on a tool and its arguments."""
ReadOther = Callable[[str, int], Attachment | None]
"""Attaches what a name names that is no file, with at most so many bytes; none if it names nothing."""


def attach(
    text: str,
    folder: Path,
    ask: Ask,
    most: int = FILES * LARGEST,
    read_other: ReadOther | None = None,
    largest: int = LARGEST,
    *,
    takes_pictures: bool = False,
) -> tuple[Attachment, ...]:
    """Read the files that a message names, in its order, each once, with at most `most` bytes in all.

    `largest` is in bytes of one file. What `read_other` knows is no file. Pictures have their own limits;
    without `takes_pictures` the model takes none.
    """
    if "@" not in text:
        return ()
    found: dict[str, Attachment] = {}
    room = most
    for name, is_meant in names_in(text):
        if read_other is not None and (other := read_other(name, min(room, largest))) is not None:
            if other.path not in found:
                found[other.path] = other
                room -= len(other.text)
            continue
        place = _find(name, folder, is_meant)
        if place is None or place.relative in found:
            continue
        pictures = sum(known.picture is not None for known in found.values())
        room_for_pictures = PICTURES - pictures if takes_pictures else -1
        attachment = _attached(place, ask, min(room, largest), room_for_pictures)
        found[place.relative] = attachment
        room -= len(attachment.text)
    return tuple(found.values())


def names_in(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the names with an `@`, and whether each is certainly meant as a name."""
    code = [block.span() for block in _CODE.finditer(text)]
    for mention in _NAMED.finditer(text):
        if any(begin <= mention.start() < end for begin, end in code):
            continue
        quoted = mention[1] or mention[2]
        name = quoted or mention[3]
        yield name, bool(quoted) or name.startswith(("./", "../", "/", "~/"))


def _find(name: str, folder: Path, is_meant: bool) -> Place | None:
    """Find a file by its name, also without a final punctuation mark; none if it is no name."""
    is_meant = is_meant or _looks_like_a_file(name.rstrip(AFTER), folder)
    shorter = name
    while shorter:
        try:
            place = find_place(shorter, folder)
            if place.path.exists():
                return place
        except (ToolError, OSError):
            break
        if is_meant and shorter == name and name[-1] not in AFTER:
            return place
        shorter = shorter[:-1] if shorter[-1] in AFTER else ""
    return find_place(name.rstrip(AFTER), folder) if is_meant and name.rstrip(AFTER) else None


def _looks_like_a_file(name: str, folder: Path) -> bool:
    """Whether a word is surely meant as a name: by its ending, or a folder that is there."""
    top, slash, _ = name.partition("/")
    try:
        return bool(_FILE.fullmatch(name) or (slash and (folder / top).is_dir()))
    except (OSError, ValueError):  # no path
        return False


def _attached(place: Place, ask: Ask, room: int, room_for_pictures: int) -> Attachment:
    name = shown(place.relative)
    try:
        is_folder = stat.S_ISDIR(os.stat(place.path, follow_symlinks=False).st_mode)
        decision = ask("list" if is_folder else "read", {"path": str(place.path)})
        if decision.do == "deny":
            return refused(name, f"a rule forbids it: {decision.rule}")
        if place.is_outside and decision.do != "allow":
            return refused(
                name, "it is outside the folder; a rule that allows reading it attaches it"
            )
        if not is_folder:
            return _file(place, name, room, room_for_pictures)
        return _folder(place, name) if room > 0 else refused(name, _FULL)
    except FileNotFoundError:
        return refused(name, "there is no such file")
    except ToolError as error:
        return refused(name, error.message.replace(f"`{name}` ", "it "))
    except OSError as error:
        return refused(name, f"it can't be read: {error.strerror}")


def refused(name: str, why: str) -> Attachment:
    """Return what says why something is not attached."""
    return Attachment(path=name, note=why, is_refused=True)


def attached_picture(name: str, made: Picture | None, room: int) -> Attachment:
    """Attach a picture as it is; `room` is how many more there may be, -1 where none can be taken."""
    if room < 0:
        why = "the model is not known to take pictures"
        return refused(name, f"{why}; `images = true` in its [models.NAME] says so")
    if room == 0 or made is None:
        return refused(name, f"a message brings {PICTURES} pictures along at most")
    return Attachment(path=name, size=f"picture, {_size(size_of(made.data))}", picture=made)


def with_pictures(
    found: Sequence[Attachment], pictures: Sequence[Picture], *, takes_pictures: bool
) -> tuple[Attachment, ...]:
    """Add the pictures that come with a message itself to what it names."""
    room = PICTURES - sum(known.picture is not None for known in found)
    given = (
        attached_picture(f"picture {at + 1}", made, max(0, room - at) if takes_pictures else -1)
        for at, made in enumerate(pictures)
    )
    return (*found, *given)


def _file(place: Place, name: str, limit: int, pictures: int) -> Attachment:
    """Attach a file: a picture as it is, of a text at most `limit` bytes."""
    with open_file(place) as file:
        is_picture = bool(media_type(file.read(HEAD)))
        file.seek(0)
        if is_picture:
            data = file.read(LARGEST_PICTURE + 1) if pictures > 0 else b""
            if len(data) > LARGEST_PICTURE:
                return refused(name, TOO_LARGE)
            return attached_picture(name, picture(data) if data else None, pictures)
        if limit <= 0:
            return refused(name, _FULL)
        refuse_binary(file, place)
        size = os.fstat(file.fileno()).st_size
        data = file.read(limit + 1)
    if len(data) <= limit:
        return Attachment(path=name, text=readable(data).removesuffix("\n"), size=_size(len(data)))
    text = readable(data[: data.rfind(b"\n", 0, limit) + 1 or limit]).removesuffix("\n")
    lines = text.count("\n") + 1
    note = f"only the first {counted(lines, 'line')}; `read` has the rest from offset {lines + 1}"
    return Attachment(path=name, text=text, size=_size(size), note=note)


def cut_text(name: str, text: str, limit: int, note: str = "") -> Attachment:
    """Attach a text; of one with more than `limit` bytes the beginning."""
    data = text.encode("utf-8", "replace")
    size = _size(len(data))
    if len(data) > limit:
        text = readable(data[: data.rfind(b"\n", 0, limit) + 1 or limit])
        note = ", ".join(filter(None, (note, f"only the first {counted(len(text), 'character')}")))
    return Attachment(path=name, text=text.removesuffix("\n"), size=size, note=note)


def _folder(place: Place, name: str) -> Attachment:
    with open_folder(place.path) as folder:
        here = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        with os.scandir(here) as entries:
            names = sorted(
                shown(entry.name) + ("/" if entry.is_dir(follow_symlinks=False) else "")
                for entry in islice(entries, _MOST_SEEN)
            )
    finally:
        os.close(here)
    note = f"only the first {_NAMES} names; `list` has the rest" if len(names) > _NAMES else ""
    text = "\n".join(names[:_NAMES]) or "(empty)"
    path, size = f"{name}/".replace("//", "/"), counted(len(names), "name")
    return Attachment(path=path, text=text, size=size, note=note)


def _size(number: int) -> str:
    if number < 1000:
        return counted(number, "byte")
    return f"{number / 1000:.1f} kB" if number < 10**6 else f"{number / 10**6:.1f} MB"
