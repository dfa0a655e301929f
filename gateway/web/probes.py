"""What a platform asks a server: whether it lives, whether it is ready, and what it has counted.

The first two say nothing of the home, so anybody may ask, by any name of this host: a kubelet asks by the
address of a pod.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from ...journal.writer import CommitTally
from ...machines.errors import SteersmanError
from ..host.metrics import CONTENT_TYPE, Metrics
from ..hosts import Hosts
from .access import Access

READY_SECONDS = 5.0
"""Seconds in which the store has to answer."""


class Probes:
    """Answers them; `is_fenced` says whether the node that the server is runs nothing."""

    def __init__(
        self, hosts: Hosts, metrics: Metrics, access: Access, is_fenced: Callable[[], bool]
    ) -> None:
        self._hosts = hosts
        self._metrics = metrics
        self._access = access
        self._is_fenced = is_fenced

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route("/healthz", self._live, methods=["GET"]),
            Route("/readyz", self._ready, methods=["GET"]),
            Route("/metrics", self._count, methods=["GET"]),
        ]

    async def _live(self, request: Request) -> Response:
        """Answer at all: the event loop runs."""
        return PlainTextResponse("ok\n")

    async def _ready(self, request: Request) -> Response:
        """Say whether the store answers, and the node may run sessions; 503 if not."""
        if self._is_fenced():
            return PlainTextResponse("the node is fenced\n", 503)
        look = asyncio.to_thread(self._hosts.store.owners)
        try:
            await asyncio.wait_for(look, READY_SECONDS)
        except (SteersmanError, TimeoutError):
            return PlainTextResponse("the store does not answer\n", 503)
        return PlainTextResponse("ok\n")

    async def _count(self, request: Request) -> Response:
        """Return the metrics; needs the scope `look`."""
        await self._access.admit(request, "look")
        return PlainTextResponse(await asyncio.to_thread(self._text), media_type=CONTENT_TYPE)

    def _text(self) -> str:
        store = self._hosts.store
        tallies = [host.runtime.writer.tally for host in self._hosts.hosts()]
        commits, seconds = (
            sum(tally.commits for tally in tallies),
            sum(tally.seconds for tally in tallies),
        )
        return self._metrics.text(
            store.sessions(), set(store.owners()), CommitTally(commits, seconds)
        )
