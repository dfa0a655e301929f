"""What survives: how much work steersman and other agents lose under faults, seen from outside.

Run it as `make bench-survival`. It installs the newest version of each agent once, which needs npm and
PyPI; all else happens on loopback. Each trial is kept as a JSON line, and a run goes on where the last
one stopped. `ARGS="--agents pi --case 7"` repeats one case and shows why it was judged so;
`ARGS=--write` also writes docs/survival.md; `ARGS=--list` lists agents and cases.
"""

import argparse
import json
import sys
import time
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parents[1]))  # for what all benchmarks share
sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "work"))
sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "peers"))

import results
from agents import AGENTS, Agent, Missing
from plan import REVISION, Case, draw, numbers
from table import machine
from trial import try_case
from verdict import judge


def say(text: str) -> None:
    """Print to standard error at once."""
    print(text, file=sys.stderr, flush=True)


def can_try(agent: Agent, case: Case) -> bool:
    """Whether the agent can do what the case asks for."""
    if case.kind.when == "queued" and not agent.queues:
        return False
    if case.kind.act == "second" and not agent.resumes:
        return False
    return agent.runs_tools or not case.kind.needs_tool


def try_once(name: str, version: str, case: Case, keep: Path | None) -> results.Data:
    """Have one trial, and return its line. Raises `Missing`."""
    began = time.time()
    seen = try_case(AGENTS[name](), case, keep)
    return {
        "revision": REVISION,
        "agent": name,
        "version": version,
        "seed": case.seed,
        "number": case.number,
        "time": round(began),
        "seconds": round(time.time() - began, 1),
        "verdict": judge(seen).as_data(),
        "seen": seen,
    }


def campaign(versions: dict[str, str], cases: list[Case], path: Path, keep: Path | None) -> None:
    """Try what is not kept yet, in turns, so that a run that is stopped has as much of each.

    What is counted against an agent is tried a second time: what is a race may turn out otherwise.
    """
    known: dict[tuple[str, str, int, int], list[bool]] = {}
    for line in results.read(path):
        key = (line["agent"], line["version"], line["seed"], line["number"])
        known.setdefault(key, []).append(judge(line["seen"]).is_clean)
    for case in cases:
        for name, version in versions.items():
            if not can_try(AGENTS[name](), case):
                continue
            verdicts = known.get((name, version, case.seed, case.number), [])
            while len(verdicts) < 1 or verdicts == [False]:
                told = f"{case.number:>4} {name}: {case.kind.name}"
                try:
                    line = try_once(name, version, case, keep and keep / f"{name}-{case.number}")
                except (Missing, OSError) as error:
                    say(f"{told}: could not be tried: {error}")
                    break
                results.append(path, line)
                found = judge(line["seen"])
                verdicts.append(found.is_clean)
                reasons = "; ".join(found.reasons) or ("ok" if found.was_tried else "not met")
                say(f"{told}: {reasons} ({line['seconds']:g} s)")


def installed(names: list[str]) -> dict[str, str]:
    """Install agents, and return the versions of those that are there."""
    versions: dict[str, str] = {}
    for name in names:
        try:
            versions[name] = AGENTS[name]().install()
        except (Missing, OSError) as error:
            say(f"{name} was left out: {error}")
    return versions


def parsed(arguments: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="bench-survival", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--agents", default="", help="names, with commas; all if left out")
    parser.add_argument("--seed", type=int, default=1, help="of the plan")
    parser.add_argument("--rounds", type=int, default=1, help="how often each kind is tried")
    parser.add_argument("--case", type=int, help="only this one, again; show the trajectory")
    parser.add_argument("--results", type=Path, default=results.TRIALS, help="JSON lines")
    parser.add_argument("--keep", type=Path, help="a folder for homes and folders of the trials")
    parser.add_argument("--report", action="store_true", help="only report what is kept")
    parser.add_argument("--write", action="store_true", help="write docs/survival.md, too")
    parser.add_argument("--list", action="store_true", help="list agents and cases")
    return parser.parse_args(arguments)


def chosen(names: str) -> list[str]:
    """Return the agents that are named. Exits if one is unknown."""
    known = {name.casefold().replace(",", ""): name for name in AGENTS}
    wanted = [name.casefold() for name in names.split(",") if name] or [*known]
    if unknown := {*wanted} - {*known}:
        sys.exit(f"no agent `{min(unknown)}`: see `--list`")
    return [known[name] for name in wanted]


def main(arguments: list[str]) -> int:
    """Try what is missing, and report what is kept."""
    given = parsed(arguments)
    names = chosen(given.agents)
    if given.list:
        print(*(name.replace(",", "") for name in AGENTS), sep="\n")
        for number in numbers(given.rounds):
            case = draw(given.seed, number)
            moment = f"step {case.step} of {case.steps}, {case.words} words, {case.delay:g} s"
            print(f"{number:>4} {case.kind.name}: {moment}")
        return 0
    if given.case is not None:
        for name, version in installed(names).items():
            line = try_once(name, version, draw(given.seed, given.case), given.keep)
            print(json.dumps(line, indent=1))
        return 0
    if not given.report:
        cases = [draw(given.seed, number) for number in numbers(given.rounds)]
        campaign(installed(names), cases, given.results, given.keep)
    lines = results.read(given.results)
    agents = [
        results.summary(name, AGENTS[name].cannot, mine)
        for name in AGENTS
        if name in names and (mine := [line for line in lines if line["agent"] == name])
    ]
    if not agents:
        say("no results are kept")
        return 1
    data = results.data_of(agents, machine())
    print(*results.tables(agents), sep="\n\n")
    if given.write:
        results.KEPT.write_text(json.dumps(data, indent=1) + "\n", "utf-8")
        results.PAGE.write_text(results.page(data), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
