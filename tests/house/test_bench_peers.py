"""`make bench-peers`: its page says what was measured."""

import importlib
import json
import math
import sys
from collections.abc import Generator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

PEERS = Path(__file__).parents[2] / "benchmarks" / "peers"


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Generator[Any]:
    """Import a module of the benchmark, which is a program and no package."""
    monkeypatch.syspath_prepend(str(PEERS))
    names = ("page",)

    def one(name: str) -> ModuleType:
        return importlib.import_module(name)

    yield one
    for name in names:
        sys.modules.pop(name, None)


def test_the_page_is_that_of_the_kept_figures(load: Any) -> None:
    """Nobody has changed docs/performance.md by hand, or kept figures without writing it."""
    page = load("page")
    kept = json.loads((page.KEPT / "peers.json").read_text("utf-8"))
    written = (PEERS.parents[1] / "docs" / "performance.md").read_text("utf-8")
    assert page.page(page.from_data(kept)) == written


def test_the_page_says_what_was_measured_and_what_was_not(load: Any) -> None:
    """Ratios are of medians, a reason stands where there is no figure, and goals know what they miss."""
    page = load("page")
    figures = page.Figures("2 x a processor", "2026-01-01", "0.1 to 0.2")
    figures.versions |= {"steersman": "1.0", "codex": "2.0", "pi": "3.0"}
    figures.skipped["Hermes"] = "`npm` is not installed"
    for value in (4.0, 2.0, 3.0):
        figures.add("turn", "steersman", value)
    for value in (6.0, 6.0):
        figures.add("turn", "pi", value)
    figures.add("turn", "codex", "no headless conversation")
    figures.add("hi", "steersman", 1301.0)
    figures.add("tool", "steersman", 3.0)
    figures.add("tool", "pi", 2.0)
    figures.add("tool", "codex", math.inf)
    again = page.from_data(json.loads(json.dumps(page.as_data(figures))))
    assert again == figures
    text = page.page(again)
    assert "| warm turn, ms | 2 / 3 | - (no headless conversation) | 6 (2x) |" in text
    assert "| interrupt: tool dead, ms | 3 | never | 2 (0.67x) |" in text
    assert "| warm turn, ms | at most 0.8 times pi | 2 / 3 | ok: 0.5 times |" in text
    missed = f"MISSED: 1.5 times; {page.WHY['tool']}"
    assert f"| interrupt: tool dead, ms | at most 1.0 times pi | 3 | {missed} |" in text
    assert '| tokens for "hi" | at most 1,300 | 1,301 | MISSED |' in text
    assert "| one-shot peak memory, MiB | at most 50 | - (not measured) | not measured |" in text
    assert "Hermes was left out: `npm` is not installed." in text
    assert "(../benchmarks/turns.py)" in text


def test_the_page_has_the_work_that_was_kept(load: Any, tmp_path: Path) -> None:
    """The tables of `make bench-work` are those of its file; without one the page says so."""
    page = load("page")
    assert page.work_tables(tmp_path) == "No results are kept yet."
    sheet = {"title": "m: solved", "header": ["", "both"], "rows": [["pi 1", "3 of 4"]]}
    about = {"date": "2026-01-01", "machine": "a processor", "set": "abc"}
    kept = {**about, "skipped": {"aider": "no npm"}, "sheets": [sheet]}
    (tmp_path / "work.json").write_text(json.dumps(kept))
    text = page.work_tables(tmp_path)
    assert text.startswith("Measured on 2026-01-01, on a processor; set of tasks abc.")
    assert "aider was left out: no npm." in text
    assert text.endswith("**m: solved**\n\n|  | both |\n| --- | --- |\n| pi 1 | 3 of 4 |")
