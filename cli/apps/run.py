"""The command line of `steersman run`."""

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
        typer.Option("--resume", metavar="RUN", help="Resume this run, or the `last`."),
    ] = "",
    again: Annotated[
        list[str] | None,
        typer.Option("--again", metavar="ITEM", help="Repeat this work of unknown outcome."),
    ] = None,
    done: Annotated[
        list[str] | None,
        typer.Option("--done", metavar="ITEM", help="Treat this work as done."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be done.")
    ] = False,
    on: Annotated[
        str,
        typer.Option(
            metavar="CLUSTER",
            help="Where remote steps run: `ray`, `ray:HOST:PORT` or `ray://HOST:PORT`.",
        ),
    ] = "",
    cwd: Annotated[Path | None, typer.Option(metavar="DIR", help="The folder to work in.")] = None,
    model: Annotated[str, typer.Option(metavar="NAME", help="A model for all agents.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="JSON lines in and out.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Allow calls that need permission.")] = False,
) -> int:
    """Run a workflow; Ctrl-C interrupts it, and --resume continues it.

    Example: steersman run codemod.toml --var find=old_name
    """
    from ..runs.run import RunOptions, run_workflow

    options = RunOptions(
        file=file,
        variables=tuple(var or ()),
        resume=resume,
        again=tuple(again or ()),
        done=tuple(done or ()),
        cluster=on,
        folder=cwd or Path.cwd(),
        model=model,
        is_json=as_json,
        is_dry=dry_run,
        is_yes=yes,
    )
    return run_workflow(options, os.environ)
