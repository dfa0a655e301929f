"""Workflows that are steps of others: whether they exist, are valid, and do not include themselves."""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ...machines.errors import ConfigError, UsageError
from ..config import with_tools_of
from ..document import Document, read_document
from ..paths import Paths
from ..problem import Problem
from .reading import load_workflow
from .spec import StepSpec, WorkflowAction, WorkflowSpec
from .variables import bind_values
from .workflow_file import find_workflow

_DEPTH = 8  # workflows in workflows
_SHARED = ("agents", "models")


def included_file(spec: WorkflowSpec, name: str, paths: Paths) -> Path:
    """Return the file that a workflow's step means: beside its own, or by name. Raises `UsageError`."""
    return find_workflow(name, paths, Path(spec.folder))


def with_included(layer: Document, spec: WorkflowSpec, paths: Paths) -> Document:
    """Add the agents, models and tools that included files declare to what a workflow's own file says.

    What is nearer to the run wins. `inclusion_problems` reports files that are missing or wrong.
    """
    data: dict[str, Any] = dict(layer.data)
    for document in _below(spec, paths, set()):
        for name in _SHARED:
            found, nearer = document.data.get(name), data.get(name, {})
            if isinstance(found, dict) and isinstance(nearer, dict):
                data[name] = {**found, **nearer}
        if "tool" in document.data:
            data["tool"] = with_tools_of(document, data.get("tool"))
    return replace(layer, data=data)


def _below(spec: WorkflowSpec, paths: Paths, seen: set[Path]) -> Iterator[Document]:
    """Give the files of the steps that are workflows, and those below them, each once."""
    for step in spec.steps:
        if not isinstance(step.action, WorkflowAction):
            continue
        try:
            path = included_file(spec, step.action.name, paths).resolve()
            if path in seen:
                continue
            seen.add(path)
            inner = load_workflow(path)
        except (UsageError, ConfigError):
            continue
        yield read_document(path)[0]
        yield from _below(inner, paths, seen)


def inclusion_problems(spec: WorkflowSpec, paths: Paths) -> Iterator[Problem]:
    """Find steps whose workflow does not exist, is invalid, or includes itself."""
    above = (Path(spec.folder, Path(spec.file).name).resolve(),)
    fine: set[Path] = set()
    for step in spec.steps:
        if isinstance(step.action, WorkflowAction):
            if message := _problem_in(spec, step, step.action, paths, above, fine):
                where = ("step", step.number, "workflow")
                yield Problem(where, message[0], message[1])


def _problem_in(
    spec: WorkflowSpec,
    step: StepSpec,
    action: WorkflowAction,
    paths: Paths,
    above: tuple[Path, ...],
    fine: set[Path],
) -> tuple[str, str] | None:
    """Return a message and a hint, if something is wrong with an included workflow.

    `above` are the files that lead to it, `fine` those in which nothing is wrong, with all below them.
    """
    path = Path(action.name)
    try:
        path = included_file(spec, action.name, paths)
        inner = load_workflow(path)
        missing = [name for name in inner.required if name not in action.variables]
        if missing and action.variables.keys() <= {*inner.required, *inner.variables}:
            hint = f"add it to `vars`: `vars = {{ {missing[0]} = … }}`"
            return f"workflow `{action.name}` needs the variable `{missing[0]}`", hint
        bind_values(inner, action.variables)
    except UsageError as error:
        return f"step `{step.id}`: {error.message}", error.hint
    except ConfigError as error:
        first = error.message.partition("\n")[0]
        return (
            f"workflow `{action.name}` is wrong: {first}",
            f"`steersman workflow check {shlex.quote(str(path))}` shows all problems",
        )
    files = (*above, path.resolve())
    if path.resolve() in above:
        names = " runs ".join(f"`{file.name}`" for file in files[files.index(path.resolve()) :])
        return f"workflows include each other: {names}", "take one of these steps away"
    if len(files) > _DEPTH:
        hint = "put the steps of one into the file that runs it"
        return f"workflows are nested more than {_DEPTH} deep", hint
    for inner_step in inner.steps if path.resolve() not in fine else ():
        if isinstance(inner_step.action, WorkflowAction):
            if found := _problem_in(inner, inner_step, inner_step.action, paths, files, fine):
                return found
    fine.add(path.resolve())
    return None
