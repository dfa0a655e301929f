"""Workflow files for the tests of their declaration."""

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from steersman.workflows.flow.reading import load_workflow
from steersman.workflows.flow.spec import WorkflowSpec


@pytest.fixture
def read(tmp_path: Path) -> Callable[[str], WorkflowSpec]:
    """Read a text as a workflow's file."""

    def read_text(text: str) -> WorkflowSpec:
        path = tmp_path / "job.toml"
        path.write_text(dedent(text), encoding="utf-8")
        return load_workflow(path)

    return read_text
