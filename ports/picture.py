"""Pictures: what they may be, whoever brings them — a person, a tool, an MCP server or an editor."""

from __future__ import annotations

import base64
import binascii
from pathlib import Path

from ..machines.conversation import Picture
from ..machines.errors import ToolError
from ..workflows.foreign_file import read_foreign
from ..workflows.home_folder import expanded

LARGEST_PICTURE = 2_000_000
"""Bytes of one picture, which is journalled and sent again with each call."""
PICTURES = 8
"""Pictures of one message, or of one result of a tool."""
HEAD = 12
"""Bytes at its beginning that tell what a file is."""
_MARKS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


def media_type(head: bytes) -> str:
    """Return the media type of a picture by its first bytes; empty for anything else."""
    if head[:4] == b"RIFF" and head[8:HEAD] == b"WEBP":
        return "image/webp"
    return next((kind for mark, kind in _MARKS if head.startswith(mark)), "")


def picture(source: bytes | str | Path) -> Picture:
    """Make a picture of its content, or of a file: PNG, JPEG, GIF or WebP. Raises `ToolError`."""
    if isinstance(source, bytes):
        return _made(source)
    try:
        return _made(read_foreign(expanded(source), LARGEST_PICTURE))
    except OSError as error:
        raise ToolError(
            f"the picture `{source}` can't be read: {error.strerror or error}"
        ) from error


def decoded(data: str) -> Picture:
    """Make a picture of its content in base64. Raises `ToolError`."""
    if len(data) > LARGEST_PICTURE * 3 // 2:
        raise ToolError(TOO_LARGE)
    try:
        return _made(base64.b64decode(data, validate=True))
    except binascii.Error:
        raise ToolError("what is said to be a picture is not base64") from None


TOO_LARGE = f"a picture may have {LARGEST_PICTURE / 1e6:.1f} MB at most: make it smaller"


def _made(data: bytes) -> Picture:
    kind = media_type(data[:HEAD])
    if not kind:
        raise ToolError("it is no picture: PNG, JPEG, GIF and WebP are known")
    if len(data) > LARGEST_PICTURE:
        raise ToolError(TOO_LARGE)
    return Picture(media_type=kind, data=base64.b64encode(data).decode())


def size_of(data: str) -> int:
    """Return how many bytes base64 stands for."""
    return len(data) * 3 // 4 - data[-2:].count("=")


def line_of(made: Picture) -> str:
    """Return what stands for a picture in the text of a result."""
    return f"[a picture, {made.media_type}, {size_of(made.data):,} bytes]"
