"""`steersman workflow`: files that describe a job, checked, listed and started."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import Annotated, Any

from ...machines.errors import SteersmanError, UsageError
from ...ports.tools.text import counted
from ...workflows.document import Diagnostic, tell
from ...workflows.flow.check import Surroundings, check_file
from ...workflows.flow.workflow_file import find_workflow, list_workflows, starter
from ...workflows.foreign_file import read_text
from ...workflows.paths import Paths
from ..options import Json, argument, group, option
from ..output import show, show_document, show_table, warn

workflow = group("workflow", "steersman workflow check job.toml")


@workflow.command("check")
def workflow_check(
    file: Annotated[str, argument("FILE", "A workflow's file, or a name of the list.")],
    as_json: Json = False,
) -> int:
    """Report all mistakes in a workflow before it runs, each with its place and a hint.

    Example: steersman workflow check job.toml
    """
    around = Surroundings(paths=Paths.of(os.environ), folder=Path.cwd(), environ=os.environ)
    path = find_workflow(file, around.paths, Path())
    checked = check_file(path, around)
    if as_json:
        spec = checked.spec
        show_document(
            {
                "file": checked.document.file,
                "ok": not checked.errors,
                "workflow": spec.name if spec else None,
                "steps": [step.id for step in spec.steps] if spec else [],
                "faults": list(map(_diagnostic_view, checked.errors)),
                "warnings": list(map(_diagnostic_view, checked.warnings)),
            }
        )
    else:
        for error in checked.errors:
            warn(tell(error))
        for warning in checked.warnings:
            warn(tell(warning, "warning: "))
        steps = counted(len(checked.spec.steps) if checked.spec else 0, "step")
        found = counted(len(checked.errors), "fault") if checked.errors else f"ok: {steps}"
        if checked.warnings:
            found += f", {counted(len(checked.warnings), 'warning')}"
        show(found)
    return 2 if checked.errors else 0


def _diagnostic_view(diagnostic: Diagnostic) -> dict[str, Any]:
    return {
        "file": diagnostic.document.file,
        "line": diagnostic.line,
        "column": diagnostic.column,
        "message": diagnostic.problem.message,
        "hint": diagnostic.problem.hint,
    }


@workflow.command("list")
def workflow_list(as_json: Json = False) -> None:
    """List the workflows that have a name: yours, the built-in ones, this folder's.

    Example: steersman workflow list
    """
    found = list_workflows(Paths.of(os.environ), Path.cwd())
    if as_json:
        keys = ("name", "origin", "path", "description", "is_hidden")
        data = [{key: getattr(workflow, key) for key in keys} for workflow in found]
        show_document({"workflows": [{**view, "path": str(view["path"])} for view in data]})
        return
    rows = [
        (
            workflow.name,
            f"{workflow.origin} (by its path only)" if workflow.is_hidden else workflow.origin,
            workflow.description,
        )
        for workflow in found
    ]
    show_table(("NAME", "FROM", "WHAT IT DOES"), rows)


@workflow.command("schema")
def workflow_schema() -> None:
    """Print the JSON Schema of a workflow's file, for editors.

    Example: steersman workflow schema > steersman-workflow.schema.json
    """
    from ...workflows.schema import workflow_schema

    show_document(workflow_schema())


@workflow.command("new")
def workflow_new(
    name: Annotated[str, argument("NAME", "The name; the file will be NAME.toml.")],
    origin: Annotated[str, option("NAME", "Copy this workflow.", "--from")] = "",
) -> None:
    """Write a commented example workflow that runs.

    Example: steersman workflow new tidy
    """
    path = Path(f"{name.removesuffix('.toml')}.toml")
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}", path.stem):
        raise UsageError(
            f"`{path.stem}` is not a name", "use letters, digits, `_`, `-` and `.`, at most 64"
        )
    if origin:
        source = find_workflow(origin, Paths.of(os.environ), Path())
        text = read_text(source)
    else:
        text = starter(path.stem)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise UsageError(f"{path} already exists", "choose another name") from error
    except OSError as error:
        raise SteersmanError(f"{path} can't be written: {error.strerror}") from error
    quoted = shlex.quote(str(path))
    show(
        f"{path} is written. `steersman workflow check {quoted}` checks it, "
        f"`steersman run {quoted}` runs it."
    )
