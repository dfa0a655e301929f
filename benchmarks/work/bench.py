"""The run: which attempts are made, in which order, and where their results are kept."""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import report
from attempt import SECONDS, Lab, Result, attempt_task, moment
from contender import CHECKOUT, CONTENDERS, Contender, Missing, install_node
from proxy import Proxy
from server import ModelServer
from table import machine
from task import FROZEN, HALVES, Task, load_tasks

RESULTS = CHECKOUT / "benchmarks" / "figures" / "work-attempts.jsonl"
"""Kept in the repository: a campaign takes hours, and may go on on another machine."""
_WARM_SECONDS = 600.0
"""What a harness has to send its instructions once, uncounted; the server keeps them."""
_WARM = Task("warm-up", "", "", "", "hi", {"a.txt": "a\n"}, (), ())


@dataclass(frozen=True)
class Order:
    """One attempt to make; `is_kill`: on the second sheet."""

    contender: Contender
    version: str
    task: Task
    seed: int
    is_kill: bool = False

    def line(self, model: str, result: Result) -> dict[str, Any]:
        """Return what is kept of it."""
        about = {"set": FROZEN[self.task.set], "model": model, "version": self.version}
        return {
            **about,
            "load": round(os.getloadavg()[0], 1),
            "time": round(time.time()),
            **asdict(result),
        }

    def fits(self, model: str, line: dict[str, Any], is_kill: bool) -> bool:
        """Whether a line is of this order; `is_kill`: on the second sheet."""
        about = (FROZEN[self.task.set], model, self.version)
        mine = (*about, self.contender.name, self.task.name, self.seed)
        keys = ("set", "model", "version", "contender", "task", "seed")
        return mine == tuple(line[key] for key in keys) and is_kill == (line["kill"] is not None)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Read the kept results; a last line that a crash has cut off is left out."""
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    found: list[dict[str, Any]] = []
    for line in lines:
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def append(path: Path, line: dict[str, Any]) -> None:
    """Keep one result."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")


def installed(
    chosen: Iterable[Contender], skipped: dict[str, str]
) -> dict[str, tuple[Contender, str]]:
    """Install the contenders, and return those that are there by name, with their versions."""
    found: dict[str, tuple[Contender, str]] = {}
    for contender in chosen:
        try:
            if contender.package.startswith("npm:"):
                install_node()
            version = contender.install()
            found[contender.name] = (contender, version)
            print(f"{contender.name} {version}", file=sys.stderr, flush=True)
        except (Missing, OSError) as error:
            skipped[contender.name] = str(error)
            print(f"{contender.name}: left out: {error}", file=sys.stderr, flush=True)
    return found


def attempts(lab: Lab, orders: list[Order], results: Path, model: str) -> None:
    """Make the attempts that are missing, contender by contender, each warmed up once, uncounted."""
    warm = ""
    for number, order in enumerate(orders, 1):
        lines = read_lines(results)
        if any(order.fits(model, line, order.is_kill) for line in lines):
            continue
        if warm != order.contender.name:
            warm = order.contender.name
            brief = replace(lab, seconds=_WARM_SECONDS, calls=4, tokens=8, log=None)
            attempt_task(brief, order.contender, _WARM, 0)
        kill = None
        if order.is_kill:
            plain = [line["seconds"] for line in lines if order.fits(model, line, False)]
            kill = moment(order.task, order.seed, plain[-1] if plain else 20.0)
        result = attempt_task(lab, order.contender, order.task, order.seed, kill)
        append(results, order.line(model, result))
        told = f"{result.how:<12}{result.seconds:>6.1f} s {result.calls:>3} calls  {result.why}"
        print(f"{number}/{len(orders)} {result.contender}: {result.task}: {told}", flush=True)


def weights_of(model: str, folder: Path | None) -> Path:
    """Return the file of weights of a model. Exits if it is not there."""
    from steersman.workflows.paths import Paths

    place = folder or Paths.of(os.environ).cache / "models"
    path = place / f"{model}.gguf"
    if not path.is_file():
        sys.exit(
            f"no file `{path}`: run `steersman models fetch {model}`, or give `--weights FOLDER`"
        )
    return path.resolve()


def parsed(arguments: list[str], about: str) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="bench-work", description=about)
    parser.add_argument("--set", choices=tuple(FROZEN), default="everyday", help="of tasks")
    parser.add_argument("--tasks", default="", help="names or families, with commas")
    parser.add_argument("--contenders", default="", help="names, with commas as in `--list`")
    parser.add_argument("--half", choices=(*HALVES, "both"), default="both")
    parser.add_argument("--model", default="qwen2.5-coder-1.5b", help="of steersman's catalogue")
    parser.add_argument(
        "--weights", type=Path, help="a folder with MODEL.gguf, instead of the cache"
    )
    parser.add_argument(
        "--server", help="the address of a server that runs, instead of one of ours"
    )
    parser.add_argument("--seeds", default="1,2", help="numbers, with commas")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="the limit of an attempt")
    parser.add_argument("--kill", action="store_true", help="the second sheet: kill and resume")
    parser.add_argument("--results", type=Path, default=RESULTS, help="JSON lines")
    parser.add_argument("--log", type=Path, help="a folder for what harnesses print")
    parser.add_argument("--report", action="store_true", help="only report what is kept")
    parser.add_argument(
        "--write", action="store_true", help="keep the report for docs/performance.md"
    )
    parser.add_argument("--list", action="store_true", help="list tasks and contenders")
    return parser.parse_args(arguments)


def chosen_tasks(given: argparse.Namespace) -> list[Task]:
    """Return the tasks that the options name. Exits if one is unknown."""
    tasks = load_tasks(given.set)
    names = [name for name in given.tasks.split(",") if name]
    unknown = {*names} - {*tasks} - {task.family for task in tasks.values()}
    if unknown:
        sys.exit(f"no task or family `{min(unknown)}`: see `--list`")
    return [
        task
        for task in tasks.values()
        if given.half in (task.half, "both") and (not names or {task.name, task.family} & {*names})
    ]


def chosen_contenders(given: argparse.Namespace) -> list[Contender]:
    """Return the contenders that the options name. Exits if one is unknown."""
    if not given.contenders:
        return [contender for contender in CONTENDERS if contender.is_ours or not given.kill]
    names = given.contenders.split(",")
    known = {contender.name.replace(",", ""): contender for contender in CONTENDERS}
    if unknown := {*names} - {*known}:
        sys.exit(f"no contender `{min(unknown)}`: see `--list`")
    if theirs := [name for name in names if given.kill and not known[name].is_ours]:
        sys.exit(f"`{theirs[0]}` cannot be resumed after a kill: `--kill` is for steersman")
    return [known[name] for name in names]


def main(arguments: list[str], about: str = "") -> int:
    """Measure what is missing, print, and keep the report if asked to."""
    given = parsed(arguments, about)
    tasks, contenders = chosen_tasks(given), chosen_contenders(given)
    if given.list:
        print(*(f"{task.family:<12}{task.half:<6}{task.name}" for task in tasks), sep="\n")
        print(*(contender.name.replace(",", "") for contender in contenders), sep="\n")
        return 0
    skipped: dict[str, str] = {}
    if not given.report:
        weights = weights_of(given.model, given.weights)
        there = installed(contenders, skipped)
        orders = [
            Order(contender, version, task, seed, given.kill)
            for contender, version in there.values()
            for seed in map(int, given.seeds.split(","))
            for task in tasks
        ]
        with ExitStack() as stack:
            url = given.server or stack.enter_context(ModelServer(weights)).url
            proxy = stack.enter_context(Proxy(url))
            root = stack.enter_context(
                tempfile.TemporaryDirectory(prefix="work-", ignore_cleanup_errors=True)
            )
            lab = Lab(proxy, weights, Path(root), given.seconds, log=given.log)
            attempts(lab, orders, given.results, given.model)
    peers = [contender.name for contender in CONTENDERS if contender.is_peer]
    found = report.sheets(read_lines(given.results), peers)
    print(f"\nsets {report.sets()}; {machine()}\n\n{report.page(found, skipped)}")
    if given.write:
        report.keep(found, skipped, machine())
    return 0
