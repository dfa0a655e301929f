"""What a release is made of: its notes, its workflow, and the health check of its image."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from support.executed import executed
from support.patience import seconds

import steersman

COMMAND = str(Path(sys.executable).with_name("steersman"))
WRITES = {
    "test": set(),
    "build": set(),
    "image": {"packages", "id-token", "attestations"},
    "publish": {"id-token"},
    "release": {"contents"},
}
"""What each job of a release may do beside reading."""


def notes(root: Path, version: str) -> "subprocess.CompletedProcess[str]":
    """Ask for the notes of a version."""
    return executed([sys.executable, str(root / ".ci" / "notes.py"), version])


def test_the_notes_of_a_release_are_its_section(root: Path, tmp_path: Path) -> None:
    """From the heading of the version to the next one, without either; a version without one fails."""
    changelog = (root / "CHANGELOG.md").read_text("utf-8")
    assert notes(root, f"v{steersman.__version__}").stdout.strip() in changelog
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci" / "notes.py").write_bytes((root / ".ci" / "notes.py").read_bytes())
    lines = (
        "# Changelog",
        "## 1.10.0 (2027-01-31)",
        "- New.",
        "",
        "- Newer.",
        "## 1.1.0",
        "- Old.",
    )
    (tmp_path / "CHANGELOG.md").write_text("\n".join([*lines, "## 1.0.0", ""]))
    assert notes(tmp_path, "v1.10.0").stdout == "- New.\n\n- Newer.\n"
    assert notes(tmp_path, "1.1.0").stdout == "- Old.\n"
    for version in ("1.0.0", "1.1", "2.0.0"):
        done = notes(tmp_path, version)
        assert (done.returncode, done.stdout) == (1, "")
        assert f"says nothing of version {version}" in done.stderr


def test_each_job_of_a_release_may_do_no_more_than_it_has_to(root: Path) -> None:
    """No job but one has a right to write of its kind, and nothing is published before it is proved."""
    workflow: dict[str, Any] = YAML(typ="safe").load(root / ".github" / "workflows" / "release.yml")
    jobs = workflow["jobs"]
    assert workflow["permissions"] == {}
    written = {
        name: {right for right, level in job["permissions"].items() if level == "write"}
        for name, job in jobs.items()
    }
    assert written == WRITES
    assert [jobs[name]["needs"] for name in ("build", "publish", "image")] == [
        "test",
        *["build"] * 2,
    ]
    runs = [step.get("run", "") for step in jobs["build"]["steps"]]
    assert 'make release-check ARGS="--tag $GITHUB_REF_NAME"' in runs


@pytest.fixture
def environ(tmp_path: Path) -> Mapping[str, str]:
    """The environment of a container with a home."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "STEERSMAN_HOME": str(tmp_path / "home"),
    }


def test_the_health_of_a_container_is_that_of_its_program(
    root: Path, tmp_path: Path, environ: Mapping[str, str]
) -> None:
    """A server has to serve, and for all else the store has to answer: what does not is named."""

    def health(pid: int) -> tuple[int, str]:
        check = [sys.executable, str(root / ".ci" / "image_health.py"), str(pid)]
        done = executed(check, env=environ)
        return done.returncode, done.stderr.strip()

    waiting = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with (
        subprocess.Popen([*waiting, "serve"], stdin=subprocess.PIPE) as server,
        subprocess.Popen([*waiting, "chat"], stdin=subprocess.PIPE) as chat,
    ):
        assert health(chat.pid) == (0, "")
        assert health(server.pid) == (1, "the server does not serve")
        assert executed([COMMAND, "serve"], env=environ).returncode == 0
        try:
            assert health(server.pid) == (0, "")
        finally:
            assert executed([COMMAND, "serve", "stop"], env=environ).returncode == 0
        assert health(server.pid) == (1, "the server does not serve")
        (tmp_path / "home" / "state" / "journal.db").write_text("no database " * 1000)
        code, said = health(chat.pid)
        assert code == 1
        assert "journal.db" in said
        for program in (server, chat):
            program.communicate(timeout=seconds(60))
