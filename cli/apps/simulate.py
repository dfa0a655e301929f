"""The command line of `steersman simulate`."""

from __future__ import annotations

import os
from typing import Annotated

import typer


def simulate(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A workflow or a routing table, by file or name; if left out, sessions under the table "
            "in force here.",
        ),
    ] = "",
    seeds: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Seeds to play: 100, or as many as fit into --minutes."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="FIRST", min=0, help="The first seed.")] = 0,
    minutes: Annotated[
        float | None, typer.Option(metavar="M", min=0.01, help="Begin no more after so long.")
    ] = None,
    choices: Annotated[
        str,
        typer.Option(
            metavar="CHOICES", help="Play one shrunken run again; a broken promise prints them."
        ),
    ] = "",
) -> int:
    """Play random runs with stops, failures and crashes, and check every promise in each.

    Nothing is really run: no command, tool or model. One line for each seed that broke a promise; the
    first that broke one is shrunk to a few choices.

    Example: steersman simulate job.toml --seeds 1000
    """
    from ..simulate import simulate_file

    return simulate_file(
        os.environ, file, first=seed, count=seeds, minutes=minutes, choices=choices
    )
