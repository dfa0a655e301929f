"""Text for the model: decoded, escaped, counted, cut."""

import json

from ...machines.context import gap_between
from ...workflows.spelling import spelled


def readable(data: bytes) -> str:
    """Decode as UTF-8; what cannot be decoded becomes U+FFFD."""
    return data.decode("utf-8", errors="replace")


def shown(name: str) -> str:
    """Return a file name as it is, or quoted and escaped if it could be misread or break a line."""
    text = spelled(name)
    return text if text.isprintable() and text == text.strip() else json.dumps(text)


def visible(text: str, limit: int) -> str:
    """Show what does not print as an escape, and cut after `limit` characters: text of a stranger.

    Line ends and tabs stay. Escape sequences, and signs that hide or turn text around, become visible.
    """
    cut = text if len(text) <= limit else f"{text[:limit]} […]"
    return "".join(
        sign if sign.isprintable() or sign in "\n\t" else sign.encode("unicode_escape").decode()
        for sign in cut
    )


def counted(number: int, noun: str) -> str:
    """Write a number with its noun: `1 line`, `2 lines`, `3 matches`, `4 entries`."""
    plural = noun + ("es" if noun.endswith(("ch", "s")) else "s")
    plural = f"{noun[:-1]}ies" if noun.endswith("ry") else plural
    return f"{number} {noun if number == 1 else plural}"


def clip_line(line: str, limit: int) -> str:
    """Cut one line after `limit` characters and say how many are missing."""
    if len(line) <= limit:
        return line
    return f"{line[:limit]} [… {counted(len(line) - limit, 'character')} more]"


_PART = 3  # of an output that is longer than its limit, one part in so many of that


def join_ends(head: bytes, tail: bytes, total: int, place: str) -> str:
    """Join the head and the tail of an output; `place` is the file with all of it, or empty.

    Where there is a file, less of them is enough: what matters of a long output is looked up in it.
    """
    if total <= len(head) + len(tail):
        return readable(head + tail)
    if place:
        head, tail = head[: len(head) // _PART], tail[len(tail) - len(tail) // _PART :]
    missing = total - len(head) - len(tail)
    return gap_between(readable(head), readable(tail), counted(missing, "byte"), place)
