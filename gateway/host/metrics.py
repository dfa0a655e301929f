"""What a program that serves a home counts, in the text format of Prometheus.

https://prometheus.io/docs/instrumenting/exposition_formats/. Counters begin at 0 with the
program; gauges are of the whole home.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from ...actors.environment import Publication
from ...journal import entries as e
from ...journal.record import SessionRecord
from ...journal.store import SessionRow
from ...journal.writer import CommitTally
from ...machines import protocol as m

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
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
            match entry:
                case e.TurnEnded():
                    self._turns[entry.status] += 1
                case e.Interrupted():
                    self._turns["interrupted"] += 1
                case e.ModelCallFailed():
                    self._calls["failed"] += 1
                case e.Answered():
                    self._calls["answered"] += 1
                    self._tokens["input"] += entry.usage.input
                    self._tokens["output"] += entry.usage.output
                case _:
                    pass
        return None

    def observe_fact(self, fact: m.Fact) -> None:
        """Count nothing."""

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
