"""`steersman simulate`: what it plays, what it reports, and that it runs nothing."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from simulation.test_workflow import GOAL

from steersman.workflows.suggestions import TABLES

HARM = """
import pathlib
pathlib.Path("import.txt").touch()
def touch(): pathlib.Path("call.txt").touch()
"""
FRAGILE = """
[workflow]
name = "fragile"
[[step]]
id = "list"
run = ["ls"]
output = "lines"
[[step]]
id = "first"
needs = ["list"]
run = ["cat", "{{ steps.list.output[0] }}"]
"""


def test_a_workflow_is_played_and_nothing_of_it_is_run(command: Any, folder: Path) -> None:
    """Commands, functions, agents and gates are made up: no file appears, not even by an import."""
    (folder / "harmful.toml").write_text(GOAL)
    (folder / "harm.py").write_text(HARM)
    done = command("simulate", "harmful.toml", "--seeds", "30")
    assert (done.code, done.err) == (0, "")
    figures = r"30 seeds kept every promise: [\d,]+ steps, [\d.]+ simulated hours, in [\d.]+ s\n"
    assert re.fullmatch(figures, done.out)
    assert {path.name for path in folder.iterdir()} <= {"harmful.toml", "harm.py"}


def test_a_step_that_cannot_begin_is_found_and_played_again(command: Any, folder: Path) -> None:
    """A broken promise is one line that plays it again; the exit code is 1."""
    (folder / "my job.toml").write_text(FRAGILE)
    done = command("simulate", "my job.toml", "--seeds", "20", "--seed", "7")
    assert done.code == 1
    *lines, figures = (line for line in done.out.splitlines() if not line.startswith(" "))
    assert figures.startswith(f"{len(lines)} of 20 seeds broke a promise: ")
    found = re.fullmatch(r"seed (\d+): No step fails .* Replay it: (.*)", lines[0])
    assert found is not None, lines[0]
    assert "But step `first` cannot begin: uses an undefined value: " in lines[0]
    assert found[2] == f"steersman simulate 'my job.toml' --seed {found[1]} --seeds 1"
    again = command(*shlex.split(found[2])[1:])
    assert again.out.splitlines()[0] == lines[0]


def test_sessions_are_played_without_a_file(command: Any) -> None:
    """Without a file sessions are played, with goals and without."""
    done = command("simulate", "--seeds", "5")
    assert done.code == 0
    assert done.out.startswith("5 seeds kept every promise: ")


@pytest.mark.nightly
def test_a_broken_run_is_shrunk_and_played_again(command: Any) -> None:
    """The first run that broke a promise is shrunk; one line plays it again, message by message."""
    done = command("simulate", "cancel-on-message", "--seed", "1", "--seeds", "60")
    lines = done.out.splitlines()
    at, line = next((at, line) for at, line in enumerate(lines) if line.startswith("  shrunk"))
    found = re.fullmatch(r"  shrunk to (\d+) of (\d+) choices: (.*)", line)
    assert found is not None, line
    assert int(found[1]) <= 20 < int(found[2])
    again = command(*shlex.split(found[3])[1:])
    assert again.code == 1
    first, *messages = again.out.splitlines()
    assert "ChildCancelled" in first
    assert messages == lines[at + 1 : at + 1 + len(messages)]
    assert any(message.startswith("    ann: ") for message in messages)
    safe = command("simulate", "never-cancel", *shlex.split(found[3])[3:])
    assert (safe.code, safe.out.splitlines()[0]) == (
        0,
        "the run of these choices keeps every promise",
    )
    assert command("simulate", "--choices", "nonsense").code == 2


@pytest.mark.nightly
def test_own_routes_are_played_by_their_file(command: Any, folder: Path) -> None:
    """A file with a row by which talk stops a subagent is found out."""
    text = (TABLES / "cancel-on-message.toml").read_text()
    (folder / "routes.toml").write_text(text.replace("cancel-on-message", "mine"))
    done = command("simulate", "routes.toml", "--seed", "1", "--seeds", "60")
    assert done.code == 1, done.err
    assert "Replay it: steersman simulate routes.toml --seed" in done.out


def test_time_ends_it(command: Any) -> None:
    """With minutes as many seeds are played as fit, at least one."""
    done = command("simulate", "--minutes", "0.01")
    assert done.code == 0
    assert re.match(r"[1-9]\d* seeds? kept every promise", done.out)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("missing.toml",), "there is no file `missing.toml`"),
        (("fix-test",), "did you mean `fix-tests`?"),
        (("notes.toml",), "`notes.toml` is neither a workflow nor a routing table"),
        (("broken.toml",), "broken.toml:3"),
        (("lost.toml",), "there is no workflow `elsewhere`"),
        (("--seeds", "0"), "--seeds"),
        (("--seed", "-1"), "--seed"),
        (("--minutes", "0"), "--minutes"),
    ],
)
def test_bad_input_is_explained(
    command: Any, folder: Path, arguments: tuple[str, ...], text: str
) -> None:
    """What cannot be played is named, and nothing is played."""
    (folder / "notes.toml").write_text('title = "notes"\n')
    (folder / "broken.toml").write_text('[workflow]\nname = "x"\n[[step]\n')
    (folder / "lost.toml").write_text(
        '[workflow]\nname = "x"\n[[step]]\nid = "a"\nworkflow = "elsewhere"\n'
    )
    done = command("simulate", *arguments)
    assert done.code == 2
    assert text in done.err
    assert "kept every promise" not in done.out
