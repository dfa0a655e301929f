"""The page of promises: what is promised and tested, with the last figures, and the rules of the code.

The promises are those of `promises.toml`, the figures those that `make soak` keeps in `figures.json`,
and the rules those that `tests/simulation/rules.py` breaks. What `make prove` found of planted faults and
of broken rules is kept in `proof.json`.
"""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
FIGURES = DOCS / "figures.json"
PROOF = DOCS / "proof.json"
RULES = DOCS.parent / "tests" / "simulation" / "rules.toml"

HEAD = """\
# Promises

<!-- Written by docs/generate.py from promises.toml, figures.json, proof.json and rules.toml. -->

What is promised, the tests that try to break it, the last figures of the [suites](#figures) that do so at
length, and what none of them covers. [testing.md](testing.md) says how to run them.

"""
FIGURES_HEAD = """
## Figures

What `make soak` found when the figures were last kept, suite by suite. Wrong is any case that broke the
promise: something lost or doubled, a process that survived, a traceback.

"""
RULES_HEAD = """
## Rules

Ten rules that nothing in the code may break. `make prove` copies the checkout, replaces the line in
question, and runs the named test there, which has to fail. The seconds are those of the last run that was
kept.

"""
FAULTS_HEAD = """
## Planted faults

What `make prove` found when it was last kept: each fault is planted alone, and runs of the simulator are
played, seed by seed, until a promise breaks. Seconds are of one processor.

"""


def promises() -> str:
    """Describe every promise, the figures of the suites, and every rule."""
    kept: dict[str, Any] = json.loads(FIGURES.read_text(encoding="utf-8"))
    proof: dict[str, Any] = json.loads(PROOF.read_text(encoding="utf-8"))
    blocks = [HEAD, _table(("promise", "tests", "last figures", "not covered"), _promises(kept))]
    blocks += [
        FIGURES_HEAD,
        _table(("suite", "cases", "wrong", "seconds", "command"), _figures(kept)),
    ]
    measured = [_measured(name, found) for name, found in kept.items() if found["figures"]]
    blocks += [
        RULES_HEAD,
        _table(
            ("rule", "where a break is made", "the test that fails", "seconds"),
            _rules(proof["rules"]),
        ),
        FAULTS_HEAD,
        _table(("fault", "where", "seeds", "seconds", "the promise that breaks"), _faults(proof)),
    ]
    return "".join([*blocks[:4], *measured, *blocks[4:]])


def _promises(kept: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for row in tomllib.loads((DOCS / "promises.toml").read_text(encoding="utf-8"))["promise"]:
        tests = [f"[{test.removesuffix('.py')}](../tests/{test})" for test in row["tests"]]
        figures = [_brief(name, kept[name]) for name in row["suites"] if name in kept]
        yield row["text"], ", ".join(tests), "; ".join(figures), row["not_covered"]


def _brief(name: str, found: dict[str, Any]) -> str:
    return f"{name}: {found['count']:,} {found['cases']}, {found['wrong']} wrong"


def _figures(kept: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for name, found in kept.items():
        cases, seconds = f"{found['count']:,} {found['cases']}", f"{found['seconds']:,.0f}"
        yield name, cases, str(found["wrong"]), seconds, f"`{found['command']}`, {found['date']}"


def _measured(name: str, found: dict[str, Any]) -> str:
    figures = ", ".join(f"{what} {figure:g}" for what, figure in found["figures"].items())
    return f"\nMeasured by {name}: {figures}.\n"


def _faults(proof: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for row in proof["faults"]:
        figures = str(row["seeds"]), f"{row['seconds']:.1f}"
        yield row["fault"], row["where"], *figures, row["promise"]


def _rules(seconds: dict[str, float]) -> Iterator[tuple[str, ...]]:
    for rule in tomllib.loads(RULES.read_text(encoding="utf-8"))["rule"]:
        for number, at in enumerate(rule["break"]):
            line = max(at["find"].strip().splitlines(), key=len).strip()
            file, _, name = at["test"].partition("::")
            test = f"[{file.removeprefix('tests/')}](../{file}): `{name}`"
            where = f"[{at['file']}](../{at['file']}): `{line}`"
            took = seconds.get(f"{at['file']}: {at['test']}")
            shown = "" if took is None else f"{took:.0f}"
            yield "" if number else rule["text"], where, test, shown


def _table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
