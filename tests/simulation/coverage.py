"""What the runs of the simulator came upon: cells of routing tables, transitions, lanes.

The tables that a simulated session goes by count what they are asked; each machine's answers count what
they are asked for. `REASONS` says of all that no run comes upon why that is so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from simulation.goal_moves import rows

from steersman.actors.environment import Environment
from steersman.machines.catalogue import MACHINES
from steersman.machines.delivery import DEFAULT_DELIVERIES, NEVER_ASKED
from steersman.machines.disposition import DEFAULT_DISPOSITIONS
from steersman.machines.machine import Machine, Step, _engine  # pyright: ignore[reportPrivateUsage]
from steersman.machines.result_routing import DEFAULT_RETURNS
from steersman.machines.routing import Key, Table
from steersman.simulator.lanes import LaneWatch

__all__ = [
    "ASKED",
    "MOVED",
    "REASONS",
    "WATCH",
    "Coverage",
    "Point",
    "count_tables",
    "counted",
    "summary",
]

Point = tuple[str, ...]
"""A table's name and a key of it, or a machine's name, a state, an event and a state."""

COMBINED = {"dispositions": 2}
"""How many dimensions of a table count here, if not all: the others are settings, drawn alone."""

MEANT_NOW = (
    *("interrupt_bare", "interrupt_more", "revert"),
    *("explicit_steer", "explicit_interrupt", "command"),
)
NO_TALK = "only talk is overtaken by a stop"
ENDS_STOPPED = "a turn that is being stopped ends so only if its actor fails just then"
NOT_ENDED = "the others are asked about where a row ends the turn, and the shipped one lets it wait"
NOT_SELF = ("foreground_child", "background_child", "detached_child", "side_talk", "goal")

REASONS: Mapping[Point, str] = {
    **{("deliveries", *cell): why for cell, why in NEVER_ASKED.items()},
    **{("deliveries", "provider_limit", other): NOT_ENDED for other in NOT_SELF},
    ("returns", "background_child", "call", "*"): "no call waits for a child in the background",
    ("returns", "side_talk", "call", "*"): "no call waits for a side talk",
    ("returns", "background_child", "gone", "*"): "no turn waits for it, so it ends with none",
    ("returns", "side_talk", "gone", "*"): "no turn waits for it, so it ends with none",
    ("returns", "side_talk", "*", "agent"): "people speak to the first session only",
    ("child", "*", "give_up", "*"): "a supervisor that gives up fails itself, and fires nothing",
    ("child", "stopping", "*", "*"): "only a judge is told to end, and it is not started again",
    ("subagent", "*", "disconnect", "*"): "no agent here runs in another program",
    ("subagent", "waiting", "cancel", "*"): "a child that has not begun is ended by `stopped`",
    ("subagent", "interrupted", "cancel", "*"): "a child that does not work is ended by `stopped`",
    ("subagent", "stopping", "cancel", "*"): "a child that stops already is not told again",
    ("subagent", "working", "stopped", "*"): "a child that works is told to stop before it has",
    ("subagent", "waiting", "fail", "*"): "what has not begun can't fail",
    ("subagent", "interrupted", "fail", "*"): "what does not work can't fail",
    ("item", "offered", "end_edit", "*"): "no turn ends here while a person edits a child's result",
    ("item", "pending", "bring", "*"): "no queue is brought here from another session",
    ("session", "interrupting", "turn_ended", "*"): ENDS_STOPPED,
    ("session", "leaving", "turn_ended", "*"): ENDS_STOPPED,
    ("session", "finalizing", "turn_ended", "*"): ENDS_STOPPED,
    ("interrupt", "stopping", "overtake", "*"): ENDS_STOPPED,
    (
        "dispositions",
        "explicit_turn",
        "*",
    ): "only piped lines are said so, and no person here pipes",
    **{("dispositions", intent, "overtaken"): NO_TALK for intent in MEANT_NOW},
    ("revert", "asked", "refuse", "*"): "a revert that was asked for begins before it can fail",
    ("revert", "started", "restore", "*"): "files are counted before they are given back",
    ("turn", "waiting", "fail", "*"): "a turn that waits ends so only if its actor fails just then",
    ("turn", "calling", "overflow", "*"): "no model here says that it was sent too much",
}
"""Why no run comes upon a point; `*` stands for whatever there is."""

TABLES: Mapping[str, Table[Any]] = {
    table.name: table for table in (DEFAULT_DISPOSITIONS, DEFAULT_DELIVERIES, DEFAULT_RETURNS)
}
MOVED_HERE = (
    *("session", "queue", "item", "turn", "call", "interrupt"),
    *("goal", "judge", "subagent", "child", "revert"),
)
ASKED = Counter[Point]()
MOVED = Counter[Point]()
WATCH = LaneWatch()
"""The watch over all mailboxes of the runs of this process."""


class CountedTable(Table[Any]):
    """A table that counts what it is asked."""

    def decide(self, key: Key) -> Any:
        """Count, and decide."""
        ASKED[self.name, *key] += 1
        return super().decide(key)

    def override(self, rows: Iterable[Any]) -> Table[Any]:
        """Count what is asked with rows in front, too."""
        return _counted(super().override(rows))


def _counted(table: Table[Any]) -> Table[Any]:
    """Return the same table as one that counts."""
    return CountedTable(table.name, table.space, table.rows, table.overrides)


COUNTED = {name: _counted(table) for name, table in TABLES.items()}


def count_tables(environment: Environment) -> None:
    """Exchange the shipped tables of a session for those that count."""
    if environment.dispositions is DEFAULT_DISPOSITIONS:
        environment.dispositions = COUNTED["dispositions"]
    if environment.deliveries is DEFAULT_DELIVERIES:
        environment.deliveries = COUNTED["deliveries"]
    if environment.returns is DEFAULT_RETURNS:
        environment.returns = COUNTED["returns"]


class CountedAnswers(dict[Any, Any]):
    """The answers of one machine; a request for one that is a transition is counted."""

    def __init__(self, machine: Machine, known: Mapping[Any, Any]) -> None:
        super().__init__(known)
        self.name = machine.name

    def get(self, question: Any, default: Any = None) -> Any:
        """Count, and answer."""
        answer = super().get(question, default)
        self._count(question, answer)
        return answer

    def __setitem__(self, question: Any, answer: Any) -> None:
        """Count the first time, too."""
        super().__setitem__(question, answer)
        self._count(question, answer)

    def _count(self, question: Any, answer: Any) -> None:
        if isinstance(answer, Step) and not answer.ignored:
            state, event, _ = question
            MOVED[self.name, state, event, answer.state] += 1


@contextmanager
def counted(names: Iterable[str] = MOVED_HERE) -> Iterator[None]:
    """Count the transitions of machines for a while."""
    engines = [_engine(MACHINES[name]) for name in names]
    before = [engine.answers for engine in engines]
    for name, engine in zip(names, engines, strict=True):
        engine.answers = CountedAnswers(MACHINES[name], engine.answers)
    try:
        yield
    finally:
        for engine, answers in zip(engines, before, strict=True):
            engine.answers = answers


@dataclass(slots=True)
class Coverage:
    """Which points there are, and which of them some runs came upon."""

    found: set[Point] = field(default_factory=set[Point])
    lanes: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])

    def add(self, points: Iterable[Point], lanes: Iterable[tuple[str, str]] = ()) -> None:
        """Add what was come upon: points as they were counted, and which lane overtook which."""
        self.found |= {_combined(point) for point in points}
        self.lanes |= set(lanes)

    def unreached(self) -> dict[Point, str]:
        """Return the points that no run came upon, each with the reason, empty if there is none."""
        return {point: _reason(point) for point in sorted(POINTS - self.found)}

    def unexplained(self) -> list[Point]:
        """Return the points that no run came upon for no reason that we know."""
        return [point for point, reason in self.unreached().items() if not reason]

    def lines(self) -> Iterator[str]:
        """Say for each table and machine how much of it was reached, and what was not."""
        unreached = self.unreached()
        for name in dict.fromkeys(point[0] for point in sorted(POINTS)):
            known = {point for point in POINTS if point[0] == name}
            beyond = {point for point in known if _reason(point)}
            reached = known & self.found
            yield f"{name}: {len(reached)} of {len(known - (beyond - reached))} reachable"
        overtakings = ", ".join(f"{first} {second}" for first, second in sorted(self.lanes))
        yield f"lanes that overtook: {overtakings or 'none'}"
        reasons: dict[str, list[Point]] = {}
        for point, reason in unreached.items():
            reasons.setdefault(reason or "not in these runs", []).append(point)
        for reason, points in reasons.items():
            shown = "; ".join(" ".join(point) for point in points[:SHOWN])
            more = f"; and {len(points) - SHOWN} more" if len(points) > SHOWN else ""
            yield f"unreached, {reason}: {shown}{more}"


def summary(noted: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Say which seeds were drawn, and what all of these runs together came upon."""
    coverage = Coverage()
    for runs in noted:
        yield f"{runs['kind']} seeds from {runs['first']}, {runs['count']} of them"
        points = [tuple(point) for point in runs.get("points", ())]
        coverage.add(points, [(first, second) for first, second in runs.get("lanes", ())])
    yield "STEERSMAN_SEEDS=… plays them again"
    yield from coverage.lines()


SHOWN = 12
"""How many points are named for each reason."""


def _combined(point: Point) -> Point:
    return point[: 1 + COMBINED.get(point[0], len(point))]


def _points() -> Iterator[Point]:
    for name, table in TABLES.items():
        yield from (_combined((name, *map(str, key))) for key in table.keys())
    for name in MOVED_HERE:
        yield from ((name, *move) for move in rows(MACHINES[name]))


POINTS = frozenset(_points())


def _reason(point: Point) -> str:
    """Look up why no run comes upon a point."""
    for pattern, reason in REASONS.items():
        if len(pattern) == len(point) and all(
            wanted in ("*", value) for wanted, value in zip(pattern, point, strict=True)
        ):
            return reason
    return ""
