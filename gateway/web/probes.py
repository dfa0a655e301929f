"""What a platform asks a server: whether it lives, whether it is ready, and what it has counted.

The first two say nothing of the home, so anybody may ask, by any name of this host: a kubelet asks by the
address of a pod. What is counted is in the text format of Prometheus:
https://prometheus.io/docs/instrumenting/exposition_formats/. Counters begin at 0 with the program; gauges
are of the whole home.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from ...actors.environment import Observer, Publication
from ...journal import entries as e
from ...journal.record import SessionRecord
from ...journal.store import SessionRow
from ...journal.writer import CommitTally
from ...machines.errors import SteersmanError
from ..hosts import Hosts
from .access import Access

READY_SECONDS = 5.0
"""Seconds in which the store has to answer."""
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def probe_routes(
    hosts: Hosts, metrics: Metrics, access: Access, is_fenced: Callable[[], bool]
) -> list[Route]:
    """Return the routes; `is_fenced` says whether the node that the server is runs nothing."""

    async def live(request: Request) -> Response:
        """Answer at all: the event loop runs."""
        return PlainTextResponse("ok\n")

    async def ready(request: Request) -> Response:
        """Say whether the store answers, and the node may run sessions; 503 if not."""
        if is_fenced():
            return PlainTextResponse("the node is fenced\n", 503)
        look = asyncio.to_thread(hosts.store.owners)
        try:
            await asyncio.wait_for(look, READY_SECONDS)
        except (SteersmanError, TimeoutError):
            return PlainTextResponse("the store does not answer\n", 503)
        return PlainTextResponse("ok\n")

    def written() -> str:
        tallies, store = [host.runtime.writer.tally for host in hosts.hosts()], hosts.store
        commits = sum(tally.commits for tally in tallies)
        tally = CommitTally(commits, sum(tally.seconds for tally in tallies))
        return metrics.text(store.sessions(), set(store.owners()), tally)

    async def count(request: Request) -> Response:
        """Return the metrics; needs the scope `look`."""
        await access.admit(request, "look")
        return PlainTextResponse(await asyncio.to_thread(written), media_type=CONTENT_TYPE)

    return [
        Route("/healthz", live, methods=["GET"]),
        Route("/readyz", ready, methods=["GET"]),
        Route("/metrics", count, methods=["GET"]),
    ]


class Metrics(Observer):
    """Counts turns, model calls and tokens of the sessions of a program; see `Observer`."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._turns: Counter[str] = Counter(completed=0, interrupted=0, failed=0)
        self._calls: Counter[str] = Counter(answered=0, failed=0)
        self._tokens: Counter[str] = Counter(input=0, output=0)

    def observe_entry(
        self, entry: e.Entry, seq: int, time: float, record: SessionRecord
    ) -> Publication | None:
        """Count an entry of the journal."""
        with self._mutex:
            if isinstance(entry, e.TurnEnded):
                self._turns[entry.status] += 1
            elif isinstance(entry, e.Interrupted):
                self._turns["interrupted"] += 1
            elif isinstance(entry, e.ModelCallFailed):
                self._calls["failed"] += 1
            elif isinstance(entry, e.Answered):
                self._calls["answered"] += 1
                self._tokens["input"] += entry.usage.input
                self._tokens["output"] += entry.usage.output
        return None

    def text(self, rows: Iterable[SessionRow], owned: set[str], tally: CommitTally) -> str:
        """Write all metrics; `rows` are the sessions of the home, `owned` those that are open."""
        states: Counter[tuple[str, str]] = Counter()
        waiting = asking = 0
        for row in rows:
            is_open = row.session in owned
            states[row.state, "yes" if is_open else "no"] += 1
            waiting += row.waiting
            asking += row.asking if is_open else 0
        with self._mutex:
            turns, calls, tokens = dict(self._turns), dict(self._calls), dict(self._tokens)
        sessions = {
            f'state="{state}",open="{is_open}"': n for (state, is_open), n in states.items()
        }
        lines = [
            *_metric("sessions", "gauge", "Sessions of the home, subagents too.", sessions),
            *_metric("messages_waiting", "gauge", "Messages in all queues.", {"": waiting}),
            *_metric("questions_open", "gauge", "Questions that wait for people.", {"": asking}),
            *_metric("turns_total", "counter", "Turns that ended here.", _by("status", turns)),
            *_metric("model_calls_total", "counter", "Calls of models.", _by("outcome", calls)),
            *_metric("model_tokens_total", "counter", "Tokens.", _by("direction", tokens)),
        ]
        name = "steersman_journal_commit_seconds"
        lines += [
            f"# HELP {name} Time from submitting entries to the journal until they are durable.",
            f"# TYPE {name} summary",
            f"{name}_sum {tally.seconds:.6f}",
            f"{name}_count {tally.commits}",
        ]
        return "\n".join(lines) + "\n"


def _by(label: str, counts: Mapping[str, int]) -> dict[str, int]:
    return {f'{label}="{value}"': count for value, count in counts.items()}


def _metric(name: str, kind: str, about: str, values: Mapping[str, int]) -> Iterator[str]:
    yield f"# HELP steersman_{name} {about}"
    yield f"# TYPE steersman_{name} {kind}"
    for labels, value in sorted(values.items()):
        yield f"steersman_{name}{f'{{{labels}}}' if labels else ''} {value}"
