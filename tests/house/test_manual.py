"""The manual pages and completions that a wheel installs: man reads them, and real shells complete."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from stories.terminal import Terminal
from support.patience import seconds

from steersman.cli.options import ABOUT

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = sorted((DOCS / "man").glob("*.1"))
COMPLETIONS = DOCS / "completions"


def test_there_is_a_page_for_each_command(root: Path) -> None:
    """None is left of a command that is gone; and all are declared as files of the wheel."""
    assert {path.stem for path in PAGES} == {"steersman", *(f"steersman-{name}" for name in ABOUT)}
    declared = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    found = {
        path for globs in declared["data-files"].values() for at in globs for path in root.glob(at)
    }
    assert found == {*PAGES, *COMPLETIONS.iterdir()}


@pytest.mark.skipif(not shutil.which("man"), reason="needs man")
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_man_reads_a_page(path: Path) -> None:
    """Without a warning; the options are in it as they are typed."""
    environ = {**os.environ, "MANWIDTH": "200", "LC_ALL": "C.UTF-8", "MAN_KEEP_FORMATTING": ""}
    command = ["man", "--warnings", "--local-file", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, env=environ, timeout=seconds(60))
    assert (done.returncode, done.stderr) == (0, "")
    shown = done.stdout.replace("\b", "")
    for head in ("NAME", "SYNOPSIS", "DESCRIPTION", "EXAMPLES", "SEE ALSO"):
        assert f"\n{head}\n" in shown
    assert "--help" in shown
    assert "\\" not in shown.replace(r"\n", "")


@pytest.mark.skipif(not shutil.which("mandoc"), reason="needs mandoc")
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_mandoc_finds_nothing(path: Path) -> None:
    """But that a page has no date: it would change with each of them."""
    command = ["mandoc", "-T", "lint", "-W", "warning", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds(60))
    found = (done.stdout + done.stderr).splitlines()
    assert [line for line in found if "missing date" not in line] == []


BEGIN = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], f"source {COMPLETIONS}/steersman"),
    "zsh": (["zsh", "-f"], f"fpath+={COMPLETIONS}; autoload -Uz compinit; compinit -u -D"),
    "fish": (["fish", "--no-config"], f"source {COMPLETIONS}/steersman.fish"),
}


@pytest.mark.parametrize("shell", BEGIN)
def test_a_shell_completes(shell: str, tmp_path: Path) -> None:
    """The file as it is installed: a command by its beginning, and the command of a group."""
    command, load = BEGIN[shell]
    if not shutil.which(shell):
        pytest.skip(f"needs {shell}")
    environ = {
        **os.environ,
        "HOME": str(tmp_path),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    terminal = Terminal(command, tmp_path, environ, (120, 30))
    try:
        terminal.types(load)
        terminal.presses("clear; steersman workf\t")
        terminal.shows("steersman workflow")
        terminal.presses("chec\t")
        terminal.waits(lambda: any("steersman workflow check" in row for row in terminal.rows))
    finally:
        terminal.abandon()
