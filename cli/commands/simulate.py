"""`steersman simulate`: plays workflows and routing tables in the simulator."""

from __future__ import annotations

import itertools
import os
import shlex
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from ...actors.environment import Environment
from ...machines.errors import UsageError
from ...machines.routes import Routes
from ...ports.tools.text import counted
from ...simulator.elsewhere import ElsewhereScenario
from ...simulator.goals import GoalScenario
from ...simulator.loops import LoopScenario
from ...simulator.play import Broken, Playable, Played, play
from ...simulator.scenario import Scenario
from ...simulator.shrinking import replay, shrink
from ...simulator.workflows import Workflow, WorkflowScenario
from ...workflows.config import load
from ...workflows.document import config_error, diagnose, read_document
from ...workflows.flow.inclusion import included_file, inclusion_problems
from ...workflows.flow.reading import load_workflow
from ...workflows.flow.workflow_file import find_workflow
from ...workflows.paths import Paths
from ...workflows.routing import find_table, routes_for, table_of_file
from ...workflows.suggestions import table_names
from ..options import argument, option
from ..output import show

SEEDS = 100
_OF_WORKFLOWS = {"workflow", "step"}
_OF_TABLES = {"route", "delivery", "disposition"}


def simulate(
    file: Annotated[
        str,
        argument(
            "FILE",
            "A workflow or a routing table, by file or name; if left out, sessions under the table "
            "in force here.",
        ),
    ] = "",
    seeds: Annotated[
        int | None, option("N", "Seeds to play: 100, or as many as fit into --minutes.", min=1)
    ] = None,
    seed: Annotated[int, option("FIRST", "The first seed.", min=0)] = 0,
    minutes: Annotated[float | None, option("M", "Begin no more after so long.", min=0.01)] = None,
    choices: Annotated[
        str, option("CHOICES", "Play one shrunken run again; a broken promise prints them.")
    ] = "",
) -> int:
    """Play random runs with stops, failures and crashes, and check every promise in each.

    Nothing is really run: no command, tool or model. One line for each seed that broke a promise; the
    first that broke one is shrunk to a few choices.

    Example: steersman simulate job.toml --seeds 1000
    """
    scenarios = _scenarios(file)
    command = " ".join(filter(None, ("steersman simulate", shlex.quote(file) if file else "")))
    if choices:
        return _replay(choices, scenarios)
    began, played, broken = time.monotonic(), list[Played](), dict[str, Broken]()
    breaking = 0
    most = seeds or (None if minutes else SEEDS)
    for number in itertools.islice(itertools.count(seed), most):
        if minutes is not None and played and time.monotonic() - began >= 60 * minutes:
            break
        result = play(number, *scenarios)
        played.append(result)
        if result.broken is not None:
            breaking += 1
            again = f"Replay it: {command} --seed {number} --seeds 1"
            show(f"seed {number}: {_what_broke(result.broken)} {again}")
            if broken.setdefault(result.broken.promise, result.broken) is result.broken:
                shrunk = shrink(result.broken, scenarios)
                if shrunk is not None:
                    again = f"{command} --choices {shlex.quote(shrunk.choices)}"
                    show(f"  shrunk to {shrunk.count} of {shrunk.before} choices: {again}")
                    for message in shrunk.messages:
                        show(f"    {message}")
    show(_figures(played, breaking, time.monotonic() - began))
    return 1 if broken else 0


def _what_broke(broken: Broken) -> str:
    found = " ".join(broken.found.split()).rstrip(".")
    short = f"{found}." if len(found) <= 300 else f"{found[:297]}..."
    return f"{broken.promise} But {short}" if found else broken.promise


def _replay(choices: str, scenarios: tuple[Callable[[Any], Playable], ...]) -> int:
    """Play a shrunken run again, and say what happens in it."""
    broken, messages = replay(choices, scenarios)
    show(
        _what_broke(broken)
        if broken is not None
        else "the run of these choices keeps every promise"
    )
    for message in messages:
        show(f"    {message}")
    return 1 if broken is not None else 0


def _figures(played: list[Played], broken: int, seconds: float) -> str:
    steps = sum(result.steps for result in played)
    hours = sum(result.seconds for result in played) / 3600
    seeds = counted(len(played), "seed")
    outcome = f"{broken} of {seeds} broke a promise" if broken else f"{seeds} kept every promise"
    return f"{outcome}: {steps:,} steps, {hours:,.1f} simulated hours, in {seconds:.1f} s"


# What is played -----------------------------------------------------------------------------------


def _scenarios(file: str) -> tuple[Callable[[Any], Playable], ...]:
    """Return the scenarios of a workflow, or those of sessions under a routing table."""
    paths = Paths.of(os.environ)
    if not file:
        return _of_table(routes_for(load(paths, Path.cwd(), os.environ), None)[0])
    if file in table_names():
        return _of_table(find_table(file))
    path = find_workflow(file, paths, Path())
    if not path.is_file():
        raise UsageError(f"there is no file `{file}`", "give a workflow or a routing table")
    document, diagnostics = read_document(path)
    if diagnostics:
        raise config_error(diagnostics)
    keys = set(document.data)
    if keys & _OF_TABLES and not keys & _OF_WORKFLOWS:
        return _of_table(table_of_file(path))
    if not keys & _OF_WORKFLOWS:
        raise UsageError(
            f"`{file}` is neither a workflow nor a routing table",
            "a workflow has `[workflow]` and `[[step]]`; a table `[[route]]`, `[[delivery]]` or "
            "`[[disposition]]`",
        )
    spec = load_workflow(path)
    if problems := list(inclusion_problems(spec, paths)):
        raise config_error(diagnose(document, problems))
    workflow = Workflow(spec, lambda name, above: load_workflow(included_file(above, name, paths)))
    return (lambda seed: WorkflowScenario(seed, workflow),)


def _of_table(routes: Routes) -> tuple[Callable[[Any], Playable], ...]:
    """Return sessions, those with goals, models in circles, and mailboxes, under a routing table."""

    def use(environment: Environment) -> None:
        environment.dispositions = routes.dispositions
        environment.deliveries = routes.deliveries

    kinds = (Scenario, GoalScenario, LoopScenario, ElsewhereScenario)
    return tuple(partial(kind, tables=use) for kind in kinds)
