"""The page of promises: what is promised and tested, with the last figures, and the rules of the code.

The promises are those of `promises.toml`, the figures those that `make soak` keeps in `figures.json`,
and the rules those that `tests/simulation/rules.py` breaks.
"""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
FIGURES = DOCS / "figures.json"
RULES = DOCS.parent / "tests" / "simulation" / "rules.toml"

HEAD = """\
# Promises

<!-- Written by docs/generate.py from promises.toml, figures.json and tests/simulation/rules.toml. -->

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
question, and runs the named test there, which has to fail.

"""


def promises() -> str:
    """Describe every promise, the figures of the suites, and every rule."""
    kept: dict[str, Any] = json.loads(FIGURES.read_text(encoding="utf-8"))
    blocks = [HEAD, _table(("promise", "tests", "last figures", "not covered"), _promises(kept))]
    blocks += [
        FIGURES_HEAD,
        _table(("suite", "cases", "wrong", "seconds", "command"), _figures(kept)),
    ]
    measured = [_measured(name, found) for name, found in kept.items() if found["figures"]]
    blocks += [
        RULES_HEAD,
        _table(("rule", "where a break is made", "the test that fails"), _rules()),
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


def _rules() -> Iterator[tuple[str, ...]]:
    for rule in tomllib.loads(RULES.read_text(encoding="utf-8"))["rule"]:
        for number, at in enumerate(rule["break"]):
            line = max(at["find"].strip().splitlines(), key=len).strip()
            file, _, name = at["test"].partition("::")
            test = f"[{file.removeprefix('tests/')}](../{file}): `{name}`"
            where = f"[{at['file']}](../{at['file']}): `{line}`"
            yield "" if number else rule["text"], where, test


def _table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
