"""`steersman run`, as people type it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer


def run_file(
    file: Annotated[
        str, typer.Argument(metavar="[FILE]", help="A workflow's file, or the name of one.")
    ] = "",
    var: Annotated[
        list[str] | None,
        typer.Option("--var", metavar="NAME=VALUE", help="Set a variable; may be repeated."),
    ] = None,
    resume: Annotated[
        str,
        typer.Option("--resume", metavar="RUN", help="Go on with this run, or with the `last`."),
    ] = "",
    again: Annotated[
        list[str] | None,
        typer.Option(
            "--again", metavar="ITEM", help="Do this again, of which nobody knows how it ended."
        ),
    ] = None,
    done: Annotated[
        list[str] | None,
        typer.Option("--done", metavar="ITEM", help="Take this as done."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be done.")
    ] = False,
    cwd: Annotated[Path | None, typer.Option(metavar="DIR", help="The folder to work in.")] = None,
    model: Annotated[str, typer.Option(metavar="NAME", help="A model for all agents.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="JSON lines in and out.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Allow what agents would ask for.")] = False,
) -> int:
    """Run a workflow; Ctrl-C interrupts it, and --resume goes on where it was.

    Example: steersman run codemod.toml --var find=old_name
    """
    from ..runs.options import RunOptions
    from ..runs.run import run_workflow

    options = RunOptions(
        file,
        tuple(var or ()),
        resume,
        tuple(again or ()),
        tuple(done or ()),
        cwd or Path.cwd(),
        model,
        as_json,
        dry_run,
        yes,
    )
    return run_workflow(options, os.environ)
