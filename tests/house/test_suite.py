"""The test suite itself: what it prints, what it bounds, and where its folders are described."""

import ast
import os
import re
import shutil
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
from support.changes import is_extension_touched
from support.clean_root import entries
from support.nightly import daily

WAITING = re.compile(r"^(subprocess|urllib|http)\.")
BOUNDED = re.compile(r"\.communicate$|^asyncio\.(timeout|wait_for)$")  # their bound is an argument
FOLDERS = {".ci", ".github", ".vscode", "benchmarks", "docs", "examples", "tests"}
FILES = {
    *(".containerignore", ".editorconfig", ".gitignore", ".pre-commit-config.yaml"),
    *("CHANGELOG.md", "CONTRIBUTING.md", "Containerfile", "LICENSE", "MANIFEST.in", "Makefile"),
    *("README.md", "__init__.py", "__main__.py", "chat.py", "config.toml", "models.py"),
    *("py.typed", "pyproject.toml", "testing.py"),
}
BLOCKING = """
import threading

def test_that_passes():
    pass

def test_that_blocks():
    threading.Event().wait()
"""

UNSTABLE = """
import subprocess
from pathlib import Path

def is_first(name):
    is_there = Path(name).exists()
    Path(name).touch()
    return not is_there

def test_of_a_program():
    subprocess.run(["true"])
    assert not is_first("program")

def test_of_a_seed():
    assert not is_first("seed")
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


def pytest_in(folder: Path, root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in a folder with the plugins of this suite."""
    plugins = ("-p", "support.durations", "-p", "support.progress", "-p", "support.second_try")
    return subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(root / "tests")},
        capture_output=True,
        text=True,
        timeout=patience.seconds(60),
    )


@pytest.mark.parametrize("chosen", ["", "of_a_program"])
def test_only_a_test_of_programs_is_tried_again(root: Path, tmp_path: Path, chosen: str) -> None:
    """It is named as flaky; what failed without a program is not run again, and stays a failure."""
    (tmp_path / "test_it.py").write_text(UNSTABLE)
    assert pytest_in(tmp_path, root, "-n", "1", "-k", chosen).returncode == 1
    second = pytest_in(tmp_path, root, "--second-try", str(tmp_path / "flaky"))
    assert "FLAKY test_it.py::test_of_a_program" in second.stdout
    assert (tmp_path / "flaky").read_text() == "test_it.py::test_of_a_program\n"
    is_final = "is not tried again: test_it.py::test_of_a_seed" in second.stdout
    assert (second.returncode, is_final) == ((0, False) if chosen else (1, True))
    assert "1 passed" in second.stdout


def test_a_run_says_how_far_it_is(root: Path, tmp_path: Path) -> None:
    """The number of tests is printed before the first of them runs, and a failure as it comes."""
    (tmp_path / "test_it.py").write_text(UNSTABLE)
    ran = pytest_in(tmp_path, root, "--progress")
    lines = [line.strip() for line in ran.stdout.splitlines()]
    first = next(line for line in lines if "collecting" in line)
    counted = next(line for line in lines if "2 tests, about" in line)
    failed = next(line for line in lines if "FAILED test_it.py::test_of_a_program" in line)
    assert lines.index(first) < lines.index(counted) < lines.index(failed)


def test_a_run_has_one_seed() -> None:
    """All that is drawn begins with the seed that the run prints, whatever process draws it."""
    seed = int(os.environ["STEERSMAN_SEEDS"])
    assert (base(), core.global_force_seed) == (seed, seed)


def test_bounds_are_generous(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound is multiplied by the factor that was set, or by a large one whatever the load."""
    monkeypatch.setattr(patience, "given", "3")
    assert patience.seconds(10.0) == 30.0
    monkeypatch.setattr(patience, "given", "")
    assert patience.seconds(10.0) == 10.0 * patience.FACTOR >= 100.0


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


@pytest.mark.nightly
def test_a_run_that_leaves_a_file_in_the_root_fails(root: Path, tmp_path: Path) -> None:
    """Its name is printed, and the exit code is that of a failed test."""
    (tmp_path / ".gitignore").write_text("*.pyc\n__pycache__/\n.pytest_cache/\n")
    (tmp_path / "tests" / "support").mkdir(parents=True)
    plugin = "support/clean_root.py"
    shutil.copy(root / "tests" / plugin, tmp_path / "tests" / plugin)
    (tmp_path / "test_it.py").write_text("def test_it():\n    open('left', 'w').close()\n")
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "support.clean_root", "test_it.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "tests")},
        capture_output=True,
        text=True,
        timeout=patience.seconds(60),
    )
    assert ran.returncode == 1
    assert re.search(r"left in the root of the checkout =+\s+left\n", ran.stdout), ran.stdout


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
    runs = [
        step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step
    ]
    assert runs == [".ci/run"]
    hooks = yaml.load(root / ".pre-commit-config.yaml")["repos"][0]["hooks"]
    targets = set(re.findall(r"^([\w-]+):", (root / "Makefile").read_text(), re.MULTILINE))
    called = [hook["entry"] for hook in hooks]
    called += re.findall(r"^make .*?(?= \|\||$)", (root / ".ci" / "run").read_text(), re.MULTILINE)
    assert {command.split()[1] for command in called} == {"check-fast", "check", "test", "test-all"}
    assert {command.split()[1] for command in called} <= targets


def test_editors_agree_with_the_formatter(root: Path) -> None:
    """The line length of the editor settings is that of ruff."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    length = project["tool"]["ruff"]["line-length"]
    assert f"max_line_length = {length}" in (root / ".editorconfig").read_text(encoding="utf-8")
    assert f"[{length}]" in (root / ".vscode" / "settings.json").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("changed", "touched"),
    [
        ("extensions/irc/reader.py", ["irc"]),
        ("extensions/ray/example.toml", ["ray"]),
        ("gateway/chat/platform.py", ["irc", "matrix", "telegram"]),
        ("ports/placement.py", ["ray"]),
        ("ports/external_agent.py", ["acp"]),
        ("ports/models/weights.py", ["embedded"]),
        ("ports/tools/mcp_offer.py", ["acp", "mcp"]),
        ("journal/sql_store.py", ["postgres"]),
        ("workflows/agent_definition.py", ["agent_hooks"]),
        ("tests/support/telegram_server.py", ["telegram"]),
        ("tests/extensions/opentelemetry/test_export.py", ["opentelemetry"]),
        ("actors/queue.py", []),
    ],
)
def test_an_extension_is_tested_when_it_or_what_it_uses_changes(
    root: Path, changed: str, touched: list[str]
) -> None:
    """`make test` runs its tests after a change of its files, of its tests, and of what these import."""
    names = sorted(folder.name for folder in (root / "tests" / "extensions").glob("[a-z]*/"))
    found = [name for name in names if is_extension_touched(name, frozenset([changed]))]
    assert found == touched
