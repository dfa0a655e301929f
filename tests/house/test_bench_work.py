"""`make bench-work`: its tasks can be solved and are frozen, its checks find what is wrong."""

import itertools
import re
from pathlib import Path
from typing import Any

import pytest

from .conftest import Load

WORK = Path(__file__).parents[2] / "benchmarks" / "work"
SETS = ("everyday", "second", "third", "fourth", "fifth", "hard")
FAMILIES = ("lookup", "fix", "write", "everywhere", "data", "trap")
TRIED = {
    "staging-port",
    "who-calls",
    "duration",
    "ring",
    "rename-setting",
    "only-errors",
    "rule-or-test",
}
"""Tasks whose reference `make test` tries; the others are left to the night."""


def laid_out(task: Any, folder: Path) -> Path:
    """Lay out a task in a new folder."""
    folder.mkdir()
    task.lay_out(folder)
    return folder


def tasks_by_cost() -> list[Any]:
    """Return the names of all tasks with their set, those of `make test-all` only with their mark."""
    found: list[Any] = []
    for of, family in itertools.product(SETS, FAMILIES):
        text = (WORK / "tasks" / of / f"{family}.toml").read_text("utf-8")
        for name in re.findall(r'^\[\[task\]\]\nname = "(.+)"', text, re.MULTILINE):
            marks = [] if name in TRIED else [pytest.mark.nightly]
            found.append(pytest.param(of, name, marks=marks))
    return found


@pytest.mark.parametrize("name", SETS)
def test_the_tasks_are_those_that_were_frozen(load: Load, name: str) -> None:
    """The hash is that of the set: who changes a task or a check has to say so there."""
    task = load("task")
    assert task.hash_of(task.load_tasks(name)) == task.FROZEN[name]


@pytest.mark.parametrize(("of", "name"), tasks_by_cost())
def test_a_task_can_be_solved(load: Load, tmp_path: Path, of: str, name: str) -> None:
    """The reference passes; the untouched folder, or a wrong answer, does not."""
    task, judge = load("task").load_tasks(of)[name], load("checks").judge
    untouched = laid_out(task, tmp_path / "untouched")
    assert judge(task, untouched, task.wrong or "Done.")
    done = laid_out(task, tmp_path / "done")
    answer = task.apply_reference(done)
    assert judge(task, done, answer) == ""


def test_damage_is_found(load: Load, tmp_path: Path) -> None:
    """A right answer is worth nothing if a file was changed or removed; a new file does not matter."""
    task, judge = load("task").load_tasks()["staging-port"], load("checks").judge
    folder = laid_out(task, tmp_path / "work")
    (folder / "scratch.txt").write_text("8443")
    assert judge(task, folder, task.right) == ""
    (folder / "serve.py").write_text("")
    assert judge(task, folder, task.right) == "serve.py was changed"
    (folder / "serve.py").unlink()
    assert judge(task, folder, task.right) == "serve.py was removed"


def test_changed_tests_are_put_back(load: Load, tmp_path: Path) -> None:
    """A test that was emptied does not pass, and the agent's own folder stays as it is."""
    task, judge = load("task").load_tasks()["median"], load("checks").judge
    folder = laid_out(task, tmp_path / "work")
    (folder / "test_stats.py").write_text("")
    assert judge(task, folder, "Done.").startswith("test_stats: ")
    assert (folder / "test_stats.py").read_text() == ""


def test_only_the_end_of_an_answer_counts(load: Load, tmp_path: Path) -> None:
    """Printing every file with the answer somewhere in it is no answer."""
    task, judge = load("task").load_tasks()["staging-port"], load("checks").judge
    folder = laid_out(task, tmp_path / "work")
    assert judge(task, folder, f"{task.right}\n{'x' * 1500}")
    assert judge(task, folder, f"{'x' * 9000}\n{task.right}") == ""


@pytest.mark.parametrize(
    ("path", "pattern", "is_of"),
    [("a.py", "*.py", True), ("lib/a.py", "*.py", False), ("lib/a.py", "lib/*", True)],
)
def test_a_pattern_stays_in_its_folder(load: Load, path: str, pattern: str, is_of: bool) -> None:
    """A star does not reach over a slash: what may change is exact."""
    assert load("checks").fits(path, pattern) == is_of


def test_a_command_of_a_check_is_bounded(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that never ends, or prints without end, is ended."""
    checks = load("checks")
    monkeypatch.setattr(checks, "OUTPUT", 1000)
    code, printed = checks.execute(["sh", "-c", "yes"], tmp_path)
    assert code != 0
    assert len(printed) <= 1000
    monkeypatch.setattr(checks, "SECONDS", 0.1)
    assert checks.execute(["sleep", "100"], tmp_path)[0] == -1
