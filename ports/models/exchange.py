"""One call to a model server: send, take in the stream, try again where that makes sense.

What is the same for all wire formats lies here; a format gives a function that takes in one JSON
object of the stream.
"""

from collections.abc import Callable
from contextlib import aclosing
from typing import Any

from .complaint import Complaint
from .endpoint import Endpoint
from .event_stream import json_objects
from .model import ModelAnswer, unheard
from .reply import Reply
from .retry import RetryPolicy, ServerFault, with_retries

__all__ = ["Exchange", "TakeIn"]

_REFUSALS = ("refusal", "content_filter")

TakeIn = Callable[[dict[str, Any], Reply, Complaint], None]


class Exchange:
    """Calls one endpoint; several calls may run at the same time."""

    def __init__(self, endpoint: Endpoint, retry: RetryPolicy, take_in: TakeIn) -> None:
        self._endpoint = endpoint
        self._retry = retry
        self._take_in = take_in

    async def run(
        self,
        body: dict[str, Any],
        call_prefix: str,
        on_text: Callable[[str], None],
        on_notice: Callable[[str], None],
        on_thought: Callable[[str], None] = unheard,
    ) -> ModelAnswer:
        """Send `body` and return the whole answer. Raises `ServerFault`."""

        async def attempt() -> ModelAnswer:
            reply = Reply(on_text, on_thought)
            await self._receive(body, reply)
            return reply.answer(call_prefix)

        return await with_retries(attempt, self._retry, on_notice)

    async def get(self, url: str) -> Any:
        """Return the JSON at an address of the same server; none for whatever goes wrong."""
        return await self._endpoint.get(url)

    async def aclose(self) -> None:
        """Close the connections. Idempotent."""
        await self._endpoint.aclose()

    async def _receive(self, body: dict[str, Any], reply: Reply) -> None:
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
