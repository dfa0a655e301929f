"""Reads the body of a model server's answer as JSON objects, for all wire formats.

The body is server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html),
JSON texts, or both. What servers send between the objects differs, so it is read by this table:

    what comes                                                what it is
    a comment, `id`, `retry`, a field of another name         skipped
    data: nothing, a comment, `null`, `{}`, a heartbeat       skipped
    `[DONE]`                                                  the end
    a JSON object, or a list of them, in an event or bare     one object after the other
    an event named `error`, whatever its data                 an object with `error`
    data that begins as JSON and is none                      a fault: what was in it is lost
    other words                                               skipped; a fault if nothing else comes

A U+2028 inside an answer is text (`str.splitlines` would cut there).
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Sequence
from typing import Any

from ...machines.json_shape import is_array, is_object, parse_json
from .error_text import ServerErrorText
from .loose_json import tables

DONE: dict[str, Any] = {"done": True}
"""Represents `[DONE]`; compared by identity."""

LONGEST = 8 << 20
"""Bytes of one line or event of a stream, and of a body that is one JSON text."""
_SHORT = 64  # lines, and KiB, of a JSON text that is looked for between events
_ENDS = ("[DONE]", '"[DONE]"')
_NOTHING = ("", "null", "{}")
_HEARTBEATS = ("ping", "keepalive", "keep-alive", "keep_alive", "heartbeat")
"""Words, and types of objects and events, that only show that the server lives."""


async def json_objects(
    pieces: AsyncIterator[bytes], diagnostic: ServerErrorText
) -> AsyncGenerator[dict[str, Any], None]:
    """Yield each JSON object of the body as soon as it is whole; `[DONE]` is `DONE` and ends it.

    Raises `ServerFault` for a body in which none is, and for one that is too long.
    """
    reader, buffer, is_begun = _EventReader(diagnostic), b"", False
    async for piece in pieces:
        buffer += piece
        if len(buffer) + reader.size > LONGEST:
            is_line = reader.is_stream or buffer.startswith(b"data")
            raise diagnostic.too_much("a line" if is_line else "a body", LONGEST)
        if not is_begun:
            buffer = buffer.removeprefix(b"\xef\xbb\xbf")
            is_begun = len(buffer) > 2  # bytes of half a byte order mark
        # LF, CRLF or CR end a line; a last CR may be half of an end.
        if b"\n" in piece or b"\r" in buffer:
            text = buffer.replace(b"\r\n", b"\n")
            whole = text.removesuffix(b"\r")
            *lines, rest = whole.replace(b"\r", b"\n").split(b"\n")
            buffer = rest + text[len(whole) :]
            for line in lines:
                for found in await _read(reader, line):
                    yield found
                    if found is DONE:
                        return
    last = await _read(reader, buffer.rstrip(b"\r"))
    for found in (*last, *await _off_loop(reader.end(), reader.size)):
        yield found
        if found is DONE:
            return


class _EventReader:
    """Reads the lines of a body; the table at the top of the module says what it makes of them.

    `size` is in bytes, of what is not whole yet; `is_stream` as soon as there was an event.
    """

    def __init__(self, diagnostic: ServerErrorText) -> None:
        self._diagnostic = diagnostic
        self._name = ""
        self._data: list[bytes] = []
        self._bare: list[bytes] = []
        self._odd = ""
        self._is_used = False
        self.size = 0
        self.is_stream = False

    def read(self, line: bytes) -> Iterator[dict[str, Any]]:
        """Read a line; yield the objects that are whole by it."""
        name, colon, value = line.strip().partition(b":")
        match name:
            case b"data":
                self.is_stream = True
                self._keep(self._data, value.strip())
                if len(self._data) == 1:  # some servers send no empty lines
                    whole = _whole(value)
                    if whole is not None or _text([value]) in _ENDS:
                        yield from self._event(whole)
            case b"event" if colon:
                self.is_stream = True
                self._name = value.strip().decode("utf-8", "replace")
            case b"" if not colon:
                yield from self._event()
                is_short = len(self._bare) < _SHORT and self.size < _SHORT * 1024
                if is_short and _whole(*self._bare) is not None:  # else it is read at the end
                    yield from self._texts()
            case b"" | b"id" | b"retry":
                self.is_stream = True
            case _:
                self._keep(self._bare, line)

    def end(self) -> Iterator[dict[str, Any]]:
        """Read what is left at the end of the body. Raises `ServerFault` if there was no object at all.

        The specification drops an event without an empty line after it. Some servers omit the last one.
        """
        if not _text(self._data).startswith("{") or _whole(*self._data) is not None:
            yield from self._event()  # but half an event is the end of a connection, no fault of its own
        yield from self._texts()
        if self._odd and not self._is_used:
            raise self._diagnostic.nonsense(self._odd)

    def _keep(self, lines: list[bytes], line: bytes) -> None:
        lines.append(line)
        self.size += len(line) + 1

    def _event(self, whole: dict[str, Any] | None = None) -> Iterator[dict[str, Any]]:
        """End an event, whose object may have been read already."""
        name, text, self._name = self._name, _text(self._data), ""
        self.size -= sum(len(line) + 1 for line in self._data)
        self._data.clear()
        if name in _HEARTBEATS:
            return
        found = self._objects(text, whole)
        if name == "error":
            first = next(found, dict[str, Any]())
            yield first if first.get("error") else {"error": first or text or "no reason is given"}
        yield from found

    def _texts(self) -> Iterator[dict[str, Any]]:
        """Read what came outside of events: one JSON text, or one in each line."""
        lines, whole = self._bare, _text(self._bare)
        is_one = _whole(*lines) is not None or None in map(_whole, lines)
        for text in [whole] if is_one else [_text([line]) for line in lines]:
            yield from self._objects(text)
        self.size -= sum(len(line) + 1 for line in lines)
        self._bare = []

    def _objects(self, text: str, whole: dict[str, Any] | None = None) -> Iterator[dict[str, Any]]:
        if text in _ENDS:
            yield DONE
        is_beat = text.strip('"').lower() in (*_NOTHING, *_HEARTBEATS)
        if text in _ENDS or is_beat or text.startswith(":"):
            return
        try:
            value = parse_json(text) if whole is None else whole
        except (ValueError, RecursionError):
            if text.startswith("{"):
                raise self._diagnostic.garbled(text[:4000]) from None
            value = None
        found = [value] if is_object(value) else tables(value) if is_array(value) else []
        self._odd = self._odd or ("" if found else text[:4000])
        for each in found:
            if str(each.get("type")).lower() not in _HEARTBEATS:
                self._is_used = True
                yield each


async def _read(reader: _EventReader, line: bytes) -> Iterable[dict[str, Any]]:
    return await _off_loop(reader.read(line), reader.size + len(line))


async def _off_loop(found: Iterator[dict[str, Any]], size: int) -> Iterable[dict[str, Any]]:
    """Read so many bytes in a thread if they would hold the loop."""
    return await asyncio.to_thread(list, found) if size > _SHORT * 1024 else found


def _whole(*lines: bytes) -> dict[str, Any] | None:
    """Return the JSON object that lines are; none if they are no whole one."""
    text = _text(lines)
    try:
        value = parse_json(text) if text.startswith("{") else None
    except (ValueError, RecursionError):
        return None
    return value if is_object(value) else None


def _text(lines: Sequence[bytes]) -> str:
    return b"\n".join(lines).decode("utf-8", "replace").strip()
