"""A step's work that is a session of its own: what it is told, and by which name it is called."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, cast

from ...machines.errors import UsageError

WORKFLOW: Final = "workflow "
"""How the name of an agent begins that is no agent but another workflow."""


def included(name: str, variables: Mapping[str, Any]) -> str:
    """Write the task of a workflow that is a step of another; `given_in` reads it."""
    said = json.dumps(dict(variables), ensure_ascii=False) if variables else ""
    return f"run {name} {said}".rstrip()


def given_in(name: str, task: str) -> dict[str, Any]:
    """Read the variables out of a task. Raises `UsageError` for what is none."""
    found: Any = None
    said = task.removeprefix(f"run {name}").strip()
    with suppress(ValueError):
        found = json.loads(said) if said else {}
    if not isinstance(found, dict):
        raise UsageError(f"`{task[:80]}` does not run the workflow `{name}`")
    return cast("dict[str, Any]", found)
