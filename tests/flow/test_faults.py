"""Every kind of mistake in a workflow's file, and its message.

`faults/NAME.toml` has the mistake, `faults/NAME.txt` what `steersman workflow check` says; with
`STEERSMAN_SNAPSHOTS=write` they are written again.
"""

import ast
import inspect
import os
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import pytest

from steersman.workflows.document import tell
from steersman.workflows.flow.check import Surroundings, check_file
from steersman.workflows.paths import Paths
from steersman.workflows.tools import TOOLS

FAULTS = Path(__file__).parent / "faults"
IS_WRITING = os.environ.get("STEERSMAN_SNAPSHOTS") == "write"
KNOWN_TOOLS = ", ".join(f"`{name}`" for name in TOOLS)
NAMES = sorted(path.stem for path in FAULTS.glob("*.toml"))


@pytest.mark.parametrize("name", NAMES)
def test_each_mistake_is_reported_with_position_and_hint(name: str, tmp_path: Path) -> None:
    """All mistakes of a file are reported at once, in the order of the text."""
    around = Surroundings(
        paths=Paths.of({"STEERSMAN_HOME": str(tmp_path)}), folder=tmp_path, environ=dict(os.environ)
    )
    checked = check_file(FAULTS / f"{name}.toml", around)
    told = [tell(error) for error in checked.errors]
    told += [tell(warning, "warning: ") for warning in checked.warnings]
    text = "\n".join(told).replace(f"{FAULTS}/", "").replace(KNOWN_TOOLS, "(the tools)") + "\n"
    snapshot = FAULTS / f"{name}.txt"
    if IS_WRITING:
        snapshot.write_text(text, encoding="utf-8")
    assert text == snapshot.read_text(encoding="utf-8")
    assert all(fault.line for fault in checked.errors + checked.warnings)
    assert checked.errors or name == "warnings"


def test_a_file_of_no_bytes_has_no_position(tmp_path: Path) -> None:
    """It says what is missing all the same."""
    around = Surroundings(
        paths=Paths.of({"STEERSMAN_HOME": str(tmp_path)}), folder=tmp_path, environ=dict(os.environ)
    )
    file = tmp_path / "none.toml"
    file.touch()
    (fault,) = check_file(file, around).errors
    assert tell(fault).splitlines()[0] == f"{file}: `step` is missing"


def test_no_snapshot_is_left_over() -> None:
    """There is a text for each mistake and for nothing else."""
    assert sorted(path.stem for path in FAULTS.glob("*.txt")) == NAMES


CHECKER = ("check", "graph", "inclusion", "reading", "scope", "template", "workflow_file")
"""The modules of `workflows/flow` that find mistakes."""
RENDERING = ("render_words", "items_of", "_explained")
"""What fails when a template is filled in, in a run: no check can tell it."""
ELSEWHERE = "is longer than "
"""What a file of 200 kB is needed for; the test of templates shows it."""


def sayings(module: ModuleType) -> Iterator[tuple[int, list[str]]]:
    """Give the lines of the simple statements that hold words for people, with these words."""
    tree = ast.parse(inspect.getsource(module))
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    for function in functions:
        body = [node for node in ast.walk(function) if isinstance(node, ast.stmt)]
        for one in body if function.name not in RENDERING else ():
            is_docstring = isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant)
            if is_docstring or hasattr(one, "body") or isinstance(one, ast.Match):
                continue
            texts = [node.value for node in ast.walk(one) if isinstance(node, ast.Constant)]
            words = [text for text in texts if isinstance(text, str) and " " in text.strip()]
            if words and ELSEWHERE not in words:
                yield one.lineno, words


def test_no_mistake_is_without_a_snapshot(tmp_path: Path) -> None:
    """Each statement of the checker that words a mistake is reached by one of the files above."""
    modules = [import_module(f"steersman.workflows.flow.{name}") for name in CHECKER]
    files = {str(module.__file__) for module in modules}
    reached: set[tuple[str, int]] = set()

    def follow(frame: FrameType, event: str, argument: object) -> Any:
        reached.add((frame.f_code.co_filename, frame.f_lineno))
        return follow if frame.f_code.co_filename in files else None

    around = Surroundings(
        paths=Paths.of({"STEERSMAN_HOME": str(tmp_path)}), folder=tmp_path, environ=dict(os.environ)
    )
    before = sys.gettrace()
    for name in NAMES:
        sys.settrace(follow)  # anew for each: what is nested too deeply ends a trace, too
        check_file(FAULTS / f"{name}.toml", around)
    sys.settrace(before)
    told = "".join(path.read_text(encoding="utf-8") for path in FAULTS.glob("*.txt"))
    missing = [
        f"{Path(str(module.__file__)).name}:{line}: {words[0]}"
        for module in modules
        for line, words in sayings(module)
        if (module.__file__, line) not in reached and not any(word in told for word in words)
    ]
    assert missing == []
