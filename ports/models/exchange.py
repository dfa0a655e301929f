"""One call to a model server: send, receive the stream, retry where that makes sense.

This part is the same for all wire formats; a format is a function that processes one JSON object of
the stream.
"""

import asyncio
import json
import random
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar, cast

from ...machines.errors import ModelError
from ...machines.value import Value
from .endpoint import Endpoint
from .error_text import ServerErrorText
from .model import AnswerListener, ModelAnswer, Pause
from .reply import AnswerBuilder

# When a failed model call is retried, how long to wait, and which notice people get meanwhile -----
# Only what failed before the first piece of an answer is repeated. The pause doubles from attempt to
# attempt, is spread by a jitter that is handed in (Marc Brooker, "Exponential Backoff And Jitter",
# 2015), and gives way to what the server asks for in `Retry-After` (RFC 9110, 10.2.3).


T = TypeVar("T")


class ServerFault(ModelError):
    """A call that a server failed; `brief` gives the reason in a few words if it may be retried."""

    def __init__(
        self,
        message: str,
        hint: str = "",
        *,
        brief: str = "",
        retryable: bool = False,
        retry_after: float | None = None,
        is_too_long: bool = False,
    ) -> None:
        super().__init__(
            message,
            hint,
            retryable=retryable or bool(brief),
            retry_after=retry_after,
            is_too_long=is_too_long,
        )
        self.brief = brief


class RetryPolicy(Value):
    """How often and how patiently; all times in seconds, `jitter` returns 0.0 to 1.0.

    `longest_wait` bounds all pauses of a call together, also those that a server asks for.
    """

    retries: int = 4
    first_pause: float = 0.5
    longest_pause: float = 30.0
    longest_wait: float = 300.0
    jitter: Callable[[], float] = random.random
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep

    def pause(self, number: int, asked: float | None) -> float:
        """Seconds to wait before retry `number` (from 1); `asked` is what the server asks for."""
        if asked is not None:
            return max(asked, 0.0)
        full = min(self.longest_pause, self.first_pause * 2.0 ** (number - 1))
        return full * (0.5 + 0.5 * self.jitter())


def parse_retry_after(value: str | None, now: Callable[[], float] = time.time) -> float | None:
    """Seconds that a `Retry-After` header asks for, seconds or a date; none if it is unclear."""
    if not value:
        return None
    try:
        if re.fullmatch(r"\s*-?\d+(\.\d+)?\s*", value):
            return max(0.0, float(value))
        return max(0.0, parsedate_to_datetime(value).timestamp() - now())
    except ValueError:
        return None


async def with_retries(
    attempt: Callable[[], Awaitable[T]], policy: RetryPolicy, on_notice: Callable[[str], None]
) -> T:
    """Run `attempt` until it succeeds, fails with an error that is not retried, or retries run out."""
    number, waited = 0, 0.0
    while True:
        try:
            return await attempt()
        except ServerFault as fault:
            number += 1
            if not fault.brief or policy.retries == 0:
                raise
            if number > policy.retries:
                raise _given_up(fault, policy.retries) from fault
            pause = policy.pause(number, fault.retry_after)
            waited += pause
            if waited > policy.longest_wait:
                raise _too_long(fault, pause) from fault
            said = f"{fault.brief}, retry {number} of {policy.retries} in {pause:.1f} s"
            on_notice(Pause(said, pause))
        await policy.sleep(pause)


def _too_long(fault: ServerFault, pause: float) -> ServerFault:
    wait = f"{pause / 60:.0f} minutes" if pause > 90 else f"{pause:.0f} seconds"
    return ServerFault(
        f"{fault.message} (it wants to be asked again in {wait}, which is too long to wait)",
        f"try again in {wait}, or choose another model with `--model`",
        retry_after=fault.retry_after,
    )


def _given_up(fault: ServerFault, retries: int) -> ServerFault:
    return ServerFault(
        f"{fault.message} (gave up after {retries} retries)",
        fault.hint,
        brief=fault.brief,
        retry_after=fault.retry_after,
    )


# The body of a model's answer, cut into JSON objects: server-sent events, or one plain JSON text
# Format of the events: https://html.spec.whatwg.org/multipage/server-sent-events.html. Lines end with
# LF or CRLF and nowhere else: a U+2028 inside an answer is text (`str.splitlines` would cut there).


DONE: dict[str, Any] = {"done": True}  # stands for `[DONE]`; known by its identity

_LONGEST = 16 * 1024 * 1024  # bytes of one event; more is no answer
_STARTS = (b"data", b"event", b"id:", b"retry", b":")
_ENOUGH = 5  # bytes that tell an event stream from anything else


async def json_objects(
    pieces: AsyncIterator[bytes], complaint: ServerErrorText
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


def _object(text: bytes, complaint: ServerErrorText) -> dict[str, Any]:
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


_REFUSALS = ("refusal", "content_filter")

TakeIn = Callable[[dict[str, Any], AnswerBuilder, ServerErrorText], None]


class Exchange:
    """Calls one endpoint; several calls may run at the same time."""

    def __init__(self, endpoint: Endpoint, retry: RetryPolicy, take_in: TakeIn) -> None:
        self._endpoint = endpoint
        self._retry = retry
        self._take_in = take_in

    async def run(
        self, body: dict[str, Any], call_prefix: str, listener: AnswerListener
    ) -> ModelAnswer:
        """Send `body` and return the whole answer. Raises `ServerFault`."""

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

    async def _receive(self, body: dict[str, Any], reply: AnswerBuilder) -> None:
        complaint = self._endpoint.complaint
        try:
            async with (
                self._endpoint.post(body) as pieces,
                aclosing(json_objects(pieces, complaint)) as objects,
            ):
                async for value in objects:
                    self._take_in(value, reply, complaint)
        except ServerFault as fault:
            if not reply.is_begun:
                raise
            raise complaint.cut(reply.came, fault) from fault
        if not reply.stop_reason:
            raise complaint.cut(reply.came) if reply.is_begun else complaint.broken()
        if reply.stop_reason in _REFUSALS:
            raise complaint.refused(reply.came)
        if reply.is_empty:
            raise complaint.empty(reply.stop_reason)
