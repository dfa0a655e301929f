"""Files that are no files, have no end, or are nested as deep as they are long: each is a plain error."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steersman.gateway.views.queue_file import read_file
from steersman.gateway.views.session_file import read_export
from steersman.machines.errors import SteersmanError
from steersman.machines.json_shape import parse_json
from steersman.ports.models.scripted import load_script
from steersman.workflows.agent_definition import read_agent
from steersman.workflows.config import load
from steersman.workflows.document import read_document, tell
from steersman.workflows.flow.check import Surroundings, check_file
from steersman.workflows.flow.workflow_file import list_workflows
from steersman.workflows.foreign_file import LARGEST, parse_toml
from steersman.workflows.paths import Paths
from steersman.workflows.trust import is_trusted, key_variables, trust

TEXTS = {
    "brackets": "x = " + "[" * 2_000,
    "closed brackets": "x = " + "[" * 90 + "]" * 90,
    "tables": "x = " + "{a=" * 90 + "1" + "}" * 90,
    "dotted key": ".".join("a" * 6_000) + " = 1",
    "dotted quotes": '"a" . ' * 6_000 + "a = 1",
    "dotted table": "[" + ".".join("a" * 6_000) + "]",
    "long number": "x = " + "1" * 5_000,
    "zeros": "\0" * 100,
    "long": "# " * LARGEST,
}


def hostile(path: Path, kind: str) -> Path:
    """Make the file of one kind."""
    path.parent.mkdir(parents=True, exist_ok=True)
    match kind:
        case "device":
            path.symlink_to("/dev/zero")
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case _:
            path.write_text(TEXTS[kind])
    return path


KINDS = ("device", "pipe", "folder", *TEXTS)
READERS: dict[str, Callable[[Path], Any]] = {
    "queue": read_file,
    "export": read_export,
    "script": load_script,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reader", READERS)
def test_a_hostile_file_is_an_error(tmp_path: Path, reader: str, kind: str) -> None:
    """Whoever reads it says so in a sentence."""
    with pytest.raises(SteersmanError):
        READERS[reader](hostile(tmp_path / "file.toml", kind))


@pytest.mark.parametrize("kind", KINDS)
def test_a_hostile_document_is_diagnosed(tmp_path: Path, kind: str) -> None:
    """It has no data, and one diagnostic."""
    document, (diagnostic,) = read_document(hostile(tmp_path / "file.toml", kind))
    assert document.data == {}
    agent, _, (same,) = read_agent(tmp_path / "file.toml")
    assert agent is None
    assert same.problem == diagnostic.problem
    assert len(diagnostic.problem.message) < 120


@pytest.mark.parametrize("kind", KINDS)
def test_a_hostile_project_is_looked_at(tmp_path: Path, paths: Paths, kind: str) -> None:
    """Its workflow is listed without a description, its settings are an error, and nothing is trusted."""
    workflow = hostile(tmp_path / ".steersman" / "workflows" / "z.toml", kind)
    (found,) = (each for each in list_workflows(paths, tmp_path) if each.origin == "project")
    assert (found.name, found.description) == ("z", "")
    checked = check_file(workflow, Surroundings(paths=paths, folder=tmp_path, environ={}))
    assert checked.spec is None
    assert [bool(tell(error)) for error in checked.errors] == [True]
    hostile(tmp_path / "steersman.toml", kind)
    with pytest.raises(SteersmanError):
        load(paths, tmp_path, {})
    assert not is_trusted(paths, tmp_path)
    if kind in ("device", "pipe", "folder"):
        with pytest.raises(SteersmanError):
            trust(paths, tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_hostile_configuration_is_an_error(tmp_path: Path, paths: Paths, kind: str) -> None:
    """The person's own file is read with the same bounds."""
    hostile(paths.config_file, kind)
    assert key_variables(paths, tmp_path, {}) == frozenset()
    with pytest.raises(SteersmanError):
        load(paths, tmp_path, {})


def test_what_people_write_is_not_refused() -> None:
    """Depths that somebody may need, dots in texts, and a mark at the begin are no reason."""
    assert parse_toml("x = '" + "a.b " * 100 + "'\n" + ".".join("a" * 30) + " = 1")
    assert parse_json("[" * 60 + "]" * 60)
