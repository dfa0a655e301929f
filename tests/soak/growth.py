"""A session of many turns: what the last turns cost, beside what the first ones did."""

import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from support.driver import Chat, Place
from support.model_server import ModelServer, Recorded, Text

__all__ = ["Sample", "faults", "figures", "grow"]

_SUM = "Sum it up now"
_ANSWER = "The wheel turns, and the ship with it. " * 20
_TICKS = os.sysconf("SC_CLK_TCK")
MOST_MEMORY = 4 << 20
"""Bytes that a session may grow by after its first tenth."""
MOST_COST = 2.0
"""How much more processor time, and how many more bytes, a turn of the last tenth may cost."""


@dataclass(frozen=True)
class Sample:
    """A program after so many turns: memory and journal in bytes, processor time in seconds."""

    turns: int
    memory: int
    descriptors: int
    threads: int
    journal: int
    cpu: float


def grow(folder: Path, turns: int) -> Iterator[Sample]:
    """Have a chat of so many turns, and give a sample at its begin and after each tenth.

    The model's window is small, so that the conversation is summed up again and again.
    """

    def answer(request: Recorded) -> Text:
        server.requests.clear()
        said = "They talked of wheels." if _SUM in request.prompt else _ANSWER
        return Text(said, usage=None)  # so that the program estimates how full its window is

    with ModelServer(answer) as server, closing(Place(folder)) as place:
        place.configure(server.base_url, model="context_window = 16000")
        chat = place.chat()
        for number in range(turns):
            if number % max(1, turns // 10) == 0:
                yield _sample(chat, number)
            chat.send(f"Turn the wheel for the {number}th time.")
            chat.wait("turn_ended", status="completed")
            chat.forget()
        yield _sample(chat, turns)
        assert chat.close() == 0


def _sample(chat: Chat, turns: int) -> Sample:
    process = Path(f"/proc/{chat.process.pid}")
    status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
    user, system = (process / "stat").read_text().rpartition(")")[2].split()[11:13]
    return Sample(
        turns=turns,
        memory=int(status["RssAnon"].split()[0]) << 10,
        descriptors=len(list((process / "fd").iterdir())),
        threads=int(status["Threads"]),
        journal=sum(
            path.stat().st_size for path in (chat.place.home / "state").glob("journal.db*")
        ),
        cpu=(int(user) + int(system)) / _TICKS,
    )


def figures(samples: list[Sample]) -> dict[str, float]:
    """Return what a turn of the first and of the last tenth cost, and what grew between them."""
    early, before, last = samples[1], samples[-2], samples[-1]
    first = samples[0]
    turns_of_first, turns_of_last = early.turns - first.turns, last.turns - before.turns
    return {
        "milliseconds a turn, first tenth": round(
            1000 * (early.cpu - first.cpu) / turns_of_first, 2
        ),
        "milliseconds a turn, last tenth": round(1000 * (last.cpu - before.cpu) / turns_of_last, 2),
        "journal bytes a turn, first tenth": round(
            (early.journal - first.journal) / turns_of_first
        ),
        "journal bytes a turn, last tenth": round((last.journal - before.journal) / turns_of_last),
        "MB of memory, first tenth": round(early.memory / (1 << 20), 1),
        "MB of memory, at the end": round(last.memory / (1 << 20), 1),
        "descriptors more": last.descriptors - early.descriptors,
        "threads more": last.threads - early.threads,
    }


def faults(samples: list[Sample]) -> list[str]:
    """Say what grew that must not."""
    early, last, found = samples[1], samples[-1], figures(samples)
    wrong: list[str] = []
    if last.memory - early.memory > MOST_MEMORY:
        wrong.append(f"memory: {early.memory} bytes, then {last.memory}")
    if last.descriptors > early.descriptors + 2:
        wrong.append(f"descriptors: {early.descriptors}, then {last.descriptors}")
    if last.threads > early.threads + 1:
        wrong.append(f"threads: {early.threads}, then {last.threads}")
    for what in ("milliseconds a turn", "journal bytes a turn"):
        first, at_end = found[f"{what}, first tenth"], found[f"{what}, last tenth"]
        if at_end > MOST_COST * first:
            wrong.append(f"{what}: {first}, then {at_end}")
    return wrong
