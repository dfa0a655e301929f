"""The faults that the simulator has to find: in tables, machines, decisions, the ledger and the store.

Run as a program, it plays fresh runs with each until a promise breaks, and prints which seed and how long
it took: `python tests/simulation/planted.py [WORDS OF A NAME] [--keep]`. It fails if one is not found.
With `--keep` the table goes into docs/proof.json, of which docs/promises.md shows it.
"""

import logging
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec.structs import replace

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from simulation.faults import FAULTS
from simulation.goal_faults import GOAL_FAULTS, RUN_FAULTS
from simulation.mutants import MUTANTS, _refused, _row
from simulation.planting import Plant, planted_all, unsaid
from simulation.rules import keep
from simulation.test_workflow import of_a_run

from steersman.actors.decisions import progress
from steersman.journal import sql, tables, turn_record
from steersman.machines.delivery import DEFAULT_DELIVERIES, Cause, Delivery, Relation
from steersman.machines.lifecycles import SESSION, SUBAGENT, TURN
from steersman.machines.result_routing import DEFAULT_RETURNS, Awaited, Return, SessionOwner
from steersman.simulator.goals import GoalScenario
from steersman.simulator.loops import LoopScenario
from steersman.simulator.play import Broken, play
from steersman.simulator.scenario import Scenario

__all__ = ["PLANTED", "Found", "Planted", "find"]

WITHIN = 1_000
"""Seeds of each kind within which a fault is found."""
_WRITE, _ENTRIES = tables.write_commits, sql.read_entries
_AFTER_STEP = turn_record.after_step


@dataclass(frozen=True)
class Planted:
    """A fault, where it is planted, and the scenarios that are played from seed `first` on."""

    where: str
    plants: tuple[Plant, ...]
    scenarios: tuple[Callable[[Any], Any], ...] = (Scenario, GoalScenario)
    first: int = 0


@dataclass(frozen=True)
class Found:
    """What broke, after how many seeds and seconds of the processor's time."""

    broken: Broken
    seeds: int
    seconds: float


# Faults of the store ------------------------------------------------------------------------------


_END = "UPDATE sessions SET seq = ? WHERE session = ?"


def _keep_all_but_the_last(connection: Any, commits: Any, now: float) -> Any:
    kept = _WRITE(connection, commits, now)
    for commit in commits:
        session, last = commit.lease.session, commit.entries[-1][0] if commit.entries else 0
        if last > 5:
            connection.change("DELETE FROM entries WHERE session = ? AND seq = ?", session, last)
            connection.change(_END, last - 1, session)
    return kept


def _keep_nothing(connection: Any, commits: Any, now: float) -> Any:
    return [True] * len(commits)


def _keep_twice(connection: Any, commits: Any, now: float) -> Any:
    kept = _WRITE(connection, commits, now)
    for commit in commits:
        for seq, when, data in commit.entries[-1:]:
            values = (commit.lease.session, seq + 1, when, data)
            connection.change("INSERT INTO entries VALUES (?, ?, ?, ?)", *values)
            connection.change(_END, seq + 1, commit.lease.session)
    return kept


def _keep_in_any_order(connection: Any, commits: Any, now: float) -> Any:
    kept = _WRITE(connection, commits, now)
    for commit in commits:
        for (seq, _, _), (_, when, data) in zip(commit.entries, commit.entries[::-1], strict=True):
            values = (when, data, commit.lease.session, seq)
            statement = "UPDATE entries SET time = ?, data = ? WHERE session = ? AND seq = ?"
            connection.change(statement, *values)
    return kept


def _read_all_but_the_last(connection: Any, session: str, after: int, upto: int) -> Any:
    return _ENTRIES(connection, session, after, upto)[:-1]


STORE: dict[str, tuple[Plant, ...]] = {
    "a commit loses its last entry": ((tables, "write_commits", _keep_all_but_the_last),),
    "a commit that was acknowledged is not kept": ((tables, "write_commits", _keep_nothing),),
    "a commit keeps its last entry twice": ((tables, "write_commits", _keep_twice),),
    "a commit keeps its entries in another order": ((tables, "write_commits", _keep_in_any_order),),
    "the newest entry is not read": ((sql, "read_entries", _read_all_but_the_last),),
}

# Faults of the guard against repetitions ----------------------------------------------------------


def _every_step_repeats(before: Any, outcomes: Any) -> Any:
    return replace(_AFTER_STEP(before, outcomes), streak=before.streak + 1, reach=1)


LOOPS: dict[str, tuple[Plant, ...]] = {
    "a model goes round for ever": ((progress, "due", unsaid),),
    "each step of a turn is a repetition": ((turn_record, "after_step", _every_step_repeats),),
}

# Faults of tables and machines --------------------------------------------------------------------


TABLES: dict[str, tuple[Plant, ...]] = {
    "a stop spares the goal": (_row(DEFAULT_DELIVERIES, Delivery.NONE, Cause.STOP, Relation.GOAL),),
    "a call gets no result of its child": (
        _row(
            DEFAULT_RETURNS,
            Return.KEEP,
            Relation.FOREGROUND_CHILD,
            Awaited.CALL,
            SessionOwner.PERSON,
        ),
    ),
}
LIFECYCLES: dict[str, tuple[Plant, ...]] = {
    "a child that works cannot complete": (_refused(SUBAGENT, "working", "complete"),),
    "a session does not learn that a turn has ended": (_refused(SESSION, "busy", "turn_ended"),),
    "a turn that calls cannot be interrupted": (_refused(TURN, "calling", "interrupt"),),
}

KINDS = {"R": "table", "T": "machine", "J": "journal", "E": "ledger"}
UNSEEN = (
    "R01",
    "R02",
    "R03",
    "R04",
    "T01",
    "T02",
    "T03",
    "T05",
    "T07",
    "J01",
    "E03",
    "H01",
    "H04",
    "H05",
    "L01",
    "S04",
    "S05",
    "X03",
    "X05",
    "X07",
    "X08",
)
"""Mutants that runs of a second did not find: only the test notices them that `mutants.py` names."""


def _planted() -> Iterator[tuple[str, Planted]]:
    for name, fault in FAULTS.items():
        yield name, Planted("decision", fault.plants, (Scenario,))
    for name, fault in GOAL_FAULTS.items():
        yield name, Planted("goal", fault.plants, (GoalScenario,))
    for name, fault in RUN_FAULTS.items():
        yield name, Planted("run", fault.plants, (of_a_run,), 200)
    for name, mutant in MUTANTS.items():
        if name not in UNSEEN:
            yield f"{name}: {mutant.fact}", Planted(KINDS.get(name[0], "actor"), mutant.plants)
    for name, plants in TABLES.items():
        yield name, Planted("table", plants)
    for name, plants in LIFECYCLES.items():
        yield name, Planted("machine", plants)
    for name, plants in LOOPS.items():
        yield name, Planted("decision", plants, (LoopScenario,))
    for name, plants in STORE.items():
        yield name, Planted("store", plants, (Scenario,))


PLANTED = dict(_planted())


def find(name: str, most: int = WITHIN, seconds: float = 60.0) -> Found | None:
    """Play runs with a fault until a promise breaks, for so many seeds and seconds at most."""
    fault, began = PLANTED[name], time.process_time()
    with planted_all(*fault.plants):
        for seeds in range(1, most + 1):
            played = play(fault.first + seeds - 1, *fault.scenarios)
            took = time.process_time() - began
            if played.broken is not None:
                return Found(played.broken, seeds, took)
            if took > seconds:
                return None
    return None


def main(arguments: list[str]) -> int:
    """Find each fault, print a line for it, and the sum; return 1 if one was not found."""
    logging.disable(logging.CRITICAL)
    words = " ".join(word for word in arguments if word != "--keep")
    rows: list[dict[str, Any]] = []
    missed, names = 0, [name for name in PLANTED if words in name]
    print(f"{'where':9}{'seed':>6}{'seeds':>7}{'seconds':>9}  fault: the promise that breaks")
    for name in names:
        found = find(name)
        if found is None:
            missed += 1
            print(f"{PLANTED[name].where:9}{'-':>6}{'-':>7}{'-':>9}  {name}: NOT FOUND", flush=True)
            continue
        row = {"fault": name, "where": PLANTED[name].where, "seed": found.broken.seed}
        more = {"seeds": found.seeds, "seconds": round(found.seconds, 1)}
        rows.append({**row, **more, "promise": found.broken.promise})
        figures = f"{found.broken.seed:6}{found.seeds:7}{found.seconds:9.1f}"
        print(f"{PLANTED[name].where:9}{figures}  {name}: {found.broken.promise}", flush=True)
    print(f"{len(names) - missed} of {len(names)} found")
    if "--keep" in arguments:
        keep("faults", rows)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
