"""What is kept of trials: a JSON line each; and the report that is made of them."""

import json
import statistics
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plan import KINDS, REVISION, kind_of
from verdict import FIGURES, Verdict, judge

__all__ = [
    "KEPT",
    "MOST_DAYS",
    "PAGE",
    "TRIALS",
    "Summary",
    "append",
    "page",
    "read",
    "summary",
    "tables",
]

CHECKOUT = Path(__file__).resolve().parents[2]
KEPT = CHECKOUT / "benchmarks" / "figures" / "survival.json"
"""What docs/survival.md is made of; it has the day and the versions."""
TRIALS = KEPT.with_name("survival-trials.jsonl")
"""Every trial, with what was seen: a figure can be looked up, and judged anew."""
PAGE = CHECKOUT / "docs" / "survival.md"
MOST_DAYS = 30
"""Days that the page may be old: others improve, and a page that is older does them wrong."""
MOST_CASES = 8
"""Numbers of cases that a figure of the page names; the kept trials have all."""
Data = dict[str, Any]
_TEXT = Path(__file__).with_name("page.txt")


def read(path: Path) -> list[Data]:
    """Read the kept trials; a last line that a crash has cut off is left out."""
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    found: list[Data] = []
    for line in lines:
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return [line for line in found if line["revision"] == REVISION]


def append(path: Path, line: Data) -> None:
    """Keep one trial."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        said = json.dumps(line, ensure_ascii=False).replace(str(CHECKOUT), "CHECKOUT")
        file.write(said.replace(str(Path.home()), "~") + "\n")


@dataclass
class Summary:
    """What is said of one agent. `counts` are counts by figure, `cases` the numbers of those cases.

    `once` are those which only one of two trials counted. `kinds` says of each kind of fault that was
    tried which figures were counted. `seconds` is the median of the recoveries, `worst` the longest one.
    """

    name: str
    version: str
    cannot: str = ""
    tried: int = 0
    seconds: float | None = None
    worst: float | None = None
    counts: dict[str, int] = field(default_factory=dict[str, int])
    cases: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    once: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    kinds: dict[str, list[str]] = field(default_factory=dict[str, list[str]])


def summary(name: str, cannot: str, lines: list[Data]) -> Summary:
    """Judge the kept trials of one agent, of the version that was tried last."""
    version = lines[-1]["version"]
    lines = [line for line in lines if line["version"] == version]
    if any(line["seen"].get("grown") for line in lines):  # it writes past the library
        lines = [line for line in lines if "grown" not in line["seen"]]
    found = Summary(name, version, cannot)
    verdicts: dict[tuple[int, int], list[Verdict]] = {}
    for line in lines:
        verdicts.setdefault((line["seed"], line["number"]), []).append(judge(line["seen"]))
    took: list[float] = []
    for (seed, number), tries in sorted(verdicts.items(), key=lambda item: item[0]):
        verdict, case = tries[0], str(number) if seed == 1 else f"{number}/{seed}"
        if not verdict.was_tried:
            continue
        found.tried += 1
        if verdict.seconds is not None:
            took.append(verdict.seconds)
        of_kind = found.kinds.setdefault(kind_of(number).name, [])
        for figure in FIGURES:
            if count := getattr(verdict, figure):
                found.counts[figure] = found.counts.get(figure, 0) + count
                found.cases.setdefault(figure, []).append(case)
                if any(not getattr(later, figure) for later in tries[1:]):
                    found.once.setdefault(figure, []).append(case)
                if figure not in of_kind:
                    of_kind.append(figure)
    if took:
        found.seconds, found.worst = round(statistics.median(took), 2), max(took)
    return found


def _table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(words)} |" for words in lines)


def _cell(agent: Summary, figure: str) -> str:
    if figure in ("lost", "doubled", "unresumable") and "cannot resume" in agent.cannot:
        return "-"
    count = agent.counts.get(figure, 0)
    once = agent.once.get(figure, [])
    cases = agent.cases.get(figure, [])
    shown = [f"{case}?" if case in once else case for case in cases[:MOST_CASES]]
    more = ["…"] * (len(cases) > MOST_CASES)
    return f"{count} ({', '.join([*shown, *more])})" if count else "0"


def tables(agents: list[Summary]) -> tuple[str, str]:
    """Return the figures of all agents, and what was counted by kind of fault."""
    header = ["", *(f"{agent.name} {agent.version}" for agent in agents)]
    rows = [["cases tried", *(str(agent.tried) for agent in agents)]]
    for figure, title in FIGURES.items():
        rows.append([title, *(_cell(agent, figure) for agent in agents)])
    seconds = [f"{a.seconds:g} / {a.worst:g}" if a.seconds is not None else "-" for a in agents]
    rows.append(["seconds until its model was asked again, median / most", *seconds])
    kinds: list[list[str]] = []
    for kind in KINDS:
        cells = ["-" if kind.name not in a.kinds else _words(a.kinds[kind.name]) for a in agents]
        kinds.append([kind.name, *cells])
    return _table(header, rows), _table(["fault", *header[1:]], kinds)


def _words(figures: list[str]) -> str:
    return ", ".join(FIGURES[figure] for figure in figures) or "0"


def data_of(agents: list[Summary], machine: str) -> Data:
    """Return what is kept for the page."""
    day = time.strftime("%Y-%m-%d", time.gmtime())
    return {"date": day, "machine": machine, "agents": [vars(agent) for agent in agents]}


def page(data: Data) -> str:
    """Write docs/survival.md from what is kept."""
    agents = [Summary(**agent) for agent in data["agents"]]
    figures, kinds = tables(agents)
    cannot = [f"- {agent.name} {agent.cannot}." for agent in agents if agent.cannot]
    cannot += [
        f"- {agent.name} is not reached by faults of its {part}."
        for part in ("disk", "clock")
        for agent in agents
        if not any(name.startswith(part) for name in agent.kinds)
    ]
    ours = next((agent for agent in agents if agent.name == "steersman"), None)
    return _TEXT.read_text("utf-8").format(
        date=data["date"],
        machine=data["machine"],
        figures=figures,
        kinds=kinds,
        cannot="\n".join(cannot) or "All can do all that is asked of them here.",
        worse=_worse(ours, agents),
        count=len(KINDS),
        days=MOST_DAYS,
    )


def _worse(ours: Summary | None, agents: list[Summary]) -> str:
    """Say in which figures another agent is better than steersman."""
    if ours is None:
        return "steersman was not tried."
    found: list[str] = []
    for figure, title in FIGURES.items():
        mine = ours.counts.get(figure, 0)
        better = [
            a.name for a in agents if a.counts.get(figure, 0) < mine and _cell(a, figure) != "-"
        ]
        if better:
            found.append(f"- {title}: {mine}, fewer with {', '.join(better)}.")
    quick = [a.name for a in agents if a.seconds is not None and a.seconds < (ours.seconds or 0)]
    if quick:
        found.append(f"- It asks its model again later than {', '.join(quick)} (median).")
    slow = [a.name for a in agents if a.worst is not None and a.worst < (ours.worst or 0)]
    if slow:
        found.append(f"- Its longest recovery is longer than that of {', '.join(slow)}.")
    return "\n".join(found) or "In these cases, in no figure: there may be others where it is."
