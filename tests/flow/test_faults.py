"""Every kind of mistake in a workflow's file, and what a person is told about it.

`faults/NAME.toml` has the mistake, `faults/NAME.txt` what `steersman workflow check` says; with
`STEERSMAN_SNAPSHOTS=write` they are written anew.
"""

import os
from pathlib import Path
from typing import get_args

import pytest

from steersman.workflows.document import tell
from steersman.workflows.flow.check import Surroundings, check_file
from steersman.workflows.paths import Paths
from steersman.workflows.settings import ToolName

FAULTS = Path(__file__).parent / "faults"
IS_WRITING = os.environ.get("STEERSMAN_SNAPSHOTS") == "write"
TOOLS = ", ".join(f"`{name}`" for name in get_args(ToolName))
NAMES = sorted(path.stem for path in FAULTS.glob("*.toml"))


@pytest.mark.parametrize("name", NAMES)
def test_each_mistake_is_told_with_its_place_and_a_hint(name: str, tmp_path: Path) -> None:
    """All mistakes of a file are told at once, in the order of the text."""
    around = Surroundings(Paths.of({"STEERSMAN_HOME": str(tmp_path)}), tmp_path, dict(os.environ))
    checked = check_file(FAULTS / f"{name}.toml", around)
    told = [tell(one) for one in checked.faults]
    told += [tell(one, "warning: ") for one in checked.warnings]
    text = "\n".join(told).replace(f"{FAULTS}/", "").replace(TOOLS, "(the tools)") + "\n"
    snapshot = FAULTS / f"{name}.txt"
    if IS_WRITING:
        snapshot.write_text(text, encoding="utf-8")
    assert text == snapshot.read_text(encoding="utf-8")
    assert all(one.line for one in checked.faults + checked.warnings) or name == "empty"
    assert checked.faults or name == "warnings"


def test_no_snapshot_is_left_over() -> None:
    """There is a text for each mistake and for nothing else."""
    assert sorted(path.stem for path in FAULTS.glob("*.txt")) == NAMES
