"""`steersman workflow …`: what it prints, and how it ends."""

import json
from pathlib import Path
from typing import Any

import pytest

BROKEN = '[workflow]\nname = "job"\n[[step]]\nid = "a"\nrun = ["echo", "{{ vars.x }}"]\n'


def test_a_mistake_is_reported_where_editors_find_it(command: Any, folder: Path) -> None:
    """Faults go to standard error as FILE:LINE:COL, a count to standard output, the exit code is 2."""
    (folder / "job.toml").write_text(BROKEN)
    done = command("workflow", "check", "job.toml")
    assert (done.code, done.out) == (2, "1 fault\n")
    assert done.err.startswith("job.toml:5:16: `run` uses `vars.x`, which is not there\n")
    assert "add it to `[workflow.vars]`" in done.err


def test_mistakes_as_data(command: Any, folder: Path) -> None:
    """`--json` prints one document, with the same exit code and nothing else."""
    (folder / "job.toml").write_text(BROKEN)
    done = command("workflow", "check", "job.toml", "--json")
    assert (done.code, done.err) == (2, "")
    assert json.loads(done.out) == {
        "file": "job.toml",
        "ok": False,
        "workflow": "job",
        "steps": ["a"],
        "faults": [
            {
                "file": "job.toml",
                "line": 5,
                "column": 16,
                "message": "`run` uses `vars.x`, which is not there",
                "hint": "add it to `[workflow.vars]`",
            }
        ],
        "warnings": [],
    }


def test_warnings_stop_nothing(command: Any, folder: Path) -> None:
    """What is probably not meant is said, and the exit code is 0."""
    text = BROKEN.replace("echo", "no-such-program").replace("{{ vars.x }}", "")
    (folder / "job.toml").write_text(text)
    done = command("workflow", "check", "job.toml")
    assert (done.code, done.out) == (0, "ok: 1 step, 1 warning\n")
    assert done.err.startswith("job.toml:5:7: warning: there is no program `no-such-program` now\n")


def test_a_file_that_is_not_there(command: Any) -> None:
    """It is said in one line, without a place in it."""
    done = command("workflow", "check", "nowhere.toml")
    assert (done.code, done.out) == (2, "1 fault\n")
    assert done.err.startswith("nowhere.toml: the file can't be read: it is not there\n")


def test_a_name_that_nothing_has(command: Any) -> None:
    """The nearest name is offered."""
    done = command("workflow", "check", "codemode")
    assert (done.code, done.out) == (2, "")
    assert "there is no workflow `codemode`" in done.err
    assert "did you mean `codemod`?" in done.err


@pytest.mark.parametrize("is_trusted", [True, False])
def test_names_of_a_folder_never_hide_others(
    command: Any, folder: Path, home: Path, is_trusted: bool
) -> None:
    """A person's own comes first, then what is shipped; what a folder brings hides neither.

    Unless the folder is trusted, what it brings has no name.
    """
    for place in (home / "workflows", folder / ".steersman" / "workflows"):
        place.mkdir(parents=True)
        for name in ("codemod", place.parent.name.strip(".")):
            head = f'description = "of {place.parent.name}"'
            (place / f"{name}.toml").write_text(f"[workflow]\n{head}\n")
    if is_trusted:
        assert command("trust", "--yes").code == 0
    listed = json.loads(command("workflow", "list", "--json").out)["workflows"]
    told = [(row["name"], row["origin"], row["is_hidden"]) for row in listed]
    assert told == [
        ("codemod", "user", False),
        (home.name, "user", False),
        ("codemod", "built-in", True),
        ("fix-tests", "built-in", False),
        ("research", "built-in", False),
        ("review", "built-in", False),
        ("codemod", "project", True),
        ("steersman", "project", not is_trusted),
    ]
    assert listed[0]["description"] == f"of {home.name}"
    found = command("workflow", "check", "steersman")
    assert ("there is no workflow `steersman`" in found.err) == (not is_trusted)
    for part in (
        "which is not trusted: `steersman trust`",
        "as `.steersman/workflows/steersman.toml`",
    ):
        assert (part in found.err) == (not is_trusted)


def test_a_new_workflow_is_sound(command: Any, folder: Path) -> None:
    """What is written to begin with has no fault and no warning; nothing is written over."""
    done = command("workflow", "new", "tidy")
    assert (done.code, done.err) == (0, "")
    assert "steersman run tidy.toml" in done.out
    assert command("workflow", "check", "tidy.toml").out == "ok: 4 steps\n"
    assert 'name = "tidy"' in (folder / "tidy.toml").read_text()
    again = command("workflow", "new", "tidy.toml")
    assert (again.code, again.out) == (2, "")
    assert "tidy.toml already exists" in again.err


def test_a_new_workflow_may_be_a_copy(command: Any, folder: Path) -> None:
    """A shipped one can be taken and changed."""
    assert command("workflow", "new", "mine", "--from", "codemod").code == 0
    done = command("workflow", "check", "./mine.toml")
    assert (done.code, done.out) == (0, "ok: 6 steps\n")


@pytest.mark.parametrize("name", ["a b", "-x", "../..", ""])
def test_a_new_workflow_needs_a_name(command: Any, name: str) -> None:
    """What is no name is refused before anything is written."""
    done = command("workflow", "new", "--", name)
    assert (done.code, done.out) == (2, "")
    assert "is not a name" in done.err


def test_a_dry_run_says_what_would_be_done_and_does_nothing(command: Any, folder: Path) -> None:
    """The plan comes as text and as a diagram, or as data; no step runs."""
    text = '[workflow]\nname = "job"\n[workflow.vars]\nfile = "made"\n[[step]]\nid = "make"\n'
    (folder / "job.toml").write_text(text + 'run = ["touch", "{{ vars.file }}"]\n')
    done = command("run", "job.toml", "--var", "file=other", "--dry-run")
    assert (done.code, done.err) == (0, "")
    assert "  file = other\n" in done.out
    assert "      1  make  touch other\n" in done.out
    assert '    s0["make"]\n' in done.out
    data = json.loads(command("run", "job.toml", "--dry-run", "--json").out)
    assert data["variables"] == {"file": "made"}
    assert [(step["step"], step["does"]) for step in data["steps"]] == [("make", "touch made")]
    assert [path.name for path in folder.iterdir()] == ["job.toml"]
