"""`make bench-peers`: its page says what was measured."""

import importlib
import json
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from support.patience import seconds

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


def test_the_program_prints_the_kept_figures() -> None:
    """All its modules are there, also those that only a measurement needs."""
    ran = subprocess.run(
        [sys.executable, str(PEERS), "--again"], capture_output=True, text=True, timeout=seconds(60)
    )
    assert (ran.returncode, "first model request" in ran.stdout) == (0, True), ran.stderr


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
