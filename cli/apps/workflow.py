"""The command line of `steersman workflow …`."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from ..options import Json

workflow = typer.Typer(
    help="Check, list and create workflows; `steersman run` runs one.\n\n"
    "Example: steersman workflow check job.toml",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@workflow.command("check")
def workflow_check(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A workflow's file, or a name of the list.")
    ],
    as_json: Json = False,
) -> int:
    """Report all mistakes in a workflow before it runs, each with its place and a hint.

    Example: steersman workflow check job.toml
    """
    from ..workflow import check_workflow

    return check_workflow(os.environ, file, as_json=as_json)


@workflow.command("list")
def workflow_list(as_json: Json = False) -> int:
    """List the workflows that have a name: yours, the built-in ones, this folder's.

    Example: steersman workflow list
    """
    from ..workflow import show_workflows

    return show_workflows(os.environ, as_json=as_json)


@workflow.command("schema")
def workflow_schema() -> int:
    """Print the JSON Schema of a workflow's file, for editors.

    Example: steersman workflow schema > steersman-workflow.schema.json
    """
    from ..workflow import show_schema

    return show_schema()


@workflow.command("new")
def workflow_new(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The name; the file will be NAME.toml.")
    ],
    origin: Annotated[str, typer.Option("--from", metavar="NAME", help="Copy this workflow.")] = "",
) -> int:
    """Write a commented example workflow that runs.

    Example: steersman workflow new tidy
    """
    from ..workflow import create_workflow

    return create_workflow(os.environ, name, origin)
