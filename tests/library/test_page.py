"""docs/library.md: its programs run and print what it says, and its types are right."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from support.executed import executed
from support.patience import seconds

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "library.md").read_text("utf-8")
PROGRAMS = dict(re.findall(r"^```python\n# (\w+\.py)\n(.*?)^```$", PAGE, re.M | re.S))
SAID = dict(re.findall(r"^```console\n\$ (.*?)\n(.*?)^```$", PAGE, re.M | re.S))

SCRIPT = """
[[answer]]
match = "weather in Rome"
[[answer.tool_calls]]
tool = "weather"
arguments = { city = "Rome" }
[[answer]]
match = "weather in Rome"
text = "It is sunny in Rome."
[[answer]]
match = "three"
text = "One, two, three."
[[answer]]
match = "four"
text = "One, two, three, four."
[[answer]]
match = "hello"
text = "Hello, Ann."
[[answer]]
match = "invoice"
[[answer.tool_calls]]
tool = "pay"
arguments = { amount = 30 }
[[answer]]
match = "invoice"
text = "The invoice is paid."
"""


def run(folder: Path, *command: str) -> "subprocess.CompletedProcess[str]":
    """Run a command in a folder whose home has a scripted model."""
    home = folder / "home"
    home.mkdir()
    (home / "answers.toml").write_text(SCRIPT, "utf-8")
    (home / "config.toml").write_text(
        f'[models.main]\nprovider = "scripted"\nscript = "{home / "answers.toml"}"\n'
        '[agents.assistant]\nmodel = "main"\n[agents.bot]\nmodel = "main"\n',
        "utf-8",
    )
    python = Path(sys.executable).parent
    environ = {**os.environ, "STEERSMAN_HOME": str(home), "PATH": f"{python}:{os.environ['PATH']}"}
    return executed(command, cwd=folder, env=environ)


def test_every_block_of_the_page_is_tried() -> None:
    """Each is a whole program with a name, and has what it prints below it, or is a test."""
    assert PAGE.count("```python\n") == len(PROGRAMS)
    assert PAGE.count("```console\n") == len(SAID)
    run_here = {word for line in SAID for word in shlex.split(line) if word.endswith(".py")}
    assert run_here | {"test_weather.py"} == set(PROGRAMS)


@pytest.mark.parametrize("line", SAID)
def test_a_program_of_the_page_prints_what_it_says(line: str, tmp_path: Path) -> None:
    """The program is run by the line above its output."""
    for name, text in PROGRAMS.items():
        (tmp_path / name).write_text(text, "utf-8")
    ran = run(tmp_path, "sh", "-c", line)
    assert (ran.stdout, ran.stderr) == (SAID[line], "")


def test_the_test_of_the_page_passes(tmp_path: Path) -> None:
    """As pytest runs it."""
    (tmp_path / "test_weather.py").write_text(PROGRAMS["test_weather.py"], "utf-8")
    ran = run(tmp_path, sys.executable, "-m", "pytest", "-q", "test_weather.py")
    assert ran.returncode == 0, ran.stdout


@pytest.mark.nightly
@pytest.mark.timeout(300)  # mypy reads the whole package
def test_programs_and_examples_have_types(tmp_path: Path) -> None:
    """`mypy --strict` finds nothing in them, with the package as it is installed."""
    for name, text in PROGRAMS.items():
        (tmp_path / name).write_text(text, "utf-8")
    examples = sorted((ROOT / "examples").glob("*.py"))
    package = tmp_path / "package"
    package.mkdir()
    (package / "steersman").symlink_to(ROOT)
    files = [*tmp_path.glob("*.py"), *examples]
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent"]
    ran = executed(
        [*command, "--config-file=", "--cache-dir", str(tmp_path / "cache"), *map(str, files)],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(package)},
        timeout=seconds(280),
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
