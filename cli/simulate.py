"""`steersman simulate`: plays workflows and routing tables in the simulator."""

from __future__ import annotations

import gc
import itertools
import shlex
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from ..actors.environment import Environment
from ..machines.errors import UsageError
from ..machines.routes import Routes
from ..simulator.goals import GoalScenario
from ..simulator.play import Playable, Played, play
from ..simulator.scenario import Scenario
from ..simulator.workflows import Workflow, WorkflowScenario
from ..workflows.config import load
from ..workflows.document import config_error, diagnose, read_document
from ..workflows.flow.inclusion import included_file, inclusion_problems
from ..workflows.flow.reading import load_workflow
from ..workflows.flow.spec import WorkflowSpec
from ..workflows.flow.workflow_file import find_workflow
from ..workflows.paths import Paths
from ..workflows.routing import find_table, routes_for
from ..workflows.suggestions import table_names
from .output import show

SEEDS = 100
_OF_WORKFLOWS = {"workflow", "step"}
_OF_TABLES = {"route", "delivery", "disposition"}


def simulate_file(
    environ: Mapping[str, str], file: str, *, first: int, count: int | None, minutes: float | None
) -> int:
    """Play what a file declares, or sessions; return 1 if a promise was broken.

    Raises `UsageError` and `ConfigError` for a file that cannot be played.
    """
    scenarios = _scenarios(environ, file)
    replay = " ".join(filter(None, ("steersman simulate", shlex.quote(file) if file else "")))
    gc.enable()
    began, played, broken = time.monotonic(), list[Played](), 0
    most = count or (None if minutes else SEEDS)
    for seed in itertools.islice(itertools.count(first), most):
        if minutes is not None and played and time.monotonic() - began >= 60 * minutes:
            break
        result = play(seed, *scenarios)
        played.append(result)
        if result.broken is not None:
            broken += 1
            found = " ".join(result.broken.found.split())
            said = (
                f"{result.broken.promise} But {_short(found)}" if found else result.broken.promise
            )
            show(f"seed {seed}: {said} Replay it: {replay} --seed {seed} --seeds 1")
    show(_figures(played, broken, time.monotonic() - began))
    return 1 if broken else 0


def _short(found: str) -> str:
    text = found.rstrip(".")
    return f"{text}." if len(text) <= 300 else f"{text[:297]}..."


def _figures(played: list[Played], broken: int, seconds: float) -> str:
    steps = sum(result.steps for result in played)
    hours = sum(result.seconds for result in played) / 3600
    seeds = f"{len(played)} seed{'s' if len(played) != 1 else ''}"
    outcome = f"{seeds} kept every promise"
    if broken:
        outcome = f"{broken} of {seeds} broke a promise"
    return f"{outcome}: {steps:,} steps, {hours:,.1f} simulated hours, in {seconds:.1f} s"


# What is played -----------------------------------------------------------------------------------


def _scenarios(environ: Mapping[str, str], file: str) -> tuple[Callable[[int], Playable], ...]:
    """Return the scenarios of a workflow, or those of sessions under a routing table."""
    paths = Paths.of(environ)
    if not file:
        return _of_table(routes_for(load(paths, Path.cwd(), environ), None)[0])
    is_path = Path(file).exists() or "/" in file or file.endswith(".toml")
    if not is_path and file in table_names():
        return _of_table(find_table(file))
    path = find_workflow(file, paths, Path())
    if not path.is_file():
        raise UsageError(f"there is no file `{file}`", "give a workflow or a routing table")
    document, diagnostics = read_document(path)
    if diagnostics:
        raise config_error(diagnostics)
    keys = set(document.data)
    if keys & _OF_TABLES and not keys & _OF_WORKFLOWS:
        return _of_table(find_table(str(path)))
    if not keys & _OF_WORKFLOWS:
        raise UsageError(
            f"`{file}` is neither a workflow nor a routing table",
            "a workflow has `[workflow]` and `[[step]]`; a table `[[route]]`, `[[delivery]]` or "
            "`[[disposition]]`",
        )
    spec = load_workflow(path)
    if problems := list(inclusion_problems(spec, paths)):
        raise config_error(diagnose(document, problems))
    return (partial(_play_workflow, Workflow(spec, partial(_included, paths))),)


def _included(paths: Paths, name: str, above: WorkflowSpec) -> WorkflowSpec:
    return load_workflow(included_file(above, name, paths))


def _play_workflow(workflow: Workflow, seed: int) -> Playable:
    return WorkflowScenario(seed, workflow)


def _of_table(routes: Routes) -> tuple[Callable[[int], Playable], ...]:
    """Return sessions, and sessions with goals, under a routing table."""

    def use(environment: Environment) -> None:
        environment.dispositions = routes.dispositions
        environment.deliveries = routes.deliveries

    return (partial(Scenario, tables=use), partial(GoalScenario, tables=use))
