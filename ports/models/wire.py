"""A conversation as bytes in a wire format: each call encodes what is new, and copies the rest.

A session asks its model again and again with a conversation that has only grown. Its `ConversationMemory`
keeps what the last call encoded, in chunks that never change, so that a call costs what was added.
Encoding stops for the other work of the loop again and again, as the first call encodes everything.
"""

import asyncio
import base64
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import is_
from typing import Any, NamedTuple

from msgspec.structs import replace

from ...journal.log import Log
from ...machines.context import tokens_of
from ...machines.conversation import ChatMessage
from ...machines.value import Value
from .model import ConversationMemory

NOT_SHOWN = "[Its pictures are not shown: the model is not known to take any.]"
CHUNK = 512 * 1024
"""Bytes from which on a chunk is complete."""
_SLICE = 128 * 1024  # bytes that are encoded before the loop has its turn

WireValue = dict[str, Any]


def wire_id(call: str) -> str:
    """Return the id of a call for a server, made from ours, which no other call of the conversation has.

    The id that a server gave is not sent back: some give one to several calls, and few accept any text.
    All accept nine letters and digits, and Mistral nothing else.
    """
    return base64.b32encode(hashlib.sha256(call.encode()).digest())[:9].decode()


class WireFormat(Value):
    """How a conversation is put into JSON objects.

    `objects` gives for messages the objects, each with the number of messages in it; it gets the pictures
    if it `takes_pictures`. The last `open` of a conversation may become others when it grows; `finish`
    may change them for one request.
    """

    objects: Callable[[Iterable[ChatMessage]], Iterator[tuple[int, WireValue]]]
    open: int = 0
    finish: Callable[[list[WireValue]], object] = len
    takes_pictures: bool = True


def without_pictures(messages: Iterable[ChatMessage]) -> Iterator[ChatMessage]:
    """Give the messages for a model that takes only text, which says what is left out."""
    for message in messages:
        if message.pictures:
            text = f"{message.text}\n{NOT_SHOWN}".lstrip()
            message = replace(message, text=text, pictures=())
        yield message


class Encoded(Value):
    """The first `count` of a conversation's messages as a JSON list without its brackets.

    `chunks` are bytes that come one after the other, `parts` the objects after them; `tokens` is what the
    messages take, as estimated.
    """

    format: WireFormat
    messages: Sequence[ChatMessage]
    count: int = 0
    chunks: tuple[bytes, ...] = ()
    parts: tuple[bytes, ...] = ()
    tokens: int = 0

    def begins(self, messages: Sequence[ChatMessage]) -> bool:
        """Whether these messages are those of before, or more; as far as identity tells."""
        if isinstance(messages, Log) and messages.extends(self.messages):
            return True
        is_longer = len(messages) >= len(self.messages)
        return is_longer and all(map(is_, self.messages, messages))


class WireConversation(NamedTuple):
    """A conversation as the bytes of a JSON list without its brackets, in pieces, and its tokens."""

    pieces: tuple[bytes, ...]
    tokens: int


async def encode(
    format: WireFormat, messages: Sequence[ChatMessage], memory: ConversationMemory | None
) -> WireConversation:
    """Encode a conversation, on top of what `memory` has of it, and keep it there."""
    known = memory.kept if memory is not None else None
    if not (isinstance(known, Encoded) and known.format == format and known.begins(messages)):
        known = Encoded(format=format, messages=messages)
    chunks, parts = list(known.chunks), list(known.parts)
    count, tokens = known.count, known.tokens
    size = sum(map(len, parts))
    newest: list[tuple[int, WireValue]] = []
    since = 0
    more = messages[count:]
    for found in format.objects(more if format.takes_pictures else without_pictures(more)):
        newest.append(found)
        if len(newest) <= format.open:
            continue
        covered, value = newest.pop(0)
        parts.append(dumped(value))
        tokens += tokens_of(messages[count : count + covered])
        count += covered
        size += len(parts[-1])
        since += len(parts[-1])
        if size >= CHUNK:
            chunks.append(_joined(parts, chunks))
            parts, size = [], 0
        if since >= _SLICE:
            since = 0
            await asyncio.sleep(0)
    if memory is not None:
        memory.kept = Encoded(
            format=format,
            messages=messages,
            count=count,
            chunks=tuple(chunks),
            parts=tuple(parts),
            tokens=tokens,
        )
    last = [value for _, value in newest]
    format.finish(last)
    parts += map(dumped, last)
    tokens += tokens_of(messages[count:])
    return WireConversation((*chunks, _joined(parts, chunks)), tokens)


def _joined(parts: list[bytes], before: list[bytes]) -> bytes:
    """Join objects of a list; what comes after other chunks begins with a comma."""
    return b",".join((b"", *parts) if before and parts else parts)


def beginning(fields: WireValue, first: Sequence[WireValue]) -> bytes:
    """Begin a request: `fields`, then as `messages` the `first` ones.

    What changes from call to call comes behind, so that a request begins like the one before it.
    """
    return dumped(fields)[:-1] + b',"messages":[' + b",".join(map(dumped, first))


def body(begin: bytes, conversation: WireConversation) -> tuple[bytes, ...]:
    """Put a request together: its beginning and the conversation."""
    if not begin.endswith(b"[") and any(conversation.pieces):
        begin += b","
    return (begin, *conversation.pieces, b"]}")


def dumped(value: WireValue) -> bytes:
    """Write JSON; half a surrogate pair, which UTF-8 has no code for, becomes `?`."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
