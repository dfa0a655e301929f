"""The test suite itself: what it prints, what it bounds, and where its folders are described."""

import ast
import os
import re
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import core
from ruamel.yaml import YAML
from simulation.seeds import base
from support import patience
from support.clean_root import entries
from support.nightly import daily

WAITING = re.compile(r"^(subprocess|urllib|http)\.")
BOUNDED = re.compile(r"\.communicate$|^asyncio\.(timeout|wait_for)$")  # their bound is an argument
FOLDERS = {".ci", ".github", ".vscode", "benchmarks", "docs", "examples", "tests"}
FILES = {
    *(".containerignore", ".editorconfig", ".gitignore", ".pre-commit-config.yaml"),
    *("CHANGELOG.md", "CONTRIBUTING.md", "Containerfile", "LICENSE", "MANIFEST.in", "Makefile"),
    *("README.md", "SECURITY.md", "__init__.py", "__main__.py", "chat.py", "config.toml"),
    *("mkdocs.yml", "models.py", "py.typed", "pyproject.toml", "testing.py"),
}
BLOCKING = """
import threading

def test_that_passes():
    pass

def test_that_blocks():
    threading.Event().wait()
"""


@pytest.mark.parametrize("workers", daily((), of=((), ("-n", "1"))), ids=["alone", "with a worker"])
def test_a_run_that_is_ended_early_names_what_was_running(
    root: Path, tmp_path: Path, workers: tuple[str, ...]
) -> None:
    """At SIGTERM a run prints the counts so far and the tests in progress, with workers, too."""
    (tmp_path / "test_it.py").write_text(BLOCKING)
    plugin = ("-p", "support.progress")
    with subprocess.Popen(
        [sys.executable, "-m", "pytest", "-v", *workers, *plugin, "test_it.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(root / "tests")},
        stdout=subprocess.PIPE,
    ) as run:
        assert run.stdout is not None
        shown = b""
        while b"test_that_blocks" not in shown:  # printed as the test starts
            piece = os.read(run.stdout.fileno(), 1000)
            assert piece, shown
            shown += piece
        run.send_signal(signal.SIGTERM)
        out = run.communicate(timeout=patience.seconds(60))[0].decode()
    assert "1 of 2 tests had ended" in out
    assert "s: test_it.py::test_that_blocks" in out
    assert "1 passed" in out
    assert run.returncode == 2


def test_a_run_has_one_seed() -> None:
    """All that is drawn begins with the seed that the run prints, whatever process draws it."""
    seed = int(os.environ["STEERSMAN_SEEDS"])
    assert (base(), core.global_force_seed) == (seed, seed)


def test_every_bound_follows_the_machine(root: Path) -> None:
    """No test waits for a process or a server with a bound that is a number: `seconds` scales it."""
    found: list[str] = []
    for path in (root / "tests").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and any(map(_is_number, _bounds(node))):
                found.append(f"{path.relative_to(root)}:{node.lineno}")
    assert found == []


def _bounds(call: ast.Call) -> list[ast.expr]:
    """Return the arguments of a call that may be the bound of a wait."""
    name = ast.unparse(call.func)
    named = [word.value for word in call.keywords if word.arg == "timeout"]
    if BOUNDED.search(name):
        return [*call.args, *named]
    return named if WAITING.search(name) else []


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)


def test_a_test_lasts_longer_than_the_waits_inside(root: Path) -> None:
    """A wait that is in vain says why; the end of the whole test would not."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    usual = project["tool"]["pytest"]["ini_options"]["timeout"]
    for path in (root / "tests").rglob("test_*.py"):
        text = path.read_text(encoding="utf-8")
        waits = [float(wait) for wait in re.findall(r"\bseconds\(([\d.]+)\)", text)]
        marks = [float(mark) for mark in re.findall(r"mark\.timeout\(([\d.]+)\)", text)]
        assert max(waits, default=0.0) < max([usual, *marks]), path


def test_a_port_that_is_handed_on_is_held(root: Path) -> None:
    """Nothing but `HeldPort` binds a port for another program."""
    tests = root / "tests"
    found = {
        str(path.relative_to(tests))
        for path in tests.rglob("*.py")
        if '.bind(("127' in path.read_text(encoding="utf-8")
    }
    assert found == {"support/ports.py", "house/test_suite.py"}


def test_the_root_has_only_what_belongs_there(root: Path, rooms: tuple[str, ...]) -> None:
    """A file that a program has left there is easily committed; a new entry is added here on purpose."""
    assert entries(root) - FOLDERS - FILES - set(rooms) == set()


def test_every_suite_is_on_the_map(root: Path) -> None:
    """docs/testing.md names each folder of tests/, and no test file of a promise is named twice."""
    text = (root / "docs" / "testing.md").read_text(encoding="utf-8")
    folders = {path.parent.name for path in (root / "tests").glob("*/*.py")}
    assert folders - set(re.findall(r"\(\.\./tests/(\w+)\)", text)) == set()
    promises = (root / "docs" / "promises.toml").read_text(encoding="utf-8")
    for row in tomllib.loads(promises)["promise"]:
        assert len(row["tests"]) == len(set(row["tests"])), row


def test_a_forge_and_a_commit_run_what_people_run(root: Path) -> None:
    """The workflow of the forge calls `.ci/run`, and that `make`, as the commit hook does."""
    yaml = YAML(typ="safe")
    workflow = yaml.load(root / ".github" / "workflows" / "ci.yml")
    runs = {
        name: [step["run"] for step in job["steps"] if "run" in step]
        for name, job in workflow["jobs"].items()
    }
    assert runs.pop("test") == [".ci/run"]
    hooks = yaml.load(root / ".pre-commit-config.yaml")["repos"][0]["hooks"]
    targets = set(re.findall(r"^([\w-]+):", (root / "Makefile").read_text(), re.MULTILINE))
    called = [hook["entry"] for hook in hooks]
    called += re.findall(r"^make .*?(?= \|\||$)", (root / ".ci" / "run").read_text(), re.MULTILINE)
    tests = {"check-fast", "check", "site", "test", "test-all", "release-check"}
    assert {command.split()[1] for command in called} == tests
    called += [line for lines in runs.values() for line in lines]
    assert {command.split()[0] for command in called} == {"make"}
    assert {command.split()[1] for command in called} <= targets
