"""One call to a model server: sends the request, reads the stream of JSON objects, retries.

This part is the same for all wire formats; a format is a function that processes one JSON object of
the body. The body is server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html)
or one plain JSON text. Lines end with LF or CRLF and nowhere else: a U+2028 inside an answer is text
(`str.splitlines` would cut there).
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import Any, cast

from ...machines.json_shape import parse_json
from .endpoint import Endpoint
from .error_text import ServerErrorText
from .model import AnswerListener, ModelAnswer
from .reply import ANSWER_LIMIT, AnswerBuilder
from .retry import RetryPolicy, ServerFault, with_retries

DONE: dict[str, Any] = {"done": True}
"""Represents `[DONE]`; compared by identity."""
TakeIn = Callable[[dict[str, Any], AnswerBuilder, ServerErrorText], None]
"""Adds one JSON object of the body to an answer: a wire format."""

LONGEST = 8 << 20
"""Bytes of one line or event of a stream, and of a body that is one JSON text."""
_STARTS = (b"data", b"event", b"id:", b"retry", b":")
_ENOUGH = 5  # bytes that distinguish an event stream from other bodies
_REFUSALS = ("refusal", "content_filter")


async def json_objects(
    pieces: AsyncIterator[bytes], diagnostic: ServerErrorText
) -> AsyncGenerator[dict[str, Any], None]:
    """Yield each JSON object of the body as soon as it is whole; `[DONE]` is `DONE` and ends it.

    Raises `ServerFault` for a body that is neither events nor JSON, or for one that is too long.
    """
    buffer = b""
    is_stream = False
    data: list[bytes] = []
    async for piece in pieces:
        buffer += piece
        if len(buffer) + sum(map(len, data)) > LONGEST:
            raise diagnostic.too_much("a line" if is_stream else "a body", LONGEST)
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
                yield _object(event, diagnostic)
    if not is_stream:
        yield _object(buffer, diagnostic)
        return
    if buffer.startswith(b"data:"):
        data.append(buffer[5:].strip())
    # The specification drops an event without an empty line after it. Some servers omit the last one.
    event = b"\n".join(data)
    if event == b"[DONE]":
        yield DONE
    elif event and _is_whole(event):
        yield _object(event, diagnostic)


def _object(text: bytes, diagnostic: ServerErrorText) -> dict[str, Any]:
    try:
        value: Any = parse_json(text)
    except (ValueError, RecursionError):
        raise diagnostic.nonsense(_text(text)) from None
    if not isinstance(value, dict):
        raise diagnostic.nonsense(_text(text))
    return cast(dict[str, Any], value)


def _is_whole(text: bytes) -> bool:
    try:
        parse_json(text)
    except (ValueError, RecursionError):
        return False
    return True


def _text(data: bytes) -> str:
    return data[:4000].decode("utf-8", "replace")


class Exchange:
    """Calls one endpoint; several calls may run at the same time."""

    def __init__(self, endpoint: Endpoint, retry: RetryPolicy, take_in: TakeIn) -> None:
        self._endpoint = endpoint
        self._retry = retry
        self._take_in = take_in

    async def run(
        self, body: Sequence[bytes], call_prefix: str, listener: AnswerListener
    ) -> ModelAnswer:
        """Send `body`, the pieces of a JSON text, and return the whole answer. Raises `ServerFault`."""

        async def attempt() -> ModelAnswer:
            reply = AnswerBuilder(listener=listener)
            await self._receive(body, reply)
            return reply.answer(call_prefix)

        return await with_retries(attempt, self._retry, listener.on_notice)

    async def get(self, url: str) -> Any:
        """Return the JSON at an address of the same server; none on any failure."""
        return await self._endpoint.get(url)

    async def aclose(self) -> None:
        """Close the connections. Idempotent."""
        await self._endpoint.aclose()

    async def _receive(self, body: Sequence[bytes], reply: AnswerBuilder) -> None:
        diagnostic = self._endpoint.diagnostic
        try:
            async with (
                self._endpoint.post(body) as pieces,
                aclosing(json_objects(pieces, diagnostic)) as objects,
            ):
                async for value in objects:
                    self._take_in(value, reply, diagnostic)
                    if reply.is_too_large:
                        break
        except ServerFault as fault:
            if not reply.is_begun:
                raise
            raise diagnostic.cut(reply.came, fault) from fault
        if reply.is_too_large:
            raise diagnostic.too_much("an answer", ANSWER_LIMIT)
        if not reply.stop_reason:
            raise diagnostic.cut(reply.came) if reply.is_begun else diagnostic.broken()
        if reply.stop_reason in _REFUSALS:
            raise diagnostic.refused(reply.came)
        if reply.is_empty:
            raise diagnostic.empty(reply.stop_reason)
