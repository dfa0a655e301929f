"""What the results say: shares with their intervals, a test against the best peer, tables.

Attempts of one task with several seeds are not independent, so tasks are what is drawn and compared.
"""

import json
import math
import statistics
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from attempt import ENDS, SOLVED
from task import FAMILIES, FROZEN, Task, load_tasks

KEPT = Path(__file__).resolve().parents[1] / "figures" / "work.json"
DRAWS = 10_000
Line = dict[str, Any]
Sheet = dict[str, Any]
"""A table to print: `title`, `header`, `rows`."""


# Statistics ---------------------------------------------------------------------------------------


def interval(shares: Sequence[float], draws: int = DRAWS) -> tuple[float, float]:
    """Return the bootstrapped interval of 95 % of the mean of what each task gave, 0 to 1."""
    random, count = Random(1), len(shares)
    means = sorted(sum(random.choices(shares, k=count)) / count for _ in range(draws))
    return means[int(0.025 * draws)], means[math.ceil(0.975 * draws) - 1]


def mcnemar(only_first: int, only_second: int) -> float:
    """Return the two-sided p of McNemar's exact test: 1 if nothing differs."""
    count, least = only_first + only_second, min(only_first, only_second)
    tail = sum(math.comb(count, hits) for hits in range(least + 1)) / 2**count
    return min(1.0, 2 * tail)


def shares(lines: Iterable[Line]) -> dict[str, float]:
    """Return by task the share of its attempts that solved it."""
    found: dict[str, list[bool]] = {}
    for line in lines:
        found.setdefault(line["task"], []).append(line["how"] in SOLVED)
    return {task: sum(solved) / len(solved) for task, solved in found.items()}


def against(first: Iterable[Line], second: Iterable[Line]) -> tuple[int, int, float]:
    """Compare two contenders task by task: tasks of which the first, the second solved more; p."""
    mine, theirs = shares(first), shares(second)
    both = mine.keys() & theirs.keys()
    better = sum(mine[task] > theirs[task] for task in both)
    worse = sum(mine[task] < theirs[task] for task in both)
    return better, worse, mcnemar(better, worse)


# Tables -------------------------------------------------------------------------------------------


def newest(lines: Iterable[Line]) -> dict[str, list[Line]]:
    """Return the lines by contender, of its newest version, each attempt once."""
    lines = list(lines)
    versions = {line["contender"]: line["version"] for line in lines}
    found: dict[str, dict[tuple[str, int], Line]] = {}
    for line in lines:
        if line["version"] == versions[line["contender"]]:
            found.setdefault(line["contender"], {})[line["task"], line["seed"]] = line
    return {name: list(of.values()) for name, of in found.items()}


def titled(name: str, lines: Sequence[Line]) -> str:
    """Return a contender's name with its version."""
    return f"{name} {lines[0]['version']}".strip()


def solved(lines: Sequence[Line]) -> str:
    """Write how many attempts solved their task, and the share of it with its interval."""
    if not lines:
        return "-"
    low, high = interval(list(shares(lines).values()))
    count = sum(line["how"] in SOLVED for line in lines)
    share = statistics.fmean(shares(lines).values())
    return f"{count} of {len(lines)}, {share:.0%} ({low:.0%} to {high:.0%})"


def mean(lines: Sequence[Line], key: str) -> str:
    """Write the mean of a count of an attempt."""
    value = statistics.fmean(line[key] for line in lines)
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def seconds(lines: Sequence[Line]) -> str:
    """Write the median seconds of the attempts that solved their task."""
    took = [line["seconds"] for line in lines if line["how"] in SOLVED]
    return f"{statistics.median(took):.0f}" if took else "-"


def best_peer(found: Mapping[str, Sequence[Line]], peers: Sequence[str]) -> str:
    """Return the program of other people that solved the largest share; empty without one."""
    there = [name for name in peers if name in found]
    return max(there, key=lambda name: statistics.fmean(shares(found[name]).values()), default="")


def solved_sheet(
    about: str, found: Mapping[str, list[Line]], tasks: Mapping[str, Task], peers: Sequence[str]
) -> Sheet:
    """Make the table of what was solved in each half and in both, and the test against the best peer."""
    best = best_peer(found, peers)
    rows: list[list[str]] = []
    for name, lines in found.items():
        halves = [
            [line for line in lines if tasks[line["task"]].half == half]
            for half in ("tune", "held")
        ]
        cells = [solved(part) for part in (*halves, lines)]
        better, worse, p = against(lines, found.get(best, []))
        is_compared = best and name != best
        rows.append(
            [
                titled(name, lines),
                *cells,
                f"+{better} -{worse}, p = {p:.2g}" if is_compared else "-",
            ]
        )
    header = ["", "solved, tune", "held", "both", f"tasks against {best or 'the best peer'}"]
    return {"title": f"{about}: solved", "header": header, "rows": rows}


def cost_sheet(about: str, found: Mapping[str, list[Line]]) -> Sheet:
    """Make the table of what an attempt took, on average."""
    keys = ("calls", "read", "cached", "written", "malformed", "repeated")
    rows = [
        [titled(name, lines), *(mean(lines, key) for key in keys), seconds(lines)]
        for name, lines in found.items()
    ]
    names = [
        "calls",
        "tokens in",
        "of them cached",
        "tokens out",
        "malformed calls",
        "repeated calls",
    ]
    header = ["mean of an attempt", *names, "median s of solved"]
    return {"title": f"{about}: cost", "header": header, "rows": rows}


def family_sheet(about: str, found: Mapping[str, list[Line]], tasks: Mapping[str, Task]) -> Sheet:
    """Make the table of what was solved in each family, and of how attempts ended."""
    rows: list[list[str]] = []
    for name, lines in found.items():
        parts = [
            [line for line in lines if tasks[line["task"]].family == family] for family in FAMILIES
        ]
        cells = [f"{sum(row['how'] in SOLVED for row in part)} of {len(part)}" for part in parts]
        ends = [str(sum(line["how"] == how for line in lines)) for how in ENDS]
        rows.append([titled(name, lines), *cells, *ends])
    header = ["", *FAMILIES, *(f"ended: {how}" for how in ENDS)]
    return {"title": f"{about}: families and ends", "header": header, "rows": rows}


def kill_sheet(
    about: str, plain: Mapping[str, list[Line]], killed: Mapping[str, list[Line]]
) -> Sheet:
    """Make the table of what was solved in spite of a kill, over what was solved without."""
    rows: list[list[str]] = []
    for name, lines in killed.items():
        before = {(row["task"], row["seed"]): row["how"] in SOLVED for row in plain.get(name, ())}
        pairs = [
            (before[line["task"], line["seed"]], line["how"] in SOLVED)
            for line in lines
            if line["kill"] and (line["task"], line["seed"]) in before
        ]
        without, still = sum(one for one, _ in pairs), sum(one for _, one in pairs)
        ratio = f"{still / without:.2f}" if without else "-"
        unkilled = sum(not line["kill"] for line in lines)
        rows.append(
            [titled(name, lines), str(len(pairs)), str(without), str(still), ratio, str(unkilled)]
        )
    header = [
        "",
        "killed",
        "solved without",
        "solved with",
        "with over without",
        "had ended before",
    ]
    return {"title": f"{about}: killed by SIGKILL, then resumed", "header": header, "rows": rows}


def sheets(lines: Sequence[Line], peers: Sequence[str]) -> list[Sheet]:
    """Make all tables, set by set and model by model."""
    found: list[Sheet] = []
    for name, frozen in FROZEN.items():
        tasks, mine = load_tasks(name), [line for line in lines if line["set"] == frozen]
        for model in dict.fromkeys(line["model"] for line in mine):
            of, about = [line for line in mine if line["model"] == model], f"{name}, {model}"
            plain = newest(line for line in of if line["kill"] is None)
            killed = newest(line for line in of if line["kill"] is not None)
            if plain:
                found += [solved_sheet(about, plain, tasks, peers), cost_sheet(about, plain)]
                found.append(family_sheet(about, plain, tasks))
            if killed:
                versions = {lines[0]["version"] for lines in killed.values()}
                same = newest(
                    row for row in of if row["kill"] is None and row["version"] in versions
                )
                found.append(kill_sheet(about, {**plain, **same}, killed))
    return found


def sets() -> str:
    """Name the sets of tasks, with their hashes."""
    return ", ".join(f"{name} {frozen}" for name, frozen in FROZEN.items())


def page(found: Sequence[Sheet], skipped: Mapping[str, str]) -> str:
    """Write the tables in Markdown."""
    parts = [f"{name} was left out: {why}." for name, why in skipped.items()]
    for sheet in found:
        lines = [sheet["header"], ["---"] * len(sheet["header"]), *sheet["rows"]]
        table = "\n".join(f"| {' | '.join(words)} |" for words in lines)
        parts.append(f"**{sheet['title']}**\n\n{table}")
    return "\n\n".join(parts) or "There are no results of this set."


def keep(found: Sequence[Sheet], skipped: Mapping[str, str], machine: str) -> None:
    """Keep the tables for docs/performance.md."""
    about = {"date": time.strftime("%Y-%m-%d", time.gmtime()), "machine": machine, "set": sets()}
    data = {**about, "skipped": dict(skipped), "sheets": list(found)}
    KEPT.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", "utf-8")
