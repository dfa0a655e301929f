"""The suites that run as long as you like, each made of what the tests of its promise use.

A suite gives pieces of work that is done: how many cases, and what was wrong with them.
"""

import itertools
import math
import multiprocessing
import random
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from blackbox.life import Life, calls_of
from blackbox.recorded_run import (
    MODELS,
    Run,
    conversation,
    fault_of,
    told,
    work_on_files,
    wrong_file,
)
from blackbox.test_hostile import ENDINGS, end_chats
from blackbox.test_sweep import all_points, kill_at, make_used
from simulation.test_workflow import played_here
from soak.chats import Chats
from soak.fuzz import KINDS, Fuzzer
from soak.growth import faults, figures, grow
from soak.nodes import Nodes
from support.hostile import HOSTILE
from support.power_loss import Disk
from support.ray_cluster import running_cluster
from support.remote_bench import Bench
from support.remote_items import ManyItems
from workspace.ruin import Origin, prepare
from workspace.test_crash import ends_of, killed_restore, recorded_restore

from steersman.simulator.elsewhere import ElsewhereScenario
from steersman.simulator.goals import GoalScenario
from steersman.simulator.loops import LoopScenario
from steersman.simulator.play import play
from steersman.simulator.scenario import Scenario
from steersman.simulator.workflows import WorkflowScenario

__all__ = ["SUITES", "Order", "Piece", "Suite"]

CHUNK = 50
RAYLETS = 4
WORKFLOWS = ("codemod", "fix-tests", "research", "review", "goal")


@dataclass(frozen=True)
class Order:
    """How much is wanted: cases from a seed on, in so many processes, in a folder of their own.

    `until` is when the time is over, on the monotonic clock.
    """

    count: int
    seed: int
    processes: int
    folder: Path
    until: float = math.inf

    def is_over(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() > self.until


@dataclass(frozen=True)
class Piece:
    """So many cases that were played; `wrong` says what broke, `figures` what was measured."""

    count: int
    wrong: tuple[str, ...] = ()
    figures: dict[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True)
class Suite:
    """A promise, the cases that try to break it, and how many of them the full run has."""

    promise: str
    cases: str
    target: int
    play: Callable[[Order], Iterator[Piece]]
    is_summed: bool = False
    """Whether it ends without help, also when the time is over, with a last piece that sums it up."""


# The simulator ------------------------------------------------------------------------------------


def _scenarios(kind: str) -> tuple[Callable[[Any], Any], ...]:
    if kind == "sessions":
        return (Scenario, LoopScenario, ElsewhereScenario)
    if kind == "goals":
        return (GoalScenario,)
    return tuple(partial(_of_workflow, name) for name in WORKFLOWS)


def _of_workflow(name: str, seed: Any) -> WorkflowScenario:
    return WorkflowScenario(seed, played_here(name))


def _play_seeds(kind: str, seeds: range) -> Piece:
    scenarios = _scenarios(kind)
    played = [play(seed, *scenarios) for seed in seeds]
    broken = [one.broken for one in played if one.broken is not None]
    wrong = tuple(f"seed {one.seed}: {one.promise} But {one.found}"[:2_000] for one in broken)
    return Piece(len(played), wrong)


def _simulated(kind: str, order: Order) -> Iterator[Piece]:
    ends = order.seed + order.count
    chunks = [range(at, min(at + CHUNK, ends)) for at in range(order.seed, ends, CHUNK)]
    with multiprocessing.get_context("spawn").Pool(order.processes) as pool:
        yield from pool.imap_unordered(partial(_play_seeds, kind), chunks)


# Crashes ------------------------------------------------------------------------------------------


def _power(order: Order) -> Iterator[Piece]:
    """Record three runs again and again, and let the power go at any moment of each, in turn."""
    for number in itertools.count():
        seed, folder = order.seed + number, order.folder / str(number)
        folder.mkdir()
        with prepare() as origin, ExitStack() as stack:
            cuts = (
                _cut_run("talk", conversation(folder / "talk"), seed),
                _cut_run("files", work_on_files(folder / "files"), seed),
                _cut_restore(origin, folder / "log", seed),
            )
            runs = [stack.enter_context(closing(run)) for run in cuts]
            while runs:
                for run in list(runs):
                    pieces = list(itertools.islice(run, CHUNK))
                    yield from pieces
                    if len(pieces) < CHUNK:
                        runs.remove(run)


def _cut_run(name: str, run: Run, seed: int) -> Generator[Piece]:
    seen = set[int]()
    for model in MODELS:
        for disk in run.disks(model, seed):
            known = hash((disk.moment, disk.files))
            if known not in seen:  # most are possible in both models
                seen.add(known)
                wrong = _missing(name, run, disk)
                yield Piece(1, (f"{name}, {model}, seed {seed}: {wrong}",) if wrong else ())


def _cut_restore(origin: Origin, log: Path, seed: int) -> Generator[Piece]:
    run = recorded_restore(origin, log)
    with closing(ends_of(origin, run, seed)) as ends:
        while (piece := _next_end(ends, len(run))) is not None:
            yield piece


def _missing(name: str, run: Run, disk: Disk) -> str:
    events = told(run.operations[: disk.moment])
    return fault_of(disk, events) if name == "talk" else wrong_file(disk, events)


def _next_end(ends: Iterator[tuple[int, str]], whole: int) -> Piece | None:
    try:
        moment, end = next(ends)
    except StopIteration:
        return None
    except (AssertionError, KeyError, OSError, ValueError) as error:
        return Piece(1, (f"restore: {error}"[:2_000],))
    is_right = end == "finished" if moment == whole else end in ("finished", "never began")
    return Piece(1, () if is_right else (f"restore: {end} at {moment} of {whole}",))


def _kills(order: Order) -> Iterator[Piece]:
    """Kill a conversation at each of its writes, and a restore before each thing it does."""
    used = make_used(order.folder / "before")
    numbers = itertools.count()
    for number in itertools.count():
        with Life(order.folder / f"fresh{number}") as fresh:
            of_fresh = calls_of(fresh)
        with Life(order.folder / f"used{number}", used) as whole:
            points = all_points(of_fresh, calls_of(whole))
        random.Random(order.seed + number).shuffle(points)
        with ThreadPoolExecutor(order.processes) as pool:
            while points:
                batch = [points.pop() for _ in range(min(order.processes, len(points)))]
                roots = [order.folder / f"life{next(numbers)}" for _ in batch]
                for was_killed, wrong in pool.map(kill_at, batch, roots, itertools.repeat(used)):
                    yield Piece(int(was_killed), (wrong,) if wrong else ())
        with prepare() as origin:
            for at in itertools.count(1):
                was_killed, end = killed_restore(origin, at)
                is_right = end in ("finished", "never began")
                yield Piece(int(was_killed), () if is_right else (f"restore, {at}: {end}",))
                if not was_killed:
                    break


# Processes, inputs, growth ------------------------------------------------------------------------


def _hostile(order: Order) -> Iterator[Piece]:
    """End chats whose tools are hard to end, in each way and mode in turn."""
    ways = itertools.cycle(itertools.product(ENDINGS, (True, False)))
    for number, (ending, is_at_prompt) in enumerate(ways):
        mode = "at the prompt" if is_at_prompt else "one message"
        try:
            end_chats(order.folder / str(number), ending, is_at_prompt=is_at_prompt)
        except AssertionError as error:
            yield Piece(len(HOSTILE), (f"{ending}, {mode}: {error}"[:2_000],))
        else:
            yield Piece(len(HOSTILE))


def _fuzz(order: Order) -> Iterator[Piece]:
    """Give each kind some inputs, in turn."""
    with ExitStack() as stack:
        fuzzers = dict[str, Iterator[str]]()
        for name in KINDS:
            folder = order.folder / name.replace(" ", "-")
            folder.mkdir()
            run = Fuzzer(name, order.seed, folder).run()
            fuzzers[name] = stack.enter_context(closing(run))
        while True:
            for name, run in fuzzers.items():
                for wrong in itertools.islice(run, CHUNK):
                    yield Piece(1, (f"{name}: {wrong}",) if wrong else ())


def _growth(order: Order) -> Iterator[Piece]:
    """Have one session, longer and longer; what grew is known at its end."""
    samples = list[Any]()
    for sample in grow(order.folder / "session", order.count):
        samples.append(sample)
        yield Piece(sample.turns - (samples[-2].turns if samples[:-1] else 0))
        if order.is_over() and len(samples) > 2:
            break
    yield Piece(0, tuple(faults(samples)), figures(samples))


def _remote(order: Order) -> Iterator[Piece]:
    """Have one run on a cluster of Ray, and kill its owner and workers."""
    with running_cluster(RAYLETS) as cluster:
        bench = Bench(order.folder / "run", cluster)
        with closing(bench.place):
            story = ManyItems(bench, cluster, order.count, order.seed)
            yield Piece(order.count, tuple(story.play()), story.figures)


def _chats(platform: str, order: Order) -> Iterator[Piece]:
    """Have people talk in the rooms of a platform, and break whatever is between them and the session."""
    with closing(Chats(platform, order.folder, order.seed)) as chats:
        for count, wrong in chats.play(order.count, order.is_over):
            yield Piece(count, tuple(wrong))
        yield Piece(0, (), chats.figures)


def _nodes(order: Order) -> Iterator[Piece]:
    """Have nodes run the sessions of one database, and break nodes, connections and server."""
    with closing(Nodes(order.folder, order.seed, order.count)) as nodes:
        for count, wrong in nodes.play(order.is_over):
            yield Piece(count, tuple(wrong))
        yield Piece(0, (), nodes.figures)


def _chat_suite(platform: str) -> Suite:
    promise = "What people say in a room is decided once, in their order, and answered once."
    return Suite(promise, "messages", 1_000, partial(_chats, platform), is_summed=True)


SUITES: dict[str, Suite] = {
    "sessions": Suite(
        "People, children, crashes, full disks: nothing is lost, doubled or out of order.",
        "seeds",
        60_000,
        partial(_simulated, "sessions"),
    ),
    "goals": Suite(
        "A goal ends, within its budget, whatever crashes.",
        "seeds",
        30_000,
        partial(_simulated, "goals"),
    ),
    "workflows": Suite(
        "A workflow run comes to its end, and does no work twice.",
        "seeds",
        10_000,
        partial(_simulated, "workflows"),
    ),
    "power": Suite(
        "What was acknowledged, and what a tool wrote, survives a power loss; a restore is whole.",
        "states of a disk",
        20_000,
        _power,
    ),
    "kills": Suite(
        "After a kill all that was acknowledged is there, nothing runs, and all ends once.",
        "kills",
        1_000,
        _kills,
    ),
    "hostile": Suite(
        "However a chat ends, no process that a tool started is left.",
        "hostile processes",
        1_000,
        _hostile,
    ),
    "fuzz": Suite(
        "An input from outside is taken or refused in words, and never ends in a traceback.",
        "inputs",
        50_000,
        _fuzz,
    ),
    "growth": Suite(
        "A long session needs no more for a turn than a short one.",
        "turns",
        10_000,
        _growth,
        is_summed=True,
    ),
    "nodes": Suite(
        "Each message is decided once, a session has one owner, and never two tools at a time.",
        "messages",
        3_000,
        _nodes,
        is_summed=True,
    ),
    "remote": Suite(
        "A remote item runs once, whatever is killed; if that is unknown, it is named.",
        "items",
        10_000,
        _remote,
    ),
    **{platform: _chat_suite(platform) for platform in ("irc", "matrix", "telegram")},
}
