"""`steersman schedule`."""

from __future__ import annotations

import typer

from ..options import Json

schedule = typer.Typer(
    help="What `steersman serve` does at planned times.\n\nExample: steersman schedule list",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@schedule.callback()
def main() -> None:
    """Make `list` a command of its own, although it is the only one."""


@schedule.command("list")
def show_all(as_json: Json = False) -> int:
    """List the schedules: when each happens next, and what came of it last.

    Example: steersman schedule list
    """
    from ..schedule import show_all as show

    return show(as_json=as_json)
