"""`make bench-peers`: its page says what was measured."""

import json
import subprocess
import sys
from pathlib import Path

from support.patience import seconds

from .conftest import Load

PEERS = Path(__file__).parents[2] / "benchmarks" / "peers"


def test_the_page_is_that_of_the_kept_figures(load: Load) -> None:
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


def test_the_page_has_the_work_that_was_kept(load: Load, tmp_path: Path) -> None:
    """The tables of `make bench-work` are those of its file; without one the page says so."""
    page = load("page")
    assert page.work_tables(tmp_path) == "No results are kept yet."
    sheet = {"title": "m: solved", "header": ["", "both"], "rows": [["pi 1", "3 of 4"]]}
    about = {"date": "2026-01-01", "machine": "a processor", "set": "abc"}
    kept = {**about, "skipped": {"aider": "no npm"}, "sheets": [sheet]}
    (tmp_path / "work.json").write_text(json.dumps(kept))
    text = page.work_tables(tmp_path)
    assert text.startswith("Measured on 2026-01-01, on a processor; sets of tasks abc.")
    assert "aider was left out: no npm." in text
    assert text.endswith("**m: solved**\n\n|  | both |\n| --- | --- |\n| pi 1 | 3 of 4 |")
