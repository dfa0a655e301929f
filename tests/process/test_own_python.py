"""A Python that this program starts runs what it was given, and nothing of the current folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.patience import seconds

from steersman.ports.process.own_python import (
    bare_command,
    file_command,
    module_command,
    search_path,
)


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder in which modules lie that have the names of others, and that say so."""
    folder = tmp_path / "hostile"
    folder.mkdir()
    for name in ("json", "sitecustomize", "pip"):
        (folder / f"{name}.py").write_text("print('hostile')\n")
    return folder


def said(command: tuple[str, ...], folder: Path, path: str) -> str:
    """Run a command in a folder with a `PYTHONPATH`, and return what it prints."""
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ran = subprocess.run(
        command,
        cwd=folder,
        env={**environ, "PYTHONPATH": path, **search_path({"PYTHONPATH": path})},
        input="{}",
        capture_output=True,
        text=True,
        timeout=seconds(60),
    )
    return ran.stdout


@pytest.mark.parametrize("path", ["", ":", ".", "/nowhere:.:"])
def test_the_folder_stands_in_for_no_module(hostile: Path, tmp_path: Path, path: str) -> None:
    """Neither the current one nor a relative one in `PYTHONPATH`; a plain `-m` runs what is there."""
    program = tmp_path / "program.py"
    program.write_text("import json\nprint(json.dumps({}))\n")
    commands = (module_command("json.tool"), file_command(program), bare_command(program))
    assert [said(command, hostile, path) for command in commands] == ["{}\n"] * 3
    assert "hostile" in said((sys.executable, "-m", "json.tool"), hostile, path)


def test_what_is_beside_a_file_is_no_module(hostile: Path) -> None:
    """The folder of the program's file is not searched either."""
    program = hostile / "program.py"
    program.write_text("import json\nprint(json.dumps({}))\n")
    assert said(file_command(program), Path("/"), "") == "{}\n"
    assert said(bare_command(program), Path("/"), "") == "{}\n"


@pytest.mark.parametrize(
    ("environ", "kept"),
    [
        ({}, {}),
        ({"PYTHONPATH": ""}, {}),
        ({"PYTHONPATH": ":.:inner"}, {"PYTHONPATH": ""}),
        ({"PYTHONPATH": "/one::/two:.."}, {"PYTHONPATH": "/one:/two"}),
    ],
)
def test_only_absolute_folders_are_searched(environ: dict[str, str], kept: dict[str, str]) -> None:
    """A relative folder is another one in each process; no variable is made that was not set."""
    assert search_path(environ) == kept
