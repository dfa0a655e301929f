"""Story 18 at any size: the items of a remote step, while the owner of their run and workers are killed.

Each item makes a file that comes back, and leaves a line where all workers see it: its effect. What a
person has to decide about, these lines decide: an item of unknown outcome whose line is there is taken
for done, any other is repeated. So in the end each line has to be there once.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from support.ray_cluster import RayCluster
from support.remote_bench import Bench, slots
from support.until import until

__all__ = ["Findings", "ManyItems", "faults_of"]

_PARALLEL = 8
"""Items at work for each worker."""
_KILLS = 4
"""Of ten thousand items, so many times workers are killed."""
_NAMED = re.compile(r"(\S+) \(make:\d+\)")


class Findings(NamedTuple):
    """What the journal says of the items, and the case as it is.

    `done` and `unknown` are items by their recorded state; `effects` counts the lines that each has
    left; `outputs` are the files that came back with the right content.
    """

    done: set[str]
    unknown: set[str]
    effects: Counter[str]
    outputs: set[str]


def faults_of(items: Iterable[str], found: Findings, decided: set[str]) -> list[str]:
    """Name the items of which the journal says what is not the case.

    `decided` are those that a person took for done, whose files were lost with their worker.
    """
    wrong: list[str] = []
    for item in items:
        times = found.effects[item]
        if item in found.done and times != 1:
            wrong.append(f"{item} is done, and was carried out {times} times")
        elif item in found.done and item not in found.outputs | decided:
            wrong.append(f"{item} is done, and its file did not come back")
        elif item in found.unknown and times > 1:
            wrong.append(f"{item} is unknown, and was carried out {times} times")
        elif item not in found.done | found.unknown and times:
            wrong.append(f"{item} was carried out, and the journal does not know of it")
    return wrong


class ManyItems:
    """A run of `count` items on a cluster. `figures` are there when it was played."""

    def __init__(self, bench: Bench, cluster: RayCluster, count: int, seed: int) -> None:
        self._bench, self._cluster, self._count = bench, cluster, count
        self._items = [f"i{number}" for number in range(count)]
        self._random = random.Random(seed)
        self._decided = set[str]()
        self.wrong: list[str] = []
        self.figures: dict[str, float] = {}

    def play(self) -> list[str]:
        """Kill the owner, then workers of the run that was resumed; finish it, and revert it."""
        bench = self._bench
        bench.write(*self._items, parallel=_PARALLEL * (len(self._cluster.raylets) - 1))
        kills = 1 + max(1, _KILLS * self._count // 10_000)
        whole = range(self._count // 10, self._count * 8 // 10)
        owner, *workers = sorted(self._random.sample(whole, kills))
        began = time.monotonic()
        words = self._owner_is_killed(owner)
        words = self._workers_are_killed(workers, words)
        self._is_finished(words)
        self.figures["seconds until all are done"] = round(time.monotonic() - began, 1)
        self._is_reverted()
        return self.wrong

    # What happens -------------------------------------------------------------------------------------

    def _owner_is_killed(self, moment: int) -> list[str]:
        run = self._start("render.toml")
        self._until_effects(moment, run)
        run.kill()
        run.wait()
        self._until_gone()
        known = max(file.stat().st_mtime_ns for file in self._bench.place.home.rglob("alive-*"))
        made = (self._bench.place.folder / "out").iterdir()
        if late := [file.name for file in made if file.stat().st_ctime_ns > known]:
            self.wrong.append(f"a revert would take {late} for a person's")
        return self._decide("the owner was")

    def _workers_are_killed(self, moments: list[int], words: list[str]) -> list[str]:
        """Kill workers of the run that goes on; it names what is unknown, and does all the rest."""
        run = self._start("--resume", "last", *words)
        for moment in moments:
            self._until_effects(moment, run)
            if victims := slots(self._cluster):
                os.kill(self._random.choice(victims), signal.SIGKILL)
        run.wait()
        words = self._decide("workers were")
        left = self._findings()
        if missing := len(self._items) - len(left.done | left.unknown):
            self.wrong.append(f"{missing} items are left, though only workers were killed")
        if (run.returncode == 0) != (not left.unknown):
            self.wrong.append(f"the run ended with {run.returncode}: {self._last_event()}")
        return words

    def _is_finished(self, words: list[str]) -> None:
        run = self._start("--resume", "last", *words) if words else None
        if run is not None and run.wait() != 0:
            self.wrong.append(f"the run does not come to its end: {self._last_event()}")
        found = self._look()
        if found.done != {*self._items}:
            self.wrong.append(f"{len(self._items) - len(found.done)} items are not done in the end")

    def _is_reverted(self) -> None:
        began = time.monotonic()
        reverted = self._bench.place.start("sessions", "revert", "last")
        said, errors = reverted.communicate()
        self.figures["seconds of the revert"] = round(time.monotonic() - began, 1)
        out = self._bench.place.folder / "out"
        if reverted.returncode or out.exists():
            left = [str(path.relative_to(out)) for path in (out, *out.rglob("*"))][:10]
            self.wrong.append(f"the revert left {left}: {said}{errors}")
        alive = [*self._bench.place.processes().values(), *map(str, slots(self._cluster))]
        self.wrong += [f"a process is left: {process}" for process in alive]

    # What is known ------------------------------------------------------------------------------------

    def _decide(self, who: str) -> list[str]:
        """Look, and return how a person decides about what is unknown: the words of the command."""
        self._until_gone()
        found = self._look()
        carried_out = {item for item in found.unknown if found.effects[item]}
        self.figures[f"unknown, when {who} killed"] = len(found.unknown)
        self.figures[f"of these carried out, when {who} killed"] = len(carried_out)
        if not found.unknown:
            return []
        refused = self._bench.place.run("run", "--resume", "last")
        if {*_NAMED.findall(refused.stderr)} != found.unknown or refused.returncode != 1:
            self.wrong.append(f"the unknown is not what is named: {refused.stderr[:1_000]}")
        self._decided |= carried_out
        options = {item: "--done" if item in carried_out else "--again" for item in found.unknown}
        return [word for item, option in options.items() for word in (option, item)]

    def _look(self) -> Findings:
        """Compare the journal with the case; note what is wrong."""
        found = self._findings()
        self.wrong += faults_of(self._items, found, self._decided)
        return found

    def _findings(self) -> Findings:
        shown = self._bench.place.start("inspect", "last", "--format", "json")
        out, errors = shown.communicate()
        assert shown.returncode == 0, errors
        marks: str = json.loads(out)["run"]["steps"]["make"]["marks"]
        states = dict(zip(self._items, marks, strict=True))
        return Findings(
            done={item for item in self._items if states[item] == "d"},
            unknown={item for item in self._items if states[item] in "ru"},
            effects=Counter(self._bench.traces("effects")),
            outputs=self._bench.outputs(),
        )

    # The run ------------------------------------------------------------------------------------------

    @property
    def _events(self) -> Path:
        return self._bench.shared / "events"

    def _start(self, *arguments: str) -> subprocess.Popen[str]:
        with self._events.open("w") as events:
            return self._bench.start(
                *arguments, stdin=subprocess.DEVNULL, stdout=events, stderr=events
            )

    def _last_event(self) -> Any:
        return self._events.read_text().splitlines()[-1:]

    def _until_effects(self, count: int, run: subprocess.Popen[str]) -> None:
        """Wait until so many items have been carried out; then the run still goes on."""
        until(
            lambda: len(self._bench.traces("effects")) >= count or run.poll() is not None,
            f"{count} effects",
            quiet=60 + self._count / 50,
        )

    def _until_gone(self) -> None:
        """Wait until nothing is left of a run that has ended: no driver, worker or command."""
        until(lambda: not self._bench.place.processes() and not slots(self._cluster))
        self._bench.until_gone()
