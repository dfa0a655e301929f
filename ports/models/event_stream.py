"""The body of a model's answer, cut into JSON objects: server-sent events, or one plain JSON text.

Format of the events: https://html.spec.whatwg.org/multipage/server-sent-events.html. Lines end with
LF or CRLF and nowhere else: a U+2028 inside an answer is text (`str.splitlines` would cut there).
"""

import json
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, cast

from .complaint import Complaint

__all__ = ["DONE", "json_objects"]

DONE: dict[str, Any] = {"done": True}  # stands for `[DONE]`; known by its identity

_LONGEST = 16 * 1024 * 1024  # bytes of one event; more is no answer
_STARTS = (b"data", b"event", b"id:", b"retry", b":")
_ENOUGH = 5  # bytes that tell an event stream from anything else


async def json_objects(
    pieces: AsyncIterator[bytes], complaint: Complaint
) -> AsyncGenerator[dict[str, Any], None]:
    """Yield each JSON object of the body as soon as it is whole; `[DONE]` is `DONE` and ends it.

    Raises `ServerFault` for a body that is neither events nor JSON.
    """
    buffer = b""
    is_stream = False
    data: list[bytes] = []
    async for piece in pieces:
        buffer += piece
        if len(buffer) > _LONGEST:
            raise complaint.nonsense(_text(buffer[:1000]))
        if not is_stream:
            start = buffer.lstrip(b"\xef\xbb\xbf \r\n\t")
            if len(start) < _ENOUGH or not start.startswith(_STARTS):
                continue
            is_stream, buffer = True, start
        *lines, buffer = buffer.replace(b"\r\n", b"\n").split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                data.append(line[5:].strip())
            elif not line.strip() and data:
                event, data = b"\n".join(data), []
                if event == b"[DONE]":
                    yield DONE
                    return
                yield _object(event, complaint)
    if not is_stream:
        yield _object(buffer, complaint)
        return
    if buffer.startswith(b"data:"):
        data.append(buffer[5:].strip())
    # The specification drops an event that no empty line ends. Some servers forget it at the end.
    event = b"\n".join(data)
    if event == b"[DONE]":
        yield DONE
    elif event and _is_whole(event):
        yield _object(event, complaint)


def _object(text: bytes, complaint: Complaint) -> dict[str, Any]:
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        raise complaint.nonsense(_text(text)) from None
    if not isinstance(value, dict):
        raise complaint.nonsense(_text(text))
    return cast(dict[str, Any], value)


def _is_whole(text: bytes) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _text(data: bytes) -> str:
    return data[:4000].decode("utf-8", "replace")
