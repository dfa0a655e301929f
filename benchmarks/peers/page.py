"""What the figures look like: the table that is printed, and docs/performance.md.

Figures are lists of samples by row and contender, or the reason why there are none.
"""

import ast
import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

OURS = "steersman"
BENCHMARKS = Path(__file__).resolve().parents[1]
KEPT = BENCHMARKS / "figures"
"""Where figures are kept for the page: `peers.json`, and a file for each benchmark."""
Samples = list[float] | str


PAGE = """\
# Performance

<!-- Written by `make bench-peers ARGS=--write`; change benchmarks/peers/page.py. -->

Measured on {date}, on {machine}; load average {load}. Times depend on
the machine and on what else it does: compare the contenders of a row with each other, not figures of two
days. All run headless on the same work, take turns in one loop, and ask one model server on loopback that
answers at once. Figures are least / median, and the ratio of the medians to ours. Tokens are bytes of the
request / 4. A dash comes with the reason why a figure is missing; "never" is later than three seconds.
{skipped}

## Goals

{goals}

## Beside other agents

{peers}

A setsid grandchild is a process that a tool's command puts into a session of its own. `make bench-peers`
installs the other programs into a folder of their own (`~/.cache/steersman-peers`, or `STEERSMAN_PEERS`),
measures, and prints these tables; `ARGS=--write` also writes this page, and
`ARGS="--only codex,pi --rounds 3"` measures less.

## Work with a small model

Whether work gets done, with the same small weights on one llama.cpp server, at temperature 0, for every
harness: tasks in six families, each with a hidden check that also looks for damage, 180 seconds and
24 model calls at most. The 30 of the set `everyday` are what people ask for in a small folder,
written by somebody who did not know the profile for small models; so were the 30 of the set `second`,
after version 86fcf90a, and whatever is newer may have seen them; the 36 of the set `hard` have hidden
tests or traps. Settings may be chosen on the half `tune`; the half `held` is only measured.
Intervals are of 95 %, bootstrapped over tasks; p is of McNemar's exact test on the tasks of both halves.
steersman embedded samples as the product does, and it alone loads the weights in each attempt.
`make bench-work` installs the newest version of each harness and goes on where it stopped;
`ARGS="--set hard"` takes the other set, `ARGS=--list` names tasks and contenders,
`ARGS=--kill` kills steersman at a drawn moment and resumes it,
`ARGS=--write` keeps the tables for this page. A contender with other settings of steersman, for example
without one trick, is a table in `variants.toml` of [the benchmark](../benchmarks/work):

    ["native tools"]
    models.main.tool_dialect = "native"

{work}

## Curves and parts

How cost grows with sessions, messages, files and steps, and what single parts cost, is measured by
`make bench`; each benchmark prints its figures beside a baseline of the same run, and
`make bench ARGS=--write` keeps them for this page.

{benchmarks}

What has a limit, or is one of two ends of a curve:

{curves}
"""


@dataclass(frozen=True)
class Row:
    """One measure: `goal` is its limit, of the median, as such or as times the median of `against`.

    `beside` is the measure of that one which counts, where it is another.
    """

    key: str
    title: str
    goal: str
    limit: float
    against: str = ""
    beside: str = ""


WHY = {
    "first": "two thirds are imports: 280 modules of its own, 230 of others",
    "keys": "what is left is mostly imports; those of prompt_toolkit take 40 ms",
    "turn": "of 3.3 ms 0.6 go until the model is asked, 0.9 to it and back, 0.9 to take its answer in, "
    "0.6 into the sync that the end waits for, 0.2 to tell that; pi syncs nothing",
    "ended": "it is told when all that the stop reached is dead, and that is durable",
    "tool": "of 1.9 ms 0.4 go until the stop is understood, 0.5 until the signal is on its way, "
    "0.9 until the supervisor of the command has killed it",
    "steer": "what it says is durable before a model reads it",
    "64 sessions against a transaction each": "a sync is as quick here as the rest of a commit",
    "1,000 children, until all are dead": "each child's end is recorded by itself and its parent: 1.2 ms",
    "an item adds to the bare loop, median": "what each item did is on the disk, and its death proven",
}
"""Why a goal is missed, by the key of a row or the name of a measure; shown while it is."""
ROWS = (
    Row("version", "`--version`, times bare python", "at most 2", 2),
    Row("first", "first model request, ms", "at most 0.4 times codex", 0.4, "codex"),
    Row(
        "keys",
        "a chat takes keys, ms",
        "at most 0.6 times codex's first request",
        0.6,
        "codex",
        "first",
    ),
    Row("memory", "one-shot peak memory, MiB", "at most 50", 50),
    Row("turn", "warm turn, ms", "at most 0.6 times pi", 0.6, "pi"),
    Row("ended", "interrupt: turn ended, ms", "at most 1.0 times pi", 1.0, "pi"),
    Row("tool", "interrupt: tool dead, ms", "at most 1.0 times pi", 1.0, "pi"),
    Row("daemon", "interrupt: setsid grandchild dead, ms", "dead", 3000),
    Row("steer", "steer: from the tool's end to the model, ms", "at most 1.0 times pi", 1.0, "pi"),
    Row("hi", 'tokens for "hi"', "at most 1,000", 1000),
    Row("output", "tokens added by 589 kB of tool output", "at most 1,500", 1500),
    Row("prefix", "request that the next one begins with, %", "100", 100),
    Row("stream", "CPU while 200 tokens a second stream, %", "at most 0.7 times pi", 0.7, "pi"),
    Row("idle", "wake-ups a second while nothing happens", "at most 1.0 times pi", 1.0, "pi"),
)


@dataclass
class Figures:
    """All samples of a run: `versions` of the contenders, `skipped` ones with the reason."""

    machine: str
    date: str
    load: str
    versions: dict[str, str] = field(default_factory=dict[str, str])
    skipped: dict[str, str] = field(default_factory=dict[str, str])
    samples: dict[str, dict[str, Samples]] = field(default_factory=dict[str, dict[str, Samples]])

    def add(self, row: str, name: str, value: float | str) -> None:
        """Add a sample; a reason stands only where there is no sample."""
        known = self.samples.setdefault(row, {}).setdefault(name, [])
        if isinstance(value, str):
            if not known:
                self.samples[row][name] = value
        elif isinstance(known, str):
            self.samples[row][name] = [value]
        else:
            known.append(value)

    def median(self, row: str, name: str) -> float | None:
        """Return the median of a measure; none where there is none."""
        found = self.samples.get(row, {}).get(name, "")
        return statistics.median(found) if found and not isinstance(found, str) else None


def number(value: float) -> str:
    """Write a figure with as many digits as it needs."""
    if math.isinf(value):
        return "never"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def cell(figures: Figures, row: Row, name: str) -> str:
    """Write least / median and the ratio to ours, or why there is nothing."""
    found = figures.samples.get(row.key, {}).get(name, "not measured")
    if isinstance(found, str):
        return f"- ({found})" if found else "-"
    if not found:
        return "-"
    least, median = min(found), statistics.median(found)
    text = (
        number(least) if number(least) == number(median) else f"{number(least)} / {number(median)}"
    )
    ours = figures.median(row.key, OURS)
    if name == OURS or not ours or math.isinf(ours) or math.isinf(median) or row.key == "prefix":
        return text
    return f"{text} ({median / ours:.2g}x)"


def verdict(figures: Figures, row: Row) -> str:
    """Say whether a goal is kept: `ok`, `MISSED`, or why that is not known."""
    ours = figures.median(row.key, OURS)
    if ours is None:
        return "not measured"
    if row.key == "prefix":
        return "ok" if ours >= row.limit else "MISSED"
    if not row.against:
        return "ok" if ours <= row.limit else "MISSED"
    theirs = figures.median(row.beside or row.key, row.against)
    if theirs is None:
        return f"{row.against} was not measured"
    times = f"{ours / theirs:.2g} times"
    return f"ok: {times}" if ours <= row.limit * theirs else explained(f"MISSED: {times}", row.key)


def explained(missed: str, key: str) -> str:
    """Add to a verdict why the goal is missed, where that is known."""
    return f"{missed}; {WHY[key]}" if key in WHY else missed


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(words)} |" for words in lines)


def peers_table(figures: Figures) -> str:
    """Write what was measured of each contender."""
    names = list(figures.versions)
    header = ["", *(f"{name} {figures.versions[name]}".strip() for name in names)]
    rows = [[row.title, *(cell(figures, row, name) for name in names)] for row in ROWS]
    return table(header, rows)


def goals_table(figures: Figures) -> str:
    """Write what is to be kept, what was measured, and whether it was kept."""
    rows = [[row.title, row.goal, cell(figures, row, OURS), verdict(figures, row)] for row in ROWS]
    return table(["what", "goal, of the median", "least / median", ""], rows)


def benchmarks_table(folder: Path = BENCHMARKS) -> str:
    """List the benchmarks of this repository by what each says of itself."""
    rows: list[list[str]] = []
    for file in sorted(folder.glob("[a-z]*.py")):
        about = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
        if file.name not in ("loopback.py", "table.py"):
            first = about.split("\n\n")[0].replace("\n", " ")
            rows.append([f"[{file.name}](../benchmarks/{file.name})", first])
    return table(["benchmark", "measures"], rows)


def curves_table(folder: Path = KEPT) -> str:
    """List what the benchmarks measured when they were last kept."""
    rows: list[list[str]] = []
    for file in sorted(folder.glob("*.json")):
        tables = json.loads(file.read_text("utf-8")).get("tables", {})
        for title, table_ in tables.items():
            when = f"{table_['date']}, load {table_['load']}"
            for line in table_["lines"]:
                what = f"{title}: {line['name']}" if title else line["name"]
                verdict = line["verdict"]
                if verdict == "MISSED":
                    verdict = explained(verdict, line["name"])
                rows.append([file.stem, what, line["value"], line["limit"], verdict, when])
    return table(["benchmark", "what", "value", "limit or unit", "", "measured"], rows)


def work_tables(folder: Path = KEPT) -> str:
    """Write what `make bench-work` kept; each sheet is a title, a header and rows."""
    kept = folder / "work.json"
    if not kept.exists():
        return "No results are kept yet."
    data = json.loads(kept.read_text("utf-8"))
    few = "A contender of fewer attempts has not been run to the end."
    parts = [
        f"Measured on {data['date']}, on {data['machine']}; sets of tasks {data['set']}. {few}"
    ]
    parts += [f"{name} was left out: {why}." for name, why in data["skipped"].items()]
    for sheet in data["sheets"]:
        parts.append(f"**{sheet['title']}**\n\n{table(sheet['header'], sheet['rows'])}")
    return "\n\n".join(parts)


def page(figures: Figures) -> str:
    """Write docs/performance.md."""
    skipped = "".join(f"\n{name} was left out: {why}." for name, why in figures.skipped.items())
    return PAGE.format(
        date=figures.date,
        machine=figures.machine,
        load=figures.load,
        skipped=skipped,
        goals=goals_table(figures),
        peers=peers_table(figures),
        benchmarks=benchmarks_table(),
        curves=curves_table(),
        work=work_tables(),
    )


def as_data(figures: Figures) -> Mapping[str, object]:
    """Return the figures for a JSON file, with `never` as text."""
    samples = {
        row: {
            name: found if isinstance(found, str) else [str(value) for value in found]
            for name, found in of.items()
        }
        for row, of in figures.samples.items()
    }
    return {**vars(figures), "samples": samples}


def from_data(data: dict[str, object]) -> Figures:
    """Read what `as_data` returned."""
    samples: dict[str, dict[str, list[str] | str]] = data.pop("samples")  # type: ignore[assignment]
    figures = Figures(**data)  # type: ignore[arg-type]
    for row, of in samples.items():
        figures.samples[row] = {
            name: found if isinstance(found, str) else [float(value) for value in found]
            for name, found in of.items()
        }
    return figures
